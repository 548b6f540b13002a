//! How long a unit may take before its worker is ended. Owns no clock and ends nothing.

use std::time::Duration;

/// When a worker is given up. All of it is generous: ending a worker that works costs more than
/// waiting for one that hangs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Watchdog {
    /// Least time without progress of a unit.
    pub floor: Duration,
    /// A unit may go without progress for this many times the time that all of it should take.
    pub factor: f64,
    /// Time to open a device, the compilation of the kernels included.
    pub start: Duration,
    /// Results that wait for the next known-answer test at most: a device may begin to compute
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

/// How fast a device gets through samples, measured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rate {
    secs_per_sample: Option<f64>,
}

impl Rate {
    /// A unit of so many camera samples took this long.
    pub(super) fn measure(&mut self, samples: u64, took: Duration) {
        let newest = took.as_secs_f64() / samples.max(1) as f64;
        let mean = self.secs_per_sample.unwrap_or(newest);
        self.secs_per_sample = Some(mean + NEWEST * (newest - mean));
    }

    /// Samples per second; 0 before the first unit.
    pub(super) fn samples_per_second(&self) -> f64 {
        self.secs_per_sample.filter(|secs| *secs > 0.0).map_or(0.0, |secs| 1.0 / secs)
    }

    /// How long a unit of so many samples may go without progress.
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
