//! Broken and hostile files: an error that names the place, never a panic, never long.

use crate::support::{add_accessor, add_floats, load_bytes, refusal, triangle};
use serde_json::json;
use std::path::Path;
use std::time::{Duration, Instant};

#[test]
fn oversized_accessors_are_refused_before_allocation() {
    let mut file = triangle();
    file["accessors"][0]["count"] = json!(u64::MAX);
    assert!(
        refusal(&file).contains("attributes.POSITION")
            && refusal(&file).contains("beyond the limit")
    );
    file["accessors"][0]["count"] = json!(100_000_000);
    assert!(refusal(&file).contains("accessors[0]: 100000000 elements"));
    file["accessors"][0]["count"] = json!(4);
    assert!(refusal(&file).contains("beyond bufferViews[0]"));
    let mut file = triangle();
    file["bufferViews"][0]["byteOffset"] = json!(u64::MAX);
    assert!(refusal(&file).contains("bufferViews[0]"));
    let mut file = triangle();
    file["bufferViews"][0]["byteStride"] = json!(4);
    assert!(refusal(&file).contains("byteStride"));
    let mut file = triangle();
    file["buffers"][0]["byteLength"] = json!(1u64 << 60);
    assert!(refusal(&file).contains("buffers[0]"));
}

#[test]
fn accessors_without_bytes_are_bounded() {
    let mut file = triangle();
    file["accessors"][0] = json!({ "componentType": 5126, "count": 1 << 23, "type": "VEC3" });
    assert!(refusal(&file).contains("accessors[0].count"));
}

#[test]
fn invalid_numbers_are_refused_with_their_element() {
    let mut file = triangle();
    let accessor =
        add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 1.0, f32::NAN, 0.0, 0.0, 1.0, 0.0]);
    file["meshes"][0]["primitives"][0]["attributes"]["POSITION"] = json!(accessor);
    assert!(refusal(&file).contains("accessors[1]: element 1 holds NaN"), "{}", refusal(&file));
}

#[test]
fn invalid_indices_are_refused_with_their_place() {
    for (pointer, place) in [
        (
            "/meshes/0/primitives/0/attributes/POSITION",
            "meshes[0].primitives[0].attributes.POSITION",
        ),
        ("/accessors/0/bufferView", "accessors[0].bufferView"),
        ("/bufferViews/0/buffer", "bufferViews[0].buffer"),
        ("/nodes/0/mesh", "nodes[0].mesh"),
        ("/scenes/0/nodes/0", "scenes[0].nodes[0]"),
        ("/scene", "scene"),
    ] {
        let mut file = triangle();
        *file.pointer_mut(pointer).unwrap() = json!(99);
        let error = refusal(&file);
        assert!(error.contains(place) && error.contains("99"), "{error}");
    }
}

#[test]
fn cycles_and_second_parents_are_refused_with_their_node() {
    let mut file = triangle();
    file["nodes"] =
        json!([{ "mesh": 0 }, { "name": "a", "children": [2] }, { "name": "b", "children": [1] }]);
    assert!(refusal(&file).contains("its own ancestor"));
    file["nodes"] = json!([{ "children": [0] }]);
    assert!(refusal(&file).contains("nodes[0]"));
    file["nodes"] = json!([{ "children": [2] }, { "children": [2] }, { "name": "shared" }]);
    assert!(refusal(&file).contains("shared"));
}

#[test]
fn uris_that_leave_the_folder_are_refused() {
    for uri in ["../x.bin", "/etc/passwd", "http://example.org/x.bin", "a/%2e%2e/%2e%2e/x"] {
        let mut file = triangle();
        file["buffers"][0]["uri"] = json!(uri);
        let error = refusal(&file);
        assert!(error.contains("buffers[0].uri") && error.contains(uri), "{error}");
    }
}

#[test]
fn files_that_are_not_scenes_are_refused() {
    let message = |bytes: &[u8]| load_bytes(bytes).unwrap_err().to_string();
    assert!(message(b"\x89PNG\r\n").contains("not a glTF 2.0 file"));
    assert!(message(b"").contains("not a glTF 2.0 file"));
    assert!(message(b"glTF\x02\0\0\0").contains("cut short"));
    assert!(message(b"glTF\x02\0\0\0\xff\0\0\0").contains("255 bytes"));
    assert!(message(b"{ \"asset\": ").contains("JSON"));
    assert!(message(br#"{"asset":{"version":"1.0"}}"#).contains("glTF 1.0"));
    assert!(message(br#"{"asset":{"version":"2.0"}}"#).contains("no scene"));
}

/// A deterministic stream of numbers (xorshift).
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// Loads damaged bytes; only the outcome of a panic or of endless work can fail.
fn must_end(bytes: &[u8], what: &str) {
    let start = Instant::now();
    let outcome = load_bytes(bytes);
    if let Ok(scene) = outcome {
        drop(scene.flatten(&tessera_scenes::FlattenOptions::still(8, 8)));
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{what} took {:?}", start.elapsed());
}

#[test]
fn damaged_files_give_a_scene_or_an_error() {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("library");
    let mut files = vec![library.join("cornell-box.gltf"), library.join("spinning-cube.gltf")];
    match crate::fixtures::shared() {
        None => {
            crate::fixtures::skipped("damaged shared scenes (no shared/scenes beside the checkout)")
        }
        Some(shared) => {
            for name in [
                "BoxAnimated.glb",
                "SimpleInstancing.glb",
                "AnimatedMorphCube.glb",
                "InterpolationTest.glb",
            ] {
                files.push(shared.join(name));
            }
            files.push(shared.join("generated/punctual_lights.glb"));
            files.push(shared.join("compressed/BoxTextured-meshopt.glb"));
            files.push(shared.join("gltf/SimpleSparseAccessor/SimpleSparseAccessor.gltf"));
        }
    }
    let mut state = 0x5eed_5eed_5eed_5eed;
    for file in files {
        let good = std::fs::read(&file).unwrap();
        for cut in 0..24 {
            let length = good.len() * cut / 24;
            must_end(&good[..length], &format!("{} cut to {length}", file.display()));
        }
        for round in 0..120 {
            let mut bad = good.clone();
            for _ in 0..1 + round % 8 {
                // Most of a .glb is numbers; half of all damage goes to its JSON.
                let reach = if round % 2 == 0 { bad.len() } else { bad.len().min(4096) };
                let at = next(&mut state) as usize % reach;
                bad[at] = if round % 3 == 0 {
                    b'0' + (next(&mut state) % 10) as u8
                } else {
                    next(&mut state) as u8
                };
            }
            must_end(&bad, &format!("{} round {round}", file.display()));
        }
    }
}

/// What each kind of file that draws nothing, or something else, is refused with.
#[test]
fn files_that_would_draw_something_else_are_refused() {
    let mut file = triangle();
    file["meshes"][0]["primitives"] = json!([]);
    assert!(refusal(&file).contains("meshes[0].primitives: is empty"));

    let mut file = triangle();
    file["animations"] = json!([{ "channels": [], "samplers": [] }]);
    assert!(refusal(&file).contains("animations[0].channels: is empty"));

    let mut file = triangle();
    let keys = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    file["animations"] = json!([{ "samplers": [{ "input": keys, "output": keys }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "weights" } }] }]);
    let error = refusal(&file);
    assert!(
        error.contains("animations[0].channels[0]: moves morph weights of nodes[0]"),
        "{error}"
    );

    for (name, extent) in
        [("min", json!([0.0, 0.0])), ("max", json!([1.0, 1.0, 0.0, 0.0])), ("max", json!(1.0))]
    {
        let mut file = triangle();
        file["accessors"][0][name] = extent;
        let error = refusal(&file);
        assert!(error.contains(&format!("accessors[0].{name}: has")), "{error}");
        file["accessors"][0][name] = json!([0.0, 0.0, 0.0]);
        load_bytes(file.to_string().as_bytes()).unwrap();
    }
}

#[test]
fn corners_that_are_no_whole_triangles_are_refused() {
    let of = |mode: u32, count: usize, indices: Option<&[u8]>| {
        let mut file = triangle();
        let places: Vec<f32> = (0..3 * count).map(|number| (number * number) as f32).collect();
        let positions = add_floats(&mut file, "VEC3", 3, &places);
        let primitive = &mut file["meshes"][0]["primitives"][0];
        *primitive = json!({ "attributes": { "POSITION": positions }, "mode": mode });
        if let Some(indices) = indices {
            let accessor = add_accessor(&mut file, "SCALAR", 5121, indices.len(), indices);
            file["meshes"][0]["primitives"][0]["indices"] = json!(accessor);
        }
        file
    };
    for (mode, count) in [(4, 4), (4, 5), (5, 2), (6, 1)] {
        let error = refusal(&of(mode, count, None));
        let wanted = format!("attributes.POSITION: {count} corners are not whole triangles");
        assert!(error.contains(&wanted), "{error}");
        let error = refusal(&of(mode, 3, Some(&[0, 1, 2, 0, 1][..count])));
        let wanted = format!("primitives[0].indices: {count} corners are not whole triangles");
        assert!(error.contains(&wanted), "{error}");
    }
    for (mode, count) in [(4, 6), (5, 3), (5, 4), (6, 5), (0, 1), (1, 2)] {
        load_bytes(of(mode, count, None).to_string().as_bytes()).unwrap();
    }
}

#[test]
fn the_restart_value_of_an_index_type_is_refused() {
    let of = |component: u32, vertices: usize, last: &[u8]| {
        let mut file = triangle();
        let positions = add_floats(&mut file, "VEC3", 3, &vec![0.5; 3 * vertices]);
        let width = last.len();
        let bytes = [&vec![0; 2 * width], last].concat();
        let indices = add_accessor(&mut file, "SCALAR", component, 3, &bytes);
        file["meshes"][0]["primitives"][0] =
            json!({ "attributes": { "POSITION": positions }, "indices": indices });
        file
    };
    for (file, value) in [(of(5121, 256, &[255]), 255), (of(5123, 65_536, &[255; 2]), 65_535)] {
        let error = refusal(&file);
        let wanted = format!("primitives[0].indices: entry 2 is {value}, which cannot name");
        assert!(error.contains(&wanted), "{error}");
    }
    assert!(refusal(&of(5125, 3, &[255; 4])).contains("entry 2 names vertex 4294967295"));
    load_bytes(of(5123, 256, &[255, 0]).to_string().as_bytes()).unwrap();
}

#[test]
fn a_joint_beyond_its_skin_is_refused_with_its_place() {
    let of = |joints: [u8; 4], weights: [f32; 4]| {
        let mut file = triangle();
        let joints = add_accessor(&mut file, "VEC4", 5121, 3, &joints.repeat(3));
        let weights = add_floats(&mut file, "VEC4", 4, &weights.repeat(3));
        let attributes = &mut file["meshes"][0]["primitives"][0]["attributes"];
        (attributes["JOINTS_0"], attributes["WEIGHTS_0"]) = (json!(joints), json!(weights));
        file["skins"] = json!([{ "joints": [1, 2] }]);
        file["nodes"] = json!([{ "mesh": 0, "skin": 0 }, {}, {}]);
        file["scenes"][0]["nodes"] = json!([0, 1, 2]);
        file
    };
    let error = refusal(&of([0, 2, 0, 0], [0.5, 0.5, 0.0, 0.0]));
    let wanted = "meshes[0].primitives[0].attributes.JOINTS_0: names joint 2, but skins[0] has 2";
    assert!(error.contains(wanted), "{error}");
    // A joint that a vertex does not follow can be any.
    load_bytes(of([0, 1, 200, 0], [0.5, 0.5, 0.0, 0.0]).to_string().as_bytes()).unwrap();
}
