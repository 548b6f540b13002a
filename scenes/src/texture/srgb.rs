//! The sRGB transfer function, as a table of its bytes.

use std::sync::OnceLock;

static LINEAR_FROM_SRGB: OnceLock<[f64; 256]> = OnceLock::new();

/// Returns the linear values of all sRGB bytes (IEC 61966-2-1).
pub(crate) fn linear_from_srgb() -> &'static [f64; 256] {
    LINEAR_FROM_SRGB.get_or_init(|| {
        std::array::from_fn(|byte| {
            let value = byte as f64 / 255.0;
            if value <= 0.04045 { value / 12.92 } else { libm::pow((value + 0.055) / 1.055, 2.4) }
        })
    })
}
