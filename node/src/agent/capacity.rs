//! How many units a device holds: enough that it never waits for a round trip to the coordinator.

use std::time::Duration;

/// Fewest units: one that runs and the next one.
const DEPTH_MIN: u32 = 2;
/// Most units. With units of a few milliseconds, more would only make the end of a frame uneven.
const DEPTH_MAX: u32 = 256;
/// A device that is this many times slower than the fastest of its node holds nothing ahead. At the
/// end of a frame, all others would wait for the units that it holds.
const SLOWER: u64 = 4;
/// Share of the newest unit in the mean, as a power of two: a quarter.
const NEWEST_SHIFT: u32 = 2;

/// Speed at which a device finishes units.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pace {
    /// Running mean of a unit's device time in microseconds; None before the first.
    mean_micros: Option<u64>,
}

impl Pace {
    /// Adds a unit's device time to the mean.
    pub(crate) fn measure(&mut self, device_time: Duration) {
        // An hour is more than any unit takes, and keeps the sums below small.
        let micros = device_time.min(Duration::from_secs(3600)).as_micros() as u64;
        let mean = self.mean_micros.unwrap_or(micros);
        self.mean_micros = Some(mean - (mean >> NEWEST_SHIFT) + (micros >> NEWEST_SHIFT));
    }

    /// Returns the number of units to hold: the one that runs, and `hold` of work after it. It is
    /// rounded up to two binary digits, so that it does not change with every unit.
    pub(crate) fn depth(&self, hold: Duration) -> u32 {
        let Some(mean) = self.mean_micros else { return DEPTH_MIN };
        let behind = (hold.as_micros() as u64).div_ceil(mean.max(1));
        let exact = u32::try_from(behind).unwrap_or(DEPTH_MAX).saturating_add(1);
        let step = (exact.clamp(DEPTH_MIN, DEPTH_MAX).ilog2()).saturating_sub(1);
        (exact.min(DEPTH_MAX).div_ceil(1 << step) << step).clamp(DEPTH_MIN, DEPTH_MAX)
    }

    /// Returns the mean; None before the first measurement.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.mean_micros.map(Duration::from_micros)
    }

    /// Returns whether the device has been measured.
    pub(crate) fn is_known(&self) -> bool {
        self.mean_micros.is_some()
    }

    /// Returns [`Self::depth`] for one of several devices.
    pub(crate) fn depth_among(&self, all: &[Pace], hold: Duration) -> u32 {
        let fastest = all.iter().filter_map(|pace| pace.mean_micros).min();
        match (self.mean_micros, fastest) {
            (Some(mean), Some(fastest)) if mean > fastest.saturating_mul(SLOWER) => 1,
            _ => self.depth(hold),
        }
    }

    /// Returns the time that this many units take. Before the first measurement it is one second
    /// each.
    pub(crate) fn time_for(&self, units: usize) -> Duration {
        Duration::from_micros(self.mean_micros.unwrap_or(1_000_000).max(1))
            .saturating_mul(units as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(500);

    fn pace(micros: u64) -> Pace {
        let mut pace = Pace::default();
        (0..40).for_each(|_| pace.measure(Duration::from_micros(micros)));
        pace
    }

    #[test]
    fn two_long_units_are_held_or_enough_short_ones() {
        assert_eq!(Pace::default().depth(HOLD), 2);
        assert_eq!(pace(5_000_000).depth(HOLD), 2);
        assert_eq!(pace(200_000).depth(HOLD), 4);
        assert_eq!(pace(10_000).depth(HOLD), 64);
        assert_eq!(pace(0).depth(HOLD), DEPTH_MAX);
        assert_eq!(pace(u64::MAX).depth(HOLD), 2);
    }

    #[test]
    fn a_device_much_slower_than_another_holds_nothing_ahead() {
        let (fast, slow, unknown) = (pace(10_000), pace(100_000), Pace::default());
        assert_eq!(slow.depth_among(&[fast, slow], HOLD), 1);
        assert_eq!(fast.depth_among(&[fast, slow], HOLD), fast.depth(HOLD));
        assert_eq!(slow.depth_among(&[slow, unknown], HOLD), slow.depth(HOLD));
        assert_eq!(unknown.depth_among(&[fast, unknown], HOLD), 2);
    }

    #[test]
    fn the_queue_depth_is_coarse_and_never_too_small() {
        let depths: std::collections::BTreeSet<u32> = (1..600_000)
            .step_by(997)
            .map(|micros| {
                let depth = pace(micros).depth(HOLD);
                let behind = (u64::from(depth) - 1) * micros;
                assert!(
                    depth == DEPTH_MAX || behind + 1_000 >= 500_000,
                    "{depth} units of {micros} us"
                );
                depth
            })
            .collect();
        assert!(depths.len() <= 16, "{depths:?}");
    }
}
