//! Many seeds on all threads, what they met, and what to do about one that failed.

use crate::faults::Tally;
use crate::planted::{Bug, Planted};
use crate::trouble::Violation;
use crate::world::World;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    pub(crate) tally: Tally,
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
    let (next, stop) = (AtomicU64::new(seeds.start), AtomicBool::new(false));
    let outcome = Mutex::new(Outcome { report: Report::default(), failure: None });
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        break;
                    }
                    let (world, found) = run_seed(seed, bug, false);
                    let mut outcome = outcome.lock().expect("no thread panics with the lock");
                    outcome.report.add(&world);
                    if let Some(violation) = found {
                        stop.store(true, Ordering::Relaxed);
                        // Of several, the lowest.
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

/// One run. A panic of the core is a violation like others.
fn run_seed(seed: u64, bug: Option<Bug>, keep_diary: bool) -> (World, Option<Violation>) {
    let mut world = World::new(seed, bug.map(Planted::new), keep_diary);
    let found = match catch_unwind(AssertUnwindSafe(|| world.run())) {
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
        self.heal_millis_max = self.heal_millis_max.max(world.now.saturating_sub(world.plan.heal_at));
        self.tally.add(&world.tally);
        for job in world.ledger.durable.jobs.values() {
            self.units_committed +=
                job.frames.values().map(|frame| frame.committed.len() as u64).sum::<u64>();
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
        let nodes = crate::plan::NODES;
        let (wall, hours) = (self.wall.as_secs_f64(), self.virtual_millis as f64 / 3.6e6);
        let lines = [
            format!("{} seeds x {nodes} nodes in {wall:.1} s, {hours:.1} hours of virtual time", self.runs),
            format!(
                "{} steps, {} records, {} units committed",
                self.steps, self.records, self.units_committed
            ),
            format!(
                "jobs: {} done, {} failed, {} cancelled; the last ended {:.0} s after the last fault at most",
                self.jobs_done,
                self.jobs_failed,
                self.jobs_cancelled,
                self.heal_millis_max as f64 / 1e3
            ),
            "  times met  fault".to_owned(),
        ];
        format!("{}\n{}", lines.join("\n"), self.tally.table())
    }
}

impl Failure {
    /// Runs the seed once more with its diary kept, and says where that is and how to do it again.
    pub(crate) fn explain(&self) -> String {
        let Self { seed, violation } = self;
        let (world, again) = run_seed(*seed, None, true);
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/sim");
        let path = folder.join(format!("{seed:#x}.events"));
        let mut diary = world.diary.unwrap_or_default();
        diary.push(format!("violation: {}", violation.0));
        let written = std::fs::create_dir_all(&folder).and_then(|()| std::fs::write(&path, diary.join("\n")));
        let events = match written {
            Ok(()) => format!("events: {}", path.display()),
            Err(error) => format!("events could not be written to {}: {error}", path.display()),
        };
        let same =
            if again.as_ref() == Some(violation) { "" } else { "\nthe seed did not fail the same way again" };
        format!(
            "seed {seed:#x}: {}\n{events}{same}\nagain: TESSERA_SIM_SEED={seed:#x} cargo test --release --test sim -- --nocapture",
            violation.0
        )
    }
}
