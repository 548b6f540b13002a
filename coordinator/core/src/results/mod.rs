//! Results: the compare-and-set on (unit, epoch) that makes every unit committed once.
//!
//! A result of lease (unit, epoch) from a node is accepted if the unit is open, the node has the
//! job's fingerprint, and one of:
//!
//! 1. the unit is leased now, with this epoch, to this node (with a copy, it has two leases, and
//!    either will do: see `tail`);
//! 2. the unit is not leased, and its newest ended attempt has this epoch and node and expired or
//!    was lost (a failed one is disowned);
//! 3. the unit is not leased, and the epoch is above those of its ended attempts and was reserved
//!    by a former process: a lease that a restart forgot. Epochs are never used twice, so that one
//!    reserved then cannot be one given out since.
//!
//! In 2 and 3, the epoch must not be another unit's as well: an epoch belongs to one unit, but a
//! restart forgets to which, and a node may say anything. So one that is held or was committed for
//! another unit is refused, and so is one of a former process that is older than all commits that
//! are remembered.
//!
//! And in 2 and 3 the epoch must bear the mark of this unit and this node ([`crate::Secret`]), so
//! that a lease that was never given cannot be named. A unit that is committed and waits for its
//! check takes results by 1, and by 3 of a node that has not been heard about it and is no suspect:
//! they are compared, and not committed (see `verify`). Once a part of it has been rendered alike
//! it takes none by 3: a restart forgets of which part a lease was, and that of the former part may
//! be named again.
//!
//! A result names its samples. A node that has to leave hands in the first of those that it was to
//! render: a *part*, accepted by the same rule. It is committed, its lease has ended, and the rest
//! of the unit is open; from then on no lease of the unit up to this one is good for anything. A
//! part of a check compares with nothing, a unit with [`crate::state::parts::PARTS_MAX`] parts
//! takes no more, and one with another lease waits for that: then the lease is as if it had been
//! given back.
//!
//! Any other is unwanted: an older epoch than the unit's newest known one, one that was never given
//! out, one of another node, one of a unit that is committed, of a frame or job that has ended, or
//! of one that had and was opened again since. Once a unit is leased again, its former leases are
//! void (1 is then the only door), although their pixels would be the same.

mod failed;
pub(crate) mod failure_class;
pub(crate) mod shortage;
mod stalled;

use crate::action::Action;
use crate::core::Core;
use crate::input::{Arrived, FilmShape, ResultShape, SessionId};
use crate::journal::{Commit, Record};
use crate::state::farm::RECENT_COMMITS_MAX;
use crate::state::job::Job;
use crate::state::parts::{PARTS_MAX, Standing};
use tessera_protocol::ids::{Epoch, Fingerprint, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::job::JobKind;
use tessera_protocol::node::{CoordinatorToNode, Task};

impl Core {
    /// The rule above.
    pub(crate) fn is_acceptable(&self, id: NodeId, lease: Lease) -> bool {
        let Some(job) = self.farm.job(lease.unit.job).filter(|job| !job.is_final()) else {
            return false;
        };
        let Some(node) = self.roster.get(id) else { return false };
        let wanted = job.place(lease.unit).is_some_and(|place| !job.is_shut(place.position))
            && job
                .frame(lease.unit.frame)
                .is_some_and(|frame| frame.unit_is_wanted(lease.unit.unit, &job.grid()));
        if !wanted || job.fingerprint().is_some_and(|pinned| pinned != node.fingerprint()) {
            return false;
        }
        if self.leases.is_leased(lease.unit) {
            return self.leases.get(lease).is_some_and(|held| held.node == id);
        }
        if lease.epoch < job.fence()
            || !self.settings.secret.has_marked(lease, id)
            || self.may_be_of_another_unit(lease.epoch)
        {
            return false;
        }
        let of_former_process = self.epochs.is_of_former_process(lease.epoch);
        if let Some(check) = self.check_of(lease.unit) {
            // What a suspect said before has been struck out, so that nothing tells whether this is
            // the same once more.
            let heard = check.heard(id) > 0 || self.farm.trust().suspect_of(id).is_some();
            let settled = job
                .frame(lease.unit.frame)
                .and_then(|frame| frame.unfinished())
                .is_some_and(|open| {
                    open.parts()
                        .of(lease.unit.unit)
                        .iter()
                        .any(|part| part.standing == Standing::Alike)
                });
            return of_former_process && lease.epoch > check.newest() && !heard && !settled;
        }
        match job.frame(lease.unit.frame).and_then(|frame| frame.trouble(lease.unit.unit)) {
            Some(last) if last.epoch == lease.epoch => last.node == id && !last.disowned,
            Some(last) => lease.epoch > last.epoch && of_former_process,
            None => of_former_process,
        }
    }

    /// An epoch that somebody names for a unit that is not leased has its place already, or may
    /// have had it too long ago to tell.
    fn may_be_of_another_unit(&self, epoch: Epoch) -> bool {
        let recent = self.farm.recent_commits();
        let oldest = recent.first_key_value().filter(|_| recent.len() >= RECENT_COMMITS_MAX);
        let forgotten = oldest.is_some_and(|(oldest, _)| epoch < *oldest);
        let former = self.epochs.is_of_former_process(epoch);
        self.leases.get_by_epoch(epoch).is_some()
            || recent.contains_key(&epoch)
            || (former && forgotten)
    }

    /// The lease's result was committed, lately.
    pub(crate) fn is_committed(&self, lease: Lease) -> bool {
        self.farm.recent_commits().get(&lease.epoch) == Some(&lease.unit)
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
        let expected = self.farm.job(lease.unit.job).and_then(|job| shape_of(job, lease.unit));
        match (fit(expected, result.shape), self.check_of(lease.unit)) {
            (Fit::Whole, Some(_)) => self.on_redone(node, session, result),
            (Fit::Whole, None) => {
                self.pin(node, lease.unit.job);
                self.commit(node, session, result);
            }
            (Fit::Part { first, samples }, None) if self.takes_part(lease) => {
                self.pin(node, lease.unit.job);
                self.commit_part(node, session, result, (first, samples));
            }
            (Fit::Part { .. }, _) | (Fit::Elsewhere, Some(_)) => self.set_aside(session, lease),
            // A former process gave it before there were parts.
            (Fit::Elsewhere, None) if self.leases.get(lease).is_none() => {
                self.set_aside(session, lease)
            }
            (Fit::Elsewhere | Fit::Foreign, _) => {
                self.act(Action::DropResult { session, lease });
                let reason =
                    format!("the result has the shape {:?} instead of {expected:?}", result.shape);
                return self.on_result_damaged(session, lease, &reason);
            }
        }
        self.dirty.mark(node);
    }

    /// A result that is good for nothing, and nobody's fault: its lease is given back.
    fn set_aside(&mut self, session: SessionId, lease: Lease) {
        self.act(Action::DropResult { session, lease });
        self.send(session, CoordinatorToNode::Unwanted { lease });
        if self.release(lease.epoch).is_some() {
            self.give_back(lease.unit, self.now);
        }
    }

    /// An open unit may have one more part: it has few, and nobody else has another lease of it,
    /// whose result would be too much then.
    fn takes_part(&self, lease: Lease) -> bool {
        let unit = lease.unit;
        let frame = self.farm.job(unit.job).and_then(|job| job.frame(unit.frame)?.unfinished());
        self.leases.of_unit(unit).all(|epoch| epoch == lease.epoch)
            && frame.is_none_or(|open| open.parts().of(unit.unit).len() < PARTS_MAX)
    }

    fn commit_part(
        &mut self,
        node: NodeId,
        session: SessionId,
        result: &Arrived,
        (first, samples): (u32, u32),
    ) {
        let lease = result.lease;
        let Lease { unit, epoch } = lease;
        let check = self.is_to_be_checked(node, lease);
        let held = self.leases.end(epoch);
        let commit = Commit { unit: unit.unit, epoch, node, hash: result.hash, check };
        self.record(Record::PartCommitted {
            job: unit.job,
            frame: unit.frame,
            commit,
            first,
            samples,
        });
        self.act(Action::KeepResult { session, lease });
        self.send(session, CoordinatorToNode::Committed { lease });
        self.note_result(node, result);
        if held.is_some() {
            if let Some(job) = self.farm.job(unit.job) {
                self.shares.refund(job.spec().priority, job.lease_samples(unit));
            }
            self.give_back(unit, self.now);
        }
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
        self.farm
            .record_commit(unit, Commit { unit: unit.unit, epoch, node, hash: result.hash, check });
        self.act(Action::KeepResult { session, lease });
        self.send(session, CoordinatorToNode::Committed { lease });
        self.stop_copy(unit, epoch);
        if let Some((place, work)) = self.open_unit(unit, "a unit is committed of no open job") {
            work.commit(place);
        }
        self.note_result(node, result);
        // Of a unit in parts, that of the first that was chosen.
        if let Some(maker) = self.check_of(unit).map(|check| check.committed().node) {
            self.open_check(unit, maker);
        }
        self.ask_if_due(unit.job, unit.frame);
    }

    /// Learns of a result how fast its node is, and what the job needs.
    pub(crate) fn note_result(&mut self, node: NodeId, result: &Arrived) {
        let unit = result.lease.unit;
        let Some(job) = self.farm.job(unit.job) else {
            return self.fault("a result is taken of an unknown job");
        };
        let camera_samples = job.grid().camera_samples(unit.unit, result.shape.size());
        // A unit cannot have needed more than the device has that did it; where a node says so, its
        // word is not taken for the job.
        let known =
            self.roster.get(node).and_then(|node| node.devices().get(usize::from(result.device)));
        let has = known.map_or(0, |device| device.memory_bytes);
        let device_bytes = if result.device_bytes <= has { result.device_bytes } else { 0 };
        if let Some(work) = self.queues.get_mut(&unit.job) {
            work.note_result(node, result.device, camera_samples, result.device_micros);
            work.note_need(device_bytes);
        }
        if let Some(node) = self.roster.get_mut(node) {
            node.note_commit(camera_samples, self.now);
        }
    }

    /// The first result pins the job to its fingerprint; leases of nodes with another one are void.
    fn pin(&mut self, node: NodeId, id: JobId) {
        let Some(fingerprint) = self.roster.get(node).map(|node| node.fingerprint()) else {
            return self.fault("a result is taken from an unknown node");
        };
        if self.farm.job(id).is_none_or(|job| job.fingerprint().is_some()) {
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
        node.is_none_or(|node| node.fingerprint() != fingerprint)
    }
}

/// How a result fits its lease.
enum Fit {
    /// It is all that the lease asked for.
    Whole,
    /// It has the first samples of those, and not all.
    Part {
        /// Counted from the unit's first.
        first: u32,
        samples: u32,
    },
    /// It is of other samples of the unit.
    Elsewhere,
    /// It has another shape.
    Foreign,
}

fn fit(expected: Option<(ResultShape, u32)>, found: ResultShape) -> Fit {
    let Some((expected, unit_first)) = expected else { return Fit::Foreign };
    if expected == found {
        return Fit::Whole;
    }
    let (ResultShape::Film(wanted), ResultShape::Film(film)) = (expected, found) else {
        return Fit::Foreign;
    };
    let same_samples = FilmShape { first: wanted.first, samples: wanted.samples, ..film };
    match (same_samples == wanted, film.first == wanted.first) {
        (false, _) => Fit::Foreign,
        (true, false) => Fit::Elsewhere,
        (true, true) if (1..wanted.samples).contains(&film.samples) => {
            Fit::Part { first: film.first - unit_first, samples: film.samples }
        }
        (true, true) => Fit::Foreign,
    }
}

/// What the result of a lease must look like, and the first sample of its unit.
fn shape_of(job: &Job, unit: UnitKey) -> Option<(ResultShape, u32)> {
    let place = job.place(unit)?;
    match (job.task(place)?, job.grid().task(unit.unit, None)?, job.kind()) {
        (
            Task::Tile { tile, samples },
            Task::Tile { samples: whole, .. },
            JobKind::Render(render),
        ) => {
            let film = FilmShape {
                width: tile.width,
                height: tile.height,
                channels: render.channels(),
                first: samples.first,
                samples: samples.count,
            };
            Some((ResultShape::Film(film), whole.first))
        }
        (Task::Chunk { count, .. }, _, JobKind::Compute(compute)) => {
            Some((ResultShape::Chunk(compute.chunk_shape(count)), 0))
        }
        _ => None,
    }
}
