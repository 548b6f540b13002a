//! The colour spaces of FLIP and its distance between two colours. Works on single colours.

/// Linear Rec. 709 to XYZ for a white of D65.
const XYZ_FROM_RGB: [[f32; 3]; 3] = [
    [0.412_390_8, 0.357_584_34, 0.180_480_8],
    [0.212_639, 0.715_168_7, 0.072_192_32],
    [0.019_330_82, 0.119_194_78, 0.950_532_15],
];
/// The inverse.
const RGB_FROM_XYZ: [[f32; 3]; 3] = [
    [3.240_97, -1.537_383_2, -0.498_610_77],
    [-0.969_243_65, 1.875_967_5, 0.041_555_06],
    [0.055_630_08, -0.203_976_96, 1.056_971_5],
];
/// XYZ of white: the sums of the rows above.
const WHITE: [f32; 3] = [0.950_455_9, 1.0, 1.089_057_8];

/// Exponent of colour distances, `q_c` of the paper.
const DISTANCE_EXPONENT: f32 = 0.7;
/// Share of the largest distance, `p_c`, that is spread over the share `p_t` of the result.
const DISTANCE_KNEE: f32 = 0.4;
const RESULT_KNEE: f32 = 0.95;

fn transform(matrix: &[[f32; 3]; 3], v: [f32; 3]) -> [f32; 3] {
    matrix.map(|row| row[0] * v[0] + row[1] * v[1] + row[2] * v[2])
}

/// Returns whether no component is infinite or NaN.
pub(super) fn is_finite(color: &[f32; 3]) -> bool {
    color.iter().all(|value| value.is_finite())
}

/// Luminance of a linear colour.
pub(super) fn luminance(rgb: [f32; 3]) -> f32 {
    transform(&XYZ_FROM_RGB, rgb)[1]
}

/// Opponent colours YCxCz, linear in light, in which the eye's sharpness is a filter of each
/// component.
pub(super) fn opponent(rgb: [f32; 3]) -> [f32; 3] {
    let xyz = transform(&XYZ_FROM_RGB, rgb);
    let [x, y, z] = [xyz[0] / WHITE[0], xyz[1] / WHITE[1], xyz[2] / WHITE[2]];
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// Y of YCxCz in [0, 1]: 0 is black, 1 is white.
pub(super) fn achromatic(y: f32) -> f32 {
    (y + 16.0) / 116.0
}

/// The linear colour of an opponent one, cut to [0, 1].
fn rgb_from_opponent(color: [f32; 3]) -> [f32; 3] {
    let y = achromatic(color[0]);
    let xyz = [WHITE[0] * (y + color[1] / 500.0), WHITE[1] * y, WHITE[2] * (y - color[2] / 200.0)];
    transform(&RGB_FROM_XYZ, xyz).map(|value| value.clamp(0.0, 1.0))
}

/// CIELAB of a linear colour in [0, 1], its chroma scaled by lightness after Hunt: dark colours
/// look less colourful.
fn hunt_lab(rgb: [f32; 3]) -> [f32; 3] {
    const DELTA: f32 = 6.0 / 29.0;
    let root = |t: f32| {
        if t > DELTA * DELTA * DELTA { t.cbrt() } else { t / (3.0 * DELTA * DELTA) + 4.0 / 29.0 }
    };
    let xyz = transform(&XYZ_FROM_RGB, rgb);
    let [x, y, z] = [root(xyz[0] / WHITE[0]), root(xyz[1] / WHITE[1]), root(xyz[2] / WHITE[2])];
    let lightness = 116.0 * y - 16.0;
    [lightness, 5.0 * lightness * (x - y), 2.0 * lightness * (y - z)]
}

/// HyAB: city-block between lightnesses, Euclidean between chromas.
fn hyab(a: [f32; 3], b: [f32; 3]) -> f32 {
    (a[0] - b[0]).abs() + ((a[1] - b[1]).powi(2) + (a[2] - b[2]).powi(2)).sqrt()
}

/// Distances between filtered opponent colours, in [0, 1].
pub(super) struct ColorDistance {
    largest: f32,
}

impl ColorDistance {
    /// The largest distance is that between green and blue.
    pub(super) fn new() -> Self {
        let (green, blue) = (hunt_lab([0.0, 1.0, 0.0]), hunt_lab([0.0, 0.0, 1.0]));
        Self { largest: hyab(green, blue).powf(DISTANCE_EXPONENT) }
    }

    /// How different two colours look side by side.
    pub(super) fn between(&self, a: [f32; 3], b: [f32; 3]) -> f32 {
        let lab = |color| hunt_lab(rgb_from_opponent(color));
        let distance = hyab(lab(a), lab(b)).powf(DISTANCE_EXPONENT);
        // Most distances are small, so they get most of the range.
        let knee = DISTANCE_KNEE * self.largest;
        if distance < knee {
            return RESULT_KNEE * distance / knee;
        }
        RESULT_KNEE + (1.0 - RESULT_KNEE) * (distance - knee) / (self.largest - knee)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opponent_colours_go_both_ways() {
        for color in [[0.0; 3], [1.0; 3], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.2, 0.5, 0.9]] {
            let back = rgb_from_opponent(opponent(color));
            assert!(
                color.iter().zip(back).all(|(a, b)| (a - b).abs() < 1e-5),
                "{color:?} became {back:?}"
            );
        }
        assert!((achromatic(opponent([1.0; 3])[0]) - 1.0).abs() < 1e-6);
        assert!((luminance([1.0; 3]) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn color_distance_is_0_to_itself_and_1_green_to_blue() {
        let distance = ColorDistance::new();
        let (green, blue) = (opponent([0.0, 1.0, 0.0]), opponent([0.0, 0.0, 1.0]));
        assert!((distance.between(green, blue) - 1.0).abs() < 1e-4);
        assert_eq!(distance.between(green, green), 0.0);
        // White and black: 100 in lightness.
        let white_black = distance.between(opponent([1.0; 3]), opponent([0.0; 3]));
        assert!(white_black > 0.9 && white_black < 1.0, "{white_black}");
    }
}
