//! What stands still in a film: which nodes do, and that every frame shares them.

use crate::support::{add_accessor, add_floats, at, loaded_from, triangle};
use serde_json::{Value, json};
use std::sync::Arc;
use tessera_layout::{FlatScene, Triangle};
use tessera_scenes::MotionPart;

/// Six triangles, each a mesh of its own: one moves, one hangs from a node that moves, one emits,
/// one is morphed by a clip, and two stand still.
fn film() -> Value {
    let mut file = triangle();
    let mesh = file["meshes"][0].clone();
    file["meshes"] = json!([mesh, mesh, mesh, mesh, mesh, mesh]);
    file["materials"] = json!([{}, { "emissiveFactor": [1.0, 1.0, 1.0] }]);
    file["meshes"][2]["primitives"][0]["material"] = json!(1);
    let delta = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    file["meshes"][3]["primitives"][0]["targets"] = json!([{ "POSITION": delta }]);
    file["nodes"] = json!([
        { "mesh": 0, "children": [1] },
        { "mesh": 1, "translation": [0.0, 2.0, 0.0] },
        { "mesh": 2, "translation": [0.0, 4.0, 0.0] },
        { "mesh": 3, "translation": [0.0, 6.0, 0.0] },
        { "mesh": 4, "translation": [0.0, -0.0, -3.0] },
        { "mesh": 5, "translation": [0.0, 8.0, 0.0] },
    ]);
    file["scenes"][0]["nodes"] = json!([0, 2, 3, 4, 5]);
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
    let weights = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    file["animations"] = json!([{
        "samplers": [
            { "input": times, "output": places },
            { "input": times, "output": weights },
        ],
        "channels": [
            { "sampler": 0, "target": { "node": 0, "path": "translation" } },
            { "sampler": 1, "target": { "node": 3, "path": "weights" } },
        ],
    }]);
    file
}

/// Every triangle in the world, whichever way the scene holds it, in one order.
fn shown(flat: &FlatScene) -> Vec<[[f32; 3]; 3]> {
    let instanced = flat.instances.iter().flat_map(|instance| {
        let first = instance.first_triangle as usize;
        let stored = &flat.meshes.triangles[first..first + instance.triangle_count as usize];
        stored.iter().map(|triangle| instance.place_triangle(triangle))
    });
    let corners = |triangle: Triangle| [triangle.v0, triangle.v1, triangle.v2];
    let mut all: Vec<_> = flat.triangles.iter().copied().chain(instanced).map(corners).collect();
    all.sort_by(|a, b| a.partial_cmp(b).unwrap());
    all
}

#[test]
fn what_stands_still_is_one_instance_that_frames_share() {
    let film = film();
    let scene = loaded_from(&film, 8);
    let copies = loaded_from(&film, u64::MAX);
    let frames = [0.0, 0.5, 1.0].map(|time| (at(&scene, time), at(&copies, time)));
    for (flat, copied) in &frames {
        assert_eq!((flat.instances.len(), flat.instances[0].triangle_count), (1, 2));
        assert!(flat.instances[0].standing_padding > 0.0 && copied.instances.is_empty());
        assert_eq!(flat.triangles.len(), 4);
        assert_eq!(shown(flat), shown(copied));
        assert!(Arc::ptr_eq(&flat.meshes, &frames[0].0.meshes));
    }
    // Its map would make a positive zero of a negative one, so there is none.
    let stored = &frames[0].0.meshes.triangles;
    let corners = stored.iter().flat_map(|triangle| [triangle.v0, triangle.v1, triangle.v2]);
    assert!(corners.flatten().all(|coordinate| coordinate.to_bits() != (-0.0f32).to_bits()));
    assert_ne!(shown(&frames[0].0), shown(&frames[2].0));
}

#[test]
fn what_moves_as_it_is_is_an_instance_in_its_place() {
    let film = film();
    let (scene, copies) = (loaded_from(&film, 4), loaded_from(&film, u64::MAX));
    let frames = [0.0, 0.5, 1.0].map(|time| (at(&scene, time), at(&copies, time)));
    for (flat, copied) in &frames {
        // What stands, the one that moves, and the one that hangs from it. What emits or is morphed
        // is placed.
        let triangles: Vec<u32> = flat.instances.iter().map(|it| it.triangle_count).collect();
        assert_eq!((triangles, flat.triangles.len()), (vec![2, 1, 1], 2));
        assert!(flat.instances[1..].iter().all(|instance| instance.standing_padding == 0.0));
        assert_eq!(shown(flat), shown(copied));
        assert!(Arc::ptr_eq(&flat.meshes, &frames[0].0.meshes));
    }
}

#[test]
fn little_that_stands_still_is_placed_for_every_frame() {
    let mut film = film();
    for (file, instanced_from) in [(film.clone(), 12), {
        film.as_object_mut().unwrap().remove("animations");
        (film, 8)
    }] {
        let flat = at(&loaded_from(&file, instanced_from), 0.0);
        assert_eq!((flat.instances.len(), flat.triangles.len()), (0, 6));
    }
}

#[test]
fn the_report_says_what_stands_still_and_what_moves() {
    let mut film = film();
    // One more comes and goes.
    let mesh = film["meshes"][0].clone();
    film["meshes"].as_array_mut().unwrap().push(mesh);
    let hidden = json!({ "KHR_node_visibility": { "visible": true } });
    let node = json!({ "mesh": 6, "extensions": hidden });
    film["nodes"].as_array_mut().unwrap().push(node);
    film["scenes"][0]["nodes"] = json!([0, 2, 3, 4, 5, 6]);
    film["extensionsUsed"] = json!(["KHR_node_visibility", "KHR_animation_pointer"]);
    let pointer = json!({ "pointer": "/nodes/6/extensions/KHR_node_visibility/visible" });
    let target = json!({ "path": "pointer", "extensions": { "KHR_animation_pointer": pointer } });
    let times = film["animations"][0]["samplers"][0]["input"].clone();
    let seen = add_accessor(&mut film, "SCALAR", 5121, 2, &[1, 0]);
    let samplers = film["animations"][0]["samplers"].as_array_mut().unwrap();
    samplers.push(json!({ "input": times, "output": seen, "interpolation": "STEP" }));
    let channels = film["animations"][0]["channels"].as_array_mut().unwrap();
    channels.push(json!({ "sampler": 2, "target": target }));

    // All corners of a flat triangle are shaded by one vertex.
    let bytes = 48 + 12 + 64;
    let part = |triangles| MotionPart { triangles, bytes: triangles * bytes, held_triangles: 0 };
    for (instanced_from, is_placed_once) in [(8, true), (12, false)] {
        let scene = loaded_from(&film, instanced_from);
        let found = scene.report().motion.expect("it moves");
        assert_eq!(found.is_placed_once, is_placed_once);
        assert_eq!(found.stands, part(2));
        assert_eq!(found.moves, part(2), "one moves, and one hangs from it");
        assert_eq!((found.deforms, found.emits, found.varies), (part(1), part(1), part(1)));
    }
    film.as_object_mut().unwrap().remove("animations");
    assert_eq!(loaded_from(&film, 8).report().motion, None);
}

#[test]
fn places_of_a_mesh_that_is_held_once_are_reported_as_such() {
    let mut film = film();
    // Nodes 4 and 5, which stand still, show one mesh.
    film["nodes"][5]["mesh"] = json!(4);
    let scene = loaded_from(&film, 1);
    let found = scene.report().motion.expect("it moves");
    let held = MotionPart { triangles: 2, bytes: 2 * 144, held_triangles: 2 };
    assert_eq!(found.stands, held);
    // What moves as it is is held too, for so few triangles here.
    assert_eq!(found.moves, held);
}
