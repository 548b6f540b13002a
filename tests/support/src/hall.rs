//! A film in which much stands still: the library's cube in a hall.

use crate::farm::library;
use crate::sheet::grid_corners;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Cells of the hall's floor along a side, of two triangles each.
pub const HALL_CELLS: u32 = 100;

/// Writes the library's spinning cube on a floor that stands still, and returns the file. The
/// cube's colour changes too. `with_copy`: a small copy of the floor turns with the cube.
///
/// # Panics
/// If the library lacks the cube, or the folder takes no files.
pub fn write_hall(folder: &Path, with_copy: bool) -> PathBuf {
    let cube = library("spinning-cube.gltf");
    let text = std::fs::read_to_string(cube).expect("a file of the library");
    let mut scene: Value = serde_json::from_str(&text).expect("JSON");
    let side = HALL_CELLS + 1;
    let at = |cell: u32| cell as f32 / HALL_CELLS as f32 * 12.0 - 6.0;
    let corners = (0..side * side).flat_map(|index| {
        let (x, z) = (at(index % side), at(index / side));
        [x, 0.05 * (3.0 * x).sin() * (2.0 * z).cos(), z]
    });
    let colors = (0..5).flat_map(|key| [0.2 * key as f32, 0.3, 0.9 - 0.2 * key as f32, 1.0]);
    let mut bytes: Vec<u8> = corners.flat_map(f32::to_le_bytes).collect();
    let indices_at = bytes.len();
    bytes.extend(grid_corners(HALL_CELLS).flat_map(u32::to_le_bytes));
    let colors_at = bytes.len();
    bytes.extend(colors.flat_map(f32::to_le_bytes));
    std::fs::write(folder.join("hall.bin"), &bytes).expect("the folder takes files");
    let mut add = |list: &str, value: Value| {
        let list = scene[list].as_array_mut().expect("a list");
        list.push(value);
        list.len() - 1
    };
    let buffer = add("buffers", json!({ "uri": "hall.bin", "byteLength": bytes.len() }));
    let mut view = |from: usize, to: usize| {
        let view = json!({ "buffer": buffer, "byteOffset": from, "byteLength": to - from });
        add("bufferViews", view)
    };
    let views = [view(0, indices_at), view(indices_at, colors_at), view(colors_at, bytes.len())];
    let corners = json!({ "bufferView": views[0], "componentType": 5126, "type": "VEC3",
        "count": side * side, "min": [-6.0, -0.05, -6.0], "max": [6.0, 0.05, 6.0] });
    let corners = add("accessors", corners);
    let indices = json!({ "bufferView": views[1], "componentType": 5125, "type": "SCALAR",
        "count": 6 * HALL_CELLS * HALL_CELLS });
    let indices = add("accessors", indices);
    let colors =
        json!({ "bufferView": views[2], "componentType": 5126, "type": "VEC4", "count": 5 });
    let colors = add("accessors", colors);
    scene["meshes"][0]["primitives"][0] =
        json!({ "attributes": { "POSITION": corners }, "indices": indices, "material": 0 });
    if with_copy {
        let copy = json!({ "primitives": [scene["meshes"][0]["primitives"][0]] });
        let meshes = scene["meshes"].as_array_mut().expect("meshes");
        meshes.push(copy);
        let mesh = meshes.len() - 1;
        let nodes = scene["nodes"].as_array_mut().expect("nodes");
        let place =
            json!({ "mesh": mesh, "scale": [0.15, 0.15, 0.15], "translation": [0.0, 0.9, 0.0] });
        nodes.push(place);
        let node = nodes.len() - 1;
        nodes[2]["children"] = json!([node]);
    }
    let spin = &mut scene["animations"][0];
    let times = spin["samplers"][0]["input"].clone();
    spin["samplers"]
        .as_array_mut()
        .expect("samplers")
        .push(json!({ "input": times, "output": colors }));
    let pointer = "/materials/1/pbrMetallicRoughness/baseColorFactor";
    spin["channels"].as_array_mut().expect("channels").push(json!({ "sampler": 1, "target": {
        "path": "pointer", "extensions": { "KHR_animation_pointer": { "pointer": pointer } } } }));
    scene["extensionsUsed"].as_array_mut().expect("a list").push("KHR_animation_pointer".into());
    let path = folder.join("hall.gltf");
    std::fs::write(&path, scene.to_string()).expect("the folder takes files");
    path
}
