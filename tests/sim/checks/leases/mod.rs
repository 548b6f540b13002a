//! Leases as the simulator sees them from outside one coordinator process: who may hold what, why a
//! lease comes or goes, and when it must have ended. Compared with what the core says after every
//! step.

mod changes;

use crate::sim::checks::violation::{Checked, violated};
use crate::sim::model::books::Books;
use crate::sim::model::parts::is_within;
use crate::sim::model::tasks::task_of;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::journal::Commit;
use tessera_core::{Action, Core, Input, Record, SessionId, Settings, Step};
use tessera_protocol::device::{DeviceInfo, DeviceState};
use tessera_protocol::ids::{
    Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch, UnitIndex, UnitKey,
};
use tessera_protocol::node::{Assignment, CoordinatorToNode, Failure, Join};

/// What the inputs of one step said about leases.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) inputs: u32,
    /// When the core had the first of them.
    since: u64,
    named: BTreeSet<(NodeId, Lease)>,
    joined: BTreeSet<NodeId>,
    returned: BTreeSet<Lease>,
    /// Leases that are said to have failed, or whose results arrived damaged.
    failed: BTreeSet<Lease>,
    /// Leases whose results arrived.
    arrived: BTreeSet<Lease>,
}

impl Seen {
    /// A node named this lease.
    pub(crate) fn names(&self, lease: Lease) -> bool {
        self.named.iter().any(|(_, named)| *named == lease)
    }

    /// The result of this lease arrived.
    pub(crate) fn has_result(&self, lease: Lease) -> bool {
        self.arrived.contains(&lease)
    }

    pub(crate) fn somebody_joined(&self) -> bool {
        !self.joined.is_empty()
    }
}

/// A node as this process should know it.
#[derive(Debug)]
struct Known {
    process: ProcessEpoch,
    session: SessionId,
    away_since: Option<u64>,
    fingerprint: Fingerprint,
    capacity: u32,
    /// Some device of it is ready.
    usable: bool,
    leaving: bool,
}

/// A lease that the core holds.
#[derive(Clone, Copy, Debug)]
struct Held {
    node: NodeId,
    granted: u64,
    renewed: u64,
    /// What was granted or renewed may have been so much earlier: somewhere among the inputs of one
    /// step.
    earlier: u64,
}

/// One process of the coordinator, watched.
#[derive(Debug)]
pub(crate) struct Watch {
    settings: Settings,
    /// Every epoch below was reserved before this process started.
    start: u64,
    /// Of all steps before this one.
    newest_epoch: u64,
    known: BTreeMap<NodeId, Known>,
    /// Of all sessions, also those that are over.
    nodes: BTreeMap<SessionId, NodeId>,
    held: BTreeMap<Lease, Held>,
    by_node: BTreeMap<NodeId, BTreeSet<Lease>>,
    /// Leases of checks and of units that have two, and when each is due if nothing is heard of it:
    /// their end is no attempt, so that no record tells of it.
    quiet: BTreeMap<Lease, u64>,
    /// Units that lacked what is not their own.
    short: BTreeSet<UnitKey>,
    /// The newest lease of each unit that this process has given.
    given: BTreeMap<UnitKey, (Epoch, NodeId)>,
    /// Nodes that were out of work for their failures when nodes were looked at last.
    out: BTreeSet<NodeId>,
    /// Nodes of which a lease has ended in this step whose end no record tells of.
    ended_quietly: BTreeSet<NodeId>,
    /// Leases of former processes that were taken up again.
    pub(crate) taken_back: u64,
    /// Leases of units that have two which ended with their node, so that the other was left.
    pub(crate) left_alone: u64,
    /// The core's clock, milliseconds.
    now: u64,
}

/// Everything of a step that ends or begins leases.
#[derive(Default)]
struct Changes {
    given: BTreeSet<(NodeId, Lease)>,
    epochs: BTreeSet<u64>,
    ended: BTreeSet<Lease>,
    pinned: BTreeSet<JobId>,
    /// Jobs that ended or were paused, or of which a frame ended.
    shut: BTreeSet<JobId>,
    paused: BTreeSet<JobId>,
}

impl Watch {
    pub(crate) fn new(settings: Settings, reserved: u64, now: u64) -> Self {
        Self {
            settings,
            start: reserved.max(1),
            newest_epoch: 0,
            known: BTreeMap::new(),
            nodes: BTreeMap::new(),
            held: BTreeMap::new(),
            by_node: BTreeMap::new(),
            quiet: BTreeMap::new(),
            short: BTreeSet::new(),
            given: BTreeMap::new(),
            out: BTreeSet::new(),
            ended_quietly: BTreeSet::new(),
            taken_back: 0,
            left_alone: 0,
            now,
        }
    }

    /// Notes an input before the core has it.
    pub(crate) fn on_input(&mut self, input: &Input, seen: &mut Seen, now: u64) {
        self.now = self.now.max(now);
        if seen.inputs == 0 {
            seen.since = self.now;
        }
        seen.inputs += 1;
        match input {
            Input::NodeJoined { session, join, fingerprint, .. } => {
                self.on_joined(*session, join, *fingerprint, seen);
            }
            Input::SessionLost { session } => self.on_session_lost(*session),
            Input::Capacity { session, units } => {
                if let Some(known) = self.of_session(*session) {
                    known.capacity = *units;
                }
            }
            Input::NodeDraining { session } => {
                if let Some(known) = self.of_session(*session) {
                    known.leaving = true;
                }
            }
            Input::Heartbeat { session, heartbeat } => {
                let node = self.node_of(*session);
                seen.named.extend(
                    node.iter().flat_map(|node| heartbeat.leases.iter().map(|l| (*node, *l))),
                );
            }
            Input::Returned { leases, .. } => seen.returned.extend(leases),
            // That the device is too small is nobody's fault, and no attempt.
            Input::UnitFailed { lease, failure: Failure::OutOfMemory(_), .. } => {
                seen.returned.insert(*lease);
            }
            // Nor that something is lacking which is not of the unit: it waits.
            Input::UnitFailed { lease, failure: Failure::Asset(_), .. } => {
                seen.returned.insert(*lease);
                self.short.insert(lease.unit);
            }
            Input::UnitFailed { lease, .. } | Input::ResultDamaged { lease, .. } => {
                seen.failed.insert(*lease);
            }
            // It may have the wrong shape.
            Input::ResultArrived { result, .. } => {
                seen.failed.insert(result.lease);
                seen.arrived.insert(result.lease);
            }
            Input::DevicesChanged { session, devices } => {
                if let Some(known) = self.of_session(*session) {
                    known.usable = is_usable(devices);
                }
            }
            _ => {}
        }
    }

    fn on_joined(
        &mut self,
        session: SessionId,
        join: &Join,
        fingerprint: Fingerprint,
        seen: &mut Seen,
    ) {
        seen.joined.insert(join.node);
        let leases = join.running.iter().chain(&join.finished);
        seen.named.extend(leases.map(|lease| (join.node, *lease)));
        // Another session of the same process keeps its wish to leave until it says otherwise: it
        // says so at once.
        let former = self.known.get(&join.node).filter(|known| known.process == join.process);
        let leaving = former.is_some_and(|known| known.leaving);
        let known = Known {
            process: join.process,
            session,
            away_since: None,
            fingerprint,
            capacity: join.capacity,
            usable: is_usable(&join.devices),
            leaving,
        };
        self.known.insert(join.node, known);
        self.nodes.insert(session, join.node);
    }

    fn on_session_lost(&mut self, session: SessionId) {
        // As the core has it: its clock never goes back.
        let since = self.now;
        if let Some(known) = self.of_session(session) {
            known.away_since = Some(since);
        }
        let node = self.nodes.get(&session).copied();
        let held = &self.held;
        let of_node = |lease: &Lease| held.get(lease).map(|held| held.node) == node;
        let quiet = self.quiet.iter_mut().filter(|(lease, _)| of_node(lease));
        quiet.for_each(|(_, due)| *due = 0);
    }

    fn of_session(&mut self, session: SessionId) -> Option<&mut Known> {
        let node = self.node_of(session)?;
        self.known.get_mut(&node)
    }

    /// The node of a session that lasts.
    fn node_of(&self, session: SessionId) -> Option<NodeId> {
        let node = self.nodes.get(&session)?;
        let lasts = |known: &&Known| known.session == session && known.away_since.is_none();
        self.known.get(node).filter(lasts).map(|_| *node)
    }

    /// The session of a node that is here.
    pub(crate) fn session_of(&self, node: NodeId) -> Option<SessionId> {
        self.known.get(&node).filter(|known| known.away_since.is_none()).map(|known| known.session)
    }

    /// The epoch was reserved by a process before this one.
    pub(crate) fn is_former(&self, epoch: Epoch) -> bool {
        epoch.0 > 0 && epoch.0 < self.start
    }

    /// Checks a step against the state before it, takes it in, and compares what it touches with
    /// the core. `books` are taken along.
    pub(crate) fn on_step(
        &mut self,
        step: &Step,
        seen: &Seen,
        core: &Core,
        books: &mut Books,
    ) -> Checked {
        let mut changes = Changes::default();
        self.ended_quietly.clear();
        self.check_results(step)?;
        for record in &step.records {
            self.note_record(record, seen, books, &mut changes)?;
            books.apply(record)?;
        }
        for action in &step.actions {
            if let Action::Send { session, message } = action {
                self.note_message(*session, message, seen, books, &mut changes)?;
            }
        }
        self.newest_epoch = changes.epochs.last().copied().unwrap_or(self.newest_epoch);
        self.follow(seen, &changes, core, books)?;
        if seen.inputs != 1 {
            return Ok(());
        }
        self.check_capacity(&changes)?;
        self.check_fresh(&changes, books)
    }

    /// Results that are kept and commits that are recorded are the same.
    fn check_results(&self, step: &Step) -> Checked {
        let mut kept = BTreeSet::new();
        for action in &step.actions {
            if let Action::KeepResult { lease, .. } = action
                && !kept.insert(*lease)
            {
                return violated(format!("the result of {lease} is kept twice"));
            }
        }
        let mut committed = BTreeSet::new();
        for record in &step.records {
            match record {
                Record::UnitsCommitted { job, frame, commits } => {
                    committed.extend(commits.iter().map(|commit| lease_of(*job, *frame, commit)));
                }
                Record::PartCommitted { job, frame, commit, .. } => {
                    committed.insert(lease_of(*job, *frame, commit));
                }
                _ => {}
            }
        }
        match kept == committed {
            true => Ok(()),
            false => violated(format!("results {kept:?} are kept, {committed:?} are recorded")),
        }
    }

    fn note_record(
        &self,
        record: &Record,
        seen: &Seen,
        books: &Books,
        changes: &mut Changes,
    ) -> Checked {
        match record {
            Record::UnitsCommitted { job, frame, commits } => {
                for commit in commits {
                    let lease = lease_of(*job, *frame, commit);
                    self.check_fence(lease, commit.node, seen, books)?;
                    changes.ended.insert(lease);
                }
            }
            Record::PartCommitted { job, frame, commit, .. } => {
                let lease = lease_of(*job, *frame, commit);
                self.check_fence(lease, commit.node, seen, books)?;
                changes.ended.insert(lease);
            }
            Record::PartsDropped { job, frame, units, .. } => {
                changes.ended.extend(self.of_parts(*job, *frame, units, books));
            }
            Record::UnitsTakenBack { job, frame, units, .. } => {
                changes.ended.extend(self.of_later_rounds(*job, *frame, units, books));
                changes.ended.extend(self.of_parts(*job, *frame, units, books));
            }
            Record::AttemptsEnded { attempts, .. } => {
                changes.ended.extend(attempts.iter().map(|attempt| attempt.lease));
            }
            Record::UnitChecked { job, frame, redone } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: redone.unit };
                let lease = Lease { unit, epoch: redone.epoch };
                self.check_fence_of_check(lease, redone.node, seen)?;
                changes.ended.insert(lease);
            }
            Record::JobPinned { job, .. } => {
                changes.pinned.insert(*job);
            }
            Record::JobPaused { job, .. } => {
                changes.shut.insert(*job);
                changes.paused.insert(*job);
            }
            Record::CopyStopped { job, frame, unit, epoch, node, .. } => {
                let unit = UnitKey { job: *job, frame: *frame, unit: *unit };
                let lease = Lease { unit, epoch: *epoch };
                if seen.inputs == 1 && self.held.get(&lease).is_none_or(|held| held.node != *node) {
                    return violated(format!("{lease} of {node} is stopped, and was not held"));
                }
                changes.ended.insert(lease);
            }
            Record::JobEnded { job, .. } | Record::FrameFailed { job, .. } => {
                changes.shut.insert(*job);
            }
            _ => {}
        }
        Ok(())
    }

    /// Leases of units that have parts. When the parts go, whoever has the rest of a unit, or
    /// checks a part, has too little of it.
    fn of_parts(
        &self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
        books: &Books,
    ) -> Vec<Lease> {
        let keys = units.iter().map(|unit| UnitKey { job, frame, unit: *unit });
        let in_parts = keys.filter(|unit| {
            books.frame(*unit).is_some_and(|frame| frame.parts.contains_key(&unit.unit.0))
        });
        in_parts.flat_map(|unit| self.held_of(unit)).map(|(lease, _)| *lease).collect()
    }

    /// Leases of rounds after those of some units of a frame.
    fn of_later_rounds(
        &self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
        books: &Books,
    ) -> Vec<Lease> {
        let book = books.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        let Some(rounds) = book.and_then(|book| book.rounds.as_ref()) else { return Vec::new() };
        let round = rounds.first_round(units);
        let leases = self.held_in(job).filter(|lease| lease.unit.frame == frame);
        leases.filter(|lease| rounds.is_after(lease.unit.unit.0, round)).copied().collect()
    }

    /// The rule by which a result may be accepted, from `results.rs`' description, with our own
    /// view of the leases.
    fn check_fence(&self, lease: Lease, node: NodeId, seen: &Seen, books: &Books) -> Checked {
        let fingerprint = self.known.get(&node).map(|known| known.fingerprint);
        let pinned = books.jobs.get(&lease.unit.job).and_then(|job| job.pinned);
        if pinned.is_none() || pinned != fingerprint {
            return violated(format!(
                "{lease} of fingerprint {fingerprint:?} is taken into a job of {pinned:?}"
            ));
        }
        // Within a step of several inputs a lease may have come and gone.
        if seen.inputs > 1 {
            return Ok(());
        }
        let held: Vec<(&Lease, &Held)> = self.held_of(lease.unit).collect();
        let attempt =
            books.frame(lease.unit).and_then(|frame| frame.attempts.get(&lease.unit.unit.0));
        let is_held = held.iter().any(|(of, held)| **of == lease && held.node == node);
        let fence = books.jobs.get(&lease.unit.job).map_or(0, |book| book.fence);
        let allowed = match attempt {
            _ if is_held => true,
            _ if !self.is_free(&held) => false,
            _ if lease.epoch.0 < fence => false,
            Some((epoch, last, failed)) if *epoch == lease.epoch => *last == node && !failed,
            Some((epoch, ..)) => lease.epoch > *epoch && self.is_former(lease.epoch),
            None => self.is_former(lease.epoch),
        };
        match allowed {
            true => Ok(()),
            false => violated(format!(
                "{lease} of {node} is committed against the fence: held {held:?}, last attempt \
                    {attempt:?}, given {:?}",
                self.given.get(&lease.unit)
            )),
        }
    }

    /// No lease of a unit stands in the way of a result: what is due ends before an input is looked
    /// at.
    fn is_free(&self, held: &[(&Lease, &Held)]) -> bool {
        held.iter().all(|(_, held)| self.may_be_due(held))
    }

    /// A result is compared for the lease that its node holds, or of one that a restart forgot.
    fn check_fence_of_check(&self, lease: Lease, node: NodeId, seen: &Seen) -> Checked {
        let held: Vec<(&Lease, &Held)> = self.held_of(lease.unit).collect();
        let is_held = held.iter().any(|(of, held)| **of == lease && held.node == node);
        let allowed = is_held || (self.is_free(&held) && self.is_former(lease.epoch));
        match allowed || seen.inputs > 1 {
            true => Ok(()),
            false => {
                violated(format!("{lease} of {node} is compared against the fence: held {held:?}"))
            }
        }
    }

    fn note_message(
        &mut self,
        session: SessionId,
        message: &CoordinatorToNode,
        seen: &Seen,
        books: &Books,
        changes: &mut Changes,
    ) -> Checked {
        match message {
            CoordinatorToNode::Work(assignments) => {
                for assignment in assignments {
                    self.check_epoch(assignment.lease(), books, changes)?;
                }
                // With several inputs, the session may have ended after this.
                let lasting = self.node_of(session);
                let ended = self.nodes.get(&session).copied().filter(|_| seen.inputs > 1);
                let Some(node) = lasting.or(ended) else {
                    return violated(format!("work is sent to {session:?}, which is over"));
                };
                self.check_willing(node, assignments, seen, books)?;
                for assignment in assignments {
                    self.note_assignment(node, assignment, seen, books)?;
                    changes.given.insert((node, assignment.lease()));
                }
                Ok(())
            }
            CoordinatorToNode::Revoke { leases } => {
                // A node that names the lease of another is told the same, and that lease goes on.
                let told = self.nodes.get(&session);
                let of_another = |lease: &&Lease| {
                    self.held
                        .get(lease)
                        .is_some_and(|held| told.is_some_and(|told| *told != held.node))
                };
                changes.ended.extend(leases.iter().filter(|lease| !of_another(lease)));
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn check_willing(
        &self,
        node: NodeId,
        work: &[Assignment],
        seen: &Seen,
        books: &Books,
    ) -> Checked {
        if seen.inputs > 1 {
            return Ok(());
        }
        let Some(known) = self.known.get(&node) else {
            return violated(format!("work is sent to {node}, which never joined"));
        };
        if known.leaving || !known.usable || books.drained.contains(&node) {
            return violated(format!("work is sent to {node}, which takes none"));
        }
        for assignment in work {
            let pinned = books.jobs.get(&assignment.job).and_then(|job| job.pinned);
            if pinned.is_some_and(|pinned| pinned != known.fingerprint) {
                return violated(format!(
                    "{} is sent to a node with a foreign fingerprint",
                    assignment.lease()
                ));
            }
        }
        Ok(())
    }

    /// An epoch is new in this process, and reserved.
    fn check_epoch(&self, lease: Lease, books: &Books, changes: &mut Changes) -> Checked {
        let Epoch(epoch) = lease.epoch;
        if epoch < self.start || epoch <= self.newest_epoch || !changes.epochs.insert(epoch) {
            return violated(format!("{lease} has an epoch that was given before"));
        }
        match epoch < books.reserved {
            true => Ok(()),
            false => violated(format!("{lease} has an epoch that is not reserved")),
        }
    }

    fn note_assignment(
        &mut self,
        node: NodeId,
        assignment: &Assignment,
        seen: &Seen,
        books: &Books,
    ) -> Checked {
        let lease = assignment.lease();
        let book = books.jobs.get(&lease.unit.job);
        let expected = books.lease_task(lease.unit);
        // With several inputs, parts may have come and gone after it.
        let whole =
            book.and_then(|job| task_of(job.kind(), lease.unit)).filter(|_| seen.inputs > 1);
        let within = whole.is_some_and(|whole| is_within(assignment.task, whole));
        if expected != Some(assignment.task) && !within {
            return violated(format!("{assignment:?} should have {expected:?}"));
        }
        if seen.inputs == 1 && books.is_paused(lease.unit.job) {
            return violated(format!("{lease} is given, and its job is paused"));
        }
        if book.is_some_and(|job| job.lacks_feed(lease.unit.frame)) {
            return violated(format!(
                "{lease} is given before the frame that it reads is finished"
            ));
        }
        self.given.insert(lease.unit, (lease.epoch, node));
        Ok(())
    }

    /// Nodes of which a lease has ended in the last step whose end no record tells of: checks, and
    /// one of a unit's two leases.
    pub(crate) fn ended_quietly(&self) -> impl Iterator<Item = NodeId> {
        self.ended_quietly.iter().copied()
    }

    /// Takes over which nodes are out of work for their failures, and which have work; those that
    /// were not out of it before.
    pub(crate) fn note_out(
        &mut self,
        out: &BTreeSet<NodeId>,
        taking: &BTreeSet<NodeId>,
    ) -> BTreeSet<NodeId> {
        let fresh = out.difference(&self.out).copied().collect();
        self.out.retain(|node| !taking.contains(node));
        self.out.extend(out);
        fresh
    }

    /// Some unit of a job is leased.
    pub(crate) fn holds_any(&self, job: JobId) -> bool {
        self.held_in(job).next().is_some()
    }

    /// The unit lacked what is not its own, while this process knows of it.
    pub(crate) fn was_short(&self, unit: UnitKey) -> bool {
        self.short.contains(&unit)
    }

    /// Somebody holds the unit.
    pub(crate) fn holds(&self, unit: UnitKey) -> bool {
        self.held_of(unit).next().is_some()
    }

    /// Leases that the core holds, of one node; None where there are none.
    pub(crate) fn held_by(&self, node: NodeId) -> Option<&BTreeSet<Lease>> {
        self.by_node.get(&node)
    }
}

fn is_usable(devices: &[DeviceInfo]) -> bool {
    devices.iter().any(|device| device.state == DeviceState::Ready)
}

fn lease_of(job: JobId, frame: FrameNumber, commit: &Commit) -> Lease {
    Lease { unit: UnitKey { job, frame, unit: commit.unit }, epoch: commit.epoch }
}
