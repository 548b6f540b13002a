//! Moves of units between ready, waiting and to be checked, and of jobs between offered and not.
//! The queue of a job and its place among the shares change only here and in `leasing`.

use super::Books;
use crate::journal::Record;
use crate::lease::backoff;
use crate::nodes::roster::Roster;
use crate::schedule::dirty::Dirty;
use crate::schedule::estimates::Estimates;
use crate::schedule::fair::Party;
use crate::schedule::queue::Queue;
use crate::schedule::refusals::Refusals;
use crate::schedule::scouts::Scouts;
use crate::schedule::wants::Wants;
use crate::state::job::{Job, Place};
use crate::time::Moment;
use crate::timers::Timer;
use crate::unit_state::{JobUnits, UnitState};
use std::time::Duration;
use tessera_protocol::ids::{FrameNumber, JobId, NodeId, UnitIndex, UnitKey};

impl Books {
    /// Derives the state of a unit. The error says that the unit does not exist, or how the books
    /// contradict each other.
    pub(crate) fn state_of(&self, unit: UnitKey) -> Result<UnitState, String> {
        let job = self.farm.job(unit.job);
        let place = job.and_then(|job| job.place(unit));
        let (Some(job), Some(place)) = (job, place) else {
            return Err(format!("there is no unit {unit}"));
        };
        self.units_of(job).state_of(place)
    }

    /// Returns a view of a job's units.
    pub(crate) fn units_of<'a>(&'a self, job: &'a Job) -> JobUnits<'a> {
        JobUnits::new(job, self.queues.get(&job.id()), &self.leases)
    }

    /// Returns the place of a unit and the queue of its job. It is a fault if the job is not open.
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

    /// Creates the queue of a job, so that its open units may be leased.
    pub(crate) fn open_queue(&mut self, job: JobId) {
        let (units, scouts) = self.farm.job(job).map_or_else(Default::default, |job| {
            let (units, tiles) = (job.grid().units(), job.grid().tiles());
            // Rounds begin with few samples everywhere.
            let has_scouts = !job.grid().has_rounds();
            (units, if has_scouts { Scouts::of(units, tiles) } else { Scouts::default() })
        });
        self.queues.insert(job, Queue::new(units, scouts));
        self.offer_job(job);
    }

    /// Removes the queue of a job that has ended.
    pub(crate) fn close_queue(&mut self, id: JobId) {
        self.queues.remove(&id);
        self.leases.forget_times(id);
        self.orders.drop_job(id);
        self.rooms.forget(id);
        if let Some(job) = self.farm.job(id) {
            self.shares.forget(Party::of(job, &self.settings));
        }
    }

    /// Ends the wait of an open job for another one, and offers its units if it waits for no other.
    pub(crate) fn end_wait_for(&mut self, job: JobId, on: JobId) {
        self.record(Record::WaitEnded { job, on });
        if self.farm.job(job).is_some_and(|job| !job.is_waiting()) {
            self.rewind(job, 0);
        }
    }

    /// Offers a job that may have something to lease, unless it is paused, waits for another job,
    /// is not to begin yet, or its owner has spent a budget.
    /// Nodes are marked only if it suits one: thousands of jobs may wait for a pool that has no
    /// node yet, and a node is marked when it comes.
    pub(crate) fn offer_job(&mut self, job: JobId) {
        let may = |job: &&Job| job.paused().is_none() && !job.is_waiting();
        let Some(job) = self.farm.job(job).filter(may) else { return };
        if let Some(begins) = self.begins_later(job) {
            return self.timers.set(begins, Timer::Begin(job.id()));
        }
        if self.is_withheld(job) {
            return self.budgets.note_withheld(job.owner_id());
        }
        let wants = self.wants_of(job);
        if self.roster.iter().any(|(_, node)| wants.are_met_by(node)) {
            self.dirty.mark_all();
        }
        self.shares.insert(Party::of(job, &self.settings), wants);
    }

    /// Returns when units of a job may begin, if that is later than now.
    pub(crate) fn begins_later(&self, job: &Job) -> Option<Moment> {
        let begins = Moment(job.spec().not_before?.saturating_mul(1000));
        (begins > self.now).then_some(begins)
    }

    /// Offers a job that may begin by now; it may have ended, or begin later than was said.
    pub(crate) fn begin_job(&mut self, job: JobId) {
        if self.is_open(job) {
            self.offer_job(job);
        }
    }

    /// Notes that an offered job may want something else of nodes than before.
    pub(crate) fn note_wants(&mut self, job: JobId) {
        let Some(job) = self.farm.job(job) else { return };
        let party = Party::of(job, &self.settings);
        if self.shares.contains(party) {
            self.shares.insert(party, self.wants_of(job));
        }
    }

    fn wants_of(&self, job: &Job) -> Wants {
        let predicted = job.spec().device_bytes;
        let measured = self.queues.get(&job.id()).map(|queue| queue.estimates().measured());
        Wants::of(job, measured.map_or(predicted, |known| known.need(predicted)))
    }

    /// Withdraws a job that has nothing to lease now.
    pub(crate) fn withdraw_job(&mut self, job: JobId) {
        if let Some(job) = self.farm.job(job) {
            self.shares.remove(Party::of(job, &self.settings));
        }
    }

    /// Drops the estimates of a job's end after a pause, and offers its units again.
    pub(crate) fn resume_job(&mut self, job: JobId) {
        if let Some(queue) = self.queues.get_mut(&job) {
            queue.estimates_mut().resume();
        }
        self.offer_job(job);
    }

    /// Returns the measurements and estimates of an open job.
    pub(crate) fn estimates_mut(&mut self, job: JobId) -> Option<&mut Estimates> {
        self.queues.get_mut(&job).map(Queue::estimates_mut)
    }

    /// Returns what nodes said of an open job that they could not begin.
    pub(crate) fn refusals_mut(&mut self, job: JobId) -> Option<&mut Refusals> {
        self.queues.get_mut(&job).map(Queue::refusals_mut)
    }

    /// Drops the measurements of a node's devices: they may be others now.
    pub(crate) fn forget_devices_of(&mut self, node: NodeId) {
        self.queues.values_mut().for_each(|queue| queue.estimates_mut().forget_node(node));
    }

    // The next unit.

    /// Chooses the next unit of a job for a node, among those that `avoid` allows.
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

    /// Whether units of the job can be leased that no node holds.
    pub(crate) fn has_fresh_units(&mut self, id: JobId) -> bool {
        match (self.farm.job(id), self.queues.get_mut(&id)) {
            (Some(job), Some(queue)) => queue.has_fresh(job, &self.leases),
            _ => false,
        }
    }

    /// Whether no unit of the job can be leased now, fresh or to be checked.
    pub(crate) fn has_nothing(&mut self, id: JobId) -> bool {
        let to_check = self.queue(id).is_some_and(|queue| !queue.to_check().is_empty());
        !to_check && !self.has_fresh_units(id)
    }

    // Units.

    /// Notes that a unit was committed.
    pub(crate) fn commit_unit(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a unit is committed in a closed job") {
            queue.commit(place);
        }
    }

    /// Makes a unit wait until a moment.
    pub(crate) fn put_off(&mut self, unit: UnitKey, until: Moment) {
        self.touch(unit);
        let Some((place, queue)) = self.open_unit(unit, "a unit is put off in a closed job") else {
            return;
        };
        queue.put_off(place, until);
        self.set_timer(until, Timer::Unit(unit.job, place));
        self.dirty.mark_all();
    }

    /// Ends the wait of a unit that had failed. It may have ended already: timers are not unset.
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

    /// Notes that a unit lacks an external resource on this node. Returns how often it happened,
    /// and for how long so far.
    pub(crate) fn note_shortage(
        &mut self,
        unit: UnitKey,
        node: NodeId,
        reason: String,
    ) -> Option<(u32, Duration)> {
        let now = self.now;
        let (place, queue) = self.open_unit(unit, "a lease is acceptable in a closed job")?;
        Some(queue.note_shortage(place, node, reason, now))
    }

    /// Opens a committed unit that was taken back. A check in progress becomes the unit's own
    /// lease, and its copy the unit's copy.
    pub(crate) fn reopen_unit(&mut self, unit: UnitKey) {
        let (leased, now) = (self.leases.is_leased(unit), self.now);
        if let Some((place, queue)) = self.open_unit(unit, "a unit is taken back in a closed job") {
            queue.end_check(place);
            if !leased {
                queue.give_back(place, now);
            }
        }
    }

    /// Removes units of a frame that are not wanted for now.
    pub(crate) fn shut_units(&mut self, job: JobId, position: u32, units: &[UnitIndex]) {
        if let Some(queue) = self.queues.get_mut(&job) {
            units.iter().for_each(|unit| queue.shut(Place { position, unit: *unit }));
        }
    }

    /// Looks for all open units of a job's frames again, from a position on, because there are more
    /// of them.
    pub(crate) fn rewind(&mut self, job: JobId, position: u32) {
        match self.queues.get_mut(&job) {
            Some(queue) => {
                queue.rewind(position);
                self.offer_job(job);
            }
            None => self.fault("units are added to a closed job"),
        }
    }

    /// Removes all units of a frame.
    pub(crate) fn drop_frame(&mut self, job: JobId, position: u32) {
        match self.queues.get_mut(&job) {
            Some(queue) => queue.drop_frame(position),
            None => self.fault("a frame fails in a closed job"),
        }
    }

    /// Counts one more copy of a unit.
    pub(crate) fn count_copy(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a unit is copied in a closed job") {
            queue.count_copy(place);
        }
    }

    // Orders.

    /// Delays a failed order to resolve or measure a frame.
    pub(crate) fn put_off_order(&mut self, job: JobId, frame: FrameNumber, reason: String) {
        let (now, settings) = (self.now, &self.settings);
        let again = |failures| now.after(backoff(failures, settings));
        if let Some(again) = self.orders.fail(job, frame, reason, again) {
            self.timers.set(again, Timer::Resolve(job, frame));
        }
    }

    // Checks.

    /// Begins the check of a committed unit. False if its job is not open.
    pub(crate) fn begin_check(&mut self, unit: UnitKey, maker: NodeId) -> bool {
        let Some((place, queue)) = self.open_unit(unit, "a check begins in a closed job") else {
            return false;
        };
        queue.open_check(place, maker);
        self.offer_job(unit.job);
        true
    }

    /// Drops the check of a unit.
    pub(crate) fn drop_check(&mut self, unit: UnitKey) {
        if let Some((place, queue)) = self.open_unit(unit, "a check ends in a closed job") {
            queue.end_check(place);
        }
    }

    /// The results of a unit differ so far: nodes that tried its check in vain may try again.
    pub(crate) fn reopen_check(&mut self, unit: UnitKey) {
        let leased = self.leases.is_leased(unit);
        if let Some((place, queue)) = self.open_unit(unit, "a check of no open job is reopened") {
            queue.reopen_check(place, leased);
        }
    }

    /// A node did not finish the check of a unit, and does not try again.
    pub(crate) fn fail_check(&mut self, unit: UnitKey, node: NodeId) {
        let leased = self.leases.is_leased(unit);
        if let Some((place, queue)) = self.open_unit(unit, "a check fails in a closed job") {
            queue.fail_check(place, node, leased);
            self.offer_job(unit.job);
        }
    }

    /// Lets nodes that were heard about a unit be asked once more; false if they may be already.
    pub(crate) fn ask_again(&mut self, unit: UnitKey) -> bool {
        let redo = self.open_unit(unit, "a check is open in a closed job");
        let again = redo.is_some_and(|(place, queue)| queue.ask_again(place));
        if again {
            self.offer_job(unit.job);
        }
        again
    }

    // Nodes that may get more.

    /// Marks a node that may have room.
    pub(crate) fn mark_node(&mut self, id: NodeId) {
        self.dirty.mark(id);
    }

    /// Marks a node that was heard: a unit may suit it by now.
    pub(crate) fn mark_heard(&mut self, id: NodeId) {
        self.dirty.mark_heard(id);
    }

    /// Marks every node.
    pub(crate) fn mark_all(&mut self) {
        self.dirty.mark_all();
    }

    /// Whether any node is marked.
    pub(crate) fn has_marked(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the marked nodes. No node is marked afterwards.
    pub(crate) fn take_marked(&mut self) -> Dirty {
        self.dirty.take()
    }
}
