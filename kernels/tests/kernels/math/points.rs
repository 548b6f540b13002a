//! The numbers that samples are made of: nets within a pixel and over squares of pixels, and
//! dimensions that know nothing of each other.

use tessera_kernels::test_hooks::{draw, pixel_key};

/// Fails unless 2^`log2` points are a (0, `log2`, 2)-net: one in every elementary interval of that
/// many equal parts.
fn assert_net(points: &[[u32; 2]], log2: u32, what: &str) {
    assert_eq!(points.len(), 1 << log2);
    for across in 0..=log2 {
        let mut seen = vec![false; 1 << log2];
        for [x, y] in points {
            let column = u64::from(*x) >> (32 - across);
            let row = u64::from(*y) >> (32 - (log2 - across));
            let interval = ((column << (log2 - across)) | row) as usize;
            assert!(
                !std::mem::replace(&mut seen[interval], true),
                "{what}: {across} digits across"
            );
        }
    }
}

#[test]
fn samples_of_a_pixel_are_nets() {
    for key in [0, 1, 0xdead_beef] {
        for dimension in [0, 3, 17] {
            for first in [0u32, 64, 256] {
                let points: Vec<[u32; 2]> =
                    (first..first + 64).map(|index| draw(key, index, dimension)).collect();
                assert_net(&points, 6, &format!("key {key}, dimension {dimension}, from {first}"));
            }
        }
    }
}

/// Points of the samples from `first` on of a square of pixels.
fn square(
    corner: [u32; 2],
    side: u32,
    samples: std::ops::Range<u32>,
    dimension: u32,
) -> Vec<[u32; 2]> {
    let places = (0..side * side).map(|i| [corner[0] + i % side, corner[1] + i / side]);
    let keys: Vec<u32> = places.map(|place| pixel_key(place, 7, 1)).collect();
    keys.iter().flat_map(|key| samples.clone().map(|index| draw(*key, index, dimension))).collect()
}

#[test]
fn samples_of_a_square_of_pixels_are_nets_at_any_count() {
    for side_log2 in 0..=2 {
        for samples_log2 in 0..=8 {
            for (square_x, square_y, dimension) in
                [(0, 0, 0), (5, 2, 3), (1001, 77, 4), (63, 640, 17)]
            {
                let side = 1 << side_log2;
                for first in [0, 1 << samples_log2, 5 << samples_log2] {
                    let samples = first..first + (1 << samples_log2);
                    let points =
                        square([square_x * side, square_y * side], side, samples, dimension);
                    let what = format!(
                        "{side} pixels at {square_x}, {square_y}, dimension {dimension}, from \
                            {first}"
                    );
                    assert_net(&points, samples_log2 + 2 * side_log2, &what);
                }
            }
        }
    }
}

#[test]
fn pixels_around_a_frame_have_their_own_numbers() {
    let places = (-80i32..80).flat_map(|y| (-80i32..80).map(move |x| [x as u32, y as u32]));
    let keys: std::collections::BTreeSet<u32> =
        places.map(|place| pixel_key(place, 7, 1)).collect();
    assert_eq!(keys.len(), 160 * 160);
    let first: Vec<[u32; 2]> = [[-4i32, -8], [-8192, 4], [32_768, -4096]]
        .map(|place| place.map(|coordinate| coordinate as u32))
        .to_vec();
    for corner in first {
        assert_net(&square(corner, 4, 0..16, 3), 8, &format!("{corner:?}"));
    }
}

fn centred(bits: u32) -> f64 {
    f64::from(bits) / 4_294_967_296.0 - 0.5
}

#[test]
fn dimensions_and_keys_are_not_correlated() {
    let pairs = [((16, 0), (16, 1)), ((16, 2), (32, 2)), ((5, 0), (99, 9))];
    for ((key_a, dimension_a), (key_b, dimension_b)) in pairs {
        let count = 4096;
        for axis in 0..2 {
            let sum: f64 = (0..count)
                .map(|index| {
                    centred(draw(key_a, index, dimension_a)[axis])
                        * centred(draw(key_b, index, dimension_b)[axis])
                })
                .sum();
            assert!(
                (sum / f64::from(count) * 12.0).abs() < 0.08,
                "{key_a} {dimension_a} {key_b} {dimension_b}"
            );
        }
    }
}

/// One sample of each pixel of a square: its numbers in two dimensions go together no more, over
/// many squares, than chance has it. They would if a pixel had the same part of the net in every
/// dimension.
#[test]
fn dimensions_of_a_square_are_not_correlated() {
    const SQUARES: u32 = 2000;
    for (first, second) in [(0, 1), (2, 3), (3, 7), (4, 8)] {
        let mut squared = 0.0;
        for at in 0..SQUARES {
            let corner = [at % 50 * 4, at / 50 * 4];
            let (a, b) = (square(corner, 4, 0..1, first), square(corner, 4, 0..1, second));
            let product: f64 = a.iter().zip(&b).map(|(a, b)| centred(a[0]) * centred(b[0])).sum();
            squared += product * product / f64::from(SQUARES);
        }
        // Of sixteen independent products of two numbers, each of variance 1/12.
        let chance = 16.0 / 144.0;
        assert!(
            squared < 2.0 * chance,
            "dimensions {first} and {second}: {squared} where chance has {chance}"
        );
    }
}
