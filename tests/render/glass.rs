//! Windows: rooms and floors behind thin glass are lit, at few samples and without fireflies.

use crate::render::picture::{checked, file, flatten, pixels, sums, whole_frame};
use tessera_kernels::host;
use tessera_scenes::FlattenOptions;

/// Brightness of every pixel, row by row, of a square picture.
fn brightness(scene: &str, edge: u32, samples: u32) -> Vec<f64> {
    let flat =
        flatten(&file("tests/render/scenes").join(scene), None, &FlattenOptions::still(edge, edge));
    let sums = sums(host::best_isa(), &checked(flat), &whole_frame(edge, edge, samples, 8));
    let pixels = pixels(&sums, samples);
    pixels
        .iter()
        .map(|color| color.iter().map(|value| f64::from(*value)).sum::<f64>() / 3.0)
        .collect()
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}

/// What a pane of clear glass lets through, straight on.
const PANE: f64 = 0.96;

#[test]
fn a_room_behind_a_window_is_lit_by_the_sun() {
    let open = brightness("room-open.gltf", 96, 256);
    let pane = brightness("room-pane.gltf", 96, 256);
    let ratio = median(&pane) / median(&open) / PANE;
    assert!((0.95..1.05).contains(&ratio), "{ratio} of the open room's light");
    let mean = pane.iter().sum::<f64>() / pane.len() as f64;
    let largest = pane.iter().copied().fold(0.0, f64::max);
    assert!(largest < 20.0 * mean, "the brightest pixel has {largest}, the mean is {mean}");
}

#[test]
fn a_floor_behind_a_pane_has_the_sun_that_it_lets_through() {
    // The floor's left half lies in the pane's shadow: 0.8 in the open, and what the pane leaves.
    let seen = brightness("pane-in-the-sun.gltf", 64, 256);
    for row in seen.chunks_exact(64) {
        let behind = median(&row[..24]);
        assert!((0.95..1.05).contains(&(behind / (0.8 * PANE))), "{behind}");
    }
}
