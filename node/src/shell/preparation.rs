//! When a frame was prepared, and what of it devices waited for. Owns no clock.

use std::time::{Duration, Instant};

/// Times of one preparation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Preparation {
    /// When it began: with files that are missing, and the scene if it is not loaded.
    pub(crate) begun: Instant,
    /// When the frame itself was asked for. What frames share was there.
    pub(crate) asked: Instant,
    /// When the frame was ready for a device.
    pub(crate) ended: Instant,
}

impl Preparation {
    /// Returns how long all of it took.
    pub(crate) fn whole(&self) -> Duration {
        self.ended.saturating_duration_since(self.begun)
    }

    /// Returns how long the frame alone took.
    pub(crate) fn of_frame(&self) -> Duration {
        self.ended.saturating_duration_since(self.asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frames_own_time_is_a_part_of_its_preparation() {
        let (begun, second) = (Instant::now(), Duration::from_secs(1));
        let loaded = Preparation { begun, asked: begun + 3 * second, ended: begun + 5 * second };
        assert_eq!([loaded.whole(), loaded.of_frame()], [5 * second, 2 * second]);
    }
}
