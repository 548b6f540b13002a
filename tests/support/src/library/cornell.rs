//! The Cornell box, from the data that Cornell University's Program of Computer Graphics published
//! with its photograph: corners in millimetres, camera, and measured spectra. The spectra stand
//! here as linear Rec. 709, by the values that the box is usually quoted with.

use super::builder::{Scene, Shape};
use serde_json::json;

/// Reflectance of the white walls and both blocks.
const WHITE: [f32; 3] = [0.725, 0.71, 0.68];
/// Reflectance of the right wall.
const GREEN: [f32; 3] = [0.14, 0.45, 0.091];
/// Reflectance of the left wall.
const RED: [f32; 3] = [0.63, 0.065, 0.05];
/// Radiance of the lamp.
const LAMP: [f32; 3] = [17.0, 12.0, 4.0];
/// The middle of the box: what its walls face.
const INSIDE: [f64; 3] = [278.0, 274.0, 280.0];
/// The lamp hangs this far below the ceiling, which the original pierces there.
const LAMP_DROP: f64 = 0.5;

type Quad = [[f64; 3]; 4];

const FLOOR: Quad = [[552.8, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 559.2], [549.6, 0.0, 559.2]];
const CEILING: Quad =
    [[556.0, 548.8, 0.0], [556.0, 548.8, 559.2], [0.0, 548.8, 559.2], [0.0, 548.8, 0.0]];
const BACK: Quad =
    [[549.6, 0.0, 559.2], [0.0, 0.0, 559.2], [0.0, 548.8, 559.2], [556.0, 548.8, 559.2]];
const RIGHT: Quad = [[0.0, 0.0, 559.2], [0.0, 0.0, 0.0], [0.0, 548.8, 0.0], [0.0, 548.8, 559.2]];
const LEFT: Quad =
    [[552.8, 0.0, 0.0], [549.6, 0.0, 559.2], [556.0, 548.8, 559.2], [556.0, 548.8, 0.0]];
const LIGHT: Quad = [
    [343.0, 548.8 - LAMP_DROP, 227.0],
    [343.0, 548.8 - LAMP_DROP, 332.0],
    [213.0, 548.8 - LAMP_DROP, 332.0],
    [213.0, 548.8 - LAMP_DROP, 227.0],
];
const SHORT_TOP: Quad =
    [[130.0, 165.0, 65.0], [82.0, 165.0, 225.0], [240.0, 165.0, 272.0], [290.0, 165.0, 114.0]];
const TALL_TOP: Quad =
    [[423.0, 330.0, 247.0], [265.0, 330.0, 296.0], [314.0, 330.0, 456.0], [472.0, 330.0, 406.0]];

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let white = scene.material("white", WHITE, 0.0, 1.0);
    let green = scene.material("green", GREEN, 0.0, 1.0);
    let red = scene.material("red", RED, 0.0, 1.0);
    let lamp = scene.emitter("lamp", LAMP);
    for (name, material, quads) in [
        ("room", white, vec![FLOOR, CEILING, BACK]),
        ("right wall", green, vec![RIGHT]),
        ("left wall", red, vec![LEFT]),
        ("lamp", lamp, vec![LIGHT]),
    ] {
        let mut shape = Shape::default();
        quads.into_iter().for_each(|quad| shape.quad(metres(quad), INSIDE.map(metre)));
        let mesh = scene.mesh(&shape, material);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
    for (name, top) in [("short block", SHORT_TOP), ("tall block", TALL_TOP)] {
        let mesh = scene.mesh(&block(top), white);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
    // Focal length 35 mm behind a film of 25 mm; it looks along +Z, so it is turned by half a turn
    // about +Y.
    let vfov = 2.0 * libm::atan(0.5 * 25.0 / 35.0);
    scene.camera("camera", vfov, [278.0, 273.0, -800.0].map(metre), [0.0, 1.0, 0.0, 0.0]);
    scene
}

/// A block that stands on the floor under its top. Its own floor is left out, as in the data.
fn block(top: Quad) -> Shape {
    let mut shape = Shape::default();
    let middle: [f64; 3] =
        std::array::from_fn(|axis| top.iter().map(|corner| corner[axis]).sum::<f64>() / 4.0);
    let outside = |face: &Quad| -> [f64; 3] {
        let center: [f64; 3] =
            std::array::from_fn(|axis| face.iter().map(|c| c[axis]).sum::<f64>() / 4.0);
        let heart = [middle[0], 0.5 * middle[1], middle[2]];
        std::array::from_fn(|axis| 2.0 * center[axis] - heart[axis])
    };
    let mut faces = vec![top];
    for corner in 0..4 {
        let (a, b) = (top[corner], top[(corner + 1) % 4]);
        faces.push([a, b, [b[0], 0.0, b[2]], [a[0], 0.0, a[2]]]);
    }
    for face in faces {
        shape.quad(metres(face), outside(&face).map(metre));
    }
    shape
}

fn metre(millimetres: f64) -> f64 {
    millimetres / 1000.0
}

fn metres(quad: Quad) -> Quad {
    quad.map(|corner| corner.map(metre))
}
