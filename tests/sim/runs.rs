//! Many seeds on all threads, what they met, and what to do about one that failed.

use crate::checks::violation::Violation;
use crate::faults::Tally;
use crate::faults::planted::{Bug, Planted};
use crate::situations::Met;
use crate::world::World;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tessera_protocol::status::JobState;

/// What all runs together met.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) runs: u64,
    steps: u64,
    records: u64,
    virtual_millis: u64,
    units_committed: u64,
    jobs_done: u64,
    jobs_failed: u64,
    jobs_cancelled: u64,
    heal_millis_max: u64,
    wall: Duration,
    nodes: u64,
    answers: u64,
    pub(crate) tally: Tally,
    pub(crate) met: Met,
}

/// A seed that broke an invariant.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) seed: u64,
    pub(crate) violation: Violation,
}

/// What came of some seeds.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) report: Report,
    pub(crate) failure: Option<Failure>,
}

/// Runs seeds on all threads until the first that fails.
pub(crate) fn run_seeds(seeds: Range<u64>, bug: Option<Bug>) -> Outcome {
    let started = Instant::now();
    let (next, failed) = (AtomicU64::new(seeds.start), AtomicU64::new(u64::MAX));
    let outcome = Mutex::new(Outcome { report: Report::default(), failure: None });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let is_idle = || failed.load(Ordering::Relaxed) < seed;
                    let (world, found) = run_seed(seed, bug, (Look::Far, &is_idle));
                    let mut outcome = outcome.lock().expect("no thread panics with the lock");
                    outcome.report.add(&world);
                    if let Some(violation) = found {
                        // Of several, the lowest: whoever runs a higher one need not go on.
                        failed.fetch_min(seed, Ordering::Relaxed);
                        if outcome.failure.as_ref().is_none_or(|other| seed < other.seed) {
                            outcome.failure = Some(Failure { seed, violation });
                        }
                    }
                }
            });
        }
    });
    let mut outcome = outcome.into_inner().expect("no thread panics with the lock");
    outcome.report.wall = started.elapsed();
    outcome
}

/// How closely a run is looked at. It goes the same way in any case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Look {
    /// As always.
    Far,
    /// With a diary.
    Diary,
    /// With a diary, and everything compared with everything after every step.
    Close,
}

/// One run. A panic of the core is a violation like others.
/// Goes on until it is idle to.
fn run_seed(
    seed: u64,
    bug: Option<Bug>,
    (look, is_idle): (Look, &dyn Fn() -> bool),
) -> (World, Option<Violation>) {
    let mut world = World::new(seed, bug.map(Planted::new), look != Look::Far);
    if look == Look::Close {
        world.whole_every = 1;
    }
    let found = match catch_unwind(AssertUnwindSafe(|| world.run(is_idle))) {
        Ok(checked) => checked.err(),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
            Some(Violation(format!("panic: {text}")))
        }
    };
    (world, found)
}

impl Report {
    fn add(&mut self, world: &World) {
        self.runs += 1;
        self.steps += world.steps;
        self.records += world.disk.history.len() as u64;
        self.virtual_millis += world.now;
        self.heal_millis_max =
            self.heal_millis_max.max(world.now.saturating_sub(world.plan.heal_at));
        self.nodes += world.nodes.len() as u64;
        self.answers += world.history.answers();
        self.tally.add(&world.tally);
        self.met.add(&world.met);
        for job in world.ledger.durable.jobs.values() {
            self.units_committed +=
                job.frames.values().map(|frame| frame.sampled() as u64).sum::<u64>();
            match job.ended {
                Some(JobState::Done) => self.jobs_done += 1,
                Some(JobState::Cancelled) => self.jobs_cancelled += 1,
                Some(_) => self.jobs_failed += 1,
                None => {}
            }
        }
    }

    /// A table for people.
    pub(crate) fn summary(&self) -> String {
        let nodes = self.nodes as f64 / self.runs.max(1) as f64;
        let (wall, hours) = (self.wall.as_secs_f64(), self.virtual_millis as f64 / 3.6e6);
        let lines = [
            format!(
                "{} seeds x {nodes:.0} nodes (at least {}) in {wall:.1} s, {hours:.1} hours of \
                    virtual time",
                self.runs,
                crate::world::plan::NODES
            ),
            format!(
                "{} steps, {} records, {} units committed, {} answers seen by clients and nodes",
                self.steps, self.records, self.units_committed, self.answers
            ),
            format!(
                "jobs: {} done, {} failed, {} cancelled; the last ended {:.0} s after the last \
                    fault at most",
                self.jobs_done,
                self.jobs_failed,
                self.jobs_cancelled,
                self.heal_millis_max as f64 / 1e3
            ),
            "  times met  fault".to_owned(),
        ];
        format!(
            "{}\n{}  times met   in runs  situation\n{}",
            lines.join("\n"),
            self.tally.table(),
            self.met.table()
        )
    }
}

/// The commit that is checked out, with `+` where files differ from it.
fn commit() -> String {
    let git = |arguments: &[&str]| {
        let folder = env!("CARGO_MANIFEST_DIR");
        let output = std::process::Command::new("git")
            .arg("-C")
            .arg(folder)
            .args(arguments)
            .output()
            .ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(head) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|text| !text.is_empty());
    format!("{head}{}", if changed { "+" } else { "" })
}

impl Failure {
    /// Runs the seed twice more, once as before and once looked at closely, and says where the
    /// diary is and how to do it again.
    pub(crate) fn explain(&self) -> String {
        let Self { seed, violation } = self;
        let (far, again) = run_seed(*seed, None, (Look::Diary, &|| false));
        let (close, first) = run_seed(*seed, None, (Look::Close, &|| false));
        let sooner = close.steps < far.steps;
        let mut diary = if sooner { close.diary } else { far.diary }.unwrap_or_default();
        diary.push(format!("violation: {}", violation.0));
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/sim");
        let path = folder.join(format!("{seed:#x}.events"));
        let written =
            std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, diary.join("\n")));
        let events = match written {
            Ok(()) => format!("events: {}", path.display()),
            Err(error) => format!("events could not be written to {}: {error}", path.display()),
        };
        let same = if again.as_ref() == Some(violation) {
            ""
        } else {
            "\nthe seed did not fail the same way again"
        };
        let first = match first.filter(|first| sooner && first != violation) {
            Some(first) => format!("\nwith everything checked after every step: {}", first.0),
            None => String::new(),
        };
        format!(
            "seed {seed:#x} at commit {}: {}{first}\n{events}{same}\n\
             again: TESSERA_SIM_SEED={seed:#x} cargo test \
             --release -p tessera-sim no_seed -- --nocapture",
            commit(),
            violation.0
        )
    }
}
