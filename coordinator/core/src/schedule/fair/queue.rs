//! A start-time fair queue: which of several members is served next, by the virtual time that each
//! has used. Knows nothing of jobs, nodes or weights.
//!
//! Every member has a pass, the virtual time that it was charged for. The member with the smallest
//! pass is served next. A member that begins to ask starts at the pass that was served last, so
//! that it gets no credit for the time in which it asked for nothing.

use std::collections::{BTreeMap, BTreeSet};

/// Virtual time, in fractions of a microsecond of device time at the normal weight.
pub(crate) type Pass = u128;

/// Number of fraction bits of a pass.
pub(super) const FRACTION: u32 = 20;

/// A member that asked and could not be served, because no node suited it, catches up by no more
/// than this: a minute of device time at the normal weight.
const CATCH_UP: Pass = 60_000_000 << FRACTION;

#[derive(Debug, Default)]
struct Member {
    pass: Pass,
    asks: bool,
}

/// Members of one kind, by the virtual time that they have used.
#[derive(Debug)]
pub(super) struct FairQueue<K> {
    members: BTreeMap<K, Member>,
    /// Members that ask, the one to be served next first.
    asking: BTreeSet<(Pass, K)>,
    /// Largest pass at which a member was served.
    served: Pass,
}

impl<K: Ord> Default for FairQueue<K> {
    fn default() -> Self {
        Self { members: BTreeMap::new(), asking: BTreeSet::new(), served: 0 }
    }
}

impl<K: Ord + Copy> FairQueue<K> {
    /// A member has something to do from now on.
    pub(super) fn ask(&mut self, key: K) {
        let member = self.members.entry(key).or_default();
        if !std::mem::replace(&mut member.asks, true) {
            member.pass = member.pass.max(self.served);
            self.asking.insert((member.pass, key));
        }
    }

    /// A member has nothing to do for now.
    pub(super) fn rest(&mut self, key: K) {
        if let Some(member) = self.members.get_mut(&key)
            && std::mem::replace(&mut member.asks, false)
        {
            self.asking.remove(&(member.pass, key));
        }
    }

    /// Drops a member. If it comes back, it begins as a new one.
    pub(super) fn forget(&mut self, key: K) {
        self.rest(key);
        self.members.remove(&key);
    }

    /// Drops members that rest, have no debt, and are not among those to keep.
    pub(super) fn prune(&mut self, keep: impl Fn(&K) -> bool) {
        let served = self.served;
        self.members.retain(|key, member| member.asks || member.pass > served || keep(key));
    }

    pub(super) fn asks(&self, key: K) -> bool {
        self.members.get(&key).is_some_and(|member| member.asks)
    }

    pub(super) fn contains(&self, key: K) -> bool {
        self.members.contains_key(&key)
    }

    /// Whether no member asks.
    pub(super) fn is_empty(&self) -> bool {
        self.asking.is_empty()
    }

    /// Returns the asking member that is served next, or the next one after another.
    pub(super) fn next(&self, after: Option<(Pass, K)>) -> Option<(Pass, K)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.asking.range((from, Bound::Unbounded)).next().copied()
    }

    /// Returns the pass of a member; 0 for one that was never seen.
    pub(super) fn pass(&self, key: K) -> Pass {
        self.members.get(&key).map_or(0, |member| member.pass)
    }

    /// Serves a member, and charges it for that.
    pub(super) fn serve(&mut self, key: K, cost: Pass) {
        let start = self.pass(key).max(self.served.saturating_sub(CATCH_UP));
        self.served = self.served.max(start);
        self.set(key, start.saturating_add(cost));
    }

    /// Charges a member for more than it was charged when it was served.
    pub(super) fn charge(&mut self, key: K, more: Pass) {
        self.set(key, self.pass(key).saturating_add(more));
    }

    /// Takes back a part of what a member was charged when it was served.
    pub(super) fn refund(&mut self, key: K, less: Pass) {
        self.set(key, self.pass(key).saturating_sub(less));
    }

    fn set(&mut self, key: K, pass: Pass) {
        let member = self.members.entry(key).or_default();
        let before = std::mem::replace(&mut member.pass, pass);
        if member.asks {
            self.asking.remove(&(before, key));
            self.asking.insert((pass, key));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(queue: &FairQueue<u64>) -> u64 {
        queue.next(None).expect("somebody asks").1
    }

    #[test]
    fn members_take_turns_by_what_they_have_used() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key));
        queue.serve(1, 30);
        for _ in 0..3 {
            assert_eq!(first(&queue), 2);
            queue.serve(2, 10);
        }
        assert_eq!(first(&queue), 1, "of equals, the lower key");
        queue.serve(1, 10);
        assert_eq!(first(&queue), 2);
    }

    #[test]
    fn a_member_that_was_away_gets_no_credit() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key));
        queue.rest(2);
        (0..100).for_each(|_| queue.serve(1, 10));
        queue.ask(2);
        let mut times = [0u32; 2];
        for _ in 0..100 {
            let next = first(&queue);
            times[next as usize - 1] += 1;
            queue.serve(next, 10);
        }
        assert!(times[0].abs_diff(times[1]) <= 1, "{times:?}");
    }

    #[test]
    fn a_member_pays_its_debt_also_after_a_rest() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key));
        queue.serve(1, 10);
        queue.charge(1, 90);
        queue.rest(1);
        queue.prune(|_| false);
        queue.ask(1);
        for _ in 0..10 {
            assert_eq!(first(&queue), 2);
            queue.serve(2, 10);
        }
        assert_eq!(first(&queue), 1);
    }

    #[test]
    fn a_member_that_nobody_could_serve_does_not_take_everything() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key));
        queue.serve(2, 2 * CATCH_UP);
        queue.serve(2, 1);
        queue.serve(1, 1);
        assert_eq!(queue.pass(1), CATCH_UP + 1);
    }

    #[test]
    fn members_without_debt_are_dropped_once_they_rest() {
        let mut queue = FairQueue::default();
        for key in 1..=3u64 {
            queue.ask(key);
            queue.serve(key, u128::from(key));
            queue.rest(key);
        }
        queue.prune(|key| *key == 1);
        assert_eq!([1, 2, 3].map(|key| queue.contains(key)), [true, true, true], "all have debts");
        queue.ask(4);
        queue.charge(4, 100);
        queue.serve(4, 1);
        queue.prune(|key| *key == 1);
        assert_eq!([1, 2, 3, 4].map(|key| queue.contains(key)), [true, false, false, true]);
    }
}
