//! What became of what was offered, counted one by one, and said in the log when it matters: once
//! when a collector stops to take it, and once how much was left out.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Most spans that wait to be sent, and most lines.
pub(super) const WAITING_MAX: usize = 2048;
/// How often it is said that more comes than is taken.
const SAID_EVERY: Duration = Duration::from_secs(60);

/// Counts of one kind.
#[derive(Debug)]
pub(super) struct Health {
    /// What it counts, for people.
    what: &'static str,
    waiting: AtomicUsize,
    sent: AtomicU64,
    left_out: AtomicU64,
    is_failing: AtomicBool,
    said: Mutex<Said>,
}

/// What the log has of it.
#[derive(Debug, Default)]
struct Said {
    left_out: u64,
    at: Option<Instant>,
}

impl Health {
    pub(super) fn new(what: &'static str) -> Self {
        Self {
            what,
            waiting: AtomicUsize::new(0),
            sent: AtomicU64::new(0),
            left_out: AtomicU64::new(0),
            is_failing: AtomicBool::new(false),
            said: Mutex::default(),
        }
    }

    /// Takes a place in the queue, or counts that there was none.
    pub(super) fn enter(&self) -> bool {
        let entered = self
            .waiting
            .fetch_update(Relaxed, Relaxed, |waiting| {
                (waiting < WAITING_MAX).then_some(waiting + 1)
            })
            .is_ok();
        if !entered {
            self.left_out.fetch_add(1, Relaxed);
        }
        entered
    }

    /// Counts a batch that the collector has taken.
    pub(super) fn sent(&self, count: usize) {
        self.waiting.fetch_sub(count, Relaxed);
        self.sent.fetch_add(count as u64, Relaxed);
        let what = self.what;
        if self.is_failing.swap(false, Relaxed) {
            let left_out = self.newly_left_out();
            tracing::info!(left_out, "the collector takes {what} again");
        } else if self.left_out.load(Relaxed) > 0 {
            self.say_at_times();
        }
    }

    /// Counts a batch that it has not.
    pub(super) fn failed(&self, count: usize, problem: &str) {
        self.waiting.fetch_sub(count, Relaxed);
        self.left_out.fetch_add(count as u64, Relaxed);
        let what = self.what;
        if !self.is_failing.swap(true, Relaxed) {
            tracing::warn!(problem, "the collector takes no {what}; they are left out meanwhile");
        }
    }

    /// Says at the end what was left out. What still waits goes nowhere.
    pub(super) fn conclude(&self) {
        let waiting = self.waiting.swap(0, Relaxed) as u64;
        self.left_out.fetch_add(waiting, Relaxed);
        let (left_out, what) = (self.newly_left_out(), self.what);
        if left_out > 0 {
            tracing::warn!(left_out, "{what} were left out: the collector did not take them");
        }
    }

    /// Returns how many were sent, and how many left out.
    #[cfg(test)]
    pub(super) fn counts(&self) -> (u64, u64) {
        (self.sent.load(Relaxed), self.left_out.load(Relaxed))
    }

    fn say_at_times(&self) {
        let now = Instant::now();
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = said.at.is_none_or(|at| now.duration_since(at) >= SAID_EVERY);
        let left_out = self.left_out.load(Relaxed);
        if is_due && left_out > said.left_out {
            let (count, what) = (left_out - said.left_out, self.what);
            *said = Said { left_out, at: Some(now) };
            drop(said);
            tracing::warn!(left_out = count, "{what} were left out: more come than are taken");
        }
    }

    /// Returns how many were left out since this was said last.
    fn newly_left_out(&self) -> u64 {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let left_out = self.left_out.load(Relaxed);
        let new = left_out - said.left_out;
        *said = Said { left_out, at: Some(Instant::now()) };
        new
    }
}
