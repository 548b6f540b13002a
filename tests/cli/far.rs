//! Scenes far from the origin and of extreme scale: one picture at every place and size.

use crate::cli::pictures::channels;
use crate::cli::told;
use base64::Engine as _;
use serde_json::{Value, json};
use std::path::Path;

/// Corners of a cube of 2 m, by faces, and those of a floor of 6 m below it, at a height of 0.
fn positions() -> Vec<[f32; 3]> {
    let mut corners = Vec::new();
    for axis in 0..3 {
        for side in [-1.0f32, 1.0] {
            for (u, v) in [(-1.0, -1.0), (side, -side), (1.0, 1.0), (-side, side)] {
                let mut corner = [0.0; 3];
                corner[axis] = side;
                corner[(axis + 1) % 3] = u;
                corner[(axis + 2) % 3] = v;
                corner[1] += 1.0;
                corners.push(corner);
            }
        }
    }
    corners.extend([[-3.0, 0.0, -3.0], [-3.0, 0.0, 3.0], [3.0, 0.0, 3.0], [3.0, 0.0, -3.0]]);
    corners
}

fn bytes_of(positions: &[[f32; 3]]) -> Vec<u8> {
    let quads = positions.len() as u32 / 4;
    let indices = (0..quads).flat_map(|q| [0, 1, 2, 0, 2, 3].map(|corner| 4 * q + corner));
    let positions = positions.iter().flatten().flat_map(|value| value.to_le_bytes());
    positions.chain(indices.flat_map(u32::to_le_bytes)).collect()
}

/// The cube on its floor in the sun, and a camera: all below one node with this translation and
/// scale. `camera`: whether there is a camera. `baked`: added to the vertices.
fn scene(translation: [f64; 3], scale: f64, camera: bool, baked: [f32; 3]) -> Value {
    let mut positions = positions();
    for corner in &mut positions {
        *corner = std::array::from_fn(|axis| corner[axis] + baked[axis]);
    }
    let bytes = bytes_of(&positions);
    let data = base64::engine::general_purpose::STANDARD.encode(&bytes);
    let (count, split) = (positions.len(), positions.len() * 12);
    json!({
        "asset": { "version": "2.0" },
        "scene": 0,
        "scenes": [{ "nodes": [0, 3] }],
        "nodes": [
            { "translation": translation, "scale": [scale, scale, scale], "children": [1, 2] },
            { "mesh": 0 },
            if camera { json!({ "camera": 0, "translation": [0, 2.5, 6],
                "rotation": [-0.130_526_2, 0, 0, 0.991_444_9] }) } else { json!({}) },
            { "rotation": [-0.404_794_9, -0.121_438_5, 0, 0.906_307_8],
                "extensions": { "KHR_lights_punctual": { "light": 0 } } },
        ],
        "cameras": [{ "type": "perspective", "perspective":
            { "yfov": 0.8, "znear": 0.01 * scale } }],
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1 }] }],
        "accessors": [
            { "bufferView": 0, "componentType": 5126, "count": count, "type": "VEC3" },
            { "bufferView": 1, "componentType": 5125, "count": count / 4 * 6, "type": "SCALAR" },
        ],
        "bufferViews": [
            { "buffer": 0, "byteLength": split },
            { "buffer": 0, "byteOffset": split, "byteLength": bytes.len() - split },
        ],
        "buffers": [{ "byteLength": bytes.len(),
            "uri": format!("data:application/octet-stream;base64,{data}") }],
        "extensionsUsed": ["KHR_lights_punctual"],
        "extensions": { "KHR_lights_punctual": { "lights":
            [{ "type": "directional", "intensity": 3 }] } },
    })
}

/// Renders a scene to `a.exr` of the folder. Gives what the command said.
fn render(folder: &Path, scene: &Value, more: &[&str]) -> String {
    std::fs::write(folder.join("scene.gltf"), scene.to_string()).expect("a file");
    let fixed = ["render", "scene.gltf", "--size", "48x36", "--depth", "4", "-o", "a.exr"];
    let samples: &[&str] = if more.contains(&"--spp") { &[] } else { &["--spp", "16"] };
    let (status, out, error) = told(folder, &[&fixed[..], samples, more].concat());
    assert_eq!(status, 0, "{error}");
    out + &error
}

fn picture(folder: &Path) -> Vec<f32> {
    let channels = channels(folder, "a.exr");
    ["R", "G", "B"].iter().flat_map(|name| channels[*name].clone()).collect()
}

/// Share by which the means differ, and the mean difference of values over the mean.
fn apart(one: &[f32], other: &[f32]) -> (f64, f64) {
    let sum = |values: &[f32]| values.iter().map(|value| f64::from(*value)).sum::<f64>();
    let differences: Vec<f32> = one.iter().zip(other).map(|(a, b)| (a - b).abs()).collect();
    ((sum(one) / sum(other) - 1.0).abs(), sum(&differences) / sum(other))
}

const NEAR: [f64; 3] = [0.0; 3];

/// Ten kilometres to the coordinates of a city in EPSG:3857.
const PLACES: [[f64; 3]; 6] = [
    [1e4, 0.0, 2e4],
    [3e4, 0.0, 4.5e4],
    [6e4, 0.0, 9e4],
    [1e5, 0.0, 1.5e5],
    [3e5, 0.0, 4.5e5],
    [1_489_123.37, 123.41, 6_894_012.83],
];

#[test]
fn a_scene_is_one_picture_at_every_place_and_size() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    render(folder, &scene(NEAR, 1.0, true, [0.0; 3]), &[]);
    let near = picture(folder);
    assert!(near.iter().any(|value| *value > 0.3), "something is lit");
    let far = PLACES.iter().map(|place| (*place, 1.0));
    let scales = [1e-6, 1e-5, 1e-4, 1e-3, 1e2, 1e3, 1e4, 1e6, 1e7, 1e8].map(|scale| (NEAR, scale));
    for (place, scale) in far.chain(scales) {
        let said = render(folder, &scene(place, scale, true, [0.0; 3]), &[]);
        let (mean, pixels) = apart(&picture(folder), &near);
        assert!(mean < 0.004 && pixels < 0.005, "{place:?} {scale}: {mean} {pixels}");
        assert!(!said.contains("precision"), "{said}");
    }
}

#[test]
fn a_camera_of_the_command_line_may_be_far_away() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let view = |place: [f64; 3]| {
        let point = |offset: [f64; 3]| {
            let [x, y, z]: [f64; 3] = std::array::from_fn(|axis| place[axis] + offset[axis]);
            format!("{x},{y},{z}")
        };
        let (eye, target) = (point([2.0, 2.5, 6.0]), point([0.0, 1.0, 0.0]));
        let lens = ["--lens-radius", "0.05", "--focus-distance", "6"];
        let view = ["--eye", &eye, "--target", &target];
        render(folder, &scene(place, 1.0, false, [0.0; 3]), &[&view[..], &lens].concat());
        picture(folder)
    };
    let near = view(NEAR);
    for place in PLACES {
        let (mean, pixels) = apart(&view(place), &near);
        assert!(mean < 0.004 && pixels < 0.005, "{place:?}: {mean} {pixels}");
    }
}

#[test]
fn depths_and_positions_are_the_files_own() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let aovs = ["--aov", "depth,position", "--filter", "box", "--spp", "1"];
    render(folder, &scene(NEAR, 1.0, true, [0.0; 3]), &aovs);
    let near = channels(folder, "a.exr");
    for (place, scale) in [(PLACES[3], 1.0), (PLACES[5], 1.0), (NEAR, 1e-6), (NEAR, 1e8)] {
        render(folder, &scene(place, scale, true, [0.0; 3]), &aovs);
        let far = channels(folder, "a.exr");
        for (layer, offset) in
            [("depth.Z", 0.0), ("position.X", place[0]), ("position.Z", place[2])]
        {
            for (far, near) in far[layer].iter().zip(&near[layer]) {
                let is_seen = *near != 0.0;
                let wanted = f64::from(*near) * scale + if is_seen { offset } else { 0.0 };
                let allowed = 1e-4 * scale + 1e-7 * wanted.abs();
                assert!((f64::from(*far) - wanted).abs() <= allowed, "{layer}: {far} {wanted}");
            }
        }
    }
}

#[test]
fn what_a_file_holds_too_coarsely_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let folder = folder.path();
    let told_of = |scene: &Value, text: &str| {
        std::fs::write(folder.join("scene.gltf"), scene.to_string()).expect("a file");
        let (status, out, error) = told(folder, &["inspect", "scene.gltf"]);
        assert_eq!(status, 0, "{error}");
        assert!(out.contains(text), "{out}");
        out
    };
    let baked = scene(NEAR, 1.0, false, [1.5e7, 0.0, 7e6]);
    told_of(&baked, "the vertices of meshes[0]");
    let said = render(folder, &baked, &[]);
    assert!(said.contains("the vertices of meshes[0]"), "{said}");
    let far = scene(PLACES[3], 1.0, true, [0.0; 3]);
    let out = told_of(&far, "rendered    about (100000, 1, 150000) m");
    assert!(out.contains("(99997, 0, 149997) to (100003, 2, 150003) m"), "{out}");
    told_of(&scene(NEAR, 1e-5, true, [0.0; 3]), "rendered    at 2^18 its size");
    let near = scene(NEAR, 1.0, true, [0.0; 3]);
    assert!(!told_of(&near, "bounds").contains("rendered"));
}
