//! Results: the compare-and-set on (unit, epoch) that makes every unit committed once.
//!
//! A result of lease (unit, epoch) from a node is accepted if the unit is open, the node has the job's fingerprint, and one of:
//!
//! 1. the unit is leased now, with this epoch, to this node (with a copy, it has two leases, and either will do: see `tail`);
//! 2. the unit is not leased, and its newest ended attempt has this epoch and node and expired or was lost (a failed one is disowned);
//! 3. the unit is not leased, and the epoch is above those of its ended attempts and was reserved by a former process: a lease that
//!    a restart forgot. Epochs are never used twice, so that one reserved then cannot be one given out since.
//!
//! In 2 and 3, the epoch must not be another unit's as well: an epoch belongs to one unit, but a restart forgets to which, and a node may
//! say anything. So one that is held or was committed for another unit is refused, and so is one of a former process that is older than
//! all commits that are remembered.
//!
//! And in 2 and 3 the epoch must bear the mark of this unit and this node ([`crate::Secret`]), so that a lease that was never given cannot be
//! named. A unit that is committed and waits for its check takes results by 1, and by 3 of a node that has not been heard about it: they are
//! compared, and not committed (see `verify`).
//!
//! Any other is unwanted: an older epoch than the unit's newest known one, one that was never given out, one of another node, one of a
//! unit that is committed, of a frame or job that has ended, or of one that had and was opened again since. Once a unit is leased again, its former leases are void (1 is then the
//! only door), although their pixels would be the same.

use crate::action::Action;
use crate::core::Core;
use crate::farm::RECENT_COMMITS_MAX;
use crate::input::{Arrived, FilmShape, ResultShape, SessionId};
use crate::job::Job;
use crate::journal::{Commit, Record};
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{CoordinatorToNode, Task};

impl Core {
    /// The rule above.
    pub(crate) fn is_acceptable(&self, id: NodeId, lease: Lease) -> bool {
        let Some(job) = self.farm.jobs.get(&lease.unit.job).filter(|job| !job.is_final()) else {
            return false;
        };
        let Some(node) = self.roster.get(id) else { return false };
        let wanted = job.place(lease.unit).is_some_and(|place| !job.is_shut(place.position))
            && job.frame(lease.unit.frame).is_some_and(|frame| frame.unit_is_wanted(lease.unit.unit));
        if !wanted || job.fingerprint.is_some_and(|pinned| pinned != node.fingerprint) {
            return false;
        }
        if self.leases.is_leased(lease.unit) {
            return self.leases.get(lease).is_some_and(|held| held.node == id);
        }
        if lease.epoch < job.fence
            || !self.settings.secret.has_marked(lease, id)
            || self.may_be_of_another_unit(lease.epoch)
        {
            return false;
        }
        let of_former_process = self.epochs.is_of_former_process(lease.epoch);
        if let Some(check) = self.check_of(lease.unit) {
            return of_former_process && lease.epoch > check.newest() && check.heard(id) == 0;
        }
        match job.frame(lease.unit.frame).and_then(|frame| frame.trouble(lease.unit.unit)) {
            Some(last) if last.epoch == lease.epoch => last.node == id && !last.disowned,
            Some(last) => lease.epoch > last.epoch && of_former_process,
            None => of_former_process,
        }
    }

    /// An epoch that somebody names for a unit that is not leased has its place already, or may have had it too long ago to tell.
    fn may_be_of_another_unit(&self, epoch: Epoch) -> bool {
        let recent = &self.farm.recent;
        let oldest = recent.first_key_value().filter(|_| recent.len() >= RECENT_COMMITS_MAX);
        let forgotten = oldest.is_some_and(|(oldest, _)| epoch < *oldest);
        let former = self.epochs.is_of_former_process(epoch);
        self.leases.get_by_epoch(epoch).is_some() || recent.contains_key(&epoch) || (former && forgotten)
    }

    /// The lease's result was committed, lately.
    pub(crate) fn is_committed(&self, lease: Lease) -> bool {
        self.farm.recent.get(&lease.epoch) == Some(&lease.unit)
    }

    /// What to say to a node about a result that is not taken.
    pub(crate) fn refusal(&self, lease: Lease) -> CoordinatorToNode {
        match self.is_committed(lease) {
            true => CoordinatorToNode::Committed { lease },
            false => CoordinatorToNode::Unwanted { lease },
        }
    }

    pub(crate) fn on_result(&mut self, session: SessionId, result: &Arrived) {
        let lease = result.lease;
        let Some(node) = self.heard_from(session) else {
            return self.act(Action::DropResult { session, lease });
        };
        if !self.is_acceptable(node, lease) {
            self.act(Action::DropResult { session, lease });
            let message = self.refusal(lease);
            return self.send(session, message);
        }
        let expected = self.farm.jobs.get(&lease.unit.job).and_then(|job| shape_of(job, lease.unit.unit));
        if expected != Some(result.shape) {
            self.act(Action::DropResult { session, lease });
            let reason = format!("the result has the shape {:?} instead of {expected:?}", result.shape);
            return self.on_result_damaged(session, lease, &reason);
        }
        match self.check_of(lease.unit) {
            Some(_) => self.on_redone(node, session, result),
            None => {
                self.pin(node, lease.unit.job);
                self.commit(node, session, result);
            }
        }
        self.feed(node);
    }

    pub(crate) fn on_result_damaged(&mut self, session: SessionId, lease: Lease, reason: &str) {
        let Some(node) = self.heard_from(session) else { return };
        let message = self.refusal(lease);
        self.send(session, message);
        if self.is_acceptable(node, lease) {
            self.fail_attempt(node, lease, reason);
        }
    }

    fn commit(&mut self, node: NodeId, session: SessionId, result: &Arrived) {
        let lease = result.lease;
        let Lease { unit, epoch } = lease;
        let check = self.is_to_be_checked(node, lease);
        self.leases.end(epoch);
        self.record_commit(unit, Commit { unit: unit.unit, epoch, node, hash: result.hash, check });
        self.act(Action::KeepResult { session, lease });
        self.send(session, CoordinatorToNode::Committed { lease });
        self.stop_copy(unit, epoch);
        let place = self.farm.jobs.get(&unit.job).and_then(|job| job.place(unit));
        if let (Some(place), Some(work)) = (place, self.work.get_mut(&unit.job)) {
            work.take(place);
            work.copies.remove(&place);
            work.shortages.remove(&place);
        }
        self.note_result(node, result);
        if check {
            self.open_check(unit, node);
        }
        self.resolve_if_complete(unit.job, unit.frame);
    }

    /// Learns of a result how fast its node is, and what the job needs.
    pub(crate) fn note_result(&mut self, node: NodeId, result: &Arrived) {
        let unit = result.lease.unit;
        let Some(job) = self.farm.jobs.get(&unit.job) else { return };
        let camera_samples = job.grid.unit_camera_samples(unit.unit);
        // A unit cannot have needed more than the device has that did it; where a node says so, its word is not taken for the job.
        let known = self.roster.get(node).and_then(|node| node.devices.get(usize::from(result.device)));
        let has = known.map_or(0, |device| device.memory_bytes);
        let device_bytes = if result.device_bytes <= has { result.device_bytes } else { 0 };
        if let Some(work) = self.work.get_mut(&unit.job) {
            work.begun = true;
            work.rates.note(node, result.device, camera_samples, result.device_micros);
            work.measured.note_need(device_bytes);
        }
        if let Some(node) = self.roster.get_mut(node) {
            node.note_commit(camera_samples, self.now);
        }
    }

    /// The first result pins the job to its fingerprint; leases of nodes with another one are void.
    fn pin(&mut self, node: NodeId, id: JobId) {
        let Some(fingerprint) = self.roster.get(node).map(|node| node.fingerprint) else { return };
        if self.farm.jobs.get(&id).is_none_or(|job| job.fingerprint.is_some()) {
            return;
        }
        self.record(Record::JobPinned { job: id, fingerprint });
        let foreign: Vec<(UnitKey, Epoch)> = self
            .leases
            .of_job(id)
            .filter(|(unit, epoch)| self.is_foreign(*unit, *epoch, fingerprint))
            .collect();
        for (unit, epoch) in foreign {
            self.revoke(unit, epoch);
            self.give_back(unit, self.now);
        }
    }

    fn is_foreign(&self, unit: UnitKey, epoch: Epoch, fingerprint: Fingerprint) -> bool {
        let held = self.leases.get(Lease { unit, epoch });
        let node = held.and_then(|held| self.roster.get(held.node));
        node.is_none_or(|node| node.fingerprint != fingerprint)
    }
}

/// What the result of a unit must look like.
fn shape_of(job: &Job, unit: UnitIndex) -> Option<ResultShape> {
    match (job.grid.task(unit, None)?, job.kind()) {
        (Task::Tile { tile, samples }, JobKind::Render(render)) => Some(ResultShape::Film(FilmShape {
            width: tile.width,
            height: tile.height,
            channels: render.channels(),
            samples: samples.count,
        })),
        (Task::Chunk { count, .. }, JobKind::Compute(compute)) => {
            Some(ResultShape::Chunk(compute.chunk_shape(count)))
        }
        _ => None,
    }
}
