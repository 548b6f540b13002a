//! Ten nodes, frames that are sampled in rounds, a node that lies now and then and is rarely looked
//! at, and a coordinator that ends now and then: what was decided of lies is decided again, and
//! every frame has the rounds that the truth gives it.

use crate::mixed_speeds::render;
use crate::model::film::film_of;
use crate::model::rounds::is_noisy;
use crate::world::random::mix;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::{
    Action, Arrived, Core, FrameRounds, Input, Moment, Record, SessionId, Settings, SnapshotPart,
    TileSet,
};
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, UnitIndex, UnitKey};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{CoordinatorToNode, Task};
use tessera_protocol::status::{FrameFile, FrameState, JobState};
use tessera_support::inputs;
use uuid::Uuid;

const NODES: u64 = 10;
/// The one that lies, in one of so many of its results.
const FORGER: u64 = 3;
const LIES: u64 = 6;
/// Of a thousand measurements, so many are followed by another process of the coordinator.
const ENDS: u64 = 100;
const SEEDS: u64 = 40;
/// Five rounds of six passes.
const SPP: u32 = 500;
const PASSES: u32 = 6;
const JOB: JobId = JobId(Uuid::from_u128(1));

/// What came of a run.
#[derive(Default)]
struct Outcome {
    measured: usize,
    /// Measurements that were void, because a liar had a part in them.
    void: usize,
    restarts: usize,
    /// Restarts after which the state was compared with that of before.
    compared: usize,
    /// Tiles whose rounds the truth gives, and those of which nobody saw that results were lies.
    right: usize,
    unseen: usize,
}

struct Farm {
    core: Core,
    seed: u64,
    settings: Settings,
    /// By milliseconds, and then by the order in which they came.
    agenda: BTreeMap<(u64, u64), Input>,
    now: u64,
    events: u64,
    process: u64,
    /// When the coordinator's process ends next.
    ends_at: u64,
    records: Vec<Record>,
    committed: BTreeMap<UnitKey, BlobHash>,
    outcome: Outcome,
}

/// What a unit renders to.
fn truth(unit: UnitKey) -> BlobHash {
    let mut hash = [0; 32];
    hash[..8].copy_from_slice(
        &mix(u64::from(unit.frame.0) << 32 | u64::from(unit.unit.0)).to_le_bytes(),
    );
    BlobHash(hash)
}

fn value(hash: BlobHash) -> u64 {
    hash.0[..8].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl Farm {
    fn run(seed: u64) -> Outcome {
        let settings = Settings {
            check_share: 60,
            check_first: 0,
            settle: std::time::Duration::ZERO,
            ..Settings::default()
        };
        let mut farm = Self {
            core: Core::new(settings.clone(), Moment(0)),
            seed,
            settings,
            agenda: BTreeMap::new(),
            now: 0,
            events: 0,
            process: 0,
            ends_at: u64::MAX,
            records: Vec::new(),
            committed: BTreeMap::new(),
            outcome: Outcome::default(),
        };
        farm.join();
        let spec = RenderSpec { noise: Some(0.1), tile: 32, ..render(200, 160, SPP, 6) };
        farm.feed(inputs::submit(JOB, inputs::job(spec)));
        while farm.core.job_summary(JOB).is_some_and(|job| job.state != JobState::Done) {
            assert!(farm.events < 100_000, "seed {seed}: no end");
            farm.step();
        }
        let audit = Core::audit([], farm.records.clone());
        assert_eq!(audit.problems, Vec::<String>::new(), "seed {seed}");
        farm.outcome
    }

    /// The next thing that happens: what is planned, or what the core asked to be woken for.
    fn step(&mut self) {
        if self.now >= self.ends_at {
            self.restart();
        }
        let wakeup = self.core.next_wakeup().map_or(u64::MAX, |moment| moment.0);
        match self.agenda.first_key_value().map(|((at, _), _)| *at).filter(|at| *at <= wakeup) {
            Some(at) => {
                self.now = at;
                if let Some((_, input)) = self.agenda.pop_first() {
                    self.feed(input);
                }
            }
            None => {
                assert!(wakeup < u64::MAX, "seed {}: everybody waits", self.seed);
                self.now = self.now.max(wakeup);
                self.feed(Input::Tick);
            }
        }
    }

    /// Another process goes on with what is durable; what was on its way is lost.
    fn restart(&mut self) {
        self.process += 1;
        self.outcome.restarts += 1;
        self.ends_at = u64::MAX;
        self.agenda.clear();
        let bytes = |part: &SnapshotPart| part.to_bytes().expect("a part has bytes");
        let parts: Vec<Vec<u8>> = self.core.snapshot().iter().map(bytes).collect();
        let parts = parts.iter().map(|bytes| SnapshotPart::from_bytes(bytes).expect("a part"));
        let (settings, now) = (self.settings.clone(), Moment(self.now));
        let core = match self.process % 2 {
            0 => Core::replay(settings, parts, [], now),
            _ => Core::replay(settings, [], self.records.clone(), now),
        };
        let core = core.expect("a journal of its own");
        // It decides anew who finishes a frame that has all its units.
        let frames = self.core.frames(JOB, 0).expect("the job");
        if frames.iter().all(|frame| frame.state != FrameState::Resolving) {
            assert_eq!(self.core.durable_difference(&core), None, "seed {}", self.seed);
            self.outcome.compared += 1;
        }
        self.core = core;
        self.take_step();
        self.join();
    }

    fn session(&self, node: u64) -> SessionId {
        SessionId(self.process * 100 + node)
    }

    fn join(&mut self) {
        for node in 0..NODES {
            let mut input = inputs::joined(node, inputs::join(node, 2));
            let own = self.session(node);
            if let Input::NodeJoined { session, .. } = &mut input {
                *session = own;
            }
            self.feed(input);
        }
    }

    fn after(&mut self, millis: u64, input: Input) {
        self.events += 1;
        self.agenda.insert((self.now + millis, self.events), input);
    }

    fn feed(&mut self, input: Input) {
        self.core.handle(input, Moment(self.now));
        self.take_step();
    }

    fn take_step(&mut self) {
        let step = self.core.take_step();
        step.records.iter().for_each(|record| self.note(record));
        self.records.extend(step.records);
        self.core.verify().expect("the core stands by its invariants");
        for action in step.actions {
            match action {
                Action::Send { session, message: CoordinatorToNode::Work(work) } => {
                    work.iter().for_each(|unit| self.render(session, unit.lease(), unit.task));
                }
                Action::MeasureFrame { job, frame } => {
                    let rounds = self.core.frame_rounds(job, frame).expect("a frame with rounds");
                    let noisy = self.noisy(frame, &rounds);
                    self.after(
                        30,
                        Input::RoundMeasured { job, frame, round: rounds.round(), noisy },
                    );
                }
                Action::Fault { what } => panic!("fault of the core: {what}"),
                Action::ResolveFrame { job, frame } => self.resolve(job, frame),
                _ => {}
            }
        }
    }

    fn units_of(rounds: &FrameRounds, tile: u32, round: u32) -> Vec<UnitIndex> {
        let passes = rounds.grid().passes();
        let all = (tile * passes..(tile + 1) * passes).map(UnitIndex);
        all.filter(|unit| (unit.0 % passes).max(1) <= round).collect()
    }

    fn noisy(&self, frame: FrameNumber, rounds: &FrameRounds) -> TileSet {
        let sum = |tile: &u32| {
            let units = Self::units_of(rounds, *tile, rounds.round());
            let known = units.iter().filter_map(|unit| self.committed.get(&key(frame, *unit)));
            known.fold(0, |sum: u64, hash| sum.wrapping_add(value(*hash)))
        };
        (0..rounds.tiles()).filter(|tile| is_noisy(sum(tile), rounds.round())).collect()
    }

    /// A frame has all its units; they are true, and its rounds are, wherever somebody saw to it.
    fn resolve(&mut self, job: JobId, frame: FrameNumber) {
        let rounds = self.core.frame_rounds(job, frame).expect("a frame with rounds");
        let there = self.committed.keys().filter(|unit| unit.frame == frame).count();
        assert_eq!(there, rounds.units() as usize, "seed {}", self.seed);
        for tile in 0..rounds.tiles() {
            let is_true = |unit: &UnitIndex| {
                self.committed.get(&key(frame, *unit)) == Some(&truth(key(frame, *unit)))
            };
            let units = (0..rounds.grid().units()).map(UnitIndex).filter(|unit| rounds.has(*unit));
            let mut own = units.filter(|unit| unit.0 / rounds.grid().passes() == tile);
            if !own.all(|unit| is_true(&unit)) {
                self.outcome.unseen += 1;
                continue;
            }
            let decided = (1..rounds.round_max()).find(|round| {
                let units = Self::units_of(&rounds, tile, *round);
                let sum = units
                    .iter()
                    .fold(0, |sum: u64, unit| sum.wrapping_add(value(truth(key(frame, *unit)))));
                !is_noisy(sum, *round)
            });
            let samples = SPP.min(16 << decided.unwrap_or(rounds.round_max()));
            assert_eq!(rounds.samples(tile), samples, "seed {}: tile {tile} of {frame}", self.seed);
            self.outcome.right += 1;
        }
        let (format, hash) = ("exr".to_owned(), BlobHash([3; 32]));
        let files = vec![FrameFile { format, hash, length: 1, pixels_sha256: [0; 32] }];
        self.after(50, Input::FrameResolved { job, frame, files, exposure: None });
    }

    fn note(&mut self, record: &Record) {
        match record {
            Record::UnitsCommitted { frame, commits, .. } => {
                self.committed
                    .extend(commits.iter().map(|commit| (key(*frame, commit.unit), commit.hash)));
            }
            Record::UnitsTakenBack { frame, units, .. } => {
                let passes: BTreeSet<u32> =
                    units.iter().map(|unit| (unit.0 % PASSES).max(1)).collect();
                self.outcome.void += usize::from(passes.len() > 1);
                self.committed
                    .retain(|unit, _| unit.frame != *frame || !units.contains(&unit.unit));
            }
            Record::RoundMeasured { .. } => {
                self.outcome.measured += 1;
                let number = mix(self.seed << 20 | self.outcome.measured as u64);
                if number % 1000 < ENDS {
                    self.ends_at = self.now + number / 1000 % 2_000;
                }
            }
            Record::NodeSuspected { node, guilty, reason, .. } => {
                assert!(
                    *guilty && node.0.as_u128() == FORGER.into(),
                    "seed {}: {node}: {reason}",
                    self.seed
                );
            }
            _ => {}
        }
    }

    fn render(&mut self, session: SessionId, lease: Lease, task: Task) {
        let number = mix(self.seed ^ lease.epoch.0);
        let mut hash = truth(lease.unit);
        if session.0 % 100 == FORGER && number.is_multiple_of(LIES) {
            hash.0[3] ^= 1 + (number >> 32) as u8 % 100;
        }
        let Task::Tile { tile, samples } = task else { return };
        let shape = film_of(tile, samples, 3);
        let result = Arrived {
            lease,
            hash,
            shape,
            device: 0,
            device_micros: 1_000_000,
            waited_micros: 0,
            device_bytes: 0,
        };
        self.after(800 + number % 1200, Input::ResultArrived { session, result });
    }
}

fn key(frame: FrameNumber, unit: UnitIndex) -> UnitKey {
    UnitKey { job: JOB, frame, unit }
}

// promise: P5
#[test]
fn lies_in_rounds_are_voided_and_frames_get_the_true_rounds() {
    let mut all = Outcome::default();
    for seed in 0..SEEDS {
        let outcome = Farm::run(seed);
        all.measured += outcome.measured;
        all.void += outcome.void;
        all.restarts += outcome.restarts;
        all.compared += outcome.compared;
        all.right += outcome.right;
        all.unseen += outcome.unseen;
    }
    println!(
        "{SEEDS} seeds: {} measurements, {} times some were void, {} restarts; {} tiles right, {} \
            with lies that nobody saw",
        all.measured, all.void, all.restarts, all.right, all.unseen
    );
    assert!(
        all.void > 0
            && 2 * all.compared > all.restarts
            && all.compared > 0
            && all.right > 20 * all.unseen
    );
}
