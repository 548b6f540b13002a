//! How long to wait before another attempt.

use ring::rand::{SecureRandom, SystemRandom};
use std::time::Duration;

/// Pause after the first failed attempt.
const FIRST: Duration = Duration::from_secs(2);
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(15 * 60);

/// Returns the pause after so many failed attempts in a row: it doubles each time, and a part of up
/// to a half is left to chance (0 to 255), so that many coordinators do not come back together.
fn pause_of(failed: u32, chance: u8) -> Duration {
    let doubled = FIRST.saturating_mul(1 << failed.saturating_sub(1).min(16)).min(LONGEST);
    doubled - doubled.mul_f64(f64::from(chance) / 512.0)
}

/// Returns the pause after so many failed attempts in a row.
pub(crate) fn pause(failed: u32) -> Duration {
    let mut chance = [0];
    // Without random numbers, nothing is left to chance.
    let _ = SystemRandom::new().fill(&mut chance);
    pause_of(failed, chance[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_quarter_of_an_hour() {
        let secs: Vec<u64> = (1..=12).map(|failed| pause_of(failed, 0).as_secs()).collect();
        assert_eq!(secs, [2, 4, 8, 16, 32, 64, 128, 256, 512, 900, 900, 900]);
        assert_eq!(pause_of(u32::MAX, 0), LONGEST);
    }

    #[test]
    fn chance_takes_at_most_half_of_a_pause() {
        for failed in [1, 5, 20] {
            let whole = pause_of(failed, 0);
            assert!((0..=255).all(|chance| pause_of(failed, chance) > whole / 2));
            assert!(pause_of(failed, 255) < whole.mul_f64(0.51));
            assert!((0..100).all(|_| pause(failed) <= whole));
        }
    }
}
