//! Units that lack what is not theirs: a file that cannot be had, room on a node's disk, memory of
//! its host. They wait, each time longer, preferably for another node, and no attempt is counted;
//! after `shortage_longest` the next is a failure like any other.

use crate::core::Core;
use crate::lease::backoff;
use crate::nodes::roster::cut;
use crate::state::job::Job;
use crate::time::Moment;
use crate::timers::Timer;
use tessera_protocol::ids::{Lease, NodeId};
use tessera_protocol::limits::REASON_MAX;

/// What a unit has waited for so far.
#[derive(Clone, Debug)]
pub(crate) struct Shortage {
    since: Moment,
    times: u32,
    /// Where it was so last.
    pub(crate) node: NodeId,
    reason: String,
}

impl Shortage {
    /// A wait that begins now.
    fn new(now: Moment, node: NodeId) -> Self {
        Self { since: now, times: 0, node, reason: String::new() }
    }
}

impl Core {
    /// A node lacks something for a unit that is not of the unit.
    pub(crate) fn on_shared_shortage(&mut self, id: NodeId, lease: Lease, reason: &str) {
        let unit = lease.unit;
        if self.check_of(unit).is_some() {
            self.release(lease.epoch);
            return self.give_up_check(id, unit);
        }
        let (now, longest) = (self.now, self.settings.shortage_longest);
        let Some((place, work)) = self.open_unit(unit, "an acceptable lease is of no open job")
        else {
            return;
        };
        let shortage = work.note_shortage(place, Shortage::new(now, id));
        shortage.times = shortage.times.saturating_add(1);
        (shortage.node, shortage.reason) = (id, cut(reason, REASON_MAX));
        let (times, waited) = (shortage.times, now.since(shortage.since));
        if waited >= longest {
            let text = format!("{reason}; waited {} s for it", waited.as_secs());
            return self.fail_attempt(id, lease, &text);
        }
        // A lease that was not held any more has left its unit where it belongs.
        if self.release(lease.epoch).is_none() || self.leases.is_leased(unit) {
            return;
        }
        let until = now.after(backoff(times, &self.settings));
        if let Some(work) = self.queues.get_mut(&unit.job) {
            work.put_off(place, until);
        }
        self.timers.set(until, Timer::Unit(unit.job, place));
        self.dirty.mark_all();
    }

    /// What units of a job wait for; None where none does.
    pub(crate) fn shortage_note(&self, job: &Job) -> Option<String> {
        let work = self.queues.get(&job.id())?;
        let (place, shortage) =
            work.shortages().iter().find(|(place, _)| work.waiting().contains_key(*place))?;
        let (count, unit) = (work.shortages().len(), job.key(*place)?);
        let longest =
            shortage.since.after(self.settings.shortage_longest).since(self.now).as_secs();
        Some(format!(
            "waiting: {} (u{:05} of {} on node `{}`, {count} units so far; tried again, and a \
                failure in {longest} s)",
            shortage.reason,
            unit.unit.0,
            unit.frame,
            self.name_of(shortage.node)
        ))
    }
}
