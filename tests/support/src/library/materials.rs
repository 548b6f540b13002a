//! A row of plastic spheres before a row of metal ones, rougher from left to right, under two
//! lamps.

use super::builder::{Scene, Shape};
use serde_json::json;

/// Spheres in a row: roughness 0 to 1 in equal steps.
const SPHERES: u32 = 7;
/// Metres between two spheres' centres.
const SPACING: f64 = 1.1;
/// Measured reflectance of copper at normal incidence, linear Rec. 709 (rounded).
const COPPER: [f32; 3] = [0.955, 0.638, 0.538];

pub(crate) fn scene() -> Scene {
    let mut scene = Scene::default();
    let ground = scene.material("ground", [0.35, 0.35, 0.35], 0.0, 0.9);
    let mut plane = Shape::default();
    plane.quad(
        [[-12.0, 0.0, -12.0], [12.0, 0.0, -12.0], [12.0, 0.0, 12.0], [-12.0, 0.0, 12.0]],
        [0.0, 1.0, 0.0],
    );
    let plane = scene.mesh(&plane, ground);
    scene.node(json!({ "name": "ground", "mesh": plane }));
    let mut sphere = None;
    for (row, (name, color, metallic)) in
        [("plastic", [0.1, 0.25, 0.6], 0.0), ("copper", COPPER, 1.0)].into_iter().enumerate()
    {
        for number in 0..SPHERES {
            let roughness = number as f32 / (SPHERES - 1) as f32;
            let material =
                scene.material(&format!("{name} {roughness:.2}"), color, metallic, roughness);
            let mesh = match sphere {
                None => scene.mesh(&Shape::sphere(32), material),
                Some(first) => scene.mesh_like(first, material),
            };
            sphere.get_or_insert(mesh);
            let x = SPACING * (f64::from(number) - 0.5 * f64::from(SPHERES - 1));
            let z = -1.3 * row as f64;
            scene.node(
                json!({ "mesh": mesh, "translation": [x, 0.5, z], "scale": [0.5, 0.5, 0.5] }),
            );
        }
    }
    for (x, radiance) in [(-3.0, [9.0, 8.2, 7.0]), (3.0, [5.0, 6.0, 7.5])] {
        let lamp = scene.emitter("lamp", radiance);
        let mut quad = Shape::default();
        let corner = |dx: f64, dz: f64| [x + dx, 4.0, 1.5 + dz];
        quad.quad(
            [corner(-1.0, -1.0), corner(1.0, -1.0), corner(1.0, 1.0), corner(-1.0, 1.0)],
            [0.0; 3],
        );
        let mesh = scene.mesh(&quad, lamp);
        scene.node(json!({ "name": "lamp", "mesh": mesh }));
    }
    // Looks down by a quarter of a radian.
    let (sine, cosine) = (libm::sin(-0.125), libm::cos(-0.125));
    scene.camera("camera", 0.55, [0.0, 2.6, 8.6], [sine, 0.0, 0.0, cosine]);
    scene
}
