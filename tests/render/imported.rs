//! Frames that an importer's process made: their bytes are those of a frame made here, and frames
//! of a film share what does not change.

use crate::render::picture::file;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::SceneImage;
use tessera_layout::FlatScene;
use tessera_node::Sandbox;
use tessera_node::import::{ImportLimits, ImportedScene, Importer};
use tessera_scenes::{FlattenOptions, LoadOptions};

/// Starts an importer as a node does, with all of its confinement.
fn imported(scene: &Path, limits: ImportLimits) -> ImportedScene {
    let program = PathBuf::from(env!("CARGO_BIN_EXE_tessera"));
    let (folder, name) = (scene.parent().expect("a folder"), scene.file_name().expect("a name"));
    Importer::new(program, limits, Some(1), Sandbox::On)
        .load(folder, name.to_str().expect("text"), &LoadOptions::default())
        .expect("a scene")
}

fn at(time_secs: f64) -> FlattenOptions {
    FlattenOptions { time_secs, ..FlattenOptions::still(64, 48) }
}

/// The bytes of everything that a device is given of a scene.
fn bytes(scene: &FlatScene) -> Vec<u8> {
    let checked = CheckedScene::new(Arc::new(scene.clone())).expect("a scene of ours");
    let image = SceneImage::of(&checked);
    image.parts().flat_map(|part| part.bytes.to_vec()).collect()
}

#[test]
fn frames_of_an_importer_have_the_bytes_of_ones_made_here() {
    for name in ["cornell-box", "spinning-cube", "drink", "many-lights", "material-row"] {
        let path = file(&format!("scenes/library/{name}.gltf"));
        let (folder, main) = (path.parent().expect("a folder"), format!("{name}.gltf"));
        let here = tessera_scenes::load(folder, &main, &LoadOptions::default()).expect("a scene");
        let there = imported(&path, ImportLimits::default());
        for time in [0.0, 0.5, 0.25] {
            let (here, there) = (here.flatten(&at(time)), there.flatten(&at(time)));
            let (here, there) = (here.expect("a frame"), there.expect("a frame"));
            assert!(bytes(&here) == bytes(&there), "{name} at {time} s");
            assert_eq!(here.camera, there.camera);
        }
    }
}

#[test]
fn frames_of_an_importer_share_what_does_not_change() {
    let still = imported(&file("scenes/library/drink.gltf"), ImportLimits::default());
    let (first, second) = (still.flatten(&at(0.0)), still.flatten(&at(1.0)));
    let (first, second) = (first.expect("a frame"), second.expect("a frame"));
    assert!(first.triangles.ptr_eq(&second.triangles) && Arc::ptr_eq(&first.bvh, &second.bvh));
    assert!(first.materials.ptr_eq(&second.materials) && first.texels.ptr_eq(&second.texels));
    // A third frame comes after the first is gone, with what was kept of it.
    drop(first);
    let third = still.flatten(&at(2.0)).expect("a frame");
    assert!(third.triangles.ptr_eq(&second.triangles));
    let moving = imported(&file("scenes/library/spinning-cube.gltf"), ImportLimits::default());
    let (first, second) = (moving.flatten(&at(0.0)), moving.flatten(&at(0.5)));
    let (first, second) = (first.expect("a frame"), second.expect("a frame"));
    assert!(!Arc::ptr_eq(&first.bvh, &second.bvh));
    assert!(first.materials.ptr_eq(&second.materials));
}

#[test]
fn arrays_that_frames_have_are_not_in_an_importer_too() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let sheet = folder.path().join("sheet.gltf");
    tessera_support::sheet::write_sheet(&sheet, 300, true);
    let scene = imported(&sheet, ImportLimits::default());
    let loaded = scene.own_bytes();
    let frame = scene.flatten(&at(0.0)).expect("a frame");
    let (kept, own) = (frame.bytes(), scene.own_bytes());
    assert!(loaded > 0 && kept > 20 << 20, "{loaded}, {kept}");
    // The triangles are in the file now, and the hierarchy was never anywhere else for long.
    assert!(own < loaded, "{own} bytes after a frame of {kept}, {loaded} before it");
    let second = scene.flatten(&at(1.0)).expect("a frame");
    assert!(frame.vertices.ptr_eq(&second.vertices));
    assert_eq!(frame.vertices, second.vertices);
}
