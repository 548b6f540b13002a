//! Energy: white surfaces under white light neither darken nor brighten, and simple scenes give the radiance that a formula gives.

mod support;

use std::f64::consts::PI;
use support::*;
use tessera_layout::*;

/// Mean of a sphere seen from outside under a constant white environment.
fn furnace(base: [f32; 3], metallic: f32, roughness: f32) -> f64 {
    let mut builder = Builder::default();
    let white = builder.add_material(material(base, metallic, roughness));
    builder.sphere(48, white);
    builder.constant([1.0; 3]);
    builder.camera = camera_at([0.0, 0.0, 4.0], CameraKind::Orthographic, 0.65);
    let scene = builder.finish();
    let unit = whole(24, 24, 64, 16);
    channel_mean(&means(&scene, &unit), &unit, 0)
}

#[test]
fn a_white_surface_disappears_in_a_white_room() {
    for metallic in [0.0, 0.5, 1.0] {
        for roughness in [0.0, 0.1, 0.3, 0.5, 0.75, 1.0] {
            let seen = furnace([1.0; 3], metallic, roughness);
            println!("{metallic} {roughness} {seen}");
            assert!((0.99..=1.003).contains(&seen), "metallic {metallic} roughness {roughness}: {seen}");
        }
    }
}
