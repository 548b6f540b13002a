//! A start-time fair queue: which of several members is served next, by the virtual time that each
//! has used. Knows nothing of jobs, nodes or weights.
//!
//! A member asks for what it wants, which may be several things. Whoever serves only some of them
//! finds the next member that asks for one of these without a look at the others.
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

#[derive(Debug)]
struct Member<W> {
    pass: Pass,
    /// What it asks for, and how often.
    asks: Vec<(W, u32)>,
}

impl<W> Default for Member<W> {
    fn default() -> Self {
        Self { pass: 0, asks: Vec::new() }
    }
}

/// Members of one kind, by the virtual time that they have used.
#[derive(Debug)]
pub(super) struct FairQueue<K, W> {
    members: BTreeMap<K, Member<W>>,
    /// Members that ask, the one to be served next first.
    asking: BTreeSet<(Pass, K)>,
    /// The same, by what they ask for.
    asking_for: BTreeMap<W, BTreeSet<(Pass, K)>>,
    /// Largest pass at which a member was served.
    served: Pass,
}

impl<K: Ord, W: Ord> Default for FairQueue<K, W> {
    fn default() -> Self {
        let (members, asking, asking_for) = Default::default();
        Self { members, asking, asking_for, served: 0 }
    }
}

impl<K: Ord + Copy, W: Ord + Clone> FairQueue<K, W> {
    /// A member has something to do from now on, or one thing more. It rests when it has said as
    /// often that it wants no more.
    pub(super) fn ask(&mut self, key: K, wants: &W) {
        let member = self.members.entry(key).or_default();
        if let Some((_, times)) = member.asks.iter_mut().find(|(known, _)| known == wants) {
            *times += 1;
            return;
        }
        if member.asks.is_empty() {
            member.pass = member.pass.max(self.served);
            self.asking.insert((member.pass, key));
        }
        member.asks.push((wants.clone(), 1));
        self.asking_for.entry(wants.clone()).or_default().insert((member.pass, key));
    }

    /// A member has one thing less to do for now.
    pub(super) fn rest(&mut self, key: K, wants: &W) {
        let Some(member) = self.members.get_mut(&key) else { return };
        let Some(at) = member.asks.iter().position(|(known, _)| known == wants) else { return };
        member.asks[at].1 -= 1;
        if member.asks[at].1 > 0 {
            return;
        }
        member.asks.swap_remove(at);
        if member.asks.is_empty() {
            self.asking.remove(&(member.pass, key));
        }
        if let Some(these) = self.asking_for.get_mut(wants) {
            these.remove(&(member.pass, key));
            if these.is_empty() {
                self.asking_for.remove(wants);
            }
        }
    }

    /// Drops a member that rests. If it comes back, it begins as a new one.
    pub(super) fn forget(&mut self, key: K) {
        if !self.asks(key) {
            self.members.remove(&key);
        }
    }

    /// Drops members that rest, have no debt, and are not among those to keep.
    pub(super) fn prune(&mut self, keep: impl Fn(&K) -> bool) {
        let served = self.served;
        self.members
            .retain(|key, member| !member.asks.is_empty() || member.pass > served || keep(key));
    }

    pub(super) fn asks(&self, key: K) -> bool {
        self.members.get(&key).is_some_and(|member| !member.asks.is_empty())
    }

    pub(super) fn contains(&self, key: K) -> bool {
        self.members.contains_key(&key)
    }

    /// Whether no member asks.
    pub(super) fn is_empty(&self) -> bool {
        self.asking.is_empty()
    }

    /// Everything that members ask for.
    pub(super) fn wanted(&self) -> impl Iterator<Item = &W> {
        self.asking_for.keys()
    }

    /// Returns the asking member that is served next, or the next one after another; `only`: among
    /// those that ask for one of these things.
    pub(super) fn next(&self, after: Option<(Pass, K)>, only: Option<&[W]>) -> Option<(Pass, K)> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let first =
            |these: &BTreeSet<(Pass, K)>| these.range((from, Bound::Unbounded)).next().copied();
        match only {
            None => first(&self.asking),
            Some(only) => only.iter().filter_map(|wants| first(self.asking_for.get(wants)?)).min(),
        }
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
        let Self { members, asking, asking_for, .. } = self;
        let asks = members.get(&key).map_or(&[][..], |member| &member.asks);
        for (wants, _) in asks {
            if let Some(these) = asking_for.get_mut(wants) {
                move_to(these, key, before, pass);
            }
        }
        if !asks.is_empty() {
            move_to(asking, key, before, pass);
        }
    }
}

fn move_to<K: Ord + Copy>(asking: &mut BTreeSet<(Pass, K)>, key: K, before: Pass, pass: Pass) {
    asking.remove(&(before, key));
    asking.insert((pass, key));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(queue: &FairQueue<u64, char>) -> u64 {
        queue.next(None, None).expect("somebody asks").1
    }

    #[test]
    fn members_take_turns_by_what_they_have_used() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key, &'a'));
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
        [1, 2].into_iter().for_each(|key| queue.ask(key, &'a'));
        queue.rest(2, &'a');
        (0..100).for_each(|_| queue.serve(1, 10));
        queue.ask(2, &'a');
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
        [1, 2].into_iter().for_each(|key| queue.ask(key, &'a'));
        queue.serve(1, 10);
        queue.charge(1, 90);
        queue.rest(1, &'a');
        queue.prune(|_| false);
        queue.ask(1, &'a');
        for _ in 0..10 {
            assert_eq!(first(&queue), 2);
            queue.serve(2, 10);
        }
        assert_eq!(first(&queue), 1);
    }

    #[test]
    fn a_member_that_nobody_could_serve_does_not_take_everything() {
        let mut queue = FairQueue::default();
        [1, 2].into_iter().for_each(|key| queue.ask(key, &'a'));
        queue.serve(2, 2 * CATCH_UP);
        queue.serve(2, 1);
        queue.serve(1, 1);
        assert_eq!(queue.pass(1), CATCH_UP + 1);
    }

    #[test]
    fn members_without_debt_are_dropped_once_they_rest() {
        let mut queue = FairQueue::default();
        for key in 1..=3u64 {
            queue.ask(key, &'a');
            queue.serve(key, u128::from(key));
            queue.rest(key, &'a');
        }
        queue.prune(|key| *key == 1);
        assert_eq!([1, 2, 3].map(|key| queue.contains(key)), [true, true, true], "all have debts");
        queue.ask(4, &'a');
        queue.charge(4, 100);
        queue.serve(4, 1);
        queue.prune(|key| *key == 1);
        assert_eq!([1, 2, 3, 4].map(|key| queue.contains(key)), [true, false, false, true]);
    }

    #[test]
    fn who_serves_some_things_sees_only_members_that_want_them() {
        let mut queue = FairQueue::default();
        for (key, wants) in [(1, 'a'), (2, 'b'), (3, 'b'), (3, 'c'), (3, 'c')] {
            queue.ask(key, &wants);
        }
        let next =
            |queue: &FairQueue<u64, char>, only: &[char]| Some(queue.next(None, Some(only))?.1);
        assert_eq!(Vec::from_iter(queue.wanted()), [&'a', &'b', &'c']);
        assert_eq!((next(&queue, &['b']), next(&queue, &['c'])), (Some(2), Some(3)));
        assert_eq!((next(&queue, &['c', 'a']), next(&queue, &['d'])), (Some(1), None));
        // Of all that it wants, a member has one pass.
        queue.serve(2, 10);
        assert_eq!(next(&queue, &['b', 'c']), Some(3));
        queue.serve(3, 20);
        assert_eq!((next(&queue, &['b']), next(&queue, &['b', 'c'])), (Some(2), Some(2)));
        // A thing that was asked for twice is wanted until both have ended.
        queue.rest(3, &'c');
        assert_eq!(next(&queue, &['c']), Some(3));
        queue.rest(3, &'c');
        assert_eq!((next(&queue, &['c']), queue.asks(3)), (None, true));
        queue.rest(3, &'b');
        assert_eq!((queue.asks(3), Vec::from_iter(queue.wanted())), (false, vec![&'a', &'b']));
    }
}
