//! FLIP against figures of the authors' own program, for a pair of small pictures that both make in
//! the same way.

use super::*;

/// What a 48 × 32 pair made of ramps, a checkerboard, noise and a dark rectangle gives, from
/// flip-evaluator 1.7.
const LDR_MEAN: f64 = 0.175_263_8;
const HDR_MEAN: f64 = 0.220_171_9;
/// Exposures of the pair's reference times 8.
const HDR_EXPOSURES: (f64, f64, u32) = (-1.849_955, -0.900_474, 2);

/// A number in [0, 1] for every index, computed only from integers.
fn noise(index: u64) -> f64 {
    let mut x = (index * 2_654_435_761 + 40_503) & 0xffff_ffff;
    x ^= x >> 15;
    x = (x * 2_246_822_519) & 0xffff_ffff;
    x ^= x >> 13;
    ((x >> 8) & 0xffff) as f64 / 65_535.0
}

/// The picture and its reference, every value multiplied.
fn pair(width: u32, height: u32, scale: f64, encoding: Encoding) -> [Picture; 2] {
    let (mut pixels, mut reference) = (Vec::new(), Vec::new());
    for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
        let checker = f64::from((x / 8 + y / 8) % 2) * 0.75 + 0.125;
        let color =
            [f64::from(x) / f64::from(width - 1), f64::from(y) / f64::from(height - 1), checker];
        let dark = (height / 4..height / 2).contains(&y) && (width / 4..width / 2).contains(&x);
        let index = 3 * u64::from(y * width + x);
        let noisy: [f64; 3] = std::array::from_fn(|i| {
            let value = color[i] + (noise(index + i as u64) - 0.5) * 0.25;
            (if dark { 0.5 * value } else { value }).clamp(0.0, 1.0)
        });
        pixels.push(noisy.map(|value| (value * scale) as f32));
        reference.push(color.map(|value| (value * scale) as f32));
    }
    [pixels, reference].map(|pixels| Picture { width, height, pixels, alpha: None, encoding })
}

#[test]
fn displayed_pictures_get_the_authors_figure() {
    let [picture, reference] = pair(48, 32, 1.0, Encoding::Display);
    let found = flip(&picture, &reference, PIXELS_PER_DEGREE).unwrap();
    assert!((found.mean - LDR_MEAN).abs() < 1e-4, "{found:?}");
    assert_eq!(found.exposures, None);
}

#[test]
fn scene_linear_pictures_get_the_authors_figure_at_any_scale() {
    for scale in [1.0, 8.0, 100.0] {
        let [picture, reference] = pair(48, 32, scale, Encoding::Scene);
        let found = flip(&picture, &reference, PIXELS_PER_DEGREE).unwrap();
        assert!((found.mean - HDR_MEAN).abs() < 1e-4, "{found:?}");
        let exposures = found.exposures.unwrap();
        if scale == 8.0 {
            assert!((exposures.start - HDR_EXPOSURES.0).abs() < 1e-3, "{exposures:?}");
            assert!((exposures.stop - HDR_EXPOSURES.1).abs() < 1e-3, "{exposures:?}");
            assert_eq!(exposures.count, HDR_EXPOSURES.2);
        }
    }
}

#[test]
fn strips_leave_no_seam() {
    let [picture, reference] = pair(20, 150, 1.0, Encoding::Display);
    let pair = Pair {
        pixels: [&picture.pixels, &reference.pixels],
        width: 20,
        height: 150,
        filters: Filters::new(PIXELS_PER_DEGREE),
        distance: ColorDistance::new(),
    };
    let whole = pair.strip_errors(0..150, &[Show::Clipped]);
    let parts =
        [0..64, 64..128, 128..150].map(|rows| pair.strip_errors(rows, &[Show::Clipped])).concat();
    assert_eq!(whole, parts);
}

#[test]
fn identical_and_black_pictures_do_not_differ() {
    let [picture, _] = pair(16, 16, 3.0, Encoding::Scene);
    assert_eq!(flip(&picture, &picture, PIXELS_PER_DEGREE).unwrap().mean, 0.0);
    let black = Picture { pixels: vec![[0.0; 3]; 256], ..picture.clone() };
    assert_eq!(flip(&black, &black, PIXELS_PER_DEGREE).unwrap().mean, 0.0);
    let mean = flip(&picture, &black, PIXELS_PER_DEGREE).unwrap().mean;
    assert!(mean > 0.5 && mean <= 1.0, "{mean}");
    let one = Picture { width: 1, height: 1, pixels: vec![[1.0; 3]], ..picture };
    assert_eq!(flip(&one, &one, PIXELS_PER_DEGREE).unwrap().mean, 0.0);
}

#[test]
fn a_nan_pixel_counts_as_the_largest_difference() {
    let [mut picture, reference] = pair(16, 16, 1.0, Encoding::Scene);
    picture.pixels.clone_from(&reference.pixels);
    picture.pixels[5] = [f32::NAN; 3];
    let found = flip(&picture, &reference, PIXELS_PER_DEGREE).unwrap();
    assert!(found.max == 1.0 && found.mean.is_finite() && found.mean >= 1.0 / 256.0);
    assert_eq!(flip(&picture, &picture, PIXELS_PER_DEGREE).unwrap().mean, 0.0);
}
