//! Fair shares: whose job is served next. Knows nothing of units or nodes.
//!
//! Two start-time fair queues, one within the other. Owners share the farm in proportion to their
//! weight, times the priority of the highest of their jobs that ask for work. An owner's jobs share
//! that owner's part in proportion to their priorities. Shares are of device time: what a unit is
//! expected to take is charged when it is leased, and corrected when its lease ends.
//!
//! Not durable: after a restart all begin anew, with nothing used.

mod queue;

use crate::schedule::fair::queue::{FRACTION, FairQueue};
use crate::schedule::wants::Wants;
use crate::settings::Settings;
use crate::state::job::Job;
use std::collections::BTreeMap;
use std::time::Duration;
use tessera_protocol::ids::JobId;
use tessera_protocol::job::PRIORITY_DEFAULT;

pub(crate) use queue::Pass;

/// Priority `p` above 0 weighs `4 p`, priority 0 weighs 1: a quarter of priority 1, so that it
/// never starves.
pub(crate) fn weight_of(priority: u8) -> u128 {
    (4 * u128::from(priority)).max(1)
}

/// Least device time that a lease is charged for in microseconds. Messages and records cost the
/// farm something, whatever a node says that its device needed.
const COST_LEAST: u64 = 1000;

/// Returns the virtual time of a device time at a weight, if `normal` is the normal weight.
fn virtual_time(micros: u64, weight: u128, normal: u128) -> Pass {
    (u128::from(micros.max(COST_LEAST)) << FRACTION) * normal / weight.max(1)
}

/// A job as one of those that share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Party {
    /// Number of the owner's identity.
    owner: u64,
    /// Weight of the owner, in hundredths.
    weight: u32,
    job: JobId,
    /// Number in the order of acceptance.
    order: u64,
    priority: u8,
}

impl Party {
    pub(crate) fn of(job: &Job, settings: &Settings) -> Self {
        Self {
            owner: job.owner_id(),
            weight: settings.weights.of(job.owner_id(), job.owner()),
            job: job.id(),
            order: job.order(),
            priority: job.spec().priority,
        }
    }
}

/// The place of a job in the order in which jobs are served now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    owner: (Pass, u64),
    own: (Pass, u64),
    pub(crate) job: JobId,
}

impl Turn {
    /// Whether serving this job instead of one before it puts no owner, and of one owner no job,
    /// ahead by more than so much device time at the normal weight.
    pub(crate) fn is_near(&self, before: &Self, most: Duration) -> bool {
        let most = (most.as_micros() as Pass) << FRACTION;
        match self.owner.1 == before.owner.1 {
            true => self.own.0 <= before.own.0.saturating_add(most),
            false => self.owner.0 <= before.owner.0.saturating_add(most),
        }
    }
}

/// Jobs of one owner.
#[derive(Debug, Default)]
struct OwnJobs {
    /// Jobs by the order of their acceptance.
    queue: FairQueue<u64, Wants>,
    /// Jobs that ask, their priorities and what they want.
    asking: BTreeMap<u64, (JobId, u8, Wants)>,
    /// Number of asking jobs of each priority.
    priorities: BTreeMap<u8, u32>,
    /// Leases of all jobs of the owner.
    leases: u64,
    /// Job that was leased last.
    last: Option<JobId>,
}

impl OwnJobs {
    /// Weight of the owner while a job of a priority is served.
    fn weight(&self, party: &Party) -> u128 {
        let highest = self.priorities.last_key_value().map_or(0, |(priority, _)| *priority);
        weight_of(highest.max(party.priority)) * u128::from(party.weight)
    }
}

/// Jobs with something to lease, and what their owners have used.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    owners: FairQueue<u64, Wants>,
    of: BTreeMap<u64, OwnJobs>,
}

impl Shares {
    /// Adds a job that has something to lease, or changes what it wants.
    pub(crate) fn insert(&mut self, party: Party, wants: Wants) {
        let Party { owner, job, order, priority, .. } = party;
        if !self.of.contains_key(&owner) {
            self.prune();
        }
        let own = self.of.entry(owner).or_default();
        if own.asking.get(&order).is_some_and(|(_, _, known)| *known == wants) {
            return;
        }
        self.owners.ask(owner, &wants);
        own.queue.ask(order, &wants);
        match own.asking.get_mut(&order) {
            // Asked for first, so that neither the job nor its owner rests in between.
            Some((_, _, known)) => {
                let before = std::mem::replace(known, wants);
                own.queue.rest(order, &before);
                self.owners.rest(owner, &before);
            }
            None => {
                own.asking.insert(order, (job, priority, wants));
                *own.priorities.entry(priority).or_default() += 1;
            }
        }
    }

    /// Removes a job that has nothing to lease now.
    pub(crate) fn remove(&mut self, party: Party) {
        let Some(own) = self.of.get_mut(&party.owner) else { return };
        let Some((_, priority, wants)) = own.asking.remove(&party.order) else { return };
        if let Some(count) = own.priorities.get_mut(&priority) {
            *count -= 1;
            if *count == 0 {
                own.priorities.remove(&priority);
            }
        }
        own.queue.rest(party.order, &wants);
        self.owners.rest(party.owner, &wants);
    }

    /// Removes a job that has ended.
    pub(crate) fn forget(&mut self, party: Party) {
        self.remove(party);
        if let Some(own) = self.of.get_mut(&party.owner) {
            own.queue.forget(party.order);
        }
    }

    /// Drops owners without jobs that ask, without leases and without debts.
    fn prune(&mut self) {
        let Self { owners, of } = self;
        owners.prune(|owner| of.get(owner).is_some_and(|own| own.leases > 0));
        of.retain(|owner, _| owners.contains(*owner));
    }

    pub(crate) fn contains(&self, party: Party) -> bool {
        self.of.get(&party.owner).is_some_and(|own| own.queue.asks(party.order))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Everything that jobs want of nodes.
    pub(crate) fn wanted(&self) -> impl Iterator<Item = &Wants> {
        self.owners.wanted()
    }

    /// Returns the job that is served next, or the next one after another; `only`: among those that
    /// want one of these.
    pub(crate) fn next(&self, after: Option<&Turn>, only: Option<&[Wants]>) -> Option<Turn> {
        let next_of = |owner: (Pass, u64), after| {
            let own = self.of.get(&owner.1)?;
            let next = own.queue.next(after, only)?;
            Some(Turn { owner, own: next, job: own.asking.get(&next.1)?.0 })
        };
        let same = after.and_then(|turn| next_of(turn.owner, Some(turn.own)));
        same.or_else(|| next_of(self.owners.next(after.map(|turn| turn.owner), only)?, None))
    }

    /// Whether a job is behind another in the order: it has used less of what is its own.
    pub(crate) fn is_behind(&self, one: &Party, other: &Party) -> bool {
        match one.owner == other.owner {
            true => self
                .of
                .get(&one.owner)
                .is_some_and(|own| own.queue.pass(one.order) < own.queue.pass(other.order)),
            false => self.owners.pass(one.owner) < self.owners.pass(other.owner),
        }
    }

    /// Charges a lease, which is expected to take so many microseconds of a device.
    pub(crate) fn charge(&mut self, party: &Party, micros: u64) {
        let own = self.of.entry(party.owner).or_default();
        own.leases += 1;
        own.last = Some(party.job);
        let normal = weight_of(PRIORITY_DEFAULT);
        own.queue.serve(party.order, virtual_time(micros, weight_of(party.priority), normal));
        let cost = virtual_time(micros, own.weight(party), normal * 100);
        self.owners.serve(party.owner, cost);
    }

    /// Ends a lease that was charged for some microseconds and has taken others; None if it has
    /// taken nothing.
    pub(crate) fn settle(&mut self, party: &Party, charged: u64, spent: Option<u64>) {
        let Some(own) = self.of.get_mut(&party.owner) else { return };
        own.leases = own.leases.saturating_sub(1);
        let normal = weight_of(PRIORITY_DEFAULT);
        let both = [(weight_of(party.priority), normal), (own.weight(party), normal * 100)];
        let [job, owner] = both.map(|(weight, normal)| {
            let cost = |micros| virtual_time(micros, weight, normal);
            (cost(charged), spent.map_or(0, cost))
        });
        correct(&mut own.queue, party.order, job);
        correct(&mut self.owners, party.owner, owner);
    }

    /// Owners whose jobs have leases, with their number and the job that was leased last.
    pub(crate) fn at_work(&self) -> impl Iterator<Item = (u64, u64, Option<JobId>)> + '_ {
        let all = self.of.iter().map(|(owner, own)| (*owner, own.leases, own.last));
        all.filter(|(_, leases, _)| *leases > 0)
    }
}

/// Corrects what a member was charged.
fn correct(queue: &mut FairQueue<u64, Wants>, key: u64, (charged, spent): (Pass, Pass)) {
    match spent > charged {
        true => queue.charge(key, spent - charged),
        false => queue.refund(key, charged - spent),
    }
}

#[cfg(test)]
mod tests;
