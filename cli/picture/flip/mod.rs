//! FLIP: how different two pictures look to an observer who flips between them. Owns the way from
//! pixels to one number.
//!
//! Displayed pictures: Andersson, Nilsson, Akenine-Möller, Oskarsson, Åström and Fairchild, "FLIP:
//! A Difference Evaluator for Alternating Images" (High Performance Graphics 2020). Scene-linear
//! ones: Andersson, Nilsson, Shirley and Akenine-Möller, "Visualizing Errors in Rendered High
//! Dynamic Range Images" (Eurographics 2021): the largest error over the exposures at which a
//! display could show the reference.
//!
//! A picture is worked on in strips of rows, so that memory does not grow with it.

mod color;
mod exposure;
mod filter;

pub use exposure::Exposures;

use super::{Encoding, Picture, PictureError};
use color::{ColorDistance, achromatic, is_finite, opponent};
use exposure::aces;
use filter::{Filters, Strip};
use rayon::prelude::*;
use serde::Serialize;
use std::ops::Range;

/// Pixels in one degree of the visual field, for an observer at 0.7 m from a screen with 3840
/// pixels on 0.7 m.
pub const PIXELS_PER_DEGREE: f64 = 0.7 * 3840.0 / 0.7 * std::f64::consts::PI / 180.0;

/// Rows of a strip: filters reach 10 rows beyond, so a quarter is computed twice.
const STRIP_ROWS: usize = 64;
/// Exponent of feature differences, `q_f` of the paper.
const FEATURE_EXPONENT: f32 = 0.5;

/// How different two pictures look, from 0 (not at all) to 1.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Flip {
    /// Mean over the pixels.
    pub mean: f64,
    /// The largest.
    pub max: f32,
    /// The exposures that were compared; None for displayed pictures.
    pub exposures: Option<Exposures>,
}

/// How different a picture looks from a reference of the same size to an observer who sees
/// `pixels_per_degree` pixels in a degree of the visual field. HDR-FLIP where one of them is
/// scene-linear, LDR-FLIP where both are displayed ones.
///
/// A pixel with a NaN or an infinity is black to its neighbours, and itself as different as can be
/// unless both have the same bits.
///
/// # Errors
/// If the sizes differ.
pub fn flip(
    first: &Picture,
    second: &Picture,
    pixels_per_degree: f64,
) -> Result<Flip, PictureError> {
    if first.size() != second.size() {
        return Err(PictureError::Sizes { first: first.size(), second: second.size() });
    }
    let pair = Pair {
        pixels: [&first.pixels, &second.pixels],
        width: first.width as usize,
        height: first.height as usize,
        filters: Filters::new(pixels_per_degree),
        distance: ColorDistance::new(),
    };
    let displayed = [first, second].iter().all(|picture| picture.encoding == Encoding::Display);
    let exposures = (!displayed).then(|| Exposures::of(&second.pixels));
    let shows = match &exposures {
        None => vec![Show::Clipped],
        Some(exposures) => exposures.gains().into_iter().map(Show::Exposed).collect(),
    };
    let (mean, max) = pair.errors(&shows);
    Ok(Flip { mean, max, exposures })
}

/// How a display shows linear values.
#[derive(Clone, Copy, Debug)]
enum Show {
    Clipped,
    /// Multiplied, then tone-mapped.
    Exposed(f32),
}

impl Show {
    /// Linear in [0, 1]; black where the colour is not finite.
    fn color(self, color: [f32; 3]) -> [f32; 3] {
        if !is_finite(&color) {
            return [0.0; 3];
        }
        match self {
            Self::Clipped => color.map(|value| value.clamp(0.0, 1.0)),
            Self::Exposed(gain) => color.map(|value| aces(value * gain)),
        }
    }
}

/// Two pictures and what is needed to tell them apart.
struct Pair<'a> {
    /// The picture and its reference.
    pixels: [&'a [[f32; 3]]; 2],
    width: usize,
    height: usize,
    filters: Filters,
    distance: ColorDistance,
}

impl Pair<'_> {
    /// Mean and maximum over all pixels of the largest error among several ways to show them.
    fn errors(&self, shows: &[Show]) -> (f64, f32) {
        let starts: Vec<usize> = (0..self.height).step_by(STRIP_ROWS).collect();
        let strips: Vec<(f64, f32)> = starts
            .into_par_iter()
            .map(|start| {
                let rows = start..(start + STRIP_ROWS).min(self.height);
                let errors = self.strip_errors(rows, shows);
                let sum = errors.iter().map(|error| f64::from(*error)).sum::<f64>();
                (sum, errors.iter().copied().fold(0.0, f32::max))
            })
            .collect();
        let sum: f64 = strips.iter().map(|(sum, _)| sum).sum();
        let max = strips.iter().map(|(_, max)| *max).fold(0.0, f32::max);
        (sum / (self.width * self.height) as f64, max)
    }

    fn strip_errors(&self, rows: Range<usize>, shows: &[Show]) -> Vec<f32> {
        let inner = rows.start * self.width..rows.end * self.width;
        let strip = Strip::new(self.width, self.height, rows, self.filters.radius);
        let mut errors = vec![0.0f32; inner.len()];
        for show in shows {
            let [first, second] =
                self.pixels.map(|pixels| View::new(pixels, &strip, *show, &self.filters));
            for (index, error) in errors.iter_mut().enumerate() {
                *error = error.max(first.error(&second, index, &self.distance));
            }
        }
        let [first, second] = self.pixels.map(|pixels| &pixels[inner.clone()]);
        for (error, (a, b)) in errors.iter_mut().zip(first.iter().zip(second)) {
            let is_excluded = !is_finite(a) || !is_finite(b);
            if is_excluded && a.map(f32::to_bits) != b.map(f32::to_bits) {
                *error = 1.0;
            }
        }
        errors
    }
}

/// The inner rows of a strip, as an observer sees them.
struct View {
    /// Opponent colours as sharp as the eye sees them.
    color: [Vec<f32>; 3],
    /// Strength of edges and of points.
    features: [Vec<f32>; 2],
}

impl View {
    fn new(pixels: &[[f32; 3]], strip: &Strip, show: Show, filters: &Filters) -> Self {
        let outer = &pixels[strip.outer_first * strip.width..strip.outer_end * strip.width];
        let mut planes: [Vec<f32>; 3] = std::array::from_fn(|_| Vec::with_capacity(outer.len()));
        for color in outer {
            for (plane, value) in planes.iter_mut().zip(opponent(show.color(*color))) {
                plane.push(value);
            }
        }
        let color = std::array::from_fn(|i| filtered(&planes[i], &filters.sensitivity[i], strip));
        let [mut light, ..] = planes;
        light.iter_mut().for_each(|value| *value = achromatic(*value));
        let smooth = strip.across(&light, &filters.smooth);
        let features = [&filters.edge, &filters.point].map(|taps| {
            let x = strip.down(&strip.across(&light, taps), &filters.smooth);
            let y = strip.down(&smooth, taps);
            x.iter().zip(&y).map(|(x, y)| (x * x + y * y).sqrt()).collect()
        });
        Self { color, features }
    }

    /// The difference in colour, made larger by the difference in features.
    fn error(&self, other: &Self, index: usize, distance: &ColorDistance) -> f32 {
        let color = |view: &Self| std::array::from_fn(|component| view.color[component][index]);
        let feature =
            |kind: usize| (self.features[kind][index] - other.features[kind][index]).abs();
        let features =
            (feature(0).max(feature(1)) * std::f32::consts::FRAC_1_SQRT_2).powf(FEATURE_EXPONENT);
        distance.between(color(self), color(other)).powf(1.0 - features.min(1.0))
    }
}

/// A component as sharp as the eye sees it: a sum of Gaussians.
fn filtered(plane: &[f32], gaussians: &[(f32, Vec<f32>)], strip: &Strip) -> Vec<f32> {
    let mut out = vec![0.0; (strip.end - strip.first) * strip.width];
    for (share, taps) in gaussians {
        let blurred = strip.down(&strip.across(plane, taps), taps);
        out.iter_mut().zip(blurred).for_each(|(out, value)| *out += share * value);
    }
    out
}

#[cfg(test)]
mod tests;
