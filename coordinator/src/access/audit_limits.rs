//! How many entries of the audit log one peer can cause. Entries above that are counted, and the
//! counts are entered from time to time. So nobody can push the history out of the log, and
//! everything stays visible. Pure: the time is an argument.
//!
//! | entries of | at once | then one every |
//! |---|---|---|
//! | what a member does | 5,000 | 10 s |
//! | what a member was refused, or what failed | 20 | 60 s |
//! | what an address without an identity was refused | 5 | 600 s |
//! | the same, of all addresses together | 100 | 60 s |

use std::collections::BTreeMap;

/// Most members and addresses that are told apart. Others share one entry each.
const PEERS_MAX: usize = 4096;
/// Seconds between two entries with counts of the same peer.
const SUMMARY_SECS: u64 = 600;
/// Names that stand for everybody beyond [`PEERS_MAX`].
const OTHERS: &str = "other members";
const OTHER_ADDRESSES: &str = "other addresses";
/// Name under which addresses are counted together.
pub(crate) const STRANGERS: &str = "addresses without an identity";

/// The peer that causes an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause<'a> {
    /// An identity of the farm does something.
    Action(&'a str),
    /// An identity of the farm is refused, or its action fails.
    Failure(&'a str),
    /// An address without an identity is refused.
    Stranger(&'a str),
}

/// Entries that a peer can still cause, refilled with time.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    left: u64,
    filled_at: u64,
}

#[derive(Clone, Copy, Debug)]
struct Rate {
    at_once: u64,
    every_secs: u64,
}

const ACTIONS: Rate = Rate { at_once: 5000, every_secs: 10 };
const FAILURES: Rate = Rate { at_once: 20, every_secs: 60 };
const ADDRESS: Rate = Rate { at_once: 5, every_secs: 600 };
const ADDRESSES: Rate = Rate { at_once: 100, every_secs: 60 };

impl Bucket {
    fn new(rate: Rate, now: u64) -> Self {
        Self { left: rate.at_once, filled_at: now }
    }

    fn refill(&mut self, rate: Rate, now: u64) {
        let more = now.saturating_sub(self.filled_at) / rate.every_secs;
        self.left = self.left.saturating_add(more).min(rate.at_once);
        self.filled_at += more * rate.every_secs;
        // A clock that was set back must not stop the refilling.
        self.filled_at = self.filled_at.min(now);
    }

    fn take(&mut self, rate: Rate, now: u64) -> bool {
        self.refill(rate, now);
        let there = self.left > 0;
        self.left -= u64::from(there);
        there
    }

    fn is_full(&self, rate: Rate) -> bool {
        self.left >= rate.at_once
    }
}

/// Entries that were only counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counted {
    count: u64,
    since: u64,
    /// The newest of them.
    last: String,
}

#[derive(Debug)]
struct Member {
    actions: Bucket,
    failures: Bucket,
    counted: Option<Counted>,
}

/// Counts of one coordinator.
#[derive(Debug, Default)]
pub(crate) struct EntryLimits {
    members: BTreeMap<String, Member>,
    addresses: BTreeMap<String, Bucket>,
    strangers: Option<Bucket>,
    counted: Option<Counted>,
}

/// An entry with the count of others that were not entered one by one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    pub(crate) who: String,
    pub(crate) about: String,
}

impl EntryLimits {
    /// Decides about an entry: true if it is to be written. Otherwise it is counted, with `what` as
    /// the newest one.
    pub(crate) fn take(&mut self, cause: Cause<'_>, what: &str, now: u64) -> bool {
        match cause {
            Cause::Action(who) => {
                let member = self.member(who, now);
                member.actions.take(ACTIONS, now) || count(&mut member.counted, what, now)
            }
            Cause::Failure(who) => {
                let member = self.member(who, now);
                member.failures.take(FAILURES, now) || count(&mut member.counted, what, now)
            }
            Cause::Stranger(address) => {
                let all = self.strangers.get_or_insert_with(|| Bucket::new(ADDRESSES, now));
                let known = self.addresses.contains_key(address);
                let name = match known || self.addresses.len() < PEERS_MAX {
                    true => address,
                    false => OTHER_ADDRESSES,
                };
                let bucket = self.addresses.entry(name.to_owned());
                let bucket = bucket.or_insert_with(|| Bucket::new(ADDRESS, now));
                (bucket.take(ADDRESS, now) && all.take(ADDRESSES, now))
                    || count(&mut self.counted, &format!("{what}, from {address}"), now)
            }
        }
    }

    /// Returns whether a member fails so often that its failures are only counted now. What it does
    /// is then entered after it was done.
    pub(crate) fn is_failing(&mut self, who: &str, now: u64) -> bool {
        let member = self.member(who, now);
        member.failures.refill(FAILURES, now);
        member.failures.left == 0
    }

    fn member(&mut self, who: &str, now: u64) -> &mut Member {
        let known = self.members.contains_key(who) || self.members.len() < PEERS_MAX;
        let name = if known { who } else { OTHERS };
        self.members.entry(name.to_owned()).or_insert_with(|| Member {
            actions: Bucket::new(ACTIONS, now),
            failures: Bucket::new(FAILURES, now),
            counted: None,
        })
    }

    /// Returns the counts that are due, and forgets peers of whom nothing is left to know. At the
    /// end of the process (`all`) every count is due.
    pub(crate) fn due(&mut self, now: u64, all: bool) -> Vec<Summary> {
        let mut due = Vec::new();
        let mut settle = |who: &str, counted: &mut Option<Counted>| {
            let is_due = |counted: &mut Counted| {
                all || now.saturating_sub(counted.since) >= SUMMARY_SECS || now < counted.since
            };
            if let Some(Counted { count, since, last }) = counted.take_if(is_due) {
                let secs = now.saturating_sub(since);
                let about = format!("{count} more within {secs} s; the newest: {last}");
                due.push(Summary { who: who.to_owned(), about });
            }
        };
        for (who, member) in &mut self.members {
            settle(who, &mut member.counted);
            member.actions.refill(ACTIONS, now);
            member.failures.refill(FAILURES, now);
        }
        settle(STRANGERS, &mut self.counted);
        self.members.retain(|_, member| {
            let full = member.actions.is_full(ACTIONS) && member.failures.is_full(FAILURES);
            member.counted.is_some() || !full
        });
        self.addresses.retain(|_, bucket| {
            bucket.refill(ADDRESS, now);
            !bucket.is_full(ADDRESS)
        });
        due
    }
}

/// Counts an entry. Returns false: it is not to be written.
fn count(counted: &mut Option<Counted>, what: &str, now: u64) -> bool {
    let counted = counted.get_or_insert_with(|| Counted { since: now, ..Counted::default() });
    counted.count += 1;
    what.clone_into(&mut counted.last);
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_is_refused_on_and_on_is_counted() {
        let mut limits = EntryLimits::default();
        let refused = |limits: &mut EntryLimits, now| {
            limits.take(Cause::Failure("artist eve"), "cancel job 7", now)
        };
        let written = (0..10_000).filter(|n| refused(&mut limits, 100 + n / 200)).count();
        assert_eq!(written, 20);
        assert!(limits.is_failing("artist eve", 150) && !limits.is_failing("artist ada", 150));
        assert!(limits.take(Cause::Failure("artist ada"), "x", 150), "others have their own");
        assert_eq!(limits.due(150, false), []);
        let due = limits.due(700, false);
        let about = "9980 more within 600 s; the newest: cancel job 7".to_owned();
        assert_eq!(due, [Summary { who: "artist eve".into(), about }]);
        assert_eq!(limits.due(9999, false), [], "a count is entered once");
    }

    /// A million entries are kept. A member that does all that it can has this many in a week.
    #[test]
    fn no_member_can_push_the_history_out_within_weeks() {
        let (mut limits, mut entries) = (EntryLimits::default(), 0);
        let week = 7 * 86_400;
        for now in 0..week {
            for _ in 0..3 {
                entries += u32::from(limits.take(Cause::Action("artist eve"), "job", now));
                entries += u32::from(limits.take(Cause::Failure("artist eve"), "job", now));
            }
            entries += limits.due(now, false).len() as u32;
        }
        assert!((60_000..90_000).contains(&entries), "{entries}");
    }

    #[test]
    fn strangers_share_a_limit_and_need_bounded_memory() {
        let mut limits = EntryLimits::default();
        let mut written = 0;
        for number in 0..20_000u64 {
            let address = format!("10.0.{}.{}", number / 256, number % 256);
            for _ in 0..10 {
                written += usize::from(limits.take(Cause::Stranger(&address), "enrolment", 50));
            }
        }
        assert_eq!(written, 100);
        assert!(limits.addresses.len() <= PEERS_MAX + 1);
        let due = limits.due(50, true);
        assert_eq!(due.len(), 1);
        assert!(due[0].about.starts_with("199900 more within 0 s"), "{due:?}");
        limits.due(50 + 5 * 600, false);
        assert!(limits.addresses.is_empty(), "{}", limits.addresses.len());
        for number in 0..10_000 {
            limits.take(Cause::Failure(&format!("artist {number}")), "x", 60);
        }
        assert!(limits.members.len() <= PEERS_MAX + 1);
    }
}
