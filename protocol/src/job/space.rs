//! The space in which kernels see a job's scene, as far as files of its frames depend on it.

use super::error::{SpecError, wrong};
use serde::{Deserialize, Serialize};

/// Largest exponent of a space, up or down.
pub const SPACE_EXPONENT_MAX: i32 = 100;

/// A space that kernels see the scene in: a point `p` of the file is at `(p - origin) *
/// 2^exponent`. Films hold depths and positions as kernels see them, and files as the scene does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SpaceSpec {
    /// Place in the file's own space, in metres, that is the origin.
    pub origin: [f64; 3],
    /// Exponent of two of the scale, at most [`SPACE_EXPONENT_MAX`] in magnitude.
    pub exponent: i32,
}

impl SpaceSpec {
    /// Checks that every number is in its range.
    pub(super) fn check(&self) -> Result<(), SpecError> {
        if !self.origin.iter().all(|coordinate| coordinate.is_finite()) {
            return wrong("space", "its origin is not finite");
        }
        if !(-SPACE_EXPONENT_MAX..=SPACE_EXPONENT_MAX).contains(&self.exponent) {
            let problem = format!(
                "its exponent {} is not in -{SPACE_EXPONENT_MAX} to {SPACE_EXPONENT_MAX}",
                self.exponent
            );
            return wrong("space", problem);
        }
        Ok(())
    }

    /// Returns a length that kernels see in metres of the file, rounded once.
    pub fn file_length(&self, length: f32) -> f32 {
        (f64::from(length) * self.metres()) as f32
    }

    /// Returns where the file has the mean of points that kernels see, of which a share of
    /// `covered` is points and the rest is zeros. Each coordinate is rounded once to 32 bits.
    pub fn file_point(&self, mean: [f32; 3], covered: f32) -> [f32; 3] {
        let covered = f64::from(covered);
        std::array::from_fn(|axis| {
            (f64::from(mean[axis]) * self.metres() + self.origin[axis] * covered) as f32
        })
    }

    /// Returns the length of the space's unit in metres.
    fn metres(&self) -> f64 {
        // 2^-exponent, by the bits of its exponent.
        let bits = (1023 - i64::from(self.exponent.clamp(-1000, 1000))) as u64;
        f64::from_bits(bits << 52)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_and_lengths_go_back_to_the_file() {
        let space = SpaceSpec { origin: [1e7, 0.0, -2e7], exponent: 10 };
        assert_eq!(space.file_length(512.0), 0.5);
        assert_eq!(
            space.file_point([1024.0, 256.0, -2048.0], 1.0),
            [10_000_001.0, 0.25, -20_000_002.0]
        );
        let small = SpaceSpec { origin: [0.0; 3], exponent: -SPACE_EXPONENT_MAX };
        assert_eq!(small.file_length(1.0), 2f32.powi(100));
    }

    #[test]
    fn spaces_without_place_or_size_are_refused() {
        let far = SpaceSpec { origin: [f64::INFINITY, 0.0, 0.0], exponent: 0 };
        assert_eq!(far.check().unwrap_err().field, "space");
        for exponent in [i32::MIN, -101, 101, i32::MAX] {
            assert_eq!(
                SpaceSpec { origin: [0.0; 3], exponent }.check().unwrap_err().field,
                "space"
            );
        }
    }
}
