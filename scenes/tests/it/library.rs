//! The sample scenes: they are what their generator writes, small, and load without a warning.

use std::path::Path;
use tessera_layout::LightKind;
use tessera_scenes::{FlattenOptions, LoadOptions, load};
use tessera_support::library::scenes;

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("library")
}

#[test]
fn the_library_is_what_its_generator_writes() {
    for (name, scene) in scenes() {
        let committed = std::fs::read_to_string(folder().join(format!("{name}.gltf"))).unwrap();
        assert!(
            committed == scene.into_json(),
            "{name}: run the generator (see scenes/library/README.md)"
        );
        assert!(committed.len() < 300_000, "{name} has {} bytes", committed.len());
        let loaded = load(&folder(), &format!("{name}.gltf"), &LoadOptions::default()).unwrap();
        assert!(loaded.report().warnings.is_empty(), "{name}: {:?}", loaded.report().warnings);
        assert_eq!(loaded.report().cameras.len(), 1, "{name}");
    }
}

#[test]
fn the_cornell_box_has_its_measured_geometry() {
    let scene = load(&folder(), "cornell-box.gltf", &LoadOptions::default()).unwrap();
    let flat = scene.flatten(&FlattenOptions::still(256, 256)).unwrap();
    assert_eq!(flat.triangles.len(), 2 * (5 + 1 + 2 * 5));
    let lamps: Vec<_> =
        flat.lights.iter().filter(|l| l.kind == LightKind::Triangle as u32).collect();
    assert_eq!(lamps.len(), 2);
    let area: f32 = lamps.iter().map(|lamp| lamp.area).sum();
    assert!((area - 0.130 * 0.105).abs() < 1e-6, "{area}");
    let lamp = &flat.triangles[lamps[0].triangle as usize];
    assert_eq!(flat.materials[lamp.material as usize].emission, [17.0, 12.0, 4.0]);
    let corner = flat.triangle_vertices[lamps[0].triangle as usize][0];
    assert_eq!(
        flat.vertices[corner as usize].normal,
        [0.0, -1.0, 0.0],
        "the lamp must shine downwards"
    );
    let camera = &flat.camera;
    assert!((camera.half_height - 12.5 / 35.0).abs() < 1e-6);
    assert_eq!(
        [camera.world_from_camera[2], camera.world_from_camera[10]],
        [0.0, -1.0],
        "it looks along +Z"
    );
}

#[test]
fn four_hundred_panels_and_twelve_points_light_the_room() {
    let scene = load(&folder(), "many-lights.gltf", &LoadOptions::default()).unwrap();
    assert_eq!((scene.report().punctual_lights, scene.report().emissive_triangles), (12, 800));
}

#[test]
fn the_drink_has_its_media_in_priority_order() {
    let scene = load(&folder(), "drink.gltf", &LoadOptions::default()).unwrap();
    let flat = scene.flatten(&FlattenOptions::still(64, 64)).unwrap();
    let media: Vec<(f32, i32)> =
        flat.media[1..].iter().map(|medium| (medium.ior, medium.priority)).collect();
    assert_eq!(media, [(1.5, 2), (1.31, 1), (1.33, 0)]);
}

#[test]
fn the_sunflower_holds_its_pebble_once() {
    let scene = load(&folder(), "sunflower.gltf", &LoadOptions::default()).unwrap();
    assert_eq!((scene.report().instances, scene.report().triangles), (89, 89 * 1024 + 4));
    assert_eq!(scene.flatten(&FlattenOptions::still(64, 64)).unwrap().meshes.triangles.len(), 1024);
}
