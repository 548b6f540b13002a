//! Moves of units between ready, waiting and to be checked, and of jobs between offered and not.
//! The queue of a job and its place among the shares change only here and in `leasing`.

use super::Books;
use crate::lease::backoff;
use crate::nodes::roster::Roster;
use crate::schedule::dirty::Dirty;
use crate::schedule::estimates::Estimates;
use crate::schedule::queue::Queue;
use crate::state::job::{Job, Place};
use crate::time::Moment;
use crate::timers::Timer;
use crate::unit_state::{JobUnits, UnitState};
use std::time::Duration;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitIndex, UnitKey};

impl Books {
    /// Derives the state of a unit. The error says that there is no such unit, or how the books
    /// contradict each other.
    pub(crate) fn state_of(&self, unit: UnitKey) -> Result<UnitState, String> {
        let job = self.farm.job(unit.job);
        let place = job.and_then(|job| job.place(unit));
        let (Some(job), Some(place)) = (job, place) else {
            return Err(format!("there is no unit {unit}"));
        };
        self.units_of(job).state_of(place)
    }

    /// What is kept of the units of a job.
    pub(crate) fn units_of<'a>(&'a self, job: &'a Job) -> JobUnits<'a> {
        JobUnits::new(job, self.queues.get(&job.id()), &self.leases)
    }

    /// The place of a unit and the queue of its job, where the job must be open. A fault if not.
    pub(super) fn open_unit(
        &mut self,
        unit: UnitKey,
        what: &'static str,
    ) -> Option<(Place, &mut Queue)> {
        let place = self.farm.job(unit.job).and_then(|job| job.place(unit));
        if place.is_none() || !self.queues.contains_key(&unit.job) {
            self.fault(what);
            return None;
        }
        place.zip(self.queues.get_mut(&unit.job))
    }

    // Jobs.

    /// Everything open of a job may be leased.
    pub(crate) fn open_queue(&mut self, job: JobId) {
        self.queues.insert(job, Queue::default());
        self.offer_job(job);
    }

    /// Nothing of a job is leased any more: it has ended.
    pub(crate) fn close_queue(&mut self, id: JobId) {
        self.queues.remove(&id);
        self.leases.forget_times(id);
        self.orders.drop_job(id);
        self.withdraw_job(id);
    }

    /// A job may have something to lease. One that is paused has not.
    pub(crate) fn offer_job(&mut self, job: JobId) {
        if let Some(job) = self.farm.job(job).filter(|job| job.paused().is_none()) {
            self.shares.insert(job.spec().priority, job.order(), job.id());
            self.dirty.mark_all();
        }
    }

    /// A job has nothing to lease now.
    pub(crate) fn withdraw_job(&mut self, job: JobId) {
        if let Some(job) = self.farm.job(job) {
            self.shares.remove(job.spec().priority, job.order());
        }
    }

    /// The job goes on after a pause: what was guessed of its end is void.
    pub(crate) fn resume_job(&mut self, job: JobId) {
        if let Some(queue) = self.queues.get_mut(&job) {
            queue.estimates_mut().resume();
        }
        self.offer_job(job);
    }

    /// What is measured and guessed of an open job.
    pub(crate) fn estimates_mut(&mut self, job: JobId) -> Option<&mut Estimates> {
        self.queues.get_mut(&job).map(Queue::estimates_mut)
    }

    /// What was measured of a node's devices is void: they may be others.
    pub(crate) fn forget_devices_of(&mut self, node: NodeId) {
        self.queues.values_mut().for_each(|queue| queue.estimates_mut().forget_node(node));
    }

    // The next unit.

    /// Chooses the next unit of a job for a node, of those that `avoid` does not keep from it.
    pub(crate) fn next_unit(
        &mut self,
        id: NodeId,
        job: JobId,
        avoid: impl Fn(&Job, &Roster, Place, Moment) -> bool,
    ) -> Option<Place> {
        let (job, queue) = (self.farm.job(job)?, self.queues.get_mut(&job)?);
        let (leases, roster) = (&self.leases, &self.roster);
        queue.next(id, job, leases, |place, until| avoid(job, roster, place, until))
    }

    /// Units of the job can be leased that nobody has.
    pub(crate) fn has_fresh_units(&mut self, id: JobId) -> bool {
        match (self.farm.job(id), self.queues.get_mut(&id)) {
            (Some(job), Some(queue)) => queue.has_fresh(job, &self.leases),
            _ => false,
        }
    }

    /// Nothing of the job is to be leased now, fresh or to be checked.
    pub(crate) fn has_nothing(&mut self, id: JobId) -> bool {
        let to_check = self.queue(id).is_some_and(|queue| !queue.to_check().is_empty());
        !to_check && !self.has_fresh_units(id)
    }

    // Units.

    /// A unit has its result.
    pub(crate) fn commit_unit(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a unit is committed of no open job") {
            queue.commit(place);
        }
    }

    /// A unit is open, but not leased before a moment.
    pub(crate) fn put_off(&mut self, unit: UnitKey, until: Moment) {
        self.touch(unit);
        let Some((place, queue)) = self.open_unit(unit, "a unit is put off of no open job") else {
            return;
        };
        queue.put_off(place, until);
        self.set_timer(until, Timer::Unit(unit.job, place));
        self.dirty.mark_all();
    }

    /// The wait of a unit that had failed is over. It may be over already: timers are not unset.
    pub(crate) fn end_wait(&mut self, job: JobId, place: Place) {
        if let Some(unit) = self.farm.job(job).and_then(|job| job.key(place)) {
            self.touch(unit);
        }
        let avoid_until = self.now.after(self.settings.patience);
        let queue = self.queues.get_mut(&job);
        if queue.is_some_and(|queue| queue.wake(place, self.now, avoid_until)) {
            self.offer_job(job);
        }
    }

    /// Notes that a unit lacks what is not its own, on this node. Returns how often it was so, and
    /// since how long.
    pub(crate) fn note_shortage(
        &mut self,
        unit: UnitKey,
        node: NodeId,
        reason: String,
    ) -> Option<(u32, Duration)> {
        let now = self.now;
        let (place, queue) = self.open_unit(unit, "an acceptable lease is of no open job")?;
        Some(queue.note_shortage(place, node, reason, now))
    }

    /// A committed unit has been taken back. A check that is under way has become the unit's own
    /// lease, and its copy the unit's.
    pub(crate) fn reopen_unit(&mut self, unit: UnitKey) {
        let (leased, now) = (self.leases.is_leased(unit), self.now);
        if let Some((place, queue)) = self.open_unit(unit, "a unit is taken back of no open job") {
            queue.end_check(place);
            if !leased {
                queue.give_back(place, now);
            }
        }
    }

    /// Units of a frame are wanted no more, for now.
    pub(crate) fn shut_units(&mut self, job: JobId, position: u32, units: &[UnitIndex]) {
        if let Some(queue) = self.queues.get_mut(&job) {
            units.iter().for_each(|unit| queue.shut(Place { position, unit: *unit }));
        }
    }

    /// Finds all open units of a job's frames anew, from a position on: there are more of them.
    pub(crate) fn rewind(&mut self, job: JobId, position: u32) {
        match self.queues.get_mut(&job) {
            Some(queue) => {
                queue.rewind(position);
                self.offer_job(job);
            }
            None => self.fault("units are added to no open job"),
        }
    }

    /// No unit of a frame is wanted any more.
    pub(crate) fn drop_frame(&mut self, job: JobId, position: u32) {
        match self.queues.get_mut(&job) {
            Some(queue) => queue.drop_frame(position),
            None => self.fault("a frame fails of no open job"),
        }
    }

    /// A unit is copied once more.
    pub(crate) fn count_copy(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a unit is copied of no open job") {
            queue.count_copy(place);
        }
    }

    // Orders.

    /// The order to make or to measure a frame failed: it is given again later.
    pub(crate) fn put_off_order(&mut self, job: JobId, frame: FrameNumber, reason: String) {
        let (now, settings) = (self.now, &self.settings);
        let again = |failures| now.after(backoff(failures, settings));
        if let Some(again) = self.orders.fail(job, frame, reason, again) {
            self.timers.set(again, Timer::Resolve(job, frame));
        }
    }

    // Checks.

    /// A unit that has been committed is to be checked. False where its job is not open.
    pub(crate) fn begin_check(&mut self, unit: UnitKey, maker: NodeId) -> bool {
        let Some((place, queue)) = self.open_unit(unit, "a check begins of no open job") else {
            return false;
        };
        queue.open_check(place, maker);
        self.offer_job(unit.job);
        true
    }

    /// A unit is not to be checked any more.
    pub(crate) fn drop_check(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a check ends of no open job") {
            queue.end_check(place);
        }
    }

    /// The results of a unit so far differ: whoever tried its check in vain may try again.
    pub(crate) fn reopen_check(&mut self, unit: UnitKey) {
        let leased = self.leases.is_leased(unit);
        if let Some((place, queue)) = self.open_unit(unit, "a check of no open job is reopened") {
            queue.reopen_check(place, leased);
        }
    }

    /// A node did not end the check of a unit, and tries it no more.
    pub(crate) fn fail_check(&mut self, unit: UnitKey, node: NodeId) {
        let leased = self.leases.is_leased(unit);
        if let Some((place, queue)) = self.open_unit(unit, "a check fails of no open job") {
            queue.fail_check(place, node, leased);
            self.offer_job(unit.job);
        }
    }

    /// Nodes that were heard about a unit may be asked once more; false where they may already.
    pub(crate) fn ask_again(&mut self, unit: UnitKey) -> bool {
        let redo = self.open_unit(unit, "a check is open of no open job");
        let again = redo.is_some_and(|(place, queue)| queue.ask_again(place));
        if again {
            self.offer_job(unit.job);
        }
        again
    }

    // Nodes that may get more.

    /// A node may have room.
    pub(crate) fn mark_node(&mut self, id: NodeId) {
        self.dirty.mark(id);
    }

    /// A node has been heard: a unit may suit it by now.
    pub(crate) fn mark_heard(&mut self, id: NodeId) {
        self.dirty.mark_heard(id);
    }

    /// Every node may get something.
    pub(crate) fn mark_all(&mut self) {
        self.dirty.mark_all();
    }

    /// Some node may get something.
    pub(crate) fn has_marked(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// The nodes that may get something. No node is marked afterwards.
    pub(crate) fn take_marked(&mut self) -> Dirty {
        self.dirty.take()
    }
}
