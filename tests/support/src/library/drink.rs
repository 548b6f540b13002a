//! A tumbler of tea with ice: bodies that overlap, as one models them, and which of them a place
//! belongs to.

use super::builder::{Glass, Scene, Shape};
use serde_json::json;

/// Quadrilaterals around the axis.
const SECTORS: u16 = 48;
/// Half of an ice cube's edge, metres.
const ICE: f64 = 0.0125;

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let table = scene.material("table", [0.62, 0.56, 0.48], 0.0, 0.6);
    let mut plane = Shape::default();
    plane.quad(
        [[-2.0, 0.0, -2.0], [2.0, 0.0, -2.0], [2.0, 0.0, 2.0], [-2.0, 0.0, 2.0]],
        [0.0, 1.0, 0.0],
    );
    let plane = scene.mesh(&plane, table);
    scene.node(json!({ "name": "table", "mesh": plane }));
    // The tea reaches into the glass, and the ice out of the tea: where they overlap it is glass,
    // then ice.
    let glass = scene.glass("glass", &Glass { ior: 1.5, attenuation: None, priority: 2 });
    let ice = scene.glass("ice", &Glass { ior: 1.31, attenuation: None, priority: 1 });
    let color = [0.93, 0.42, 0.1];
    let tea =
        scene.glass("tea", &Glass { ior: 1.33, attenuation: Some((color, 0.035)), priority: 0 });
    let tumbler = [
        [0.0, 0.0005],
        [0.034, 0.0005],
        [0.036, 0.0025],
        [0.041, 0.1005],
        [0.0395, 0.102],
        [0.038, 0.1005],
        [0.0335, 0.013],
        [0.0315, 0.0115],
        [0.0, 0.0115],
    ];
    let body = [[0.0, 0.009], [0.0335, 0.009], [0.0382, 0.072], [0.0, 0.072]];
    for (name, profile, material) in [("tumbler", &tumbler[..], glass), ("tea", &body[..], tea)] {
        let mesh = scene.mesh(&Shape::lathe(profile, SECTORS), material);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
    let cube = scene.mesh(&Shape::cube(ICE), ice);
    for (translation, rotation) in [
        ([-0.013, 0.070, 0.010], [0.16, 0.35, 0.10, 0.917]),
        ([0.016, 0.068, 0.004], [-0.22, 0.12, 0.20, 0.947]),
        ([-0.002, 0.064, -0.019], [0.30, -0.20, 0.05, 0.931]),
    ] {
        scene.node(json!({ "name": "ice", "mesh": cube, "translation": translation,
                "rotation": unit(rotation) }));
    }
    for (name, radiance, [x, y, z], half) in [
        ("window", [10.0, 11.0, 12.5], [-0.5, 0.5, -0.35], 0.22),
        ("lamp", [9.0, 7.5, 6.0], [0.55, 0.6, 0.3], 0.12),
    ] {
        let lamp = scene.emitter(name, radiance);
        let mut quad = Shape::default();
        let corner = |dx: f64, dz: f64| [x + half * dx, y, z + half * dz];
        quad.quad(
            [corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)],
            [0.0; 3],
        );
        let mesh = scene.mesh(&quad, lamp);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
    // Looks down by 0.45 radians.
    let (sine, cosine) = (libm::sin(-0.225), libm::cos(-0.225));
    scene.camera("camera", 0.5, [0.0, 0.205, 0.33], [sine, 0.0, 0.0, cosine]);
    scene
}

/// Of length 1, as rotations must be.
fn unit(quaternion: [f64; 4]) -> [f64; 4] {
    let length = quaternion.iter().map(|part| part * part).sum::<f64>().sqrt();
    quaternion.map(|part| part / length)
}
