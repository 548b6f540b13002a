//! A cube that turns once about +Y in two seconds, on a ground, under a lamp.

use super::builder::{Scene, Shape};
use serde_json::json;

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let ground = scene.material("ground", [0.5, 0.5, 0.5], 0.0, 0.9);
    let blue = scene.material("blue", [0.08, 0.2, 0.65], 0.0, 0.4);
    let lamp = scene.emitter("lamp", [14.0, 13.0, 11.0]);
    let mut plane = Shape::default();
    plane.quad(
        [[-6.0, 0.0, -6.0], [6.0, 0.0, -6.0], [6.0, 0.0, 6.0], [-6.0, 0.0, 6.0]],
        [0.0, 1.0, 0.0],
    );
    let mut panel = Shape::default();
    panel.quad([[-1.0, 4.0, 0.0], [1.0, 4.0, 0.0], [1.0, 4.0, 2.0], [-1.0, 4.0, 2.0]], [0.0; 3]);
    for (name, shape, material) in [("ground", plane, ground), ("lamp", panel, lamp)] {
        let mesh = scene.mesh(&shape, material);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
    let mesh = scene.mesh(&Shape::cube(0.5), blue);
    let cube = scene.node(json!({ "name": "cube", "mesh": mesh, "translation": [0.0, 0.8, 0.0] }));
    // Quarter turns, so that each step of the shortest way goes the same way round.
    let rotations: Vec<[f32; 4]> = (0..5)
        .map(|quarter| {
            let half = std::f64::consts::FRAC_PI_4 * f64::from(quarter);
            [0.0, libm::sin(half) as f32, 0.0, libm::cos(half) as f32]
        })
        .collect();
    scene.turn("spin", cube, &[0.0, 0.5, 1.0, 1.5, 2.0], &rotations);
    let (sine, cosine) = (libm::sin(-0.15), libm::cos(-0.15));
    scene.camera("camera", 0.6, [0.0, 2.2, 4.6], [sine, 0.0, 0.0, cosine]);
    scene
}
