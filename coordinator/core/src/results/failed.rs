//! What happens to a unit whose lease ends without a result: back in line, later, elsewhere, or
//! dead. And to nodes that keep failing.

use crate::core::Core;
use crate::input::SessionId;
use crate::journal::{EndedAttempt, Ending, Record};
use crate::lease::{Held, backoff};
use crate::nodes::roster::{Presence, cut};
use crate::results::failure_class::Class;
use crate::state::job::Place;
use crate::time::Moment;
use crate::timers::Timer;
use tessera_protocol::ids::{Epoch, JobId, Lease, NodeId, UnitKey};
use tessera_protocol::limits::{LEASES_MAX, REASON_MAX};
use tessera_protocol::node::{CoordinatorToNode, Failure};
use tessera_protocol::status::JobState;

impl Core {
    /// The wait of a unit that had failed is over. It may be over already: timers are not unset.
    pub(crate) fn on_wait_over(&mut self, job: JobId, place: Place) {
        let avoid_until = self.now.after(self.settings.patience);
        let work = self.queues.get_mut(&job);
        if work.is_some_and(|work| work.wake(place, self.now, avoid_until)) {
            self.offer_job(job);
        }
    }

    pub(crate) fn on_lease_expired(&mut self, epoch: Epoch) {
        let Some(held) = self.leases.get_by_epoch(epoch).copied() else {
            return self.fault("a deadline is of no lease");
        };
        let lease = Lease { unit: held.unit, epoch };
        self.revoke(held.unit, epoch);
        self.end_attempts(held.node, vec![EndedAttempt { lease, ending: Ending::Expired }]);
    }

    pub(crate) fn on_grace_over(&mut self, id: NodeId) {
        let over = self.roster.get(id).is_some_and(
            |node| matches!(node.presence(), Presence::Away(until) if until <= self.now),
        );
        if over {
            self.roster.leave(id, Presence::Lost);
            let lost = self.leases.epochs_of(id);
            self.lose(id, &lost);
        }
    }

    /// Leases are lost with their node.
    pub(crate) fn lose(&mut self, node: NodeId, epochs: &[Epoch]) {
        let mut attempts = Vec::new();
        for epoch in epochs {
            match self.release(*epoch) {
                Some(Held { unit, .. }) => {
                    let lease = Lease { unit, epoch: *epoch };
                    attempts.push(EndedAttempt { lease, ending: Ending::Lost });
                }
                None => self.fault("a lease of a node is not held"),
            }
        }
        self.end_attempts(node, attempts);
    }

    /// Ends a lease without a result. The unit is then nowhere: the caller says what becomes of it.
    pub(crate) fn release(&mut self, epoch: Epoch) -> Option<Held> {
        let held = self.leases.end(epoch)?;
        if let Some(job) = self.farm.job(held.unit.job) {
            self.shares.refund(job.spec().priority, job.lease_samples(held.unit));
        }
        Some(held)
    }

    /// Ends a lease without a result, and tells its node.
    pub(crate) fn revoke(&mut self, unit: UnitKey, epoch: Epoch) {
        if let Some(held) = self.release(epoch) {
            self.tell(held.node, CoordinatorToNode::Revoke { leases: vec![Lease { unit, epoch }] });
        }
    }

    /// A lease of the unit has been released: where it was the only one, the unit is open and may
    /// be leased now; until then, preferably not to the node of its last attempt.
    pub(crate) fn give_back(&mut self, unit: UnitKey, avoid_until: Moment) {
        if self.leases.is_leased(unit) {
            return;
        }
        if let Some((place, work)) = self.open_unit(unit, "a unit is given back to no open job") {
            work.give_back(place, avoid_until);
            self.offer_job(unit.job);
        }
    }

    /// Counts attempts of open units, whose leases have been released, and decides what becomes of
    /// the units. A check that fails says nothing about its unit, which is committed; and of two
    /// leases of a unit, the first to end says nothing while the other lives.
    pub(crate) fn end_attempts(&mut self, node: NodeId, attempts: Vec<EndedAttempt>) {
        let is_check = |attempt: &EndedAttempt| self.check_of(attempt.lease.unit).is_some();
        let (checks, mut attempts): (Vec<_>, Vec<_>) = attempts.into_iter().partition(is_check);
        checks.iter().for_each(|attempt| self.give_up_check(node, attempt.lease.unit));
        attempts.retain(|attempt| !self.leases.is_leased(attempt.lease.unit));
        if attempts.is_empty() {
            return;
        }
        let name = self.roster.get(node).map_or_else(String::new, |node| node.name().to_owned());
        let endings: Vec<(UnitKey, Ending)> =
            attempts.iter().map(|attempt| (attempt.lease.unit, attempt.ending.clone())).collect();
        self.record(Record::AttemptsEnded { at: self.now, node, name: name.clone(), attempts });
        for (unit, ending) in endings {
            self.after_attempt(unit, &ending, &name);
        }
    }

    fn after_attempt(&mut self, unit: UnitKey, ending: &Ending, node_name: &str) {
        let job = self.farm.job(unit.job).filter(|job| !job.is_final());
        let frame = job.and_then(|job| job.frame(unit.frame));
        // Another unit of the same list may have ended the frame, or the job with it.
        let Some(trouble) = frame.and_then(|frame| frame.trouble(unit.unit)).copied() else {
            return;
        };
        if trouble.failed >= self.settings.attempts {
            let (times, words) = (trouble.failed, ending.words());
            let text = format!(
                "unit u{:05} failed {times} times, last on `{node_name}`: {words}",
                unit.unit.0
            );
            return self.fail_frame(unit.job, unit.frame, text);
        }
        if trouble.lost >= self.settings.losses {
            let text = format!(
                "unit u{:05} was lost with its node, or not finished in time, {} times",
                unit.unit.0, trouble.lost
            );
            return self.fail_frame(unit.job, unit.frame, text);
        }
        let until = self.now.after(backoff(trouble.failed.into(), &self.settings));
        let Some((place, work)) = self.open_unit(unit, "an attempt ended of no open job") else {
            return;
        };
        match Class::of_ending(ending).rule().backs_off {
            true => {
                work.put_off(place, until);
                self.timers.set(until, Timer::Unit(unit.job, place));
                self.dirty.mark_all();
            }
            false => {
                self.give_back(unit, self.now.after(self.settings.patience));
            }
        }
    }

    pub(crate) fn on_unit_failed(&mut self, session: SessionId, lease: Lease, failure: &Failure) {
        let Some(node) = self.heard_from(session) else { return };
        if !self.is_acceptable(node, lease) {
            return;
        }
        let class = Class::of_failure(failure);
        match failure {
            Failure::OutOfMemory(shortage) => return self.on_shortage(node, lease, shortage),
            Failure::Asset(reason) => return self.on_shared_shortage(node, lease, reason),
            Failure::Unable(reason) => return self.on_unable(node, lease, reason),
            _ => {}
        }
        let reason = cut(failure.reason(), REASON_MAX);
        let timed_out = class == Class::TimedOut;
        let ending = if timed_out { Ending::TimedOut(reason) } else { Ending::Failed(reason) };
        self.end_failed(node, lease, ending);
        // What a job brings says nothing about the node: its scene, its program, its kernel.
        let of_job =
            matches!(failure, Failure::Scene(_) | Failure::Program(_) | Failure::Kernel(_));
        if class.rule().doubts && !of_job {
            self.doubt(node, lease.unit.job);
        }
        let what = match failure {
            Failure::Scene(_) => "the scene cannot be prepared",
            Failure::Program(_) => "the kernel cannot be used",
            _ => return,
        };
        if self.is_open(lease.unit.job) {
            let note = format!("{what}: {}", cut(failure.reason(), REASON_MAX));
            self.end_job(lease.unit.job, JobState::Failed, &note);
        }
    }

    /// A node's build does not know an option of the job: it gets no more of this job, and the unit
    /// goes to another.
    fn on_unable(&mut self, id: NodeId, lease: Lease, reason: &str) {
        if let Some(node) = self.roster.get_mut(id) {
            node.note_unable(lease.unit.job, cut(reason, REASON_MAX));
        }
        if self.release(lease.epoch).is_some() {
            self.give_back(lease.unit, self.now);
        }
        self.dirty.mark_all();
    }

    /// An attempt failed whose result would have been accepted.
    pub(crate) fn fail_attempt(&mut self, node: NodeId, lease: Lease, reason: &str) {
        self.end_failed(node, lease, Ending::Failed(cut(reason, REASON_MAX)));
        self.doubt(node, lease.unit.job);
    }

    fn end_failed(&mut self, node: NodeId, lease: Lease, ending: Ending) {
        self.release(lease.epoch);
        self.end_attempts(node, vec![EndedAttempt { lease, ending }]);
    }

    /// A node that only fails gets no work for a while, unless it is the last one.
    pub(crate) fn doubt(&mut self, id: NodeId, job: JobId) {
        let is_other = |(other, node): (&NodeId, &crate::nodes::roster::Node)| {
            *other != id && self.is_ready(*other, node)
        };
        let others = self.roster.iter().any(is_other);
        let (now, first) = (self.now, self.settings.unfit);
        let Some(node) = self.roster.get_mut(id) else {
            return self.fault("a node that failed is unknown");
        };
        if node.fitness_mut().note_failure(job) && others {
            let until = node.fitness_mut().set_unfit(now, first);
            self.timers.set(until, Timer::Fit(id));
        }
    }

    pub(crate) fn on_fit_again(&mut self, id: NodeId) {
        // The node may have joined anew since, and be fit already.
        if self.roster.get_mut(id).is_some_and(|node| node.fitness_mut().recover(self.now)) {
            self.dirty.mark_all();
        }
    }

    pub(crate) fn on_returned(&mut self, session: SessionId, leases: &[Lease]) {
        let Some(node) = self.heard_from(session) else { return };
        for lease in leases.iter().take(LEASES_MAX) {
            if self.leases.get(*lease).is_some_and(|held| held.node == node) {
                self.release(lease.epoch);
                self.give_back(lease.unit, self.now);
            }
        }
    }
}
