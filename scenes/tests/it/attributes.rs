//! Attributes beyond the usual ones: colours of instances, morphed colours and UVs, further UV
//! sets.

use crate::support::{add_accessor, add_floats, at, load_in, load_json, refusal, triangle};
use serde_json::{Value, json};
use tessera_layout::FlatScene;
use tessera_scenes::{LoadOptions, LoadedScene};

const WHITE: [f32; 4] = [1.0; 4];
const RED: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
const GREEN: [f32; 4] = [0.0, 1.0, 0.0, 1.0];

/// Colours of the vertices in the world, one of each triangle.
fn colors(flat: &FlatScene) -> Vec<[f32; 4]> {
    flat.triangle_vertices.iter().map(|corners| flat.vertices[corners[0] as usize].color).collect()
}

/// The triangle in as many places as there are colours.
fn colored(colors: &[f32], kind: &str, width: usize) -> Value {
    let mut file = triangle();
    let count = colors.len() / width;
    let offsets: Vec<f32> = (0..count).flat_map(|place| [2.0 * place as f32, 0.0, 0.0]).collect();
    let offsets = add_floats(&mut file, "VEC3", 3, &offsets);
    let colors = add_floats(&mut file, kind, width, colors);
    file["extensionsUsed"] = json!(["EXT_mesh_gpu_instancing"]);
    file["nodes"][0]["extensions"] = json!({ "EXT_mesh_gpu_instancing":
        { "attributes": { "TRANSLATION": offsets, "_COLOR_0": colors } } });
    file
}

fn held_from(file: &Value, instanced_from: u64) -> LoadedScene {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    load_in(folder.path(), &LoadOptions { instanced_from, ..LoadOptions::default() }).unwrap()
}

#[test]
fn instances_have_their_colors() {
    let file = colored(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], "VEC3", 3);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [RED, GREEN]);
    let mut file = colored(&[1.0, 0.5, 1.0, 0.25], "VEC4", 4);
    let own = add_floats(&mut file, "VEC4", 4, &[0.5, 0.5, 0.25, 0.5].repeat(3));
    file["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"] = json!(own);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [[0.5, 0.25, 0.25, 0.125]]);
    let mut file = colored(&[0.0; 6], "VEC3", 3);
    let bytes = [255, 0, 0, 255, 0, 255, 0, 255];
    let packed = add_accessor(&mut file, "VEC4", 5121, 2, &bytes);
    file["accessors"][packed]["normalized"] = json!(true);
    file["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"]["_COLOR_0"] =
        json!(packed);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [RED, GREEN]);
}

#[test]
fn a_mesh_is_held_once_for_each_color() {
    let file = colored(&[RED, GREEN, RED, GREEN, WHITE].concat(), "VEC4", 4);
    let flat = at(&held_from(&file, 1), 0.0);
    // White is shown once, so that it is no instance.
    assert_eq!(
        (flat.instances.len(), flat.triangles.len(), flat.meshes.triangles.len()),
        (4, 1, 2)
    );
    assert_eq!(colors(&flat), [WHITE]);
    let shown = flat.instances.iter().map(|instance| {
        let corners = flat.meshes.triangle_vertices[instance.first_triangle as usize];
        flat.meshes.vertices[corners[0] as usize].color
    });
    assert_eq!(shown.collect::<Vec<_>>(), [RED, GREEN, RED, GREEN]);
    assert_eq!(at(&held_from(&file, 2), 0.0).instances.len(), 0);
}

#[test]
fn colors_of_instances_are_as_many_as_their_places() {
    let mut file = colored(&[1.0; 6], "VEC3", 3);
    let few = add_floats(&mut file, "VEC3", 3, &[1.0; 3]);
    file["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"]["_COLOR_0"] =
        json!(few);
    assert!(refusal(&file).contains("EXT_mesh_gpu_instancing.attributes._COLOR_0"));
}
