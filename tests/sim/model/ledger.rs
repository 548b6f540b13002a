//! What outlives a process of the coordinator, from outside: what was made durable, and what was
//! promised to whom.

use crate::checks::violation::{Checked, Violation, violated};
use crate::coordinator::disk::Disk;
use crate::model::books::{Books, FrameBook, FrameEnd, JobBook};
use crate::model::film::{shape_of, sum_of};
use crate::model::finishing::pieces_of;
use crate::model::parts::{PartBook, cut, size_of};
use crate::model::tasks::task_of;
use std::collections::{BTreeMap, BTreeSet};
use tessera_core::Action;
use tessera_protocol::client::Response;
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey,
};
use tessera_protocol::node::CoordinatorToNode;

/// Facts and promises.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// What the records on the disk say.
    pub(crate) durable: Books,
    /// What the records say that the running process has made so far.
    pub(crate) believed: Books,
    /// Every epoch ever sent to a node, and for what.
    issued: BTreeMap<u64, (UnitKey, NodeId)>,
    /// All of them, for liars to choose from.
    pub(crate) leases: Vec<(Lease, NodeId)>,
    newest: BTreeMap<UnitKey, u64>,
    /// What is performed is of a process that leads no more, and does not know.
    pub(crate) stale: bool,
    /// Leases of each unit so far.
    times: BTreeMap<UnitKey, u32>,
    /// Commits that nodes were told of.
    acknowledged: BTreeSet<Lease>,
    /// Jobs that clients were told of.
    pub(crate) accepted: BTreeSet<JobId>,
    /// Jobs whose end was told.
    ended: BTreeSet<JobId>,
    /// Nodes whose results may be wrong.
    pub(crate) forgers: BTreeSet<NodeId>,
    /// Jobs whose kernels give other results each time.
    pub(crate) unsteady: BTreeSet<JobId>,
}

impl Ledger {
    pub(crate) fn new(forgers: BTreeSet<NodeId>, unsteady: BTreeSet<JobId>) -> Self {
        Self { forgers, unsteady, ..Self::default() }
    }

    /// Checks that what an action tells is true and durable.
    pub(crate) fn on_performed(
        &mut self,
        action: &Action,
        to: Option<NodeId>,
        disk: &Disk,
    ) -> Checked {
        match action {
            Action::Send { message, .. } => self.on_sent(message, to),
            Action::ResolveFrame { .. } if self.stale => Ok(()),
            Action::ResolveFrame { job, frame } => self.check_spool(*job, *frame, disk),
            Action::FrameFinished { job, frame } => self.check_end(*job, *frame, FrameEnd::Done),
            Action::FrameFailed { job, frame } => self.check_end(*job, *frame, FrameEnd::Failed),
            Action::JobEnded { job } => {
                self.ended.insert(*job);
                self.must(self.has_ended(*job), || format!("job {job} is said to have ended"))
            }
            _ => Ok(()),
        }
    }

    fn must(&self, holds: bool, what: impl FnOnce() -> String) -> Checked {
        if holds { Ok(()) } else { violated(format!("{}, which is not durable", what())) }
    }

    /// It may have been opened again since.
    fn has_ended(&self, job: JobId) -> bool {
        self.durable.jobs.get(&job).is_some_and(|book| book.ends > 0)
    }

    fn check_end(&self, job: JobId, frame: FrameNumber, end: FrameEnd) -> Checked {
        let found = self.durable.jobs.get(&job).and_then(|book| book.frames.get(&frame));
        // One that failed may have been opened again by a later step of the same sync.
        let true_once = |book: &FrameBook| end == FrameEnd::Failed && book.failures > 0;
        let holds = found.is_some_and(|book| book.end == end || true_once(book));
        self.must(holds, || format!("{job}/{frame} is said to be {end:?}"))
    }

    fn on_sent(&mut self, message: &CoordinatorToNode, to: Option<NodeId>) -> Checked {
        match message {
            CoordinatorToNode::Committed { lease } => {
                let durable = self.durable.has_commit(*lease);
                self.acknowledged.insert(*lease);
                self.must(durable, || format!("{lease} is acknowledged"))
            }
            CoordinatorToNode::Forget { .. } if self.stale => Ok(()),
            CoordinatorToNode::Forget { job } => {
                let never_ended = self.durable.jobs.get(job).is_some_and(|book| book.ends == 0);
                self.must(!never_ended, || format!("nodes are told to forget {job}"))
            }
            CoordinatorToNode::Work(assignments) => {
                let Some(node) = to else { return Ok(()) };
                assignments.iter().try_for_each(|assignment| self.issue(assignment.lease(), node))
            }
            _ => Ok(()),
        }
    }

    /// A lease leaves for its node: its epoch is reserved, new, and above all former ones of its
    /// unit, whichever process gave those.
    fn issue(&mut self, lease: Lease, node: NodeId) -> Checked {
        let Lease { unit, epoch } = lease;
        self.must(epoch.0 < self.durable.reserved, || {
            format!("{lease} is sent with a reservation")
        })?;
        if let Some((other, holder)) = self.issued.insert(epoch.0, (unit, node)) {
            return violated(format!(
                "{epoch} is given for {unit} and was given to {holder} for {other}"
            ));
        }
        if self.stale {
            return Ok(());
        }
        self.must(!self.durable.holds_back(unit.job, unit.frame), || {
            format!("{lease} is sent after the end of a wait")
        })?;
        if let Some(newest) = self.newest.insert(unit, epoch.0).filter(|newest| *newest >= epoch.0)
        {
            return violated(format!("{lease} follows e{newest}"));
        }
        self.leases.push((lease, node));
        *self.times.entry(unit).or_default() += 1;
        Ok(())
    }

    /// The action gives a unit away for the third time.
    pub(crate) fn leased_thrice(&self, action: &Action) -> bool {
        let Action::Send { message: CoordinatorToNode::Work(work), .. } = action else {
            return false;
        };
        work.iter().any(|assignment| self.times.get(&assignment.lease().unit) == Some(&3))
    }

    /// Where a result claims to come from: the epoch was sent, for this unit, to this node.
    pub(crate) fn was_issued(&self, lease: Lease, node: NodeId) -> bool {
        self.issued.get(&lease.epoch.0) == Some(&(lease.unit, node))
    }

    pub(crate) fn on_reply(&mut self, response: &Response) -> Checked {
        if let Response::Accepted(job) = response {
            self.accepted.insert(*job);
            return self
                .must(self.durable.jobs.contains_key(job), || format!("job {job} is accepted"));
        }
        Ok(())
    }

    /// All that was promised is on the disk: asked after every start, and at the end.
    pub(crate) fn check_promises(&self) -> Checked {
        if let Some(job) = self.accepted.iter().find(|job| !self.durable.jobs.contains_key(job)) {
            return violated(format!("job {job} was accepted and is lost"));
        }
        if let Some(lease) =
            self.acknowledged.iter().find(|lease| !self.durable.has_commit(**lease))
        {
            return violated(format!("the result of {lease} was acknowledged and is lost"));
        }
        match self.ended.iter().find(|job| !self.has_ended(**job)) {
            Some(job) => violated(format!("the end of job {job} was told and is lost")),
            None => Ok(()),
        }
    }

    /// A frame that is to be resolved has every unit's result in its spool, once, and they add up
    /// to the picture.
    fn check_spool(&self, job: JobId, frame: FrameNumber, disk: &Disk) -> Checked {
        let Some(book) = self.durable.jobs.get(&job) else {
            return violated(format!(
                "{job}/{frame} is to be resolved, and its job is not durable"
            ));
        };
        let Some(frame_book) = book.frames.get(&frame) else {
            return violated(format!("{job}/{frame} is to be resolved and does not exist"));
        };
        if frame_book.end != FrameEnd::Open {
            // Ended by a later step of the same sync.
            return Ok(());
        }
        let (there, all) = (frame_book.sampled(), frame_book.wanted());
        let undone = frame_book.undone.range(..frame_book.units);
        let undone = undone.filter(|unit| frame_book.wants(**unit)).count();
        if there + undone != all as usize {
            return violated(format!(
                "{job}/{frame} is to be resolved with {there} of {all} units"
            ));
        }
        if frame_book.undone() > 0 {
            // By a later step of the same sync: what comes of this is not looked at.
            return Ok(());
        }
        if !frame_book.is_whole() {
            return violated(format!("{job}/{frame} is to be resolved without all its pieces"));
        }
        let Some(pinned) = book.pinned else {
            return violated(format!("job {job} has results and is not pinned"));
        };
        self.check_rounds((job, frame), book, frame_book)?;
        let results = Results { job: (job, book), frame: (frame, frame_book), pinned };
        let (mut sum, mut expected) = (0u64, 0u64);
        for (unit, (epoch, node)) in frame_book.committed.range(..frame_book.units) {
            let (spooled, whole) = self.add_unit(&results, *unit, (*epoch, *node), disk)?;
            sum = sum.wrapping_add(spooled);
            expected = expected.wrapping_add(whole);
        }
        if frame_book.is_by_nodes() {
            self.check_pieces((job, frame), frame_book, &pieces_of(book.kind()), disk)?;
        }
        // A kernel that gives other results each time has no right ones.
        match sum == expected || self.unsteady.contains(&job) {
            true => Ok(()),
            false => violated(format!("{job}/{frame} adds up to {sum:x} instead of {expected:x}")),
        }
    }

    /// What the results of one committed unit add up to, as spooled and as it should be.
    fn add_unit(
        &self,
        results: &Results,
        unit: u32,
        (epoch, node): (Epoch, NodeId),
        disk: &Disk,
    ) -> Result<(u64, u64), Violation> {
        let Results { job: (job, book), frame: (frame, frame_book), pinned } = *results;
        let key = UnitKey { job, frame, unit: UnitIndex(unit) };
        let Some(whole) = task_of(book.kind(), key) else { return Ok((0, 0)) };
        let own = [PartBook {
            samples: size_of(whole),
            epoch,
            node,
            hash: BlobHash([0; 32]),
            to_check: false,
            alike: frame_book.verified.contains(&unit),
        }];
        let (mut sum, mut first) = (0u64, 0);
        for part in frame_book.parts.get(&unit).map_or(own.as_slice(), Vec::as_slice) {
            let epoch = part.epoch;
            let mut entries = disk.spool(job, frame);
            let Some(entry) = entries.find(|entry| entry.unit.0 == unit && entry.epoch == epoch)
            else {
                return violated(format!(
                    "{key}@{epoch} is committed, and its result is not in the spool"
                ));
            };
            let shape = shape_of(book.kind(), cut(whole, first, part.samples));
            first += part.samples;
            let stored = entry.film.shape;
            if shape != Some(stored) {
                return violated(format!("{key} is committed with {stored:?}, not {shape:?}"));
            }
            // What no other node has looked at is as good as its node.
            let blind = self.forgers.contains(&part.node) && !part.alike;
            let truth = sum_of(key, pinned, stored);
            sum = sum.wrapping_add(if blind { truth } else { entry.film.sum });
        }
        let shape = shape_of(book.kind(), whole);
        Ok((sum, shape.map_or(0, |shape| sum_of(key, pinned, shape))))
    }
}

/// A frame whose results are added up.
struct Results<'a> {
    job: (JobId, &'a JobBook),
    frame: (FrameNumber, &'a FrameBook),
    pinned: Fingerprint,
}
