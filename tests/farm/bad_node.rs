//! One node with little room for scenes among others, as real processes: the others do the job, and
//! operators see which node it is and what ends it.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tessera_support::farm::{Farm, library, takes_minutes};

/// Vertices along an edge of a sheet that takes far more than 64 MiB to prepare.
const EDGE: u32 = 600;
const SMALL: [&str; 4] = ["--size", "64x64", "--spp", "1"];

/// Writes a sheet of many triangles.
pub(crate) fn large_scene(folder: &Path) -> PathBuf {
    let mut bytes = Vec::new();
    for row in 0..EDGE {
        for column in 0..EDGE {
            let [x, y] = [column, row].map(|at| at as f32 / EDGE as f32 - 0.5);
            let z = (x * 20.0).sin() * (y * 20.0).cos() * 0.05;
            [x, y, z].into_iter().for_each(|value| bytes.extend(value.to_le_bytes()));
        }
    }
    let indices_at = bytes.len();
    for row in 0..EDGE - 1 {
        for column in 0..EDGE - 1 {
            let corner = row * EDGE + column;
            let square = [0, 1, EDGE, 1, EDGE + 1, EDGE].map(|step| corner + step);
            square.into_iter().for_each(|index| bytes.extend(index.to_le_bytes()));
        }
    }
    let (length, indices) = (bytes.len(), (bytes.len() - indices_at) / 4);
    let scene: Value = json!({
        "asset": { "version": "2.0" }, "scene": 0, "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0 }],
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1 }] }],
        "buffers": [{ "uri": "sheet.bin", "byteLength": length }],
        "bufferViews": [
            { "buffer": 0, "byteOffset": 0, "byteLength": indices_at },
            { "buffer": 0, "byteOffset": indices_at, "byteLength": length - indices_at }
        ],
        "accessors": [
            { "bufferView": 0, "componentType": 5126, "count": EDGE * EDGE, "type": "VEC3",
                "min": [-0.5, -0.5, -0.05], "max": [0.5, 0.5, 0.05] },
            { "bufferView": 1, "componentType": 5125, "count": indices, "type": "SCALAR" }
        ]
    });
    let path = folder.join("sheet.gltf");
    std::fs::write(folder.join("sheet.bin"), bytes).expect("its buffer");
    std::fs::write(&path, scene.to_string()).expect("the scene");
    path
}

/// A node whose importer may take so much memory.
fn add(farm: &mut Farm, name: &str, memory_mib: &str) {
    let limits = vec![("TESSERA_SCENE_MEMORY".into(), memory_mib.into())];
    farm.add_node_with(name, &["--device", "cpu", "--threads", "1"], limits);
}

/// What operators see of a node.
fn row(farm: &Farm, name: &str) -> Value {
    let rows: Value = serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
    let mut rows = rows.as_array().expect("a list").iter();
    rows.find(|row| row["name"] == name).expect("it has joined").clone()
}

fn detail(farm: &Farm, job: &str) -> Value {
    serde_json::from_str(&farm.text(&["job", job, "--json"])).expect("JSON")
}

fn note(farm: &Farm, name: &str) -> String {
    row(farm, name)["note"].as_str().expect("a text").to_owned()
}

// promise: P4, P8
#[test]
fn a_node_with_little_scene_memory_ends_nobodys_job() {
    let mut farm = Farm::start(0, 1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = large_scene(folder.path());
    ["4096", "4096", "64"].iter().zip(0..).for_each(|(memory, index)| {
        add(&mut farm, &format!("node-{index}"), memory);
    });
    let job = farm.submit(&scene, &[&SMALL[..], &["--frames", "1-24"]].concat());
    farm.wait_for("the small node to be named", |farm| {
        let note = note(farm, "node-2");
        note.contains("scene memory") && note.contains("start it with a greater --scene-memory")
    });
    assert_eq!(farm.hashes(&job).len(), 24, "{}", farm.logs());
    let detail = detail(&farm, &job);
    let failures = detail["failures"].as_array().expect("a list");
    assert!(!failures.is_empty(), "{detail}");
    for failure in failures {
        assert_eq!(failure["node"], "node-2", "{failure}");
        let reason = failure["reason"].as_str().expect("a text");
        assert!(reason.starts_with("node's limit: scene memory: "), "{reason}");
    }
    assert_eq!(row(&farm, "node-2")["units_committed"], 0);
    assert_eq!(row(&farm, "node-2")["state"], "ready");
    // It does what it has room for.
    let small = farm.submit(&library("cornell-box.gltf"), &SMALL);
    assert_eq!(farm.hashes(&small).len(), 1);
}

// promise: P4
#[test]
fn a_scene_too_large_for_every_node_waits_for_a_larger_one() {
    if !takes_minutes("a scene too large for every node") {
        return;
    }
    let mut farm = Farm::start(0, 1);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = large_scene(folder.path());
    add(&mut farm, "node-0", "64");
    let impatient = farm.submit(&scene, &[&SMALL[..], &["--give-up", "1s"]].concat());
    farm.wait_for("it to be given up", |farm| {
        detail(farm, &impatient)["summary"]["state"] == "failed"
    });
    let said = detail(&farm, &impatient)["summary"]["note"].as_str().expect("a text").to_owned();
    assert!(
        said.starts_with("given up after 1 s") && said.contains("raise --scene-memory"),
        "{said}"
    );
    let job = farm.submit(&scene, &SMALL);
    farm.wait_for("it to wait", |farm| detail(farm, &job)["summary"]["waits"] == "limits");
    let waits = farm.text(&["jobs"]);
    assert!(waits.contains("no node has the memory, time or disk for it"), "{waits}");
    add(&mut farm, "node-1", "4096");
    assert_eq!(farm.hashes(&job).len(), 1, "{}", farm.logs());
}
