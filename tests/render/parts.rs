//! A film's frames in parts: what stands still, what moves as it is, what changes its shape. No
//! way of dividing them, joining them or making their hierarchies changes a bit.

use crate::render::picture::{checked, file, sums, whole_frame};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::copies::{with_world_trees, without_instances};
use tessera_kernels::host;
use tessera_layout::{Bvh, BvhNode8, CHILD_EMPTY, FlatScene};
use tessera_scenes::bvh::BuilderKind;
use tessera_scenes::{FlattenOptions, LoadOptions, LoadedScene};

/// Cells of the sheet along a side, of two triangles each.
const CELLS: u32 = 9;
/// A time of the film at which the sheet has another shape than at the start.
pub(crate) const LATE_SECS: f64 = 0.4;

/// Loads a film: the library's cube turns on a floor, and a sheet beside it bends. From one
/// triangle on, the floor is a part, and so is the cube.
fn film() -> LoadedScene {
    let text = std::fs::read_to_string(file("scenes/library/spinning-cube.gltf"))
        .expect("a file of the library");
    let mut scene: Value = serde_json::from_str(&text).expect("JSON");
    let folder = tempfile::tempdir().expect("a temporary folder");
    add_sheet(&mut scene, folder.path());
    std::fs::write(folder.path().join("parts.gltf"), scene.to_string())
        .expect("the folder takes files");
    let options = LoadOptions { instanced_from: 1, ..LoadOptions::default() };
    tessera_scenes::load(folder.path(), "parts.gltf", &options).expect("a scene")
}

/// Adds a sheet whose one morph target bends it.
fn add_sheet(scene: &mut Value, folder: &Path) {
    let side = CELLS + 1;
    let at = |index: u32| {
        let step = |number: u32| number as f32 / CELLS as f32;
        let (x, y) = (2.2 * step(index % side) - 1.1, 0.2 + 1.4 * step(index / side));
        [x, y, 0.7 + 0.3 * (2.0 * x).sin() + 0.2 * y * y]
    };
    let bend = |index: u32| {
        let [x, y, _] = at(index);
        [0.1 * y, 0.0, 0.1 * (3.0 * x).sin() - 0.1 * y]
    };
    let floats = |of: &dyn Fn(u32) -> [f32; 3]| -> Vec<u8> {
        (0..side * side).flat_map(of).flat_map(f32::to_le_bytes).collect()
    };
    let arrays = [
        (
            floats(&at),
            json!({ "componentType": 5126, "type": "VEC3", "count": side * side,
            "min": [-9, -9, -9], "max": [9, 9, 9] }),
        ),
        (
            floats(&bend),
            json!({ "componentType": 5126, "type": "VEC3", "count": side * side,
            "min": [-9, -9, -9], "max": [9, 9, 9] }),
        ),
        (
            tessera_support::sheet::grid_corners(CELLS).flat_map(u32::to_le_bytes).collect(),
            json!({ "componentType": 5125, "type": "SCALAR", "count": 6 * CELLS * CELLS }),
        ),
        (
            [0.0f32, 1.0, 0.2, 0.8, 0.0].into_iter().flat_map(f32::to_le_bytes).collect(),
            json!({ "componentType": 5126, "type": "SCALAR", "count": 5 }),
        ),
    ];
    let mut bytes: Vec<u8> = Vec::new();
    let mut add = |list: &str, value: Value| {
        let list = scene[list].as_array_mut().expect("a list");
        list.push(value);
        list.len() - 1
    };
    let buffer = add("buffers", json!({ "uri": "parts.bin", "byteLength": 0 }));
    let accessors = arrays.map(|(array, mut accessor)| {
        let view = json!({ "buffer": buffer, "byteOffset": bytes.len(),
            "byteLength": array.len() });
        accessor["bufferView"] = add("bufferViews", view).into();
        bytes.extend(array);
        add("accessors", accessor)
    });
    let [corners, bent, indices, weights] = accessors;
    let mesh = json!({ "weights": [0], "primitives": [{ "attributes": { "POSITION": corners },
        "indices": indices, "targets": [{ "POSITION": bent }], "material": 0 }] });
    let mesh = add("meshes", mesh);
    let node = add("nodes", json!({ "mesh": mesh }));
    scene["buffers"][buffer]["byteLength"] = bytes.len().into();
    scene["scenes"][0]["nodes"].as_array_mut().expect("nodes").push(node.into());
    let spin = &mut scene["animations"][0];
    let times = spin["samplers"][0]["input"].clone();
    let samplers = spin["samplers"].as_array_mut().expect("samplers");
    samplers.push(json!({ "input": times, "output": weights }));
    let sampler = samplers.len() - 1;
    spin["channels"]
        .as_array_mut()
        .expect("channels")
        .push(json!({ "sampler": sampler, "target": { "node": node, "path": "weights" } }));
    std::fs::write(folder.join("parts.bin"), &bytes).expect("the folder takes files");
}

fn frame(film: &LoadedScene, time_secs: f64, builder: BuilderKind) -> FlatScene {
    let view = FlattenOptions { time_secs, builder, ..FlattenOptions::still(48, 36) };
    film.flatten(&view).expect("a frame")
}

/// Returns the scene with boxes so large that a walk tests every triangle.
fn open(scene: &CheckedScene) -> CheckedScene {
    let open_all = |nodes: &mut Vec<BvhNode8>| {
        for node in nodes {
            for slot in (0..8).filter(|slot| node.child[*slot] != CHILD_EMPTY) {
                for axis in 0..3 {
                    (node.bounds[0][axis][slot], node.bounds[1][axis][slot]) = (-1e30, 1e30);
                }
            }
        }
    };
    let mut open = FlatScene::clone(scene);
    let mut bvh = Bvh::clone(&open.bvh);
    open_all(bvh.nodes.make_mut());
    open.bvh = Arc::new(bvh);
    checked(open)
}

/// A frame at a time of the film, prepared in all ways.
pub(crate) fn ways(time_secs: f64) -> Vec<(String, CheckedScene)> {
    let kind = BuilderKind::SurfaceArea;
    // As a still, and after the first frame of the film, around whose tree the sheet bends.
    let still = frame(&film(), time_secs, kind);
    let film_after = film();
    let first = frame(&film_after, 0.0, kind);
    let refitted = frame(&film_after, time_secs, kind);
    let leaves = |scene: &FlatScene| -> Vec<[u32; 4]> {
        scene.bvh.blocks.iter().map(|block| block.triangle).collect()
    };
    assert_eq!(still.instances.len(), 2, "the floor and the cube are parts");
    assert!(!still.triangles.is_empty(), "the sheet is placed");
    assert_eq!(still.triangles, refitted.triangles);
    assert!(leaves(&first) == leaves(&refitted), "the tree was not refitted");
    assert!(still.bvh.nodes != refitted.bvh.nodes, "the same tree, which shows nothing");
    let still = checked(still);
    // Everything in one part, by the formula of instances.
    let whole = without_instances(&still);
    assert_eq!(whole.shown_triangles(), still.shown_triangles());
    let mut ways = vec![
        ("each part its own".to_owned(), still.clone()),
        ("refitted".to_owned(), checked(refitted)),
        ("copied trees".to_owned(), with_world_trees(still, u64::MAX)),
        ("one part".to_owned(), whole.clone()),
        ("brute force".to_owned(), open(&whole)),
    ];
    for seed in 1..4 {
        let random = checked(frame(&film(), time_secs, BuilderKind::Random(seed)));
        ways.push((format!("any order, seed {seed}"), random));
    }
    ways
}

// promise: P5
#[test]
fn no_way_to_prepare_a_frame_in_parts_changes_a_bit() {
    let unit = whole_frame(48, 36, 8, 5);
    let mut pictures = Vec::new();
    for time in [0.2, LATE_SECS] {
        let ways = ways(time);
        let wanted = sums(host::best_isa(), &ways[0].1, &unit);
        for (name, scene) in &ways {
            for isa in host::available_isas() {
                assert!(sums(isa, scene, &unit) == wanted, "{time} {isa:?}: {name}");
            }
        }
        pictures.push(wanted);
    }
    assert!(pictures[0] != pictures[1], "nothing moves");
}
