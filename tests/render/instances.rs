//! Meshes that are held once: through the importer and its hierarchies, the bits of copies, and the
//! picture that a scene without instances has.

use crate::render::picture::{checked, file, hash, pixels, shared, sums, whole_frame};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use tessera_kernels::copies::{with_world_trees, without_instances};
use tessera_kernels::cuda::{KernelSet, SceneImage};
use tessera_kernels::host;
use tessera_layout::FlatScene;
use tessera_scenes::{FlattenOptions, LoadOptions};

/// A scene with meshes held once from so many triangles of copies on.
fn flat(scene: &Path, instanced_from: u64) -> FlatScene {
    let options = LoadOptions { instanced_from, ..LoadOptions::default() };
    let (folder, name) = (scene.parent().expect("a folder"), scene.file_name().expect("a name"));
    let loaded =
        tessera_scenes::load(folder, name.to_str().expect("text"), &options).expect("a scene");
    loaded.flatten(&FlattenOptions::still(96, 72)).expect("a frame")
}

/// The library's cube in five places, one of them mirrored. Turned so that no face looks along a
/// plane of the axes: there a rounding turns the frame that directions are drawn in, and noise
/// would be all that is compared.
fn cubes(folder: &Path) -> PathBuf {
    let text = std::fs::read_to_string(file("scenes/library/spinning-cube.gltf"))
        .expect("a file of the library");
    let mut scene: Value = serde_json::from_str(&text).expect("JSON");
    scene.as_object_mut().expect("an object").remove("animations");
    let nodes = scene["nodes"].as_array_mut().expect("nodes");
    let cube = nodes.iter_mut().find(|node| node["name"] == "cube").expect("a cube");
    cube["rotation"] = json!([0.1, 0.2, 0.05, 0.97]);
    let cube = cube["mesh"].clone();
    let first = nodes.len();
    nodes.extend([
        json!({ "mesh": cube, "translation": [-1.6, 0.7, 0.3], "rotation": [0.2, 0.5, 0.1, 0.8] }),
        json!({ "mesh": cube, "translation": [1.5, 0.6, -0.6], "rotation": [0.1, 0.3, -0.1, 0.9],
        "scale": [0.8, 0.8, 1.7] }),
        json!({ "mesh": cube, "translation": [0.4, 0.3, 1.4], "rotation": [0.48, 0.6, 0.0, 0.64],
        "scale": [0.5, 0.5, 0.5] }),
        json!({ "mesh": cube, "translation": [-0.6, 1.9, -0.4], "scale": [-0.6, 0.6, 0.6] }),
    ]);
    let more = (first..nodes.len()).map(|node| json!(node));
    scene["scenes"][0]["nodes"].as_array_mut().expect("nodes").extend(more);
    let path = folder.join("cubes.gltf");
    std::fs::write(&path, scene.to_string()).expect("the folder takes files");
    path
}

#[test]
fn instances_give_the_bits_of_copies() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let shared_ones =
        ["generated/instances_ext.glb", "generated/instances_nodes.glb", "SimpleInstancing.glb"];
    for path in
        std::iter::once(cubes(folder.path())).chain(shared_ones.into_iter().filter_map(shared))
    {
        let (scene, copied) = (checked(flat(&path, 1)), checked(flat(&path, u64::MAX)));
        let name = path.display();
        assert!(scene.instances.len() > 1, "{name} has no instances");
        assert_eq!(scene.shown_triangles(), copied.triangles.len() as u64);
        let frame = whole_frame(96, 72, 16, 5);
        let found = sums(host::best_isa(), &scene, &frame);
        let of_copies = sums(host::best_isa(), &without_instances(&scene), &frame);
        assert_eq!(hash(&found), hash(&of_copies), "{name}");
        // Copies that the importer places itself stand elsewhere by roundings.
        let wanted = pixels(&sums(host::best_isa(), &copied, &frame), 16);
        let error = relative_error(&pixels(&found, 16), &wanted);
        println!("{name}: {} instances, relMSE {error:.2e} beside copies", scene.instances.len());
        assert!(error < 2e-4, "{name}: {error}");
    }
}

// promise: P5
#[test]
fn what_stands_still_in_a_film_gives_the_bits_of_copies() {
    let frame_at = |time_secs: f64, instanced_from: u64| {
        let options = LoadOptions { instanced_from, ..LoadOptions::default() };
        let folder = file("scenes/library");
        let loaded =
            tessera_scenes::load(&folder, "spinning-cube.gltf", &options).expect("a scene");
        let view = FlattenOptions { time_secs, ..FlattenOptions::still(96, 72) };
        checked(loaded.flatten(&view).expect("a frame"))
    };
    for time in [0.0, 0.7] {
        let (scene, copied) = (frame_at(time, 1), frame_at(time, u64::MAX));
        assert!(scene.instances[0].standing_padding >= scene.bvh.padding);
        // The cube is shown in its place. A device has what stands among the scene's own triangles.
        assert_eq!(scene.instances.len(), 2);
        let image = SceneImage::of(&scene);
        let triangles: usize = image.parts().take(2).map(|part| part.bytes.len()).sum();
        let of_cube = scene.instances[1].triangle_count as usize;
        let in_world = &copied.triangles[of_cube..];
        assert_eq!(triangles, size_of_val(in_world));
        assert_eq!(image.scene().kernel_set(), KernelSet::Instances);
        let frame = whole_frame(96, 72, 16, 5);
        let found = sums(host::best_isa(), &scene, &frame);
        for isa in host::available_isas() {
            let of_copies = sums(isa, &without_instances(&scene), &frame);
            assert_eq!(hash(&found), hash(&of_copies), "{time} {isa:?}");
            for most in [0, 11, 12, u64::MAX] {
                let with_trees = with_world_trees(scene.clone(), most);
                let copies = with_trees.bvh.blocks.len() > scene.bvh.blocks.len();
                assert_eq!(copies, most >= 12);
                let of_trees = sums(isa, &with_trees, &frame);
                assert_eq!(hash(&found), hash(&of_trees), "{time} {isa:?} {most}");
            }
        }
        let wanted = pixels(&sums(host::best_isa(), &copied, &frame), 16);
        let error = relative_error(&pixels(&found, 16), &wanted);
        assert!(error < 2e-4, "{time}: {error}");
    }
}

/// Relative mean squared error, each square of the reference's pixel having 0.01 added.
fn relative_error(found: &[[f32; 3]], wanted: &[[f32; 3]]) -> f64 {
    let pairs = found.as_flattened().iter().zip(wanted.as_flattened());
    let errors = pairs.map(|(a, b)| (f64::from(a - b)).powi(2) / (f64::from(b * b) + 0.01));
    errors.sum::<f64>() / (3 * found.len()) as f64
}
