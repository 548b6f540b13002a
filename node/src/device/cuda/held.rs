//! Results that wait for the next known answer. They leave the device only after it has been found
//! right behind them, so that a device that begins to compute wrongly spoils no picture. Knows no
//! process and no clock.

use super::flight::Flight;
use crate::device::{DeviceError, UnitOutput};
use std::time::{Duration, Instant};

/// A result waits for its test so long at most: far less than the work that a node holds ahead, so
/// that no one notices the wait, and far more than a test takes.
const HELD_MAX: Duration = Duration::from_millis(250);

/// What a device has done since it was last found right.
#[derive(Default)]
pub(super) struct Held {
    results: Vec<(Flight, UnitOutput)>,
    since: Option<Instant>,
}

impl Held {
    /// Keeps a result.
    pub(super) fn add(&mut self, flight: Flight, output: UnitOutput, now: Instant) {
        self.since.get_or_insert(now);
        self.results.push((flight, output));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Whether the device is to be tested now: `units` results wait, or one has waited long, or
    /// there is nothing else to do.
    pub(super) fn is_due(&self, units: usize, idle: bool, now: Instant) -> bool {
        let waited = |since: Instant| now.saturating_duration_since(since) >= HELD_MAX;
        !self.is_empty() && (idle || self.results.len() >= units || self.since.is_some_and(waited))
    }

    /// The device was right at the test of that number: lets go what it was given before. How many
    /// results that is.
    pub(super) fn release(&mut self, test: u64, now: Instant) -> usize {
        let (proven, rest): (Vec<_>, Vec<_>) = std::mem::take(&mut self.results)
            .into_iter()
            .partition(|(flight, _)| flight.number < test);
        self.since = (!rest.is_empty()).then_some(now);
        self.results = rest;
        let count = proven.len();
        for (flight, output) in proven {
            flight.end(Ok(output));
        }
        count
    }

    /// These may be wrong: they go back to be done elsewhere. How many results that is.
    pub(super) fn give_up(&mut self) -> usize {
        self.since = None;
        let results = std::mem::take(&mut self.results);
        let count = results.len();
        for (flight, _) in results {
            flight.end(Err(DeviceError::Cancelled));
        }
        count
    }
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
