//! Counts of lines, by what became of them.

use std::sync::atomic::{AtomicU64, Ordering};

/// What became of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is kept.
    Kept,
    /// It is about a job or a unit that its node has not held.
    Foreign,
    /// Its node says too much.
    TooMany,
    /// Too many lines of all nodes waited to be written.
    Busy,
    /// The disk did not take it.
    Unwritten,
}

impl Outcome {
    const ALL: [Self; 5] = [Self::Kept, Self::Foreign, Self::TooMany, Self::Busy, Self::Unwritten];

    fn name(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Foreign => "foreign",
            Self::TooMany => "too_many",
            Self::Busy => "busy",
            Self::Unwritten => "unwritten",
        }
    }
}

/// Counts of lines since the process began.
#[derive(Debug, Default)]
pub(crate) struct LogMeters([AtomicU64; Outcome::ALL.len()]);

impl LogMeters {
    /// Counts a line.
    pub(crate) fn note(&self, outcome: Outcome) {
        self.note_many(outcome, 1);
    }

    /// Counts lines.
    pub(crate) fn note_many(&self, outcome: Outcome, count: u64) {
        self.0[outcome as usize].fetch_add(count, Ordering::Relaxed);
    }

    /// Returns the lines so far, by what became of them.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        let counts = Outcome::ALL.into_iter().zip(&self.0);
        counts.map(|(outcome, count)| (outcome.name(), count.load(Ordering::Relaxed))).collect()
    }
}
