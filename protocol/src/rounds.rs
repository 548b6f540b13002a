//! Rounds of a frame that is rendered until its noise is low enough, or for a given time. Says
//! which samples belong to each pass of a tile, and which passes belong to each round.
//!
//! The first round has two passes of [`FIRST_SAMPLES`] samples. Each later round has as many
//! samples as all rounds before it together. So the samples of a round and the samples before it
//! are two halves, and their difference tells how noisy a tile is. A round of many samples is cut
//! into passes of [`PASS_SAMPLES_MAX`].

use serde::{Deserialize, Serialize};

/// Edge of a tile in pixels. A tile continues or ends as a whole. Smaller tiles waste fewer samples
/// on pixels that need none, but cost more units.
pub const ROUND_TILE: u32 = 32;
/// Samples per pixel of each of the first two passes.
pub const FIRST_SAMPLES: u32 = 16;
/// Most samples per pixel of a pass: 32 × 32 pixels × 2048 are 2^21 camera samples, which take one
/// processor some seconds.
pub const PASS_SAMPLES_MAX: u32 = 2048;
/// Fewest samples per pixel of a frame with rounds: two halves.
pub const ROUNDS_SPP_MIN: u32 = 2 * FIRST_SAMPLES;
/// Lowest noise that a job can ask for. Sums of 2^20 samples cannot measure less.
pub const NOISE_MIN: f64 = 1e-4;
/// Highest noise that a job can ask for. Such a frame hardly shows a picture.
pub const NOISE_MAX: f64 = 1.0;
/// Longest time that a job can ask for, in seconds: one week.
pub const TIME_SECS_MAX: u32 = 7 * 24 * 3600;

/// Number of doublings until a pass has [`PASS_SAMPLES_MAX`] samples.
const DOUBLING: u32 = (PASS_SAMPLES_MAX / FIRST_SAMPLES).ilog2();

const _: () = assert!(FIRST_SAMPLES.is_power_of_two() && PASS_SAMPLES_MAX.is_power_of_two());

/// A contiguous range of sample indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRange {
    /// First sample index.
    pub first: u32,
    /// Number of samples, >= 1.
    pub count: u32,
}

/// The rounds of a frame with a given maximum of samples per pixel. Rounds are counted from 1,
/// passes from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    spp: u32,
}

impl Rounds {
    /// Creates the rounds of a frame with at most `spp` samples per pixel.
    pub fn new(spp: u32) -> Self {
        Self { spp: spp.max(1) }
    }

    /// Returns the number of rounds, at least 1.
    pub fn count(&self) -> u32 {
        let halves = self.spp.div_ceil(FIRST_SAMPLES);
        halves.next_power_of_two().ilog2().max(1)
    }

    /// Returns whether every round after the first, including the last, has as many samples as all
    /// rounds before it.
    pub fn all_double(&self) -> bool {
        self.spp == ROUNDS_SPP_MIN << (self.count() - 1).min(20)
    }

    /// Returns the samples per pixel that a tile has after a round.
    pub fn samples(&self, round: u32) -> u32 {
        let doubled = u64::from(FIRST_SAMPLES) << round.min(32);
        u64::from(self.spp).min(doubled) as u32
    }

    /// Returns the number of passes of a tile that gets all rounds.
    pub fn passes(&self) -> u32 {
        passes_of(self.spp)
    }

    /// Returns the number of passes of a tile up to and including a round.
    pub fn passes_through(&self, round: u32) -> u32 {
        passes_of(self.samples(round))
    }

    /// Returns the round that a pass belongs to.
    pub fn round_of(&self, pass: u32) -> u32 {
        (first_of(pass) / FIRST_SAMPLES).max(1).ilog2() + 1
    }

    /// Returns the samples of a pass, or None after the last pass.
    pub fn sample_range(&self, pass: u32) -> Option<SampleRange> {
        let first = first_of(pass);
        let end = first_of(pass.saturating_add(1)).min(self.spp);
        (first < self.spp).then(|| SampleRange { first, count: end - first })
    }
}

/// Returns the first sample of a pass, without regard to the maximum of samples.
fn first_of(pass: u32) -> u32 {
    match pass {
        0 => 0,
        pass if pass <= DOUBLING => FIRST_SAMPLES << (pass - 1),
        pass => (pass - DOUBLING).saturating_mul(PASS_SAMPLES_MAX),
    }
}

/// Returns how many passes begin before sample number `samples`, which is not 0.
fn passes_of(samples: u32) -> u32 {
    match samples {
        0..=PASS_SAMPLES_MAX => samples.div_ceil(FIRST_SAMPLES).next_power_of_two().ilog2() + 1,
        samples => samples.div_ceil(PASS_SAMPLES_MAX) + DOUBLING,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::SPP_MAX;

    fn ranges(spp: u32) -> Vec<(u32, u32)> {
        let rounds = Rounds::new(spp);
        let pass = |pass| rounds.sample_range(pass).map(|range| (range.first, range.count));
        (0..).map_while(pass).collect()
    }

    #[test]
    fn passes_double_until_they_are_long_and_end_at_the_last_sample() {
        assert_eq!(ranges(100), [(0, 16), (16, 16), (32, 32), (64, 36)]);
        assert_eq!(ranges(32), [(0, 16), (16, 16)]);
        let long = ranges(9000);
        assert_eq!(
            long[7..],
            [(1024, 1024), (2048, 2048), (4096, 2048), (6144, 2048), (8192, 808)]
        );
    }

    #[test]
    fn every_sample_is_in_one_pass_of_its_own_round() {
        for spp in (1..700).chain([
            1024,
            2047,
            2048,
            2049,
            4096,
            5000,
            65_535,
            65_536,
            SPP_MAX - 1,
            SPP_MAX,
        ]) {
            let (rounds, ranges) = (Rounds::new(spp), ranges(spp));
            assert_eq!(ranges.len(), rounds.passes() as usize, "{spp}");
            let mut next = 0;
            for (pass, (first, count)) in (0..).zip(&ranges) {
                assert_eq!((*first, *count > 0), (next, true), "{spp}");
                next += count;
                let round = rounds.round_of(pass);
                assert!((1..=rounds.count()).contains(&round), "{spp} {pass}");
                assert!(next <= rounds.samples(round), "{spp} {pass}");
                assert!(pass < rounds.passes_through(round), "{spp} {pass}");
                assert!(round == 1 || pass >= rounds.passes_through(round - 1), "{spp} {pass}");
            }
            assert_eq!((next, rounds.samples(rounds.count())), (spp, spp));
        }
    }

    #[test]
    fn a_round_has_as_many_samples_as_all_before_it() {
        let rounds = Rounds::new(SPP_MAX);
        for round in 2..=rounds.count() {
            assert_eq!(rounds.samples(round), 2 * rounds.samples(round - 1));
        }
        assert_eq!((rounds.samples(1), rounds.count()), (2 * FIRST_SAMPLES, 16));
    }
}
