//! Rounds of a frame that is rendered until its noise is low enough, or for a time: which samples
//! each pass of a tile has, and which passes each round.
//!
//! The first round has two passes of [`FIRST_SAMPLES`] samples. Each round after it has as many
//! samples as all before it together, so that what a tile gets in a round and what it had before
//! are two halves, which tell how noisy it is. Rounds of many samples are cut into passes of
//! [`PASS_SAMPLES_MAX`].

use crate::node::SampleRange;

/// Edge of a tile, pixels: what goes on or ends as a whole. A smaller one wastes fewer samples on
/// pixels that need none, and costs more units.
pub const ROUND_TILE: u32 = 32;
/// Samples per pixel of each of the first two passes.
pub const FIRST_SAMPLES: u32 = 16;
/// Samples per pixel of a pass at most: 32 × 32 pixels × 2048 are 2^21 camera samples, some seconds
/// of one processor.
pub const PASS_SAMPLES_MAX: u32 = 2048;
/// Samples per pixel of such a frame at least: two halves.
pub const ROUNDS_SPP_MIN: u32 = 2 * FIRST_SAMPLES;
/// The least noise that can be asked for: below it, sums of 2^20 samples could not tell.
pub const NOISE_MIN: f64 = 1e-4;
/// The largest noise that can be asked for: hardly a picture.
pub const NOISE_MAX: f64 = 1.0;
/// The most time that can be asked for, seconds: a week.
pub const TIME_SECS_MAX: u32 = 7 * 24 * 3600;

/// Passes of doubling size before all have [`PASS_SAMPLES_MAX`] samples.
const DOUBLING: u32 = (PASS_SAMPLES_MAX / FIRST_SAMPLES).ilog2();

const _: () = assert!(FIRST_SAMPLES.is_power_of_two() && PASS_SAMPLES_MAX.is_power_of_two());

/// The rounds of a frame whose pixels may have so many samples. Rounds are counted from 1, passes
/// from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rounds {
    spp: u32,
}

impl Rounds {
    /// Rounds with at most so many samples per pixel.
    pub fn new(spp: u32) -> Self {
        Self { spp: spp.max(1) }
    }

    /// Rounds, at least 1.
    pub fn count(&self) -> u32 {
        let halves = self.spp.div_ceil(FIRST_SAMPLES);
        halves.next_power_of_two().ilog2().max(1)
    }

    /// Every round after the first, the last too, has as many samples as all before it.
    pub fn all_double(&self) -> bool {
        self.spp == ROUNDS_SPP_MIN << (self.count() - 1).min(20)
    }

    /// Samples per pixel of a tile after a round.
    pub fn samples(&self, round: u32) -> u32 {
        let doubled = u64::from(FIRST_SAMPLES) << round.min(32);
        u64::from(self.spp).min(doubled) as u32
    }

    /// Passes of a tile that has all rounds.
    pub fn passes(&self) -> u32 {
        passes_of(self.spp)
    }

    /// Passes of a tile up to a round.
    pub fn passes_through(&self, round: u32) -> u32 {
        passes_of(self.samples(round))
    }

    /// The round of a pass.
    pub fn round_of(&self, pass: u32) -> u32 {
        (first_of(pass) / FIRST_SAMPLES).max(1).ilog2() + 1
    }

    /// Samples of a pass; None beyond the last.
    pub fn sample_range(&self, pass: u32) -> Option<SampleRange> {
        let first = first_of(pass);
        let end = first_of(pass.saturating_add(1)).min(self.spp);
        (first < self.spp).then(|| SampleRange { first, count: end - first })
    }
}

/// First sample of a pass, whatever there is of it.
fn first_of(pass: u32) -> u32 {
    match pass {
        0 => 0,
        pass if pass <= DOUBLING => FIRST_SAMPLES << (pass - 1),
        pass => (pass - DOUBLING).saturating_mul(PASS_SAMPLES_MAX),
    }
}

/// How many passes begin below a sample, which is not 0.
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
    fn every_sample_is_in_one_pass_and_every_pass_in_the_round_that_has_its_samples() {
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
