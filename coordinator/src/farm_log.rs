//! The lines of the log that tell what happens on the farm: sessions, jobs, failures, drains. This
//! limits how many lines one node or user can cause, so that nobody can flood the log. What a line
//! says is decided where it is written.

use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

/// Lines of one cause: 500 at once, then one every 2 s.
const OF_ONE: Rate = Rate { at_once: 500, every_millis: 2000 };
/// Lines of all causes together: 5,000 at once, then 10 a second.
const OF_ALL: Rate = Rate { at_once: 5000, every_millis: 100 };
/// Most causes that are told apart. Others share one limit.
const CAUSES_MAX: usize = 4096;
/// Milliseconds between two lines with the number of those that were left out.
const COUNT_EVERY_MILLIS: u64 = 60_000;

/// The log of one coordinator.
#[derive(Debug)]
pub(crate) struct FarmLog {
    start: Instant,
    lines: Mutex<Lines>,
}

impl FarmLog {
    pub(crate) fn new() -> Self {
        Self { start: Instant::now(), lines: Mutex::default() }
    }

    /// Whether a line may be written that a node or user causes. Otherwise it is counted, and the
    /// count is written later.
    pub(crate) fn allows(&self, cause: &str) -> bool {
        let now = self.start.elapsed().as_millis() as u64;
        let (allowed, left_out) = {
            let mut lines = lock(&self.lines);
            (lines.take(cause, now), lines.due(now))
        };
        if let Some(LeftOut { count, last }) = left_out {
            tracing::warn!(count, last, "lines were left out of this log: they were too many");
        }
        allowed
    }
}

/// How many lines may be said at once, and how long it takes for each further one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rate {
    pub(crate) at_once: u64,
    pub(crate) every_millis: u64,
}

/// Lines that may still be written, refilled with time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bucket {
    left: u64,
    filled_at: u64,
}

impl Bucket {
    /// A full one.
    pub(crate) fn new(rate: Rate, now: u64) -> Self {
        Self { left: rate.at_once, filled_at: now }
    }

    /// Adds what has come with time.
    pub(crate) fn refill(&mut self, rate: Rate, now: u64) {
        let more = now.saturating_sub(self.filled_at) / rate.every_millis;
        self.left = self.left.saturating_add(more).min(rate.at_once);
        self.filled_at += more * rate.every_millis;
    }

    /// Returns whether nothing was taken of late.
    pub(crate) fn is_full(&self, rate: Rate) -> bool {
        self.left >= rate.at_once
    }

    /// Takes one, if there is one.
    pub(crate) fn take(&mut self, rate: Rate, now: u64) -> bool {
        self.refill(rate, now);
        let there = self.left > 0;
        self.left -= u64::from(there);
        there
    }
}

/// Lines that were not written.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct LeftOut {
    count: u64,
    /// Cause of the newest of them.
    last: String,
}

/// How many lines were written of late. Pure: the time is an argument.
#[derive(Debug, Default)]
struct Lines {
    causes: BTreeMap<String, Bucket>,
    all: Option<Bucket>,
    left_out: LeftOut,
    counted_at: u64,
}

impl Lines {
    /// Decides about a line: true if it is to be written.
    fn take(&mut self, cause: &str, now: u64) -> bool {
        if !self.causes.contains_key(cause) && self.causes.len() >= CAUSES_MAX {
            self.causes.retain(|_, bucket| {
                bucket.refill(OF_ONE, now);
                bucket.left < OF_ONE.at_once
            });
        }
        let told_apart = self.causes.contains_key(cause) || self.causes.len() < CAUSES_MAX;
        let name = if told_apart { cause } else { "others" };
        let own = self.causes.entry(name.to_owned()).or_insert_with(|| Bucket::new(OF_ONE, now));
        let all = self.all.get_or_insert_with(|| Bucket::new(OF_ALL, now));
        if own.take(OF_ONE, now) && all.take(OF_ALL, now) {
            return true;
        }
        self.left_out.count += 1;
        cause.clone_into(&mut self.left_out.last);
        false
    }

    /// Returns the number of lines that were left out, once it is time to tell.
    fn due(&mut self, now: u64) -> Option<LeftOut> {
        let due = self.left_out.count > 0 && now >= self.counted_at + COUNT_EVERY_MILLIS;
        due.then(|| {
            self.counted_at = now;
            std::mem::take(&mut self.left_out)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_cause_cannot_flood_the_log() {
        let mut lines = Lines::default();
        let written = (0..100_000).filter(|n| lines.take("node a", n / 10)).count();
        assert_eq!(written, 500 + 4, "of ten seconds");
        assert!(lines.take("node b", 10_000), "others have their own");
        assert_eq!(lines.due(10_000), None);
        let left_out = lines.due(60_000).unwrap();
        assert_eq!((left_out.count, left_out.last.as_str()), (100_000 - 504, "node a"));
        assert_eq!(lines.due(200_000), None, "a count is told once");
    }

    #[test]
    fn many_causes_share_a_limit_and_need_bounded_memory() {
        let mut lines = Lines::default();
        let written = (0..50_000).filter(|n| lines.take(&format!("node {n}"), 0)).count();
        assert!((4000..=5000).contains(&written), "{written}");
        assert!(lines.causes.len() <= CAUSES_MAX + 1, "{}", lines.causes.len());
    }
}
