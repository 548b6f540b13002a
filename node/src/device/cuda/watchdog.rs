//! Longest time that a unit may take before its worker is ended. Owns no clock and ends nothing.

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
            test_units: 16,
        }
    }
}

/// Share of the newest unit in the mean rate.
const NEWEST: f64 = 0.25;

/// Measured rate of a device, in samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    secs_per_sample: Option<f64>,
}

impl Rate {
    /// Records that a unit of `samples` camera samples took this long.
    pub(super) fn measure(&mut self, samples: u64, took: Duration) {
        let newest = took.as_secs_f64() / samples.max(1) as f64;
        let mean = self.secs_per_sample.unwrap_or(newest);
        self.secs_per_sample = Some(mean + NEWEST * (newest - mean));
    }

    /// Returns the samples per second; 0 before the first unit.
    pub(super) fn samples_per_second(&self) -> f64 {
        self.secs_per_sample.filter(|secs| *secs > 0.0).map_or(0.0, |secs| 1.0 / secs)
    }

    /// Returns how long a unit of `samples` samples may be without progress.
    pub(super) fn allowed(&self, watchdog: &Watchdog, samples: u64) -> Duration {
        let predicted = self.secs_per_sample.unwrap_or(0.0) * samples as f64 * watchdog.factor;
        // A day is long enough, and a Duration has a maximum.
        let predicted = Duration::from_secs_f64(predicted.clamp(0.0, 86_400.0));
        predicted.max(watchdog.floor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_watchdog_allows_many_times_the_expected_time() {
        let watchdog = Watchdog { floor: Duration::from_secs(10), ..Watchdog::default() };
        let mut rate = Rate::default();
        assert_eq!(rate.allowed(&watchdog, u64::MAX), watchdog.floor);
        assert_eq!(rate.samples_per_second(), 0.0);
        rate.measure(1000, Duration::from_secs(2));
        assert_eq!(rate.allowed(&watchdog, 100), watchdog.floor);
        assert_eq!(rate.allowed(&watchdog, 5000), Duration::from_secs(100));
        assert_eq!(rate.samples_per_second(), 500.0);
        assert_eq!(rate.allowed(&watchdog, u64::MAX), Duration::from_secs(86_400));
    }

    #[test]
    fn the_rate_follows_what_is_measured() {
        let mut rate = Rate::default();
        rate.measure(100, Duration::from_secs(1));
        (0..40).for_each(|_| rate.measure(100, Duration::from_secs(4)));
        assert!((rate.samples_per_second() - 25.0).abs() < 0.1);
        rate.measure(0, Duration::ZERO);
    }
}
