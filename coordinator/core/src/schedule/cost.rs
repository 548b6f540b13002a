//! What the units of one job are expected to take of a device, by what they took so far.

/// Expected device time of a unit while none of the job is known, in microseconds. Units are meant
/// to take seconds.
const UNKNOWN: u64 = 1_000_000;

/// Results that count for more than all before them together.
const RESULTS: u32 = 64;

/// Device time of the newest results of a job.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    samples: u128,
    micros: u128,
    results: u32,
}

impl Cost {
    /// Learns from a result of so many samples.
    pub(crate) fn note(&mut self, samples: u64, micros: u64) {
        if self.results >= 2 * RESULTS {
            *self = Self {
                samples: self.samples / 2,
                micros: self.micros / 2,
                results: self.results / 2,
            };
        }
        self.samples += u128::from(samples);
        self.micros += u128::from(micros);
        self.results += 1;
    }

    /// Whether there was a result.
    pub(crate) fn is_known(&self) -> bool {
        self.samples > 0
    }

    /// Returns the samples that are expected to take so many microseconds; None if unknown.
    pub(crate) fn samples_in(&self, micros: u64) -> Option<u64> {
        let samples = (self.samples * u128::from(micros)).checked_div(self.micros)?;
        (self.samples > 0).then(|| samples.clamp(1, u128::from(u64::MAX)) as u64)
    }

    /// Returns the expected device time of several units with so many samples together, in
    /// microseconds.
    pub(crate) fn rest(&self, samples: u64, units: u64) -> u64 {
        match self.samples == 0 {
            true => units.saturating_mul(UNKNOWN),
            false => self.of(samples),
        }
    }

    /// Returns the expected device time of a unit in microseconds.
    pub(crate) fn of(&self, samples: u64) -> u64 {
        let expected = (self.micros * u128::from(samples)).checked_div(self.samples);
        expected.map_or(UNKNOWN, |micros| micros.min(u128::from(u64::MAX)) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_results_say_what_a_unit_takes() {
        let mut cost = Cost::default();
        assert_eq!((cost.of(1000), cost.rest(1000, 3), cost.rest(0, 0)), (1_000_000, 3_000_000, 0));
        cost.note(1000, 5000);
        assert_eq!((cost.of(1000), cost.of(10), cost.of(0)), (5000, 50, 0));
        assert_eq!((cost.rest(3000, 3), cost.rest(0, 0)), (15_000, 0));
        (0..1000).for_each(|_| cost.note(1000, 9000));
        assert!((8990..=9000).contains(&cost.of(1000)), "{}", cost.of(1000));
        cost.note(0, 0);
        assert!(cost.of(1000) >= 8990);
    }
}
