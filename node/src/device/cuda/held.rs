//! Results that wait for the next known-answer test. They are released only after that test has
//! passed, so that a device that begins to compute wrongly spoils no picture. Knows no process and
//! no clock.

use super::flight::Flight;
use crate::device::{DeviceError, UnitOutput};
use std::time::{Duration, Instant};

/// Longest time that a result waits for its test. It is far less than the work that a node holds
/// ahead, so the wait is not noticeable, and far more than a test takes.
const HELD_MAX: Duration = Duration::from_millis(250);

/// Results of a device since it last passed a test.
#[derive(Default)]
pub(super) struct Held {
    results: Vec<(Flight, UnitOutput)>,
    since: Option<Instant>,
}

impl Held {
    /// Holds a result until the next known answer.
    pub(super) fn add(&mut self, flight: Flight, output: UnitOutput, now: Instant) {
        self.since.get_or_insert(now);
        self.results.push((flight, output));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Returns the units whose results wait.
    pub(super) fn flights(&self) -> impl Iterator<Item = &Flight> {
        self.results.iter().map(|(flight, _)| flight)
    }

    /// Returns whether the device should be tested now: `units` results wait, one has waited long,
    /// or there is nothing else to do.
    pub(super) fn is_due(&self, units: usize, idle: bool, now: Instant) -> bool {
        let waited = |since: Instant| now.saturating_duration_since(since) >= HELD_MAX;
        !self.is_empty() && (idle || self.results.len() >= units || self.since.is_some_and(waited))
    }

    /// Releases the results that were given before the test of that number, which the device has
    /// passed. Returns their number.
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

    /// Gives up all results, which may be wrong, so that they are rendered elsewhere. Returns their
    /// number.
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
