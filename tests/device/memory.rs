//! What `inspect` says that a scene will take is what a device takes for it.

use crate::device::bench::{Bench, frame, submit, unit};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_node::device::PreparedFrame;
use tessera_scenes::{FlattenOptions, LoadOptions};
use tessera_support::farm::{shared_scenes, takes_minutes};

/// What a lane may take beside the scene when it is first used.
const BESIDE_BYTES: u64 = 64 << 10;

/// The library's scenes, and the shared ones where they are found; of those two whose meshes are
/// held once.
fn scenes() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let shared = shared_scenes().unwrap_or_default();
    // An empty path is no folder: there are no shared scenes.
    let files = |folder: PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut scenes: Vec<PathBuf> = files(root.join("scenes/library"))
        .chain(files(shared.clone()))
        .map(|entry| entry.path())
        .chain(
            ["instances_ext.glb", "instances_nodes.glb"]
                .map(|name| shared.join("generated").join(name)),
        )
        .filter(|path| path.is_file())
        .filter(|path| path.extension().is_some_and(|kind| kind == "glb" || kind == "gltf"))
        .collect();
    scenes.sort();
    scenes
}

/// What `inspect` says: bytes on a processor, and on a GPU.
fn inspected(scene: &Path) -> [u64; 2] {
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .args(["inspect", "--json"])
        .arg(scene)
        .output()
        .expect("the program starts");
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    ["processor_bytes", "gpu_bytes"].map(|name| report["memory"][name].as_u64().expect("a number"))
}

#[test]
fn memory_by_inspect_is_within_a_tenth_of_what_devices_use() {
    if !takes_minutes("memory by inspect") {
        return;
    }
    let scenes = scenes();
    assert!(!scenes.is_empty());
    for (path, id) in scenes.iter().zip(2..) {
        let (folder, name) = (path.parent().expect("a folder"), path.file_name().expect("a name"));
        let name = name.to_str().expect("text");
        let loaded = tessera_scenes::load(folder, name, &LoadOptions::default()).expect("a scene");
        let flat = loaded.flatten(&FlattenOptions::still(64, 64)).expect("a frame");
        let held = flat.bytes();
        let checked = CheckedScene::new(Arc::new(flat)).expect("a right scene");
        let bench = Bench::with(|_| {});
        let opened = bench.open();
        submit(&*opened.devices[0], &frame(), unit(0)).end().expect("a unit");
        let before = bench.rack.counts(0).used_bytes;
        let prepared = Arc::new(PreparedFrame::new(checked, id));
        submit(&*opened.devices[0], &prepared, unit(0)).end().expect("a unit");
        let used = bench.rack.counts(0).used_bytes - before;
        let [processor, gpu] = inspected(path);
        assert_eq!(processor, held, "{name}");
        assert!(
            gpu.abs_diff(used) <= gpu / 10 + BESIDE_BYTES,
            "{name}: {gpu} bytes were said, and {used} are used"
        );
    }
}
