//! How a display can show a scene's light: exposures and the tone map of HDR-FLIP.

use super::color::{is_finite, luminance};
use rayon::prelude::*;
use serde::Serialize;

/// Numerator and denominator of a fit of the ACES curve by K. Narkowicz (2016), for light that was
/// scaled by 0.6 as the paper does.
const NUMERATOR: [f64; 3] = [0.36 * 2.51, 0.6 * 0.03, 0.0];
const DENOMINATOR: [f64; 3] = [0.36 * 2.43, 0.6 * 0.59, 0.14];
/// Where the tone map counts as bright: 0.85 of white.
const BRIGHT: f64 = 0.85;
/// Least luminance that counts; black has no exposure.
const LUMINANCE_MIN: f64 = f32::EPSILON as f64;

/// Exposures that show all of a picture, in stops.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Exposures {
    /// The brightest pixel is bright.
    pub start: f64,
    /// The median pixel is bright.
    pub stop: f64,
    /// How many, evenly spaced from `start` to `stop`; at least 2.
    pub count: u32,
}

impl Exposures {
    /// After section 3.1 of the paper: the brightest and the median pixel of the reference decide.
    pub(super) fn of(reference: &[[f32; 3]]) -> Self {
        let finite = reference.par_iter().filter(|color| is_finite(color));
        let mut values: Vec<f32> =
            finite.map(|color| luminance(color.map(|v| v.max(0.0)))).collect();
        values.par_sort_unstable_by(f32::total_cmp);
        let brightest = values.last().copied().unwrap_or(0.0);
        let median = median(&values);
        let light = bright_light();
        let stops = |luminance: f32| (light / f64::from(luminance).max(LUMINANCE_MIN)).log2();
        let (start, stop) = (stops(brightest), stops(median));
        Self { start, stop, count: ((stop - start).ceil() as u32).max(2) }
    }

    /// The factor of every exposure.
    pub(super) fn gains(&self) -> Vec<f32> {
        let step = (self.stop - self.start) / f64::from(self.count - 1);
        (0..self.count).map(|index| (self.start + step * f64::from(index)).exp2() as f32).collect()
    }
}

fn median(sorted: &[f32]) -> f32 {
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        odd if odd % 2 == 1 => sorted[middle],
        _ => 0.5 * (sorted[middle - 1] + sorted[middle]),
    }
}

/// The light that the tone map makes bright: the positive root of a quadratic equation.
fn bright_light() -> f64 {
    let [a, b, c]: [f64; 3] = std::array::from_fn(|i| NUMERATOR[i] - BRIGHT * DENOMINATOR[i]);
    (-b + (b * b - 4.0 * a * c).sqrt()) / (2.0 * a)
}

/// The tone map, from light >= 0 to linear values in [0, 1].
pub(super) fn aces(light: f32) -> f32 {
    // Beyond this the quotient is above 1 anyway, and its squares stay finite.
    let x = f64::from(light.clamp(0.0, 1e6));
    let at = |k: &[f64; 3]| (k[0] * x + k[1]) * x + k[2];
    (at(&NUMERATOR) / at(&DENOMINATOR)).clamp(0.0, 1.0) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tone_map_is_bright_where_the_equation_says() {
        let light = bright_light();
        assert!((f64::from(aces(light as f32)) - BRIGHT).abs() < 1e-6);
        assert_eq!((aces(-1.0), aces(0.0), aces(f32::MAX)), (0.0, 0.0, 1.0));
    }

    #[test]
    fn exposures_span_from_the_brightest_to_the_median_pixel() {
        let exposures = Exposures::of(&[[16.0; 3], [1.0; 3], [0.5; 3]]);
        assert!((exposures.stop - exposures.start - 4.0).abs() < 1e-5);
        assert!(exposures.count == 4 || exposures.count == 5, "{exposures:?}");
        let gains = exposures.gains();
        assert!((f64::from(gains[0]) * 16.0 - bright_light()).abs() < 1e-5);
        assert_eq!(Exposures::of(&[[0.0; 3]]).count, 2);
    }
}
