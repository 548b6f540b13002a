//! Counts of live tiles, by what became of them.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a live tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was passed on.
    Passed,
    /// Nobody watches its frame any more.
    Unwatched,
    /// Its node does not hold the lease, and has just handed in no result of it.
    Foreign,
    /// The lease has another tile or other samples, or the values are not those of the tile.
    Wrong,
    /// There was one of its lease before.
    Repeated,
    /// Too many were on their way.
    Busy,
}

impl Outcome {
    const ALL: [Self; 6] =
        [Self::Passed, Self::Unwatched, Self::Foreign, Self::Wrong, Self::Repeated, Self::Busy];

    fn name(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Unwatched => "unwatched",
            Self::Foreign => "foreign",
            Self::Wrong => "wrong",
            Self::Repeated => "repeated",
            Self::Busy => "busy",
        }
    }
}

/// Counts of live tiles since the process began.
#[derive(Debug, Default)]
pub(crate) struct LiveMeters([AtomicU64; Outcome::ALL.len()]);

impl LiveMeters {
    /// Counts a live tile.
    pub(crate) fn note(&self, outcome: Outcome) {
        self.0[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the live tiles so far, by what became of them.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Outcome::ALL.into_iter().zip(&self.0);
        counts.map(|(outcome, count)| (outcome.name(), count.load(Ordering::Relaxed))).collect()
    }
}
