//! The sRGB transfer curve, from encoded values to linear light and back.

/// Linear value of an sRGB-encoded one in [0, 1] (IEC 61966-2-1); the same bits on every platform.
pub(crate) fn linear_from_srgb(encoded: f64) -> f64 {
    if encoded <= 0.04045 { encoded / 12.92 } else { libm::pow((encoded + 0.055) / 1.055, 2.4) }
}

/// sRGB-encoded value of a linear one in [0, 1] (IEC 61966-2-1).
pub(crate) fn srgb_from_linear(linear: f64) -> f64 {
    if linear <= 0.003_130_8 {
        linear * 12.92
    } else {
        1.055 * libm::pow(linear, 1.0 / 2.4) - 0.055
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_meets_its_known_values() {
        assert_eq!(linear_from_srgb(0.0), 0.0);
        assert_eq!(linear_from_srgb(1.0), 1.0);
        assert!((linear_from_srgb(0.5) - 0.214_041_140_482_232).abs() < 1e-15);
        for value in [0.0, 0.002, 0.01, 0.18, 0.5, 1.0] {
            assert!((linear_from_srgb(srgb_from_linear(value)) - value).abs() < 1e-6);
        }
        assert!((linear_from_srgb(0.04045) - 0.003_130_804_953_560_371).abs() < 1e-15);
    }
}
