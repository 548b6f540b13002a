//! From linear light to display values: exposure, tone map and sRGB curve. Everything is in f64
//! with the `libm` crate, so that every machine writes the same bytes.

use tessera_protocol::job::{RenderSpec, ToneMapSpec};

/// Exposure and tone map of display formats.
#[derive(Clone, Copy, Debug)]
pub(super) struct Display {
    gain: f64,
    tone_map: ToneMapSpec,
}

impl Display {
    pub(super) fn new(spec: &RenderSpec) -> Self {
        Self { gain: libm::exp2(f64::from(spec.exposure)), tone_map: spec.tone_map }
    }

    /// Returns a display that leaves values in [0, 1] as they are.
    pub(super) fn plain() -> Self {
        Self { gain: 1.0, tone_map: ToneMapSpec::Standard }
    }

    /// Converts a linear Rec. 709 colour to sRGB values in [0, 1].
    pub(super) fn encode(&self, color: [f32; 3]) -> [f64; 3] {
        let exposed = color.map(|v| f64::from(v) * self.gain);
        let mapped = match self.tone_map {
            ToneMapSpec::Standard => exposed,
            ToneMapSpec::PbrNeutral => pbr_neutral(exposed),
            ToneMapSpec::Agx => agx(exposed),
        };
        mapped.map(srgb)
    }
}

/// The sRGB curve of IEC 61966-2-1, clipped to [0, 1].
fn srgb(linear: f64) -> f64 {
    let linear = linear.clamp(0.0, 1.0);
    if linear <= 0.003_130_8 {
        12.92 * linear
    } else {
        1.055 * libm::pow(linear, 1.0 / 2.4) - 0.055
    }
}

/// Khronos PBR Neutral (2024). It takes the reflection of a dielectric off and keeps colours below
/// 0.8 otherwise. It compresses brighter colours and reduces their saturation.
fn pbr_neutral(color: [f64; 3]) -> [f64; 3] {
    const F90: f64 = 0.04;
    const START: f64 = 0.8 - F90;
    const DESATURATION: f64 = 0.15;
    let darkest = color[0].min(color[1]).min(color[2]);
    let offset = if darkest < 2.0 * F90 { darkest - darkest * darkest / (4.0 * F90) } else { F90 };
    let color = color.map(|v| v - offset);
    let peak = color[0].max(color[1]).max(color[2]);
    if peak < START {
        return color;
    }
    let room = 1.0 - START;
    let compressed = 1.0 - room * room / (peak + room - START);
    let white = 1.0 - 1.0 / (DESATURATION * (peak - compressed) + 1.0);
    color.map(|v| v * compressed / peak * (1.0 - white) + compressed * white)
}

/// AgX (T. Sobotka) with the polynomial that B. Wrensch fitted to its base curve. The steps are: to
/// a narrower gamut, 16.5 stops of log2, the curve, and back. The curve is for a display of gamma
/// 2.2, so the result is made linear again.
fn agx(color: [f64; 3]) -> [f64; 3] {
    const INSET: [[f64; 3]; 3] = [
        [0.842_479_062_253_094, 0.078_433_599_999_999_2, 0.079_223_745_147_764_3],
        [0.042_328_242_261_012_3, 0.878_468_636_469_772, 0.079_166_127_460_543_4],
        [0.042_375_654_905_705_1, 0.078_433_6, 0.879_142_973_793_104],
    ];
    const OUTSET: [[f64; 3]; 3] = [
        [1.196_879_005_120_17, -0.098_020_881_140_136_8, -0.099_029_744_079_720_5],
        [-0.052_896_851_757_456_2, 1.151_903_129_904_17, -0.098_961_176_844_843_3],
        [-0.052_971_635_514_443_8, -0.098_043_450_117_124_1, 1.151_073_672_641_16],
    ];
    const STOPS_MIN: f64 = -12.473_93;
    const STOPS_MAX: f64 = 4.026_069;
    let curved = multiply(&INSET, color).map(|v| {
        let stops = libm::log2(v.max(1e-10)).clamp(STOPS_MIN, STOPS_MAX);
        agx_curve((stops - STOPS_MIN) / (STOPS_MAX - STOPS_MIN))
    });
    multiply(&OUTSET, curved).map(|v| libm::pow(v.clamp(0.0, 1.0), 2.2))
}

fn agx_curve(x: f64) -> f64 {
    const FROM_HIGHEST: [f64; 7] = [15.5, -40.14, 31.96, -6.868, 0.4298, 0.1191, -0.002_32];
    FROM_HIGHEST.into_iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

fn multiply(matrix: &[[f64; 3]; 3], v: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn display(tone_map: ToneMapSpec, gain: f64) -> Display {
        Display { gain, tone_map }
    }

    fn close(a: f64, b: f64, tolerance: f64) {
        assert!((a - b).abs() <= tolerance, "{a} is not {b}");
    }

    #[test]
    fn the_srgb_curve_meets_its_known_values() {
        // Mid grey, the point where the two pieces meet, and both ends.
        close(srgb(0.214_041_14) * 255.0, 127.5, 0.01);
        close(srgb(0.003_130_8), 0.040_449_936, 1e-9);
        close(srgb(0.003_130_800_1), 0.040_449_936, 1e-6);
        assert_eq!((srgb(-1.0), srgb(0.0)), (0.0, 0.0));
        close(srgb(1.0), 1.0, 1e-12);
        close(srgb(7.0), 1.0, 1e-12);
    }

    #[test]
    fn exposure_is_in_stops() {
        let brighter = display(ToneMapSpec::Standard, libm::exp2(1.0)).encode([0.25, 0.1, 0.05]);
        let doubled = display(ToneMapSpec::Standard, 1.0).encode([0.5, 0.2, 0.1]);
        assert_eq!(brighter, doubled);
    }

    #[test]
    fn pbr_neutral_keeps_colours_below_its_start() {
        // A base colour with a dielectric's reflection on it becomes the base colour.
        let mapped = pbr_neutral([0.5 + 0.04, 0.3 + 0.04, 0.1 + 0.04]);
        for (mapped, base) in mapped.into_iter().zip([0.5, 0.3, 0.1]) {
            close(mapped, base, 1e-12);
        }
        // Both pieces meet where compression begins, and the brightest values stay below 1.
        let at = |peak: f64| pbr_neutral([peak, 0.2, 0.1])[0];
        close(at(0.8 - 1e-9), at(0.8 + 1e-9), 1e-6);
        let bright = pbr_neutral([1e6, 10.0, 1.0]);
        assert!(bright.iter().all(|v| (0.9..=1.0).contains(v)), "{bright:?}");
    }

    #[test]
    fn agx_is_monotonic_and_ends_at_black_and_white() {
        let grey = |v: f64| agx([v; 3])[1];
        let mut last = grey(0.0);
        assert!(last < 1e-4, "{last}");
        for step in 0..200 {
            let next = grey(libm::exp2(-12.0 + f64::from(step) * 0.08));
            assert!(next >= last - 1e-4, "step {step}");
            last = next;
        }
        close(grey(1e4), 1.0, 0.02);
        // Middle grey stays in the middle: 0.18 is shown at about one half.
        close(srgb(grey(0.18)), 0.5, 0.01);
        // A neutral colour stays neutral.
        let [r, g, b] = agx([0.4; 3]);
        close(r, g, 1e-3);
        close(g, b, 1e-3);
    }
}
