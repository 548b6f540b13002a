//! Moves of leases: granted, held, renewed and ended. A lease begins and ends only here, together
//! with what follows from it for the shares of jobs, the queue of its job and its node.

use super::Books;
use crate::input::Arrived;
use crate::journal::Record;
use crate::lease::secret::MARK_BITS;
use crate::lease::{Grant, Held};
use crate::schedule::fair::Party;
use crate::state::job::Place;
use crate::time::Moment;
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_protocol::node::{Assignment, CoordinatorToNode, Progress};

/// How a lease ends, for those who are charged for it.
enum Spent {
    /// With a result, after so many microseconds of a device by its node's account.
    Result { micros: u64, device: u8 },
    /// Its attempt has failed.
    Failed,
    /// It was stopped, or is lost. It may have been worked on or not.
    Stopped,
    /// No device has worked on it.
    Nothing,
}

impl Spent {
    /// Microseconds of device time that a lease has taken: no more than the time for which it was
    /// held, whatever its node says. None if it has taken nothing.
    fn micros(&self, held: &Held, now: Moment) -> Option<u64> {
        let most = (now.since(held.granted).as_micros() as u64).saturating_add(1000);
        match *self {
            Self::Result { micros, .. } => Some(micros.min(most)),
            Self::Failed => Some(most),
            Self::Stopped => Some(held.charged.min(most)),
            Self::Nothing => None,
        }
    }
}

impl Books {
    /// Leases a unit to a node under a new epoch.
    pub(crate) fn grant(&mut self, id: NodeId, job: JobId, place: Place) -> Option<Assignment> {
        let known = self.farm.job(job)?;
        let UnitKey { frame, unit, .. } = known.key(place)?;
        let task = known.task(place)?;
        let (count, reserve) =
            self.epochs.take(self.farm.epochs_reserved(), self.settings.epoch_block);
        if let Some(up_to) = reserve {
            self.record(Record::EpochsReserved { up_to });
        }
        let mark = self.settings.secret.mark(UnitKey { job, frame, unit }, id, count);
        let epoch = Epoch(count << MARK_BITS | mark);
        let assignment = Assignment { job, frame, unit, epoch, task };
        self.hold(assignment.lease(), id);
        Some(assignment)
    }

    /// Adds a lease to the books, of an unleased unit or as a copy.
    pub(crate) fn hold(&mut self, lease: Lease, id: NodeId) {
        self.touch(lease.unit);
        let Some((place, queue)) = self.open_unit(lease.unit, "a unit is leased in a closed job")
        else {
            return;
        };
        let check = queue.redo(place).is_some();
        queue.lease(place);
        let Some(job) = self.farm.job(lease.unit.job) else {
            return self.fault("an open job is unknown");
        };
        let samples = self.work_of(job, lease.unit);
        let charged = self.queues.get(&job.id()).map_or(0, |of| of.estimates().cost().of(samples));
        self.shares.charge(&Party::of(job, &self.settings), charged);
        self.rooms.forget(job.id());
        let piece = job.grid().is_finishing(lease.unit.unit);
        let counted = job.time().is_some() && !piece;
        let (job, expected) = (job.id(), self.expected_cost(id, charged));
        let grant = Grant { lease, node: id, counted, charged, expected, check, piece };
        self.leases.grant(grant, self.now, &self.settings);
        self.reserve(job, expected);
        match self.roster.get_mut(id) {
            Some(node) => node.note_job(lease.unit.job),
            None => self.fault("a unit is leased to an unknown node"),
        }
    }

    /// Ends the lease of a result that has been accepted, and counts for how long a device waited
    /// for it: no longer than the lease was held, whatever its node says.
    pub(crate) fn settle(&mut self, result: &Arrived) -> Option<Held> {
        let Lease { unit, epoch } = result.lease;
        let held =
            self.end(epoch, Spent::Result { micros: result.device_micros, device: result.device })?;
        let most = self.now.since(held.granted).as_millis() as u64;
        let millis = (result.waited_micros / 1000).min(most);
        if millis > 0 {
            self.record(Record::DeviceWaited { job: unit.job, millis });
        }
        Some(held)
    }

    /// Ends a lease without a result. The unit then has no state: the caller decides on it.
    pub(crate) fn release(&mut self, epoch: Epoch) -> Option<Held> {
        self.end(epoch, Spent::Stopped)
    }

    /// Ends a lease on which no device has worked.
    pub(crate) fn release_unbegun(&mut self, epoch: Epoch) -> Option<Held> {
        self.end(epoch, Spent::Nothing)
    }

    /// Ends a lease whose attempt has failed.
    pub(crate) fn release_failed(&mut self, epoch: Epoch) -> Option<Held> {
        self.end(epoch, Spent::Failed)
    }

    /// Ends a lease, and corrects what its job and owner were charged for it.
    fn end(&mut self, epoch: Epoch, spent: Spent) -> Option<Held> {
        let unit = self.leases.get_by_epoch(epoch)?.unit;
        self.touch(unit);
        let held = self.leases.end(epoch)?;
        if let Some(job) = self.farm.job(unit.job) {
            let micros = spent.micros(&held, self.now);
            self.shares.settle(&Party::of(job, &self.settings), held.charged, micros);
            // Without a result, a device has worked on it if it has told of progress.
            let (device, lost) = match spent {
                Spent::Result { device, .. } => (Some(device), false),
                _ => (held.progress.map(|reached| reached.device), true),
            };
            self.unreserve(unit.job, held.expected);
            if let (Some(micros @ 1..), Some(device)) = (micros, device) {
                self.spend(unit.job, (held.node, device), micros, lost);
            }
        }
        Some(held)
    }

    /// Ends a lease without a result, and tells its node.
    pub(crate) fn revoke(&mut self, unit: UnitKey, epoch: Epoch) {
        if let Some(held) = self.release(epoch) {
            self.tell(held.node, CoordinatorToNode::Revoke { leases: vec![Lease { unit, epoch }] });
        }
    }

    /// Ends the leases of units; returns the units that were leased.
    pub(crate) fn revoke_units(
        &mut self,
        job: JobId,
        frame: FrameNumber,
        units: &[UnitIndex],
    ) -> Vec<UnitKey> {
        let mut leased = Vec::new();
        for unit in units.iter().map(|unit| UnitKey { job, frame, unit: *unit }) {
            let epochs: Vec<Epoch> = self.leases.of_unit(unit).collect();
            if !epochs.is_empty() {
                leased.push(unit);
            }
            epochs.into_iter().for_each(|epoch| self.revoke(unit, epoch));
        }
        leased
    }

    /// Revokes all leases of a node that will not or must not finish them. Other nodes get the
    /// units at once, and no attempt is counted.
    pub(crate) fn take_away(&mut self, id: NodeId) {
        self.take_away_those(id, |_| true);
    }

    /// Revokes all leases of a node on units of one job.
    pub(crate) fn take_away_in(&mut self, job: JobId, id: NodeId) {
        self.take_away_those(id, |lease| lease.unit.job == job);
    }

    fn take_away_those(&mut self, id: NodeId, which: impl Fn(&Lease) -> bool) {
        let leases = self.leases.of_node(id).map(|(lease, _)| lease).filter(which);
        for Lease { unit, epoch } in leases.collect::<Vec<Lease>>() {
            self.revoke(unit, epoch);
            self.give_back(unit, self.now);
        }
    }

    /// Makes a unit ready after its only lease was released. Until `avoid_until`, it preferably
    /// does not go to the node of its last attempt.
    pub(crate) fn give_back(&mut self, unit: UnitKey, avoid_until: Moment) {
        if self.leases.is_leased(unit) {
            return;
        }
        if let Some((place, queue)) = self.open_unit(unit, "a unit is given back to a closed job") {
            queue.give_back(place, avoid_until);
            self.offer_job(unit.job);
        }
    }

    /// Stops the other lease of a unit, if there is one, because the result of `winner` was
    /// accepted.
    pub(crate) fn stop_copy(&mut self, unit: UnitKey, winner: Epoch) {
        let others: Vec<Epoch> = self.leases.of_unit(unit).collect();
        for epoch in others {
            let Some(held) = self.release(epoch) else {
                self.fault("a lease of a unit is not held");
                continue;
            };
            let millis = self.now.since(held.granted).as_millis() as u64;
            self.tell(held.node, CoordinatorToNode::Revoke { leases: vec![Lease { unit, epoch }] });
            let (node, UnitKey { job, frame, unit }) = (held.node, unit);
            self.record(Record::CopyStopped { job, frame, unit, epoch, node, winner, millis });
            // The node has room again.
            self.dirty.mark(node);
        }
    }

    /// Extends a lease.
    pub(crate) fn renew(&mut self, epoch: Epoch) {
        self.leases.renew(epoch, self.now, &self.settings);
    }

    /// Ends all leases of a node at `until`, unless they are renewed or end before.
    pub(crate) fn hold_until(&mut self, node: NodeId, until: Moment) {
        self.leases.hold_until(node, until, &self.settings);
    }

    /// Notes the progress that a node reports of a unit.
    pub(crate) fn note_progress(&mut self, node: NodeId, told: &Progress) {
        self.leases.note_progress(node, told, self.now);
    }

    /// Drops the time that a frame's leases have used: it is recorded, or no longer needed.
    pub(crate) fn forget_time(&mut self, job: JobId, frame: FrameNumber) {
        self.leases.forget_time(job, frame);
    }
}
