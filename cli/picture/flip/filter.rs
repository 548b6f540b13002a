//! The filters of FLIP: the eye's contrast sensitivity, and detectors of edges and points.
//! Separable, over strips of rows.

use std::f64::consts::PI;

/// Amplitude and width of the Gaussians whose sum is the contrast sensitivity of each opponent
/// component (Movshon and Kiorpes 1988; Mullen 1985): achromatic, red-green, blue-yellow.
const SENSITIVITY: [&[(f64, f64)]; 3] =
    [&[(1.0, 0.0047)], &[(1.0, 0.0053)], &[(34.1, 0.04), (13.5, 0.025)]];
/// Width of the feature detectors in degrees of the visual field (Burbeck and Kelly 1980).
const FEATURE_WIDTH_DEGREES: f64 = 0.082;

/// Taps from -radius to +radius, as many as twice the radius and one.
pub(super) type Taps = Vec<f32>;

/// All filters for one density of pixels.
pub(super) struct Filters {
    /// The weights and taps of the Gaussians of each opponent component.
    pub(super) sensitivity: [Vec<(f32, Taps)>; 3],
    /// Gaussian across a feature.
    pub(super) smooth: Taps,
    /// First derivative: edges.
    pub(super) edge: Taps,
    /// Second derivative: points.
    pub(super) point: Taps,
    /// Largest radius among them, pixels.
    pub(super) radius: usize,
}

impl Filters {
    /// Makes the filters for an observer who sees this many pixels per degree.
    pub(super) fn new(pixels_per_degree: f64) -> Self {
        // All components get the radius of the widest Gaussian: three of its standard deviations.
        let widest =
            SENSITIVITY.iter().flat_map(|sum| sum.iter()).map(|(_, b)| *b).fold(0.0, f64::max);
        let radius = (3.0 * (widest / (2.0 * PI * PI)).sqrt() * pixels_per_degree).ceil() as usize;
        let sensitivity =
            SENSITIVITY.map(|gaussians| sensitivity_taps(gaussians, radius, pixels_per_degree));
        let deviation = 0.5 * FEATURE_WIDTH_DEGREES * pixels_per_degree;
        let feature_radius = (3.0 * deviation).ceil() as usize;
        let gaussian = |x: f64| (-x * x / (2.0 * deviation * deviation)).exp();
        Self {
            sensitivity,
            smooth: balanced(feature_radius, gaussian),
            edge: balanced(feature_radius, |x| -x * gaussian(x)),
            point: balanced(feature_radius, |x| {
                (x * x / (deviation * deviation) - 1.0) * gaussian(x)
            }),
            radius: radius.max(feature_radius),
        }
    }
}

/// Gaussians of one component; the square of taps that they make together sums to 1.
fn sensitivity_taps(
    gaussians: &[(f64, f64)],
    radius: usize,
    pixels_per_degree: f64,
) -> Vec<(f32, Taps)> {
    let gaussian = |b: f64, x: f64| (-(PI * x / pixels_per_degree).powi(2) / b).exp();
    let weight = |(a, b): (f64, f64)| {
        let sum: f64 = offsets(radius).map(|x| gaussian(b, x)).sum();
        a * (PI / b).sqrt() * sum * sum
    };
    let total: f64 = gaussians.iter().map(|g| weight(*g)).sum();
    gaussians
        .iter()
        .map(|(a, b)| ((weight((*a, *b)) / total) as f32, balanced(radius, |x| gaussian(*b, x))))
        .collect()
}

/// Taps of a function, the positive ones scaled to a sum of 1 and the negative ones to -1.
fn balanced(radius: usize, function: impl Fn(f64) -> f64) -> Taps {
    let values: Vec<f64> = offsets(radius).map(function).collect();
    let positive: f64 = values.iter().filter(|v| **v > 0.0).sum();
    let negative: f64 = -values.iter().filter(|v| **v < 0.0).sum::<f64>();
    values
        .iter()
        .map(|v| (v / if *v > 0.0 { positive } else { negative.max(f64::MIN_POSITIVE) }) as f32)
        .collect()
}

fn offsets(radius: usize) -> impl Iterator<Item = f64> {
    (0..=2 * radius).map(move |index| index as f64 - radius as f64)
}

/// Rows of a picture with those around them that filters reach.
#[derive(Clone, Copy, Debug)]
pub(super) struct Strip {
    /// Pixels across.
    pub(super) width: usize,
    /// First row with a result.
    pub(super) first: usize,
    /// The row after the last with a result.
    pub(super) end: usize,
    /// First row there is.
    pub(super) outer_first: usize,
    /// The row after the last there is.
    pub(super) outer_end: usize,
}

impl Strip {
    /// `rows` of a picture, and as many beyond as `radius` reaches and the picture has.
    pub(super) fn new(
        width: usize,
        height: usize,
        rows: std::ops::Range<usize>,
        radius: usize,
    ) -> Self {
        let outer_first = rows.start.saturating_sub(radius);
        let outer_end = (rows.end + radius).min(height);
        Self { width, first: rows.start, end: rows.end, outer_first, outer_end }
    }

    /// Filters every row there is. Beyond the left and right edge, the edge continues.
    pub(super) fn across(&self, plane: &[f32], taps: &[f32]) -> Vec<f32> {
        let radius = taps.len() / 2;
        let mut out = vec![0.0; plane.len()];
        let mut padded = vec![0.0; self.width + 2 * radius];
        for (row, out) in plane.chunks_exact(self.width).zip(out.chunks_exact_mut(self.width)) {
            padded[..radius].fill(row[0]);
            padded[radius..radius + self.width].copy_from_slice(row);
            padded[radius + self.width..].fill(row[self.width - 1]);
            for (offset, tap) in taps.iter().enumerate() {
                add_scaled(out, &padded[offset..offset + self.width], *tap);
            }
        }
        out
    }

    /// Filters downwards, and gives the rows with a result. Beyond the upper and lower edge, the
    /// edge continues.
    pub(super) fn down(&self, plane: &[f32], taps: &[f32]) -> Vec<f32> {
        let radius = taps.len() / 2;
        let mut out = vec![0.0; (self.end - self.first) * self.width];
        for (index, out) in out.chunks_exact_mut(self.width).enumerate() {
            for (offset, tap) in taps.iter().enumerate() {
                let row = (self.first + index + offset).saturating_sub(radius);
                let start = (row.clamp(self.outer_first, self.outer_end - 1) - self.outer_first)
                    * self.width;
                add_scaled(out, &plane[start..start + self.width], *tap);
            }
        }
        out
    }
}

fn add_scaled(out: &mut [f32], values: &[f32], factor: f32) {
    for (out, value) in out.iter_mut().zip(values) {
        *out += factor * value;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_keep_a_constant_and_derivatives_remove_it() {
        let filters = Filters::new(67.0);
        assert_eq!((filters.radius, filters.smooth.len()), (10, 19));
        let strip = Strip::new(7, 40, 12..20, filters.radius);
        assert_eq!((strip.outer_first, strip.outer_end), (2, 30));
        let plane = vec![0.5; 7 * 28];
        let both = |x: &[f32], y: &[f32]| strip.down(&strip.across(&plane, x), y);
        for value in both(&filters.smooth, &filters.smooth) {
            assert!((value - 0.5).abs() < 1e-5);
        }
        for taps in [&filters.edge, &filters.point] {
            assert!(both(taps, &filters.smooth).iter().all(|value| value.abs() < 1e-5));
        }
        for gaussians in &filters.sensitivity {
            let shares: f32 = gaussians.iter().map(|(share, _)| share).sum();
            assert!((shares - 1.0).abs() < 1e-6);
        }
    }

    #[test]
    fn an_edge_gives_its_height() {
        let filters = Filters::new(67.0);
        let strip = Strip::new(40, 1, 0..1, filters.radius);
        let step: Vec<f32> = (0..40).map(|x| if x < 20 { 0.0 } else { 1.0 }).collect();
        let edge = strip.down(&strip.across(&step, &filters.edge), &filters.smooth);
        let highest = edge.iter().fold(0.0f32, |highest, value| highest.max(value.abs()));
        assert!((highest - 1.0).abs() < 1e-5, "{highest}");
    }
}
