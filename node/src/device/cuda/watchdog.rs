//! Longest time that a unit may take before its worker is ended. Owns no clock and ends nothing.

use crate::device::rate::Rate;
use std::time::Duration;

/// Limits after which a worker is given up. All of them are generous: ending a worker that works
/// costs more than waiting for one that hangs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watchdog {
    /// Shortest time that a unit may be without progress.
    pub floor: Duration,
    /// Time that a unit may be without progress, as a multiple of the expected time for the whole
    /// unit.
    pub factor: f64,
    /// Longest time to open a device, including the compilation of the kernels.
    pub start: Duration,
    /// Most results that wait for the next known-answer test, since a device can begin to compute
    /// wrongly at any time.
    pub test_units: usize,
}

impl Default for Watchdog {
    fn default() -> Self {
        Self {
            floor: Duration::from_secs(60),
            factor: 10.0,
            start: Duration::from_secs(300),
            test_units: 64,
        }
    }
}

impl Watchdog {
    /// Returns how long a unit of `samples` samples may be without progress, on a device of this
    /// rate.
    pub(super) fn allows(&self, rate: &Rate, samples: u64) -> Duration {
        // A day is long enough, and a Duration has a maximum.
        let predicted = (rate.expected_secs(samples) * self.factor).clamp(0.0, 86_400.0);
        Duration::from_secs_f64(predicted).max(self.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_allows_many_times_the_expected_time() {
        let watchdog = Watchdog { floor: Duration::from_secs(10), ..Watchdog::default() };
        let mut rate = Rate::default();
        assert_eq!(watchdog.allows(&rate, u64::MAX), watchdog.floor);
        rate.measure(1000, Duration::from_secs(2));
        assert_eq!(watchdog.allows(&rate, 100), watchdog.floor);
        assert_eq!(watchdog.allows(&rate, 5000), Duration::from_secs(100));
        assert_eq!(watchdog.allows(&rate, u64::MAX), Duration::from_secs(86_400));
    }
}
