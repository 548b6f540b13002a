//! A dark room with four hundred small lamps on its ceiling, in sixteen colours, and point lights
//! between its pillars.

use super::builder::{Scene, Shape};
use serde_json::json;

/// Lamps along each side of the ceiling.
const LAMPS: u32 = 20;
/// Half the room's width and depth, metres.
const HALF: f64 = 5.0;
/// Its height, metres.
const HEIGHT: f64 = 3.0;

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let wall = scene.material("wall", [0.6, 0.58, 0.55], 0.0, 0.8);
    let floor = scene.material("floor", [0.25, 0.22, 0.2], 0.0, 0.25);
    room(&mut scene, wall, floor);
    let mut quad = Shape::default();
    let e = 0.06;
    quad.quad([[-e, 0.0, -e], [e, 0.0, -e], [e, 0.0, e], [-e, 0.0, e]], [0.0, -1.0, 0.0]);
    let mut meshes = Vec::new();
    for hue in 0..16u32 {
        let material = scene.emitter(&format!("lamp {hue}"), color(hue).map(|value| value * 12.0));
        meshes.push(match meshes.first() {
            None => scene.mesh(&quad, material),
            Some(first) => scene.mesh_like(*first, material),
        });
    }
    let place = |number: u32| -HALF + 2.0 * HALF * (f64::from(number) + 0.5) / f64::from(LAMPS);
    for x in 0..LAMPS {
        for z in 0..LAMPS {
            let mesh = meshes[((x * 7 + z * 3) % 16) as usize];
            scene.node(json!({ "mesh": mesh, "translation": [place(x), HEIGHT - 0.02, place(z)] }));
        }
    }
    let pillar = scene.mesh(&Shape::cube(0.25), wall);
    for x in [-3.0, -1.0, 1.0, 3.0] {
        for z in [-3.0, -1.0, 1.0] {
            scene.node(
                json!({ "mesh": pillar, "translation": [x, 0.9, z], "scale": [1.0, 3.6, 1.0] }),
            );
            let hue = ((x + 5.0) * 2.0 + z + 5.0) as u32;
            scene.point_light(color(hue), 0.4, [x + 1.0, 0.3, z + 0.5]);
        }
    }
    let (sine, cosine) = (libm::sin(-0.06), libm::cos(-0.06));
    scene.camera("camera", 0.95, [0.0, 1.8, 4.7], [sine, 0.0, 0.0, cosine]);
    scene
}

fn room(scene: &mut Scene, wall: usize, floor: usize) {
    let (h, t) = (HALF, HEIGHT);
    let inside = [0.0, 0.5 * t, 0.0];
    let mut walls = Shape::default();
    walls.quad([[-h, t, -h], [h, t, -h], [h, t, h], [-h, t, h]], inside);
    walls.quad([[-h, 0.0, -h], [h, 0.0, -h], [h, t, -h], [-h, t, -h]], inside);
    walls.quad([[-h, 0.0, h], [h, 0.0, h], [h, t, h], [-h, t, h]], inside);
    walls.quad([[-h, 0.0, -h], [-h, 0.0, h], [-h, t, h], [-h, t, -h]], inside);
    walls.quad([[h, 0.0, -h], [h, 0.0, h], [h, t, h], [h, t, -h]], inside);
    let mut ground = Shape::default();
    ground.quad([[-h, 0.0, -h], [h, 0.0, -h], [h, 0.0, h], [-h, 0.0, h]], inside);
    for (name, shape, material) in [("walls", walls, wall), ("floor", ground, floor)] {
        let mesh = scene.mesh(&shape, material);
        scene.node(json!({ "name": name, "mesh": mesh }));
    }
}

/// One of sixteen hues, none of them dark.
fn color(hue: u32) -> [f32; 3] {
    let turn = 2.0 * std::f64::consts::PI * f64::from(hue % 16) / 16.0;
    let part = |shift: f64| (0.6 + 0.4 * libm::cos(turn - shift)) as f32;
    let third = 2.0 * std::f64::consts::PI / 3.0;
    [part(0.0), part(third), part(2.0 * third)]
}
