//! Bugs planted between the simulator and the core, to see that they are caught. The core itself
//! stays whole.

use crate::coordinator::Process;
use crate::model::books::Books;
use crate::model::film::{hash_of, shape_of, sum_of};
use crate::model::tasks::task_of;
use crate::world::random::Random;
use std::collections::BTreeMap;
use tessera_core::{Action, Arrived, Input, Record, ResultShape, SessionId, Step};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::ids::{BlobHash, JobId, Lease, NodeId, ProcessEpoch, UnitIndex, UnitKey};
use tessera_protocol::job::{After, JobKind};
use tessera_protocol::node::{CoordinatorToNode, Join, Piece};
use uuid::Uuid;

/// What is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bug {
    /// Lease: a lost session is not noticed, so that its leases outlive the grace of their node.
    LeaseOutlivesNode,
    /// Lease: a lease that a node gives back is not freed.
    LeaseNotFreed,
    /// Lease: a node is not told that its lease has ended.
    LeaseNotRevoked,
    /// Lease: work is sent to two nodes.
    LeaseGivenTwice,
    /// Epoch: a result is taken by its unit alone, as if it had the epoch of the lease that is held
    /// now.
    EpochNotCompared,
    /// Epoch: after a restart, the epochs of the last reservation are given out again.
    EpochReused,
    /// Commits are acknowledged, and submits answered, before they are durable.
    EarlyAcknowledgement,
    /// A unit whose attempt ended is never given to a node again: the message is lost, and nobody
    /// notices.
    RetryLost,
    /// A result counts twice.
    CountedTwice,
    /// A part of a unit counts twice: whoever renders the rest renders all of it.
    PartCountedTwice,
    /// Results of one job are passed over, as if its nodes had given the units back: it never ends,
    /// while others do.
    JobStarved,
    /// A node that fails everything is quarantined although no other one is here: the core believes
    /// in one that does not exist.
    LastNodeQuarantined,
    /// The sweep removes what jobs that go on read.
    LiveBlobCollected,
    /// Nobody compares what two nodes made of a unit: every result is taken for the true one,
    /// whatever is in it.
    LiarNotVerified,
    /// Replay: a record is passed over.
    ReplayDropsRecord,
    /// Replay: a record is taken twice.
    ReplayDoublesRecord,
    /// A second process of a node is served beside the first one.
    CloneServed,
    /// After a restart, nobody knows the nodes that were gone before it.
    RosterForgets,
    /// A band of a finished frame counts twice.
    BandCountedTwice,
    /// A frame is finished without one of its bands: what a node made of another is taken for it.
    BandMissing,
    /// Nobody compares what two nodes made of a piece of a finished frame.
    LiarInBandNotVerified,
    /// Commits do not compare the lead and its term, and nobody looks at its own.
    TermNotCompared,
    /// Commits do not compare where the database stands.
    HeadNotCompared,
    /// A coordinator that stands by answers who submits.
    StandbyAnswers,
    /// A database that has lost its end is written to as if nothing had happened.
    LostEndHidden,
    /// Nodes say that results are in the bucket before they are.
    AcknowledgedBeforeStored,
    /// Jobs are worked on although they wait for others: the core does not know what for.
    LeasedBeforeWaitEnds,
    /// After a restart, nobody knows that waits of jobs were over.
    WaitEndForgotten,
    /// Jobs begin before their time: the core does not know it.
    BegunTooEarly,
    /// Kernels get another file than the frame of the job that they read.
    WrongFrameRead,
}

/// A bug and what it remembers.
#[derive(Clone, Debug)]
pub(crate) struct Planted {
    bug: Bug,
    /// Results that were passed off as others: what the core was told, and the truth.
    forged: BTreeMap<(SessionId, Lease), (SessionId, Lease)>,
    /// The job that is starved.
    victim: Option<JobId>,
    /// Results of it that the core has never seen.
    passed_over: Vec<(SessionId, Lease)>,
    /// The process that believes in a node that does not exist.
    haunted: u64,
    /// What jobs wait for, and when they begin, of which the core was not told.
    untold: BTreeMap<JobId, (Vec<After>, Option<u64>)>,
}

impl Planted {
    /// Whether the bug is one of jobs that wait for others. Others are looked for without such
    /// jobs.
    pub(crate) fn is_of_waits(&self) -> bool {
        use Bug::*;
        matches!(self.bug, LeasedBeforeWaitEnds | WaitEndForgotten | BegunTooEarly | WrongFrameRead)
    }

    /// Whether the bug is one of several coordinators. Others are looked for with one alone, where
    /// fewer seeds meet them.
    pub(crate) fn is_of_leaders(&self) -> bool {
        use Bug::*;
        matches!(self.bug, TermNotCompared | HeadNotCompared | StandbyAnswers | LostEndHidden)
    }

    /// Whether the bug is one of results in a bucket. Others are looked for without one.
    pub(crate) fn is_of_bucket(&self) -> bool {
        self.bug == Bug::AcknowledgedBeforeStored
    }

    pub(crate) fn says_stored_early(&self) -> bool {
        self.bug == Bug::AcknowledgedBeforeStored
    }

    pub(crate) fn new(bug: Bug) -> Self {
        Self {
            bug,
            forged: BTreeMap::new(),
            victim: None,
            passed_over: Vec::new(),
            haunted: 0,
            untold: BTreeMap::new(),
        }
    }

    /// A start could tell the bug by reading everything twice; the epochs alone, or the list of
    /// nodes, are to show it.
    pub(crate) fn is_left_to_others(&self) -> bool {
        matches!(self.bug, Bug::EpochReused | Bug::RosterForgets) || self.is_of_waits()
    }

    pub(crate) fn forgets_term(&self) -> bool {
        self.bug == Bug::TermNotCompared
    }

    pub(crate) fn forgets_head(&self) -> bool {
        self.bug == Bug::HeadNotCompared
    }

    pub(crate) fn hides_lost_end(&self) -> bool {
        self.bug == Bug::LostEndHidden
    }

    pub(crate) fn answers_standing_by(&self) -> bool {
        self.bug == Bug::StandbyAnswers
    }

    /// Nobody refuses a second process of a node.
    pub(crate) fn serves_clones(&self) -> bool {
        self.bug == Bug::CloneServed
    }

    /// What everybody takes an input for: the end of the run alone is to show that a job is
    /// starved.
    pub(crate) fn disguise(&mut self, input: Input, books: &Books) -> Input {
        match input {
            Input::ResultArrived { session, mut result } if self.bug == Bug::LiarNotVerified => {
                let unit = result.lease.unit;
                let pinned = books.jobs.get(&unit.job).and_then(|job| job.pinned);
                result.hash = pinned
                    .map_or(result.hash, |pinned| hash_of(sum_of(unit, pinned, result.shape)));
                Input::ResultArrived { session, result }
            }
            Input::ResultArrived { session, mut result }
                if self.bug == Bug::LiarInBandNotVerified
                    && matches!(result.shape, ResultShape::Finished(_)) =>
            {
                result.hash = hash_of(7);
                Input::ResultArrived { session, result }
            }
            Input::ResultArrived { session, result }
                if self.bug == Bug::JobStarved
                    && *self.victim.get_or_insert(result.lease.unit.job)
                        == result.lease.unit.job =>
            {
                self.passed_over.push((session, result.lease));
                Input::Returned { session, leases: vec![result.lease] }
            }
            input => input,
        }
    }

    /// What the core is handed instead of an input.
    pub(crate) fn on_input(
        &mut self,
        input: Input,
        process: &Process,
        random: &mut Random,
    ) -> Option<Input> {
        match (self.bug, input) {
            (Bug::LeaseOutlivesNode, Input::SessionLost { .. }) if random.permille(300) => None,
            (Bug::LeaseNotFreed, Input::Returned { .. }) => None,
            (Bug::EpochNotCompared, Input::ResultArrived { session, mut result }) => {
                let held: Vec<(Lease, NodeId)> =
                    process.core.leases_of(result.lease.unit).collect();
                let own = held.iter().any(|(lease, _)| *lease == result.lease);
                let holder = held
                    .last()
                    .and_then(|(lease, node)| Some((*lease, process.watch.session_of(*node)?)));
                let Some((lease, holder)) = holder.filter(|_| !own) else {
                    return Some(Input::ResultArrived { session, result });
                };
                self.forged.insert((holder, lease), (session, result.lease));
                result.lease = lease;
                Some(Input::ResultArrived { session: holder, result })
            }
            (Bug::LeasedBeforeWaitEnds, Input::Submit { request, job, mut spec, caller }) => {
                // Those that the core would refuse are to be refused.
                let goes_on = |after: &After| {
                    let summary = process.core.job_summary(after.job);
                    summary.is_some_and(|summary| !summary.state.is_final())
                };
                let is_known = process.core.job_summary(job).is_some();
                if spec.after.iter().all(goes_on) || is_known {
                    let told = (spec.after.clone(), spec.not_before);
                    self.untold.entry(job).or_insert(told);
                    spec.after.clear();
                }
                Some(Input::Submit { request, job, spec, caller })
            }
            (Bug::BegunTooEarly, Input::Submit { request, job, mut spec, caller }) => {
                let told = (spec.after.clone(), spec.not_before.take());
                self.untold.entry(job).or_insert(told);
                Some(Input::Submit { request, job, spec, caller })
            }
            (Bug::BandMissing, Input::ResultArrived { session, result }) => {
                Some(self.pass_for_another(session, result, process))
            }
            (_, input) => Some(input),
        }
    }

    /// The result of a band is taken for that of another band of its frame.
    fn pass_for_another(
        &mut self,
        session: SessionId,
        mut result: Arrived,
        process: &Process,
    ) -> Input {
        let own = result.lease;
        let band = |shape| matches!(shape, ResultShape::Finished(Piece::Band { .. }));
        let other = |(lease, _): &(Lease, NodeId)| {
            let unit = lease.unit;
            (unit.job, unit.frame) == (own.unit.job, own.unit.frame)
                && unit.unit.0.abs_diff(own.unit.unit.0) == 1
        };
        let found = process.core.leases().filter(other).find_map(|(lease, node)| {
            let kind = process.core.job(lease.unit.job)?.spec.kind;
            let shape = shape_of(&kind, task_of(&kind, lease.unit)?)?;
            Some((lease, process.watch.session_of(node)?, shape)).filter(|_| band(shape))
        });
        if let Some((lease, holder, shape)) = found.filter(|_| band(result.shape)) {
            self.forged.insert((holder, lease), (session, own));
            (result.lease, result.shape) = (lease, shape);
            return Input::ResultArrived { session: holder, result };
        }
        Input::ResultArrived { session, result }
    }

    /// What a start of the coordinator's is told besides.
    pub(crate) fn on_start(&mut self, incarnation: u64) -> Option<Input> {
        let new = std::mem::replace(&mut self.haunted, incarnation) != incarnation;
        (self.bug == Bug::LastNodeQuarantined && new).then(ghost)
    }

    /// The sweep does not know what jobs read.
    pub(crate) fn forgets_inputs(&self) -> bool {
        self.bug == Bug::LiveBlobCollected
    }

    /// What is told before it is durable.
    pub(crate) fn told_early(&self, action: &Action) -> bool {
        let told = matches!(
            action,
            Action::Send { message: CoordinatorToNode::Committed { .. }, .. }
                | Action::Reply { .. }
        );
        told && self.bug == Bug::EarlyAcknowledgement
    }

    /// Changes what the core decided.
    pub(crate) fn on_step(
        &mut self,
        step: &mut Step,
        process: &Process,
        books: &Books,
        random: &mut Random,
    ) {
        for action in &mut step.actions {
            if let Action::KeepResult { session, lease } | Action::DropResult { session, lease } =
                action
                && let Some((true_session, true_lease)) = self.forged.remove(&(*session, *lease))
            {
                (*session, *lease) = (true_session, true_lease);
            }
        }
        self.pass_over(step);
        for record in &mut step.records {
            if let Record::JobAccepted { job, spec, .. } = record
                && let Some((after, not_before)) = self.untold.get(job)
            {
                spec.after.clone_from(after);
                spec.not_before = *not_before;
            }
        }
        if self.bug == Bug::RetryLost {
            lose_retries(step, books);
        }
        if self.bug == Bug::WrongFrameRead {
            give_other_frames(step);
        }
        if self.bug == Bug::CountedTwice && random.permille(20) {
            let commits = step.records.iter_mut().find_map(|record| match record {
                Record::UnitsCommitted { commits, .. } => Some(commits),
                _ => None,
            });
            if let Some(commits) = commits {
                commits.extend_from_within(..1);
            }
        }
        if self.bug == Bug::BandCountedTwice {
            count_bands_twice(step, books);
        }
        if self.bug == Bug::PartCountedTwice {
            give_whole_units(step, books);
        }
        if self.bug == Bug::LeaseNotRevoked {
            let is_revoke = |action: &Action| {
                matches!(action, Action::Send { message: CoordinatorToNode::Revoke { .. }, .. })
            };
            step.actions.retain(|action| !is_revoke(action));
        }
        if self.bug == Bug::LeaseGivenTwice && random.permille(50) {
            let work = step.actions.iter().find_map(|action| match action {
                Action::Send { session, message: CoordinatorToNode::Work(work) } => {
                    Some((*session, work.clone()))
                }
                _ => None,
            });
            let others: Vec<SessionId> = process.sessions.keys().copied().collect();
            if let (Some((session, work)), Some(other)) = (work, random.pick(&others))
                && other != session
            {
                let message = CoordinatorToNode::Work(work);
                step.actions.push(Action::Send { session: other, message });
            }
        }
    }

    /// Nodes are told that nobody wants the results that the core has never seen.
    fn pass_over(&mut self, step: &mut Step) {
        for (session, lease) in std::mem::take(&mut self.passed_over) {
            step.actions.push(Action::DropResult { session, lease });
            step.actions
                .push(Action::Send { session, message: CoordinatorToNode::Unwanted { lease } });
        }
    }

    /// Changes what a start reads.
    pub(crate) fn on_replay(&mut self, records: &mut Vec<Record>, random: &mut Random) {
        let is_reservation = |record: &Record| matches!(record, Record::EpochsReserved { .. });
        match self.bug {
            Bug::EpochReused => {
                if let Some(position) = records.iter().rposition(is_reservation) {
                    records.remove(position);
                }
            }
            Bug::ReplayDropsRecord if !records.is_empty() => {
                records.remove(random.index(records.len()));
            }
            Bug::ReplayDoublesRecord if !records.is_empty() => {
                let position = random.index(records.len());
                records.insert(position, records[position].clone());
            }
            Bug::RosterForgets => forget_absent(records),
            Bug::WaitEndForgotten => {
                records.retain(|record| !matches!(record, Record::WaitEnded { .. }));
            }
            _ => {}
        }
    }
}

/// Drops what records say of nodes that are gone at their end.
fn forget_absent(records: &mut Vec<Record>) {
    let mut here = BTreeMap::new();
    for record in &*records {
        match record {
            Record::NodeJoined { node, .. } => drop(here.insert(*node, true)),
            Record::NodeGone { node, .. } => drop(here.insert(*node, false)),
            _ => {}
        }
    }
    let gone = |node: &NodeId| here.get(node) == Some(&false);
    records.retain(|record| match record {
        Record::NodeJoined { node, .. } | Record::NodeGone { node, .. } => !gone(node),
        Record::NodeDrained { node, .. } => !gone(node),
        Record::NodeReplaced { old, .. } => !gone(old),
        Record::NodesForgotten { .. } => false,
        _ => true,
    });
}

/// What was committed of bands is committed again.
fn count_bands_twice(step: &mut Step, books: &Books) {
    for record in &mut step.records {
        let Record::UnitsCommitted { job, frame, commits } = record else { continue };
        let (job, frame) = (*job, *frame);
        let is_band = |unit: UnitIndex| {
            let book = books.frame(UnitKey { job, frame, unit });
            book.is_some_and(|book| unit.0 >= book.units)
        };
        if let Some(again) = commits.iter().find(|commit| is_band(commit.unit)).copied() {
            commits.push(again);
        }
    }
}

/// Work is sent as if no unit had parts.
fn give_whole_units(step: &mut Step, books: &Books) {
    for action in &mut step.actions {
        let Action::Send { message: CoordinatorToNode::Work(work), .. } = action else { continue };
        for assignment in work {
            let kind = books.jobs.get(&assignment.job).map(|job| job.kind());
            let whole = kind.and_then(|kind| task_of(kind, assignment.lease().unit));
            assignment.task = whole.unwrap_or(assignment.task);
        }
    }
}

/// Files that kernels read of other jobs are others than those jobs have made.
fn give_other_frames(step: &mut Step) {
    for action in &mut step.actions {
        let Action::Send { message: CoordinatorToNode::Job { spec, .. }, .. } = action else {
            continue;
        };
        let Ok(mut changed) = spec.clone().check() else { continue };
        let JobKind::Compute(compute) = &mut changed.kind else { continue };
        for input in compute.inputs.iter_mut().filter(|input| input.from.is_some()) {
            input.hash = BlobHash([7; 32]);
            compute.frame_inputs.clear();
        }
        **spec = changed.into();
    }
}

/// Work that was given before is not sent.
fn lose_retries(step: &mut Step, books: &Books) {
    for action in &mut step.actions {
        if let Action::Send { message: CoordinatorToNode::Work(work), .. } = action {
            work.retain(|assignment| {
                let unit = assignment.lease().unit;
                books.frame(unit).is_none_or(|frame| !frame.attempts.contains_key(&unit.unit.0))
            });
        }
    }
    let empty = |action: &Action| {
        matches!(action,
        Action::Send { message: CoordinatorToNode::Work(work), .. } if work.is_empty())
    };
    step.actions.retain(|action| !empty(action));
}

/// A node that wants nothing and is nowhere.
fn ghost() -> Input {
    let device = DeviceInfo {
        slot: "cpu".to_owned(),
        kind: DeviceKind::Cpu,
        name: "ghost".to_owned(),
        parallelism: 1,
        memory_bytes: 1 << 30,
        cuda: None,
        state: DeviceState::Ready,
    };
    let node = NodeId(Uuid::from_u128(7));
    let join = Join { devices: vec![device], ..Join::new(node, "ghost", ProcessEpoch(1)) };
    Input::NodeJoined {
        session: SessionId(u64::MAX),
        join: Box::new(join),
        fingerprint: crate::world::plan::fingerprint(1),
        build: "sim".to_owned(),
    }
}
