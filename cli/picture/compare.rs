//! Numeric differences of two pictures: bits, largest difference, relMSE, means. Perceived
//! differences are in `flip`.

use super::{Picture, PictureError};
use serde::Serialize;

/// Added to the squared reference in [`relative_mse()`], so that black pixels do not divide by
/// nothing.
const RELATIVE_MSE_FLOOR: f64 = 0.01;

/// Two pictures of one size, in numbers. The second is the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Colours and opacities are the same, bit for bit.
    pub identical: bool,
    /// Pixels in which a bit of a colour or of an opacity differs. 0 and -0 differ in a bit.
    pub differing_pixels: u64,
    /// Pixels among these in which the opacity does.
    pub differing_alpha: u64,
    /// Position of the largest finite difference; None if there is none.
    pub largest_difference: Option<LargestDifference>,
    /// [`relative_mse()`] of the finite pixels.
    pub rel_mse: f64,
    /// Mean of the first picture over that of the second, over finite pixels only; None where the
    /// second is black.
    pub mean_ratio: Option<f64>,
    /// What is no number in the first picture.
    pub first_non_finite: NonFinite,
    /// What is no number in the second picture.
    pub second_non_finite: NonFinite,
    /// Pixels that have no part in the numbers because one of the pictures has NaN or infinity
    /// there.
    pub excluded_pixels: u64,
    /// Pixels among these that differ in a bit: differences of which no number tells.
    pub excluded_differing: u64,
}

/// One component of one pixel.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LargestDifference {
    /// Absolute difference, linear units.
    pub value: f64,
    /// Value in the first picture.
    pub first: f32,
    /// Value in the second picture.
    pub second: f32,
    /// Pixels from the left.
    pub x: u32,
    /// Pixels from the top.
    pub y: u32,
    /// `R`, `G` or `B`.
    pub channel: char,
}

/// Pixels with a component that is no finite number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct NonFinite {
    /// Pixels with a NaN.
    pub nan_pixels: u64,
    /// Pixels with an infinity and no NaN.
    pub infinite_pixels: u64,
    /// The first of both, x and y from the upper left corner.
    pub first_at: Option<[u32; 2]>,
}

impl NonFinite {
    fn of(picture: &Picture) -> Self {
        let mut found = Self::default();
        for (index, color) in picture.pixels.iter().enumerate() {
            if is_finite(color) {
                continue;
            }
            let is_nan = color.iter().any(|value| value.is_nan());
            *(if is_nan { &mut found.nan_pixels } else { &mut found.infinite_pixels }) += 1;
            found.first_at = found.first_at.or(Some(place(index, picture.width)));
        }
        found
    }

    /// Pixels of either kind.
    pub fn pixels(&self) -> u64 {
        self.nan_pixels + self.infinite_pixels
    }
}

/// Compares a picture with a reference of the same size.
///
/// # Errors
/// If the sizes differ.
pub fn compare(first: &Picture, second: &Picture) -> Result<Comparison, PictureError> {
    if first.size() != second.size() {
        return Err(PictureError::Sizes { first: first.size(), second: second.size() });
    }
    let mut result = Comparison {
        width: first.width,
        height: first.height,
        identical: true,
        differing_pixels: 0,
        differing_alpha: 0,
        largest_difference: None,
        rel_mse: relative_mse(&first.pixels, &second.pixels),
        mean_ratio: mean_ratio(&first.pixels, &second.pixels),
        first_non_finite: NonFinite::of(first),
        second_non_finite: NonFinite::of(second),
        excluded_pixels: 0,
        excluded_differing: 0,
    };
    for (index, (a, b)) in first.pixels.iter().zip(&second.pixels).enumerate() {
        let alpha_differs = opacity(first, index).to_bits() != opacity(second, index).to_bits();
        let differs = alpha_differs || a.map(f32::to_bits) != b.map(f32::to_bits);
        result.differing_pixels += u64::from(differs);
        result.differing_alpha += u64::from(alpha_differs);
        if is_finite(a) && is_finite(b) {
            result.note_difference(index, *a, *b);
        } else {
            result.excluded_pixels += 1;
            result.excluded_differing += u64::from(differs);
        }
    }
    result.identical = result.differing_pixels == 0;
    Ok(result)
}

impl Comparison {
    fn note_difference(&mut self, index: usize, first: [f32; 3], second: [f32; 3]) {
        for (channel, (a, b)) in ['R', 'G', 'B'].into_iter().zip(first.into_iter().zip(second)) {
            let value = (f64::from(a) - f64::from(b)).abs();
            if value > self.largest_difference.map_or(0.0, |largest| largest.value) {
                let [x, y] = place(index, self.width);
                self.largest_difference =
                    Some(LargestDifference { value, first: a, second: b, x, y, channel });
            }
        }
    }
}

/// Relative mean squared error: the mean over pixels and components of (a - b)² / (b² + 0.01),
/// where b is the reference.
///
/// Pixels with a component that is not finite in either are left out; 0 where none remain. After
/// Rousselle, Knaus and Zwicker, "Adaptive Sampling and Reconstruction using Greedy Error
/// Minimization" (SIGGRAPH Asia 2011), who add 0.01 as well.
pub fn relative_mse(pixels: &[[f32; 3]], reference: &[[f32; 3]]) -> f64 {
    let error = |(a, b): (&f32, &f32)| {
        let (a, b) = (f64::from(*a), f64::from(*b));
        (a - b).powi(2) / (b * b + RELATIVE_MSE_FLOOR)
    };
    let errors =
        finite_pairs(pixels, reference).map(|(a, b)| a.iter().zip(b).map(error).sum::<f64>());
    let (sum, count) = errors.fold((0.0, 0u64), |(sum, count), error| (sum + error, count + 1));
    sum / (3 * count).max(1) as f64
}

/// Mean of all components over the reference's; None where that is 0.
fn mean_ratio(pixels: &[[f32; 3]], reference: &[[f32; 3]]) -> Option<f64> {
    let total = |color: &[f32; 3]| color.iter().map(|value| f64::from(*value)).sum::<f64>();
    let sums = finite_pairs(pixels, reference)
        .fold((0.0, 0.0), |(a, b), (x, y)| (a + total(x), b + total(y)));
    (sums.1 != 0.0).then(|| sums.0 / sums.1)
}

fn finite_pairs<'a>(
    pixels: &'a [[f32; 3]],
    reference: &'a [[f32; 3]],
) -> impl Iterator<Item = (&'a [f32; 3], &'a [f32; 3])> {
    pixels.iter().zip(reference).filter(|(a, b)| is_finite(a) && is_finite(b))
}

fn is_finite(color: &[f32; 3]) -> bool {
    color.iter().all(|value| value.is_finite())
}

fn opacity(picture: &Picture, index: usize) -> f32 {
    picture.alpha.as_ref().map_or(1.0, |alpha| alpha[index])
}

fn place(index: usize, width: u32) -> [u32; 2] {
    [index as u32 % width, index as u32 / width]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::Encoding;

    fn picture(pixels: &[[f32; 3]], width: u32) -> Picture {
        let height = pixels.len() as u32 / width;
        Picture { width, height, pixels: pixels.to_vec(), alpha: None, encoding: Encoding::Scene }
    }

    #[test]
    fn the_same_nan_bits_count_as_identical() {
        let a = picture(&[[0.5, f32::NAN, 1.0], [0.0; 3]], 2);
        let same = compare(&a, &a.clone()).unwrap();
        assert!(same.identical && same.largest_difference.is_none());
        assert_eq!((same.rel_mse, same.excluded_pixels, same.excluded_differing), (0.0, 1, 0));
        assert_eq!(
            same.first_non_finite,
            NonFinite { nan_pixels: 1, infinite_pixels: 0, first_at: Some([0, 0]) }
        );
        let mut b = a.clone();
        b.pixels[1][2] = -0.0;
        let other = compare(&a, &b).unwrap();
        assert!(
            !other.identical && other.differing_pixels == 1 && other.largest_difference.is_none()
        );
    }

    #[test]
    fn differences_have_a_place_and_a_size() {
        let a = picture(&[[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [0.0; 3], [3.0, 0.0, 0.0]], 2);
        let b = picture(&[[1.0, 1.0, 1.5], [2.0, 2.0, 2.0], [0.0; 3], [1.0, 0.0, 0.0]], 2);
        let found = compare(&a, &b).unwrap();
        assert_eq!((found.identical, found.differing_pixels), (false, 2));
        let largest = found.largest_difference.unwrap();
        assert_eq!((largest.value, largest.x, largest.y, largest.channel), (2.0, 1, 1, 'R'));
        let want = (0.25 / 2.26 + 4.0 / 1.01) / 12.0;
        assert!((found.rel_mse - want).abs() < 1e-15);
        assert!((found.mean_ratio.unwrap() - 12.0 / 10.5).abs() < 1e-15);
    }

    #[test]
    fn nan_pixels_are_counted_and_left_out() {
        let a = picture(&[[1.0; 3], [f32::INFINITY, 0.0, 0.0], [f32::NAN; 3], [0.5; 3]], 4);
        let b = picture(&[[1.0; 3], [1.0; 3], [1.0; 3], [0.5; 3]], 4);
        let found = compare(&a, &b).unwrap();
        assert_eq!((found.rel_mse, found.mean_ratio), (0.0, Some(1.0)));
        assert_eq!((found.excluded_pixels, found.excluded_differing), (2, 2));
        assert_eq!(
            found.first_non_finite,
            NonFinite { nan_pixels: 1, infinite_pixels: 1, first_at: Some([1, 0]) }
        );
        assert_eq!(found.second_non_finite.pixels(), 0);
        let nothing = picture(&[[f32::NAN; 3]], 1);
        let found = compare(&nothing, &nothing).unwrap();
        assert_eq!((found.rel_mse, found.mean_ratio), (0.0, None));
    }

    #[test]
    fn opacity_counts_among_the_bits() {
        let a = picture(&[[1.0; 3], [1.0; 3]], 2);
        let b = Picture { alpha: Some(vec![1.0, 0.5]), ..a.clone() };
        let found = compare(&a, &b).unwrap();
        assert_eq!((found.identical, found.differing_pixels, found.differing_alpha), (false, 1, 1));
    }

    #[test]
    fn pictures_of_different_sizes_are_refused_with_both_sizes() {
        let error = compare(&picture(&[[0.0; 3]; 6], 3), &picture(&[[0.0; 3]; 6], 2))
            .unwrap_err()
            .to_string();
        assert!(error.contains("3x2") && error.contains("2x3"), "{error}");
    }
}
