//! Small glTF files made in code: one triangle, and whatever a test changes about it.

use base64::Engine as _;
use serde_json::{Value, json};
use std::path::Path;
use tessera_layout::FlatScene;
use tessera_scenes::{FlattenOptions, LoadOptions, LoadedScene, SceneError, load};

/// A file with one triangle in the XY plane, facing +Z, whose JSON a test can change.
pub(crate) fn triangle() -> Value {
    let positions: [[f32; 3]; 3] = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]];
    let bytes: Vec<u8> = positions.iter().flatten().flat_map(|value| value.to_le_bytes()).collect();
    json!({
        "asset": { "version": "2.0" },
        "scene": 0,
        "scenes": [{ "nodes": [0] }],
        "nodes": [{ "name": "only", "mesh": 0 }],
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 } }] }],
        "accessors": [{ "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3" }],
        "bufferViews": [{ "buffer": 0, "byteLength": bytes.len() }],
        "buffers": [buffer(&bytes)],
    })
}

/// A buffer that embeds these bytes.
pub(crate) fn buffer(bytes: &[u8]) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({ "byteLength": bytes.len(),
        "uri": format!("data:application/octet-stream;base64,{data}") })
}

/// Adds an accessor over its own buffer of floats; gives its index.
pub(crate) fn add_floats(file: &mut Value, kind: &str, width: usize, values: &[f32]) -> usize {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    add_accessor(file, kind, 5126, values.len() / width, &bytes)
}

/// Likewise of any component type.
pub(crate) fn add_accessor(
    file: &mut Value,
    kind: &str,
    component: u32,
    count: usize,
    bytes: &[u8],
) -> usize {
    let buffers = file["buffers"].as_array_mut().unwrap();
    buffers.push(buffer(bytes));
    let number = buffers.len() - 1;
    let views = file["bufferViews"].as_array_mut().unwrap();
    views.push(json!({ "buffer": number, "byteLength": bytes.len() }));
    let view = views.len() - 1;
    let accessors = file["accessors"].as_array_mut().unwrap();
    accessors.push(
        json!({ "bufferView": view, "componentType": component, "count": count, "type": kind }),
    );
    accessors.len() - 1
}

/// Loads a file given as JSON, with meshes held once from so many triangles of copies on, and what
/// stands still in a film from a quarter of them.
pub(crate) fn loaded_from(file: &Value, instanced_from: u64) -> LoadedScene {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    load_in(folder.path(), &LoadOptions { instanced_from, ..LoadOptions::default() }).unwrap()
}

/// Loads a file given as JSON.
pub(crate) fn load_json(file: &Value) -> Result<LoadedScene, SceneError> {
    load_bytes(file.to_string().as_bytes())
}

/// Loads a file given as bytes.
pub(crate) fn load_bytes(bytes: &[u8]) -> Result<LoadedScene, SceneError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), bytes).unwrap();
    load_in(folder.path(), &LoadOptions::default())
}

/// Loads `scene.gltf` of a folder.
pub(crate) fn load_in(folder: &Path, options: &LoadOptions) -> Result<LoadedScene, SceneError> {
    load(folder, "scene.gltf", options)
}

/// The frame at a time in seconds.
pub(crate) fn at(scene: &LoadedScene, time_secs: f64) -> FlatScene {
    scene.flatten(&FlattenOptions { time_secs, ..FlattenOptions::still(64, 64) }).unwrap()
}

/// The error of a file that must not load, as a person would read it.
#[track_caller]
pub(crate) fn refusal(file: &Value) -> String {
    match load_json(file) {
        Ok(_) => panic!("must be refused: {file}"),
        Err(error) => error.to_string(),
    }
}
