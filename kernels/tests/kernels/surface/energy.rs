//! Energy: white surfaces under white light neither darken nor brighten, and every scattering of
//! the depth counts once.

use tessera_layout::*;
use tessera_support::builder::*;

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
            // 0.0025 is noise and the albedo table's interpolation.
            assert!(
                (0.99..=1.0025).contains(&seen),
                "metallic {metallic} roughness {roughness}: {seen}"
            );
        }
    }
}

#[test]
fn a_coloured_surface_gives_back_less() {
    let red = furnace([0.9, 0.1, 0.1], 1.0, 0.8);
    assert!((0.7..0.9).contains(&red), "{red}");
    assert!(furnace([0.0; 3], 0.0, 0.5) < 0.12);
}

/// Inside a closed sphere that emits 1 and reflects everything, every edge of the path adds 1.
#[test]
fn a_path_has_one_edge_more_than_its_depth() {
    for depth in [0, 1, 2, 5] {
        let mut builder = Builder::default();
        let mut wall = material([1.0; 3], 0.0, 1.0);
        (wall.emission, wall.flags) = ([1.0; 3], material_flags::DOUBLE_SIDED);
        let wall = builder.add_material(wall);
        builder.sphere(12, wall);
        for id in 0..builder.triangles.len() as u32 {
            builder.emit(id, 1.0);
        }
        builder.camera = camera_at([0.0; 3], CameraKind::Perspective, 0.5);
        let scene = builder.finish();
        let unit = whole(8, 8, 256, depth);
        let seen = channel_mean(&means(&scene, &unit), &unit, 1);
        let want = f64::from(depth + 1);
        assert!((seen / want - 1.0).abs() < 0.015, "depth {depth}: {seen}");
    }
}
