//! `--exposure auto`: the exposure that shows a frame at a middle brightness.
//!
//! The log-average luminance of Reinhard et al. ("Photographic tone reproduction for digital
//! images", 2002) is shown as their key of a normal scene, 0.18. Two things keep it from what would
//! mislead it: pixels without light do not count, so that a black background does not, and neither
//! do the darkest and the brightest 5 % of the others, such as noise in shadows, lamps and
//! fireflies.
//!
//! Luminances are counted in steps of 1/16 stop, so the result does not depend on any order. It is
//! rounded to 1/100 stop, so that `--exposure` with the value that is told makes the same picture.

use crate::Films;
use crate::FinishError;
use crate::band::Tiles;
use crate::part::Part;
use rayon::prelude::*;
use tessera_protocol::job::RenderSpec;

/// How bright the average is shown.
const KEY: f64 = 0.18;
/// Luminance of Rec. 709's primaries.
const LUMINANCE: [f64; 3] = [0.2126, 0.7152, 0.0722];
/// Stops from 1 that are told apart, and steps of a stop.
const STOPS: f64 = 64.0;
const STEPS: f64 = 16.0;
const COUNTS: usize = (2.0 * STOPS * STEPS) as usize;
/// Part of the pixels that does not count at each end.
const LEFT_OUT: f64 = 0.05;

/// How many pixels have a luminance in each step.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Histogram(Vec<u64>);

/// Returns the exposure of a frame in stops; 0 if it has no light at all.
pub fn metered_exposure(spec: &RenderSpec, films: &dyn Films) -> Result<f32, FinishError> {
    let tiles = Tiles::new(spec, &Part::whole(spec), films);
    let mut histogram = Histogram::new();
    for row in tiles.rows() {
        let band = tiles.band(row)?;
        let rows = (0..band.height).into_par_iter().map(|y| {
            let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel, y));
            let mut counts = Histogram::new();
            for ((r, g), b) in r.iter().zip(g).zip(b) {
                counts.count([*r, *g, *b]);
            }
            counts
        });
        histogram = rows.reduce(Histogram::new, Histogram::and).and(histogram);
    }
    Ok(histogram.exposure())
}

impl Histogram {
    fn new() -> Self {
        Self(vec![0; COUNTS])
    }

    fn count(&mut self, color: [f32; 3]) {
        let parts = color.iter().zip(LUMINANCE).map(|(value, weight)| f64::from(*value) * weight);
        let luminance: f64 = parts.sum();
        if luminance > 0.0 {
            let place = (libm::log2(luminance) + STOPS) * STEPS;
            self.0[(place as usize).min(COUNTS - 1)] += 1;
        }
    }

    fn and(mut self, other: Self) -> Self {
        self.0.iter_mut().zip(other.0).for_each(|(count, more)| *count += more);
        self
    }

    fn exposure(&self) -> f32 {
        let all: u64 = self.0.iter().sum();
        let left_out = (all as f64 * LEFT_OUT) as u64;
        let (first, end) = (left_out, all - left_out);
        let (mut before, mut sum, mut counted) = (0, 0.0, 0);
        for (step, count) in self.0.iter().enumerate() {
            // Pixels of the step that are within the counted ones.
            let within = (before + count).min(end).saturating_sub(before.max(first));
            sum += within as f64 * ((step as f64 + 0.5) / STEPS - STOPS);
            counted += within;
            before += count;
        }
        if counted == 0 {
            return 0.0;
        }
        let stops = libm::log2(KEY) - sum / counted as f64;
        ((stops.clamp(-STOPS, STOPS) * 100.0).round() / 100.0) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metered(pixels: impl IntoIterator<Item = [f32; 3]>) -> f32 {
        let mut histogram = Histogram::new();
        pixels.into_iter().for_each(|pixel| histogram.count(pixel));
        histogram.exposure()
    }

    #[test]
    fn the_log_average_becomes_middle_grey() {
        // Within half a step.
        let near = |found: f32, stops: f32| (found - stops).abs() <= 0.04;
        assert!(near(metered([[0.18; 3]; 10]), 0.0));
        assert!(near(metered([[0.18 * 16.0; 3]; 10]), -4.0));
        // Luminance: green counts most.
        assert!(near(metered([[0.0, 0.18 / 0.7152, 0.0]; 10]), 0.0));
        // As many pixels two stops above as below.
        let mixed = (0..40).map(|index| [if index % 2 == 0 { 0.045 } else { 0.72 }; 3]);
        assert!(near(metered(mixed), 0.0));
    }

    #[test]
    fn black_backgrounds_lamps_and_fireflies_do_not_count() {
        let object = || (0..100).map(|index| [0.1 + index as f32 * 0.001; 3]);
        let alone = metered(object());
        assert_eq!(metered(object().chain([[0.0; 3]; 5000])), alone);
        assert_eq!(metered(object().chain([[f32::NAN, 0.0, 0.0]; 50])), alone);
        let lamps = metered(object().chain([[1e6; 3]; 4]));
        assert!((lamps - alone).abs() < 0.1, "{lamps} beside {alone}");
        assert_eq!(metered([[0.0; 3]; 9]), 0.0);
        assert_eq!(metered([]), 0.0);
        // Never beyond what a job can ask for.
        assert!(metered([[1e38; 3]]) >= -64.0 && metered([[1e-38; 3]]) <= 64.0);
    }

    #[test]
    fn what_is_told_is_what_was_used() {
        for hundredth in -6400..=6400 {
            let value = (f64::from(hundredth) / 100.0) as f32;
            assert_eq!(value.to_string().parse::<f32>().unwrap().to_bits(), value.to_bits());
            assert!(value.to_string().len() <= 6, "{value}");
        }
    }
}
