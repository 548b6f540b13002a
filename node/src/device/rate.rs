//! The measured rate of a device: camera samples by device time, over its last units.

use std::time::Duration;

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

    /// Returns the seconds that so many samples should take; 0 before the first unit.
    pub(super) fn expected_secs(&self, samples: u64) -> f64 {
        self.secs_per_sample.unwrap_or(0.0) * samples as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_follows_what_is_measured() {
        let mut rate = Rate::default();
        assert_eq!((rate.samples_per_second(), rate.expected_secs(9)), (0.0, 0.0));
        rate.measure(100, Duration::from_secs(1));
        assert_eq!((rate.samples_per_second(), rate.expected_secs(50)), (100.0, 0.5));
        (0..40).for_each(|_| rate.measure(100, Duration::from_secs(4)));
        assert!((rate.samples_per_second() - 25.0).abs() < 0.1);
        rate.measure(0, Duration::ZERO);
    }
}
