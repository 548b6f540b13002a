//! A small farm for tests of the core: nodes that are here, one job of a frame at a time, and what
//! they hold.

use std::collections::BTreeMap;
use std::time::Duration;
use tessera_core::{
    Action, Caller, Core, Input, Moment, Record, RequestId, SessionId, Settings, SnapshotPart,
    Step, UnitMove, UnitState,
};
use tessera_protocol::client::Response;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId, Lease, UnitKey};
use tessera_protocol::job::{JobSpec, RenderSpec};
use tessera_protocol::node::{CoordinatorToNode, Failure, Task};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameFile, FrameState, JobState, NodeSummary};
use tessera_support::inputs::{self, TILE, node};
use uuid::Uuid;

/// The farm.
pub(crate) struct SmallFarm {
    pub(crate) core: Core,
    pub(crate) now: Moment,
    /// The newest job.
    pub(crate) job: JobId,
    pub(crate) records: Vec<Record>,
    /// What the nodes were told of every lease, and what they were answered.
    pub(crate) given: BTreeMap<Lease, Task>,
    pub(crate) told: Vec<CoordinatorToNode>,
    /// Of the last step.
    pub(crate) moves: Vec<UnitMove>,
    states: BTreeMap<UnitKey, UnitState>,
    settings: Settings,
    resolving: Vec<JobId>,
    measuring: Vec<JobId>,
    reply: Option<Response>,
}

impl SmallFarm {
    /// Nodes 1 to `nodes`, each with room for one unit, and a job of so many units.
    pub(crate) fn new(settings: Settings, units: u32, nodes: u64) -> Self {
        let now = Moment(1_000_000);
        let mut core = Core::new(settings.clone(), now);
        core.watch_units(true);
        let mut farm = Self {
            core,
            now,
            job: JobId(Uuid::nil()),
            records: Vec::new(),
            given: BTreeMap::new(),
            told: Vec::new(),
            moves: Vec::new(),
            states: BTreeMap::new(),
            settings,
            resolving: Vec::new(),
            measuring: Vec::new(),
            reply: None,
        };
        (1..=nodes).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
        farm.submit_units(1, units);
        farm
    }

    /// Another job of one unit.
    pub(crate) fn submit(&mut self, number: u128) {
        self.submit_units(number, 1);
    }

    fn submit_units(&mut self, number: u128, units: u32) {
        self.submit_render(number, RenderSpec { width: units * TILE, ..inputs::render() });
    }

    /// Another job, that renders this.
    pub(crate) fn submit_render(&mut self, number: u128, render: RenderSpec) {
        self.job = JobId(Uuid::from_u128(number));
        self.step(inputs::submit(self.job, inputs::job(render)));
    }

    /// Another job, of this spec.
    pub(crate) fn submit_spec(&mut self, number: u128, spec: JobSpec) {
        self.job = JobId(Uuid::from_u128(number));
        self.step(inputs::submit(self.job, spec));
    }

    /// A node reports that the unit that it holds has failed.
    pub(crate) fn fail(&mut self, number: u64, failure: Failure) {
        let lease = self.lease(number).expect("it holds a unit");
        self.step(Input::UnitFailed { session: SessionId(number), lease, failure });
    }

    /// State and note of a job.
    pub(crate) fn standing_of(&self, number: u128) -> (JobState, String) {
        let id = JobId(Uuid::from_u128(number));
        let summary = self.core.job_summary(id).expect("it was accepted");
        (summary.state, summary.note)
    }

    /// What operators see of a node.
    pub(crate) fn row(&self, number: u64) -> NodeSummary {
        let mut rows = self.core.nodes(self.now).into_iter();
        rows.find(|row| row.node == node(number)).expect("it has joined")
    }

    /// Changes one job: done, or why not.
    pub(crate) fn change(&mut self, change: JobChange, job: JobId, caller: Caller) -> Response {
        inputs::of_one_job(self.ask(inputs::change(change, job, caller)))
    }

    /// Cancels one job, which the caller may.
    pub(crate) fn cancel(&mut self, job: JobId, caller: Caller) {
        assert_eq!(self.change(inputs::cancel(), job, caller), Response::Done);
    }

    pub(crate) fn step(&mut self, input: Input) {
        self.core.handle(input, self.now);
        let Step { records, actions, moves } = self.core.take_step();
        self.records.extend(records);
        self.follow(moves);
        for action in actions {
            match action {
                Action::ResolveFrame { job, .. } => self.resolving.push(job),
                Action::MeasureFrame { job, .. } => self.measuring.push(job),
                Action::Reply { response, .. } => self.reply = Some(response),
                Action::Send { message, .. } => {
                    if let CoordinatorToNode::Work(work) = &message {
                        self.given.extend(work.iter().map(|unit| (unit.lease(), unit.task)));
                    }
                    self.told.push(message);
                }
                _ => {}
            }
        }
        self.core.verify().expect("the core stands by its invariants");
    }

    /// Follows every unit that was ever told to move: it is in the state that it moved to last.
    fn follow(&mut self, moves: Vec<UnitMove>) {
        for UnitMove { unit, from, to } in &moves {
            let before = self.states.insert(*unit, *to);
            assert_eq!(before.unwrap_or(*from), *from, "{unit} moved before unseen");
        }
        self.states.retain(|unit, _| self.core.has_job(unit.job));
        // Of a finished frame it is not kept which units it did without.
        let is_done = |job| matches!(self.frame_of(job), Some(FrameState::Done(_)));
        for (unit, state) in self.states.iter().filter(|(unit, _)| !is_done(unit.job)) {
            assert_eq!(self.core.state_of(*unit).as_ref(), Ok(state), "{unit} moved unseen");
        }
        self.moves = moves;
    }

    /// Time passes, and every node is heard.
    pub(crate) fn later(&mut self, duration: Duration) {
        self.now = self.now.after(duration);
        self.step(Input::Tick);
    }

    /// What a node holds.
    pub(crate) fn lease(&self, number: u64) -> Option<Lease> {
        self.core.leases().find(|(_, holder)| *holder == node(number)).map(|(lease, _)| lease)
    }

    /// Units that a node holds.
    pub(crate) fn leased(&self, number: u64) -> Vec<u32> {
        let held = self.core.leases().filter(|(_, holder)| *holder == node(number));
        held.map(|(lease, _)| lease.unit.unit.0).collect()
    }

    /// A node ends what it holds, if anything, with a result of this hash.
    pub(crate) fn work(&mut self, number: u64, hash: u8) {
        let Some(lease) = self.lease(number) else { return };
        let result = inputs::result(lease, hash);
        self.step(Input::ResultArrived { session: SessionId(number), result });
    }

    /// The coordinator ends, and another process continues with its records, or with a snapshot of
    /// the same; no node is connected yet.
    pub(crate) fn restart(&mut self, from_snapshot: bool) {
        let reread = |record: &Record| {
            Record::from_bytes(&record.to_bytes().expect("bytes")).expect("a record")
        };
        let records: Vec<Record> = self.records.iter().map(reread).collect();
        assert_eq!(records, self.records);
        let bytes = self
            .core
            .snapshot()
            .iter()
            .map(|part| part.to_bytes().expect("bytes"))
            .collect::<Vec<_>>();
        let parts = bytes
            .iter()
            .map(|bytes| SnapshotPart::from_bytes(bytes).expect("a part"))
            .collect::<Vec<_>>();
        let (settings, now) = (self.settings.clone(), self.now);
        let replayed =
            Core::replay(settings.clone(), [], records, now).expect("a journal of its own");
        let restored =
            Core::replay(settings, parts.clone(), [], now).expect("a snapshot of its own");
        assert_eq!(Core::audit(parts, []).problems, Vec::<String>::new());
        for other in [&replayed, &restored] {
            assert_eq!(self.core.durable_difference(other), None);
            other.verify().expect("the core stands by its invariants");
        }
        self.replace_core(if from_snapshot { restored } else { replayed });
    }

    /// The coordinator ends before its last record of a kind is durable, and another
    /// process continues with those before.
    pub(crate) fn restart_before(&mut self, is_lost: impl Fn(&Record) -> bool) {
        let kept = self.records.iter().rposition(is_lost).expect("a record of the kind");
        self.records.truncate(kept);
        let core = Core::replay(self.settings.clone(), [], self.records.clone(), self.now);
        self.replace_core(core.expect("a journal of its own"));
    }

    /// Another core continues.
    pub(crate) fn replace_core(&mut self, core: Core) {
        self.core = core;
        self.core.watch_units(true);
        self.states.clear();
    }

    /// The newest job's frame is asked for.
    pub(crate) fn is_resolving(&self) -> bool {
        self.resolving.contains(&self.job)
    }

    /// How often a job's frame has been asked for.
    pub(crate) fn orders_of(&self, job: JobId) -> usize {
        self.resolving.iter().filter(|asked| **asked == job).count()
    }

    /// How often a round of the newest job's frame has been asked for.
    pub(crate) fn orders_to_measure(&self) -> usize {
        self.measuring.iter().filter(|asked| **asked == self.job).count()
    }

    /// The newest job's frame has been measured: these tiles are too noisy.
    pub(crate) fn measured(&mut self, noisy: &[u32]) {
        let (job, frame, noisy) = (self.job, FrameNumber(1), noisy.iter().copied().collect());
        let round = self.core.frame_rounds(job, frame).map_or(1, |rounds| rounds.round());
        self.step(Input::RoundMeasured { job, frame, round, noisy });
    }

    /// The newest job's frame has been made.
    pub(crate) fn finish(&mut self) {
        let file = FrameFile {
            format: "exr".to_owned(),
            hash: BlobHash([3; 32]),
            length: 1,
            pixels_sha256: [0; 32],
        };
        let (job, frame) = (self.job, FrameNumber(1));
        self.step(Input::FrameResolved { job, frame, files: vec![file], exposure: None });
    }

    pub(crate) fn frame(&self) -> Option<FrameState> {
        self.frame_of(self.job)
    }

    pub(crate) fn frame_of(&self, job: JobId) -> Option<FrameState> {
        self.core.frames(job, 0)?.into_iter().next().map(|row| row.state)
    }

    pub(crate) fn undrain(&mut self, name: &str) {
        let answer = self.drain(name, false, false);
        assert!(matches!(answer, Response::Nodes(_)), "{answer:?}");
    }

    /// An operator drains a node, or ends that.
    pub(crate) fn drain(&mut self, name: &str, drain: bool, leave: bool) -> Response {
        let (request, node, by) = (RequestId(2), name.to_owned(), "root".to_owned());
        self.ask(Input::Drain { request, node, drain, leave, by })
    }

    /// What a client is answered.
    pub(crate) fn ask(&mut self, input: Input) -> Response {
        self.reply = None;
        self.step(input);
        self.reply.take().expect("a request is answered")
    }

    /// Units that the records have, which are without a fault.
    pub(crate) fn audit(&self) -> u64 {
        let report = Core::audit([], self.records.clone());
        assert_eq!(report.problems, Vec::<String>::new());
        report.units_committed
    }
}
