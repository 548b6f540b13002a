//! Decides when a node without work leaves: the rules of `--once` and `--max-idle`. Owns no clock.

use std::time::{Duration, Instant};
use tessera_node::NodeStatus;

/// Time without work after which the farm counts as having none. It is longer than a coordinator
/// needs to begin a job's next frame.
const RAN_OUT: Duration = Duration::from_secs(5);

/// Why a node leaves by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// The node had work, and the farm has no more work for it.
    RanOut,
    /// No work came for the time of --max-idle.
    Idle,
    /// No work came in that time, and there never was a session.
    NeverJoined,
}

/// The rules, and since when there has been nothing to do.
#[derive(Debug)]
pub(crate) struct IdleExit {
    once: bool,
    max_idle: Option<Duration>,
    joined: bool,
    idle_since: Instant,
}

impl IdleExit {
    /// Starts with a node that is idle from `now` on.
    pub(crate) fn new(once: bool, max_idle: Option<Duration>, now: Instant) -> Self {
        Self { once, max_idle, joined: false, idle_since: now }
    }

    /// Looks at the state of the node, and reports a reason to leave. The caller repeats it: a node
    /// is idle if it is idle at every look and has done nothing between them.
    pub(crate) fn look(
        &mut self,
        before: &NodeStatus,
        status: &NodeStatus,
        now: Instant,
    ) -> Option<Reason> {
        self.joined |= status.connected;
        let did_something = status.committed != before.committed || status.busy != before.busy;
        if status.held > 0 || status.finished > 0 || did_something {
            self.idle_since = now;
            return None;
        }
        let idle = now.saturating_duration_since(self.idle_since);
        if self.once && status.first_unit.is_some() && idle >= RAN_OUT {
            return Some(Reason::RanOut);
        }
        let waited = self.max_idle.is_some_and(|limit| idle >= limit);
        waited.then_some(if self.joined { Reason::Idle } else { Reason::NeverJoined })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_node::FirstUnit;

    const SECOND: Duration = Duration::from_secs(1);

    fn idle(committed: u64, now: Instant) -> NodeStatus {
        let first = FirstUnit { at: now, prepared_in: Duration::ZERO };
        let first_unit = (committed > 0).then_some(first);
        NodeStatus { connected: true, committed, first_unit, ..NodeStatus::default() }
    }

    #[test]
    fn without_either_option_a_node_stays() {
        let start = Instant::now();
        let mut rules = IdleExit::new(false, None, start);
        let status = idle(0, start);
        assert_eq!(rules.look(&status, &status, start + 1_000_000 * SECOND), None);
    }

    #[test]
    fn once_waits_for_the_first_work_and_leaves_when_it_has_run_out() {
        let start = Instant::now();
        let mut rules = IdleExit::new(true, None, start);
        let (none, some) = (idle(0, start), idle(3, start));
        assert_eq!(rules.look(&none, &none, start + 500 * SECOND), None);
        let busy = NodeStatus { held: 2, ..some.clone() };
        assert_eq!(rules.look(&none, &busy, start + 501 * SECOND), None);
        // Done, but not yet acknowledged.
        let unacknowledged = NodeStatus { finished: 1, ..some.clone() };
        assert_eq!(rules.look(&some, &unacknowledged, start + 520 * SECOND), None);
        assert_eq!(rules.look(&some, &some, start + 524 * SECOND), None);
        assert_eq!(rules.look(&some, &some, start + 525 * SECOND), Some(Reason::RanOut));
    }

    #[test]
    fn work_between_two_looks_counts() {
        let start = Instant::now();
        let mut rules = IdleExit::new(true, Some(10 * SECOND), start);
        assert_eq!(rules.look(&idle(0, start), &idle(1, start), start + 20 * SECOND), None);
        assert_eq!(rules.look(&idle(1, start), &idle(1, start), start + 24 * SECOND), None);
    }

    #[test]
    fn max_idle_ends_a_node_without_work_and_one_without_a_farm() {
        let start = Instant::now();
        let mut rules = IdleExit::new(false, Some(60 * SECOND), start);
        let away = NodeStatus::default();
        assert_eq!(rules.look(&away, &away, start + 59 * SECOND), None);
        assert_eq!(rules.look(&away, &away, start + 60 * SECOND), Some(Reason::NeverJoined));
        assert_eq!(
            rules.look(&idle(0, start), &idle(0, start), start + 61 * SECOND),
            Some(Reason::Idle)
        );
    }
}
