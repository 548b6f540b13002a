//! Panes: what thin smooth glass lets through, by shadow rays and by paths alike, whatever the
//! lights are and however many panes stand in the way.

use tessera_kernels::host::best_isa;
use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::panes::{Lamps, add_lamps, pane, square};

/// Mean colour of a floor that is seen from right above, below a dome of panes of some colours that
/// shuts out all lamps.
fn floor_below(panes: &[[f32; 3]], roughness: f32, lamps: Lamps, depth: u32) -> [f64; 3] {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.7, 0.6, 0.5], 0.0, 1.0));
    let first = builder.triangles.len();
    square(&mut builder, 0.0, floor);
    builder.shrink(first, 0.05, [0.0; 3]);
    for (index, color) in panes.iter().enumerate() {
        let glass = pane(&mut builder, *color, roughness, false);
        let first = builder.triangles.len();
        builder.sphere(16, glass);
        builder.shrink(first, 1.5 + 0.25 * index as f32, [0.0; 3]);
    }
    add_lamps(&mut builder, lamps);
    builder.camera = camera_at([0.0, 0.0, 1.0], CameraKind::Orthographic, 0.1);
    let unit = whole(8, 8, 512, depth);
    let means = means(&builder.finish(), &unit);
    [0, 1, 2].map(|channel| channel_mean(&means, &unit, channel))
}

#[test]
fn two_panes_dim_every_kind_of_light_by_their_colours() {
    let colors = [[0.9, 0.5, 0.8], [0.6, 0.8, 0.25]];
    for lamps in [Lamps::Environment, Lamps::Area, Lamps::Point, Lamps::All] {
        for depth in [1, 2, 6] {
            let open = floor_below(&[], 0.0, lamps, depth);
            let seen = floor_below(&colors, 0.0, lamps, depth);
            for channel in 0..3 {
                let want =
                    open[channel] * f64::from(colors[0][channel]) * f64::from(colors[1][channel]);
                assert!(
                    (seen[channel] / want - 1.0).abs() < 0.01,
                    "depth {depth}, channel {channel}: {} instead of {want}",
                    seen[channel]
                );
            }
        }
    }
}

/// The picture of a floor in the sun, below squares of glass.
fn sunny_floor(panes: [[f32; 3]; 3]) -> Vec<i64> {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([0.7, 0.6, 0.5], 0.0, 1.0));
    square(&mut builder, 0.0, floor);
    for (index, color) in panes.into_iter().enumerate() {
        let glass = pane(&mut builder, color, 0.05, false);
        square(&mut builder, 2.0 + index as f32, glass);
    }
    let mut sun = light(LightKind::Directional, [3.0; 3]);
    sun.direction = [0.0, 0.0, -1.0];
    builder.lights.push((sun, 1.0));
    builder.camera = camera_at([0.0, 0.0, 1.0], CameraKind::Orthographic, 0.4);
    sums(best_isa(), &builder.finish(), &whole(8, 8, 16, 1)).0
}

#[test]
fn the_order_of_panes_changes_no_bit_of_a_shadow() {
    let [first, second, third] = [[0.9, 0.5, 0.8], [0.6, 0.8, 0.25], [0.3, 0.7, 0.99]];
    let seen = sunny_floor([first, second, third]);
    assert_eq!(seen, sunny_floor([third, first, second]));
    assert_eq!(seen, sunny_floor([second, first, third]));
    assert!(seen.iter().all(|sum| *sum > 0));
}

#[test]
fn rougher_glass_lets_no_shadow_ray_through() {
    assert_eq!(floor_below(&[[1.0; 3]], 0.11, Lamps::Point, 1), [0.0; 3]);
    assert!(floor_below(&[[1.0; 3]], 0.1, Lamps::Point, 1)[0] > 0.1);
}

/// A white floor in a white world, below domes of clear glass: with or without the sky, and a lamp
/// that covers a part of it.
fn furnace(domes: &[f32], sky: bool, lamp: bool) -> f64 {
    let mut builder = Builder::default();
    let floor = builder.add_material(material([1.0; 3], 0.0, 1.0));
    let first = builder.triangles.len();
    square(&mut builder, 0.0, floor);
    builder.shrink(first, 0.05, [0.0; 3]);
    let glass = pane(&mut builder, [1.0; 3], 0.0, true);
    for radius in domes {
        let first = builder.triangles.len();
        builder.sphere(24, glass);
        builder.shrink(first, *radius, [0.0; 3]);
    }
    if lamp {
        let mut glowing = material([0.0; 3], 0.0, 1.0);
        glowing.emission = [1.0; 3];
        let glowing = builder.add_material(glowing);
        let corners = [[-2.0, 2.0, 3.0], [2.0, 2.0, 3.0], [2.0, -2.0, 3.0], [-2.0, -2.0, 3.0]];
        let first = builder.quad(corners, glowing);
        builder.emit(first, 1.0);
        builder.emit(first + 1, 1.0);
    }
    if sky {
        builder.constant([1.0; 3]);
    }
    builder.camera = camera_at([0.0, 0.0, 1.0], CameraKind::Orthographic, 0.1);
    let unit = whole(8, 8, 1024, 64);
    channel_mean(&means(&builder.finish(), &unit), &unit, 0)
}

#[test]
fn two_domes_of_clear_glass_take_nothing_away() {
    // What a dome throws back at the floor comes through another time: all is as in the open.
    for (sky, lamp) in [(true, false), (false, true), (true, true)] {
        let (open, seen) = (furnace(&[], sky, lamp), furnace(&[1.5, 2.0], sky, lamp));
        assert!((seen / open - 1.0).abs() < 0.003, "sky {sky}, lamp {lamp}: {seen}, not {open}");
    }
    assert!((furnace(&[1.5, 2.0], true, false) - 1.0).abs() < 0.006);
}

#[test]
fn a_path_sees_what_shines_behind_panes_without_scattering() {
    let mut builder = Builder::default();
    let mut sign = material([0.5; 3], 0.0, 1.0);
    sign.flags |= material_flags::UNLIT;
    let sign = builder.add_material(sign);
    square(&mut builder, 0.0, sign);
    for z in [1.0, 2.0, 3.0] {
        let glass = pane(&mut builder, [0.5, 0.8, 1.0], 0.0, false);
        square(&mut builder, z, glass);
    }
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.1);
    let scene = builder.finish();
    for depth in [0, 1, 4] {
        let unit = whole(4, 4, 64, depth);
        let means = means(&scene, &unit);
        for (channel, color) in [0.5f64, 0.8, 1.0].into_iter().enumerate() {
            let (seen, want) = (channel_mean(&means, &unit, channel), 0.5 * color.powi(3));
            assert!((seen - want).abs() < 1e-4, "depth {depth}: {seen} instead of {want}");
        }
    }
}

#[test]
fn a_stack_of_many_panes_ends() {
    let mut builder = Builder::default();
    let glass = pane(&mut builder, [1.0; 3], 0.0, true);
    for at in 0..60 {
        square(&mut builder, -0.1 * at as f32, glass);
    }
    builder.constant([1.0; 3]);
    let unit = whole(4, 4, 16, 2);
    let (_, counts) = sums(best_isa(), &builder.finish(), &unit);
    assert!(counts.closest <= 16 * 16 * u64::from(2 + PASSES_MAX + 1), "{counts:?}");
    assert_eq!(counts.non_finite, 0);
}
