//! The logarithm in which AgX forms pictures and looks grade them.

use super::matrix::Rgb;

/// Luminance of Rec. 2020's primaries by the CIE's colour matching functions of 2015.
pub(super) const LUMINANCE: Rgb =
    [0.265_818_037_025_044_9, 0.598_469_860_453_65, 0.135_712_102_521_305_2];
/// Its stops from 1, with the digits of Blender's configuration: 10 below middle grey and 15 above.
pub(super) const LOG2: [f64; 2] = [-12.473_93, 12.526_068_811_7];

/// Returns where a value lies in the logarithm, 0 to 1 from its first stop to its last.
pub(super) fn log_of_linear(value: f64) -> f64 {
    (libm::log2(value.max(f64::from(f32::MIN_POSITIVE))) - LOG2[0]) / (LOG2[1] - LOG2[0])
}

pub(super) fn linear_of_log(log: f64) -> f64 {
    libm::exp2(log * (LOG2[1] - LOG2[0]) + LOG2[0])
}
