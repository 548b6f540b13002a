//! Pebbles along a golden spiral, as a sunflower has its seeds: one mesh in many places.

use super::builder::{Places, Scene, Shape};
use serde_json::json;

/// Pebbles: enough for their mesh to be held once.
const PEBBLES: u32 = 89;
/// Turn from one to the next, radians: a whole one less the golden ratio's share.
const GOLDEN_ANGLE: f64 = 2.399_963_229_728_653;
/// Metres from the middle to the first.
const SPACING: f64 = 0.34;

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let ground = scene.material("ground", [0.42, 0.38, 0.33], 0.0, 0.85);
    let mut plane = Shape::default();
    plane.quad(
        [[-9.0, 0.0, -9.0], [9.0, 0.0, -9.0], [9.0, 0.0, 9.0], [-9.0, 0.0, 9.0]],
        [0.0, 1.0, 0.0],
    );
    let plane = scene.mesh(&plane, ground);
    scene.node(json!({ "name": "ground", "mesh": plane }));
    let clay = scene.material("clay", [0.55, 0.18, 0.09], 0.0, 0.35);
    let pebble = scene.mesh(&Shape::sphere(16), clay);
    scene.places("pebbles", pebble, &places());
    let lamp = scene.emitter("lamp", [14.0, 13.0, 11.5]);
    let mut quad = Shape::default();
    quad.quad([[-3.6, 4.4, -2.0], [-1.6, 4.4, -2.0], [-1.6, 4.4, 0.0], [-3.6, 4.4, 0.0]], [0.0; 3]);
    let quad = scene.mesh(&quad, lamp);
    scene.node(json!({ "name": "lamp", "mesh": quad }));
    // Looks down by 0.9 radians.
    let (sine, cosine) = (libm::sin(-0.45), libm::cos(-0.45));
    scene.camera("camera", 0.7, [0.0, 7.2, 6.2], [sine, 0.0, 0.0, cosine]);
    scene
}

/// Small in the middle, larger outwards, each turned along the spiral and leaning a little.
fn places() -> Places {
    let mut places = Places::default();
    for number in 0..PEBBLES {
        let (k, turn) = (f64::from(number) + 0.5, GOLDEN_ANGLE * f64::from(number));
        let distance = SPACING * k.sqrt();
        let size = 0.09 + 0.014 * k.sqrt();
        let (sine, cosine) = (libm::sin(-0.5 * turn), libm::cos(-0.5 * turn));
        let (lean, upright) = (libm::sin(0.12), libm::cos(0.12));
        let at = [distance * libm::cos(turn), 0.5 * size, distance * libm::sin(turn)];
        places.translations.push(at.map(|c| c as f32));
        // The turn about +Y after the lean about +Z.
        let rotation = [sine * lean, sine * upright, cosine * lean, cosine * upright];
        places.rotations.push(rotation.map(|c| c as f32));
        places.scales.push([1.5 * size, 0.55 * size, size].map(|c| c as f32));
    }
    places
}
