//! The transfer function of sRGB.

/// The sRGB curve of IEC 61966-2-1, clipped to [0, 1].
pub(super) fn srgb(linear: f64) -> f64 {
    let linear = linear.clamp(0.0, 1.0);
    if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * libm::pow(linear, 1.0 / 2.4) - 0.055
    }
}
