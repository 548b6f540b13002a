//! One node of ten flips a bit in one of each hundred of its results: when it is found, and whether
//! the pictures are right.

use crate::mixed_speeds::render;
use crate::model::film::film_of;
use crate::world::random::mix;
use std::collections::BTreeMap;
use tessera_core::{Action, Arrived, Core, Grid, Input, Moment, Record, SessionId, Settings};
use tessera_protocol::ids::{BlobHash, JobId, Lease, UnitKey};
use tessera_protocol::node::CoordinatorToNode;
use tessera_protocol::status::{FrameFile, JobState};
use tessera_support::inputs;
use uuid::Uuid;

const NODES: u64 = 10;
/// The one that lies.
const FORGER: u64 = 3;
/// One in so many of its results is wrong.
const LIES: u64 = 100;
/// Results of the forger within which it must be found.
const FOUND_WITHIN: u64 = 200;
/// Seeds of a run.
const SEEDS: u64 = 40;
const JOB: JobId = JobId(Uuid::from_u128(1));

/// What came of a run.
struct Outcome {
    /// Results that all nodes made.
    results: u64,
    units: u64,
    /// Results of the forger when it was found; None: it was not.
    found_after: Option<u64>,
    /// Units that were taken back.
    taken_back: usize,
}

struct Farm {
    core: Core,
    seed: u64,
    grid: Grid,
    /// By milliseconds, and then by the order in which they came.
    agenda: BTreeMap<(u64, u64), Input>,
    now: u64,
    events: u64,
    results: Vec<u64>,
    committed: BTreeMap<UnitKey, BlobHash>,
    outcome: Outcome,
    lies: bool,
}

fn join(node: u64) -> Input {
    inputs::joined(node, inputs::join(node, 2))
}

/// What a unit renders to.
fn truth(unit: UnitKey) -> BlobHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(
        &mix(u64::from(unit.frame.0) << 32 | u64::from(unit.unit.0)).to_le_bytes(),
    );
    BlobHash(hash)
}

impl Farm {
    fn run(settings: Settings, seed: u64, lies: bool) -> Outcome {
        let spec = render(640, 640, 16, 30);
        let grid = Grid::of(&spec);
        let units = u64::from(grid.units()) * 30;
        let mut farm = Self {
            core: Core::new(settings, Moment(0)),
            seed,
            grid,
            agenda: BTreeMap::new(),
            now: 0,
            events: 0,
            results: vec![0; NODES as usize],
            committed: BTreeMap::new(),
            outcome: Outcome { results: 0, units, found_after: None, taken_back: 0 },
            lies,
        };
        (0..NODES).for_each(|node| farm.feed(join(node)));
        farm.feed(inputs::submit(JOB, inputs::job(spec)));
        while let Some(((at, _), input)) = farm.agenda.pop_first() {
            assert!(farm.events < 1_000_000, "seed {seed}: no end");
            farm.now = at;
            farm.feed(input);
        }
        farm.core.verify().expect("the core stands by its invariants");
        let state = farm.core.job_summary(JOB).map(|job| job.state);
        assert_eq!(state, Some(JobState::Done), "seed {seed}");
        farm.outcome
    }

    fn after(&mut self, millis: u64, input: Input) {
        self.events += 1;
        self.agenda.insert((self.now + millis, self.events), input);
    }

    fn feed(&mut self, input: Input) {
        self.core.handle(input, Moment(self.now));
        let step = self.core.take_step();
        step.records.iter().for_each(|record| self.note(record));
        for action in step.actions {
            match action {
                Action::Send { session, message: CoordinatorToNode::Work(work) } => {
                    work.iter().for_each(|unit| self.render(session, unit.lease()));
                }
                Action::Fault { what } => panic!("fault of the core: {what}"),
                Action::ResolveFrame { job, frame } => {
                    let units = self.committed.iter().filter(|(unit, _)| unit.frame == frame);
                    let wrong =
                        units.clone().filter(|(unit, hash)| truth(**unit) != **hash).count();
                    assert_eq!(
                        (wrong, units.count()),
                        (0, self.grid.units() as usize),
                        "seed {}",
                        self.seed
                    );
                    let format = "exr".to_owned();
                    let (hash, pixels_sha256) = (BlobHash([3; 32]), [0; 32]);
                    let files = vec![FrameFile { format, hash, length: 1, pixels_sha256 }];
                    self.after(50, Input::FrameResolved { job, frame, files, exposure: None });
                }
                _ => {}
            }
        }
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::UnitsCommitted { job, frame, commits } => {
                let key = |unit| UnitKey { job: *job, frame: *frame, unit };
                self.committed.extend(commits.iter().map(|commit| (key(commit.unit), commit.hash)));
            }
            Record::UnitsTakenBack { job, frame, units, .. } => {
                self.outcome.taken_back += units.len();
                for unit in units {
                    self.committed.remove(&UnitKey { job: *job, frame: *frame, unit: *unit });
                }
            }
            Record::NodeSuspected { node, guilty, reason, .. } => {
                assert!(
                    *guilty && node.0.as_u128() == FORGER.into(),
                    "seed {}: {node}: {reason}",
                    self.seed
                );
                self.outcome.found_after.get_or_insert(self.results[FORGER as usize]);
            }
            _ => {}
        }
    }

    /// A node renders a unit; one of each hundred of the forger's comes out with a bit flipped, at
    /// a place of its own in each hundred.
    fn render(&mut self, session: SessionId, lease: Lease) {
        let node = session.0;
        let count = self.results[node as usize];
        self.results[node as usize] += 1;
        self.outcome.results += 1;
        let mut hash = truth(lease.unit);
        if self.lies
            && node == FORGER
            && count % LIES == mix((self.seed << 32) | (count / LIES)) % LIES
        {
            hash.0[9] ^= 1 << (count % 8);
        }
        let Some((tile, samples)) = self.grid.unit(lease.unit.unit) else { return };
        let result = Arrived {
            lease,
            hash,
            shape: film_of(tile, samples, 3),
            device: 0,
            device_micros: 1_000_000,
            waited_micros: 0,
            device_bytes: 0,
        };
        let millis = 800 + mix(self.seed ^ lease.epoch.0) % 1200;
        self.after(millis, Input::ResultArrived { session, result });
    }
}

// promise: P7
#[test]
fn a_node_with_rare_bit_flips_is_found_and_no_picture_is_wrong() {
    let (mut latest, mut taken_back, mut results, mut units) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let outcome = Farm::run(Settings::default(), seed, true);
        let found = outcome.found_after.unwrap_or(u64::MAX);
        assert!(
            found <= FOUND_WITHIN,
            "seed {seed}: found after {:?} of its results",
            outcome.found_after
        );
        latest = latest.max(found);
        taken_back += outcome.taken_back;
        (results, units) = (results + outcome.results, units + outcome.units);
    }
    println!(
        "forger: {SEEDS} seeds, found after {latest} of its results at the latest, \
         {:.1} units taken back in the mean, \
         {:.3} results a unit with all nodes new",
        taken_back as f64 / SEEDS as f64,
        results as f64 / units as f64
    );
    let known = Farm::run(Settings { check_first: 0, ..Settings::default() }, 0, false);
    let share = known.results as f64 / known.units as f64;
    println!("well-known nodes: {share:.3} results a unit");
    assert!(known.found_after.is_none() && share < 1.03, "{share} results a unit");
}
