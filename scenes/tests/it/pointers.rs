//! KHR_animation_pointer: every property that it can move, and what depends on the values. Values
//! that move must give what a file with those values gives.

use crate::support::{add_accessor, add_floats, at, load_bytes, load_in, load_json, triangle};
use serde_json::{Value, json};
use std::sync::Arc;
use tessera_layout::{FlatScene, LightKind, NONE};
use tessera_scenes::{CameraChoice, FlattenOptions, LoadOptions, LoadedScene};

/// A small file in which values of every kind move.
const MOVING: &[u8] = include_bytes!("../files/moving-values.gltf");

/// A picture of one texel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// Extensions of materials, with their textures and the factors without which they do nothing.
pub(crate) const EXTENSIONS: [(&str, &[&str], &[&str]); 11] = [
    ("KHR_materials_anisotropy", &["anisotropyTexture"], &["anisotropyStrength"]),
    (
        "KHR_materials_clearcoat",
        &["clearcoatTexture", "clearcoatRoughnessTexture", "clearcoatNormalTexture"],
        &["clearcoatFactor"],
    ),
    (
        "KHR_materials_diffuse_transmission",
        &["diffuseTransmissionTexture", "diffuseTransmissionColorTexture"],
        &["diffuseTransmissionFactor"],
    ),
    ("KHR_materials_dispersion", &[], &["dispersion"]),
    ("KHR_materials_emissive_strength", &[], &[]),
    ("KHR_materials_ior", &[], &[]),
    (
        "KHR_materials_iridescence",
        &["iridescenceTexture", "iridescenceThicknessTexture"],
        &["iridescenceFactor"],
    ),
    ("KHR_materials_sheen", &["sheenColorTexture", "sheenRoughnessTexture"], &[]),
    ("KHR_materials_specular", &["specularTexture", "specularColorTexture"], &[]),
    ("KHR_materials_transmission", &["transmissionTexture"], &["transmissionFactor"]),
    ("KHR_materials_volume", &["thicknessTexture"], &["thicknessFactor"]),
];

/// Properties of a material, and the count of their numbers.
pub(crate) const MATERIAL: [(&str, usize); 29] = [
    ("alphaCutoff", 1),
    ("emissiveFactor", 3),
    ("normalTexture/scale", 1),
    ("occlusionTexture/strength", 1),
    ("pbrMetallicRoughness/baseColorFactor", 4),
    ("pbrMetallicRoughness/metallicFactor", 1),
    ("pbrMetallicRoughness/roughnessFactor", 1),
    ("extensions/KHR_materials_anisotropy/anisotropyRotation", 1),
    ("extensions/KHR_materials_anisotropy/anisotropyStrength", 1),
    ("extensions/KHR_materials_clearcoat/clearcoatFactor", 1),
    ("extensions/KHR_materials_clearcoat/clearcoatNormalTexture/scale", 1),
    ("extensions/KHR_materials_clearcoat/clearcoatRoughnessFactor", 1),
    ("extensions/KHR_materials_diffuse_transmission/diffuseTransmissionColorFactor", 3),
    ("extensions/KHR_materials_diffuse_transmission/diffuseTransmissionFactor", 1),
    ("extensions/KHR_materials_dispersion/dispersion", 1),
    ("extensions/KHR_materials_emissive_strength/emissiveStrength", 1),
    ("extensions/KHR_materials_ior/ior", 1),
    ("extensions/KHR_materials_iridescence/iridescenceFactor", 1),
    ("extensions/KHR_materials_iridescence/iridescenceIor", 1),
    ("extensions/KHR_materials_iridescence/iridescenceThicknessMaximum", 1),
    ("extensions/KHR_materials_iridescence/iridescenceThicknessMinimum", 1),
    ("extensions/KHR_materials_sheen/sheenColorFactor", 3),
    ("extensions/KHR_materials_sheen/sheenRoughnessFactor", 1),
    ("extensions/KHR_materials_specular/specularColorFactor", 3),
    ("extensions/KHR_materials_specular/specularFactor", 1),
    ("extensions/KHR_materials_transmission/transmissionFactor", 1),
    ("extensions/KHR_materials_volume/attenuationColor", 3),
    ("extensions/KHR_materials_volume/attenuationDistance", 1),
    ("extensions/KHR_materials_volume/thicknessFactor", 1),
];

/// Textures of core glTF in a material.
pub(crate) const CORE_TEXTURES: [&str; 5] = [
    "emissiveTexture",
    "normalTexture",
    "occlusionTexture",
    "pbrMetallicRoughness/baseColorTexture",
    "pbrMetallicRoughness/metallicRoughnessTexture",
];

/// Everything else that is a number, and the count of its numbers.
pub(crate) const OTHERS: [(&str, usize); 19] = [
    ("/nodes/0/translation", 3),
    ("/nodes/0/rotation", 4),
    ("/nodes/0/scale", 3),
    ("/nodes/0/weights", 2),
    ("/nodes/0/weights/1", 1),
    ("/meshes/0/weights", 2),
    ("/meshes/0/weights/0", 1),
    ("/extensions/KHR_lights_punctual/lights/0/color", 3),
    ("/extensions/KHR_lights_punctual/lights/0/intensity", 1),
    ("/extensions/KHR_lights_punctual/lights/0/range", 1),
    ("/extensions/KHR_lights_punctual/lights/0/spot/innerConeAngle", 1),
    ("/extensions/KHR_lights_punctual/lights/0/spot/outerConeAngle", 1),
    ("/cameras/0/perspective/aspectRatio", 1),
    ("/cameras/0/perspective/yfov", 1),
    ("/cameras/0/perspective/zfar", 1),
    ("/cameras/0/perspective/znear", 1),
    ("/cameras/1/orthographic/xmag", 1),
    ("/cameras/1/orthographic/ymag", 1),
    ("/cameras/1/orthographic/zfar", 1),
];

fn textured() -> Value {
    json!({ "index": 0, "extensions": { "KHR_texture_transform": {} } })
}

/// A file with two triangles of one material, a spot and two cameras. Factors without which
/// extensions do nothing are `share`.
pub(crate) fn everything(share: f64) -> Value {
    let mut file = triangle();
    let normals = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let uvs = add_floats(&mut file, "VEC2", 2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let morph = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 1.0, 0.0, 0.5, 0.0, 0.25, 0.0, 0.0]);
    let mut extensions = json!({});
    for (name, textures, factors) in EXTENSIONS {
        extensions[name] = json!({});
        textures.iter().for_each(|texture| extensions[name][texture] = textured());
        factors.iter().for_each(|factor| extensions[name][factor] = json!(share));
    }
    file["materials"] = json!([{
        "alphaMode": "MASK",
        "emissiveFactor": [share, share, share],
        "emissiveTexture": textured(),
        "normalTexture": textured(),
        "occlusionTexture": textured(),
        "pbrMetallicRoughness": { "baseColorTexture": textured(),
            "metallicRoughnessTexture": textured() },
        "extensions": extensions,
    }]);
    (file["images"], file["textures"]) = (json!([{ "uri": PIXEL }]), json!([{ "source": 0 }]));
    let targets = json!([{ "POSITION": morph }, { "POSITION": normals }]);
    file["meshes"] = json!([{ "weights": [0.125, 0.0], "primitives": [{ "material": 0,
        "targets": targets,
        "attributes": { "POSITION": 0, "NORMAL": normals, "TEXCOORD_0": uvs } }] }]);
    let spot = json!({ "innerConeAngle": 0.125, "outerConeAngle": 0.75 });
    let light = json!({ "type": "spot", "spot": spot, "range": 9.0 });
    file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [light] } });
    file["cameras"] = json!([
        { "type": "perspective",
            "perspective": { "yfov": 1.0, "znear": 0.125, "zfar": 9.0, "aspectRatio": 1.5 } },
        { "type": "orthographic",
            "orthographic": { "xmag": 2.0, "ymag": 2.0, "znear": 0.125, "zfar": 9.0 } },
    ]);
    let lamp = json!({ "KHR_lights_punctual": { "light": 0 } });
    file["nodes"] = json!([
        { "mesh": 0, "weights": [0.5, 0.25], "translation": [0.0, 0.0, 0.0],
            "rotation": [0.0, 0.0, 0.0, 1.0], "scale": [1.0, 1.0, 1.0],
            "extensions": { "KHR_node_visibility": { "visible": true } } },
        { "mesh": 0, "translation": [3.0, 0.0, 0.0] },
        { "camera": 0, "translation": [0.0, 0.0, 5.0] },
        { "camera": 1, "translation": [0.0, 0.0, 5.0], "extensions": lamp },
    ]);
    file["scenes"] = json!([{ "nodes": [0, 1, 2, 3] }]);
    file
}

/// Adds an animation with one channel of keys at whole seconds.
pub(crate) fn animate(file: &mut Value, pointer: &str, width: usize, keys: &[f64]) {
    let floats: Vec<f32> = keys.iter().map(|key| *key as f32).collect();
    let is_weights = pointer.ends_with("/weights");
    let (kind, components) = match width {
        _ if is_weights => ("SCALAR", 1),
        1 => ("SCALAR", 1),
        2 => ("VEC2", 2),
        3 => ("VEC3", 3),
        _ => ("VEC4", 4),
    };
    let output = add_floats(file, kind, components, &floats);
    let times: Vec<f32> = (0..keys.len() / width).map(|second| second as f32).collect();
    let input = add_floats(file, "SCALAR", 1, &times);
    play(file, pointer, (input, output), "LINEAR");
}

/// Adds an animation with one channel.
pub(crate) fn play(
    file: &mut Value,
    pointer: &str,
    (input, output): (usize, usize),
    interpolation: &str,
) {
    let target = json!({ "path": "pointer",
        "extensions": { "KHR_animation_pointer": { "pointer": pointer } } });
    let animation = json!({
        "samplers": [{ "input": input, "output": output, "interpolation": interpolation }],
        "channels": [{ "sampler": 0, "target": target }],
    });
    file["extensionsUsed"] = json!(["KHR_animation_pointer"]);
    match file["animations"].as_array_mut() {
        Some(animations) => animations.push(animation),
        None => file["animations"] = json!([animation]),
    }
}

/// Returns the file with numbers at a pointer.
pub(crate) fn with(file: &Value, pointer: &str, numbers: &[f64]) -> Value {
    let mut file = file.clone();
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let value = match (numbers, pointer.ends_with("/weights")) {
        (&[number], false) => json!(number),
        _ => json!(numbers),
    };
    match file.pointer_mut(parent).unwrap() {
        Value::Array(array) => array[name.parse::<usize>().unwrap()] = value,
        object => object[name] = value,
    }
    file
}

/// Returns everything about a frame, so that equal texts have equal bits.
pub(crate) fn bits(scene: &LoadedScene, time_secs: f64, camera: u32) -> String {
    let camera = CameraChoice::Index(camera);
    let options = FlattenOptions { time_secs, camera, ..FlattenOptions::still(64, 48) };
    format!("{:?}", scene.flatten(&options).unwrap())
}

/// Returns two values of a property.
fn values_of(pointer: &str, width: usize) -> [Vec<f64>; 2] {
    let shift = match pointer.rsplit('/').next() {
        Some("ior" | "iridescenceIor") => 1.0,
        Some("zfar") => 7.0,
        _ => 0.0,
    };
    if pointer.ends_with("/rotation") && width == 4 {
        return [vec![0.0, 1.0, 0.0, 0.0], vec![0.0, 0.0, 1.0, 0.0]];
    }
    let numbers = |from: f64| (0..width).map(|i| shift + from + 0.125 * i as f64).collect();
    [numbers(0.5), numbers(0.25)]
}

/// Asserts that the property at its keys gives what a file with the values of the keys gives.
#[track_caller]
pub(crate) fn assert_moves(file: &Value, pointer: &str, width: usize) {
    assert_moves_between(file, pointer, values_of(pointer, width));
}

#[track_caller]
pub(crate) fn assert_moves_between(file: &Value, pointer: &str, [first, last]: [Vec<f64>; 2]) {
    let width = first.len();
    let mut moved = file.clone();
    animate(&mut moved, pointer, width, &[first.clone(), last.clone()].concat());
    let scene = load_json(&moved).unwrap();
    assert_eq!(scene.report().warnings, [""; 0], "{pointer}");
    assert_eq!(scene.report().animations[0].channels, 1, "{pointer}");
    let camera = u32::from(pointer.starts_with("/cameras/1"));
    for (time, values) in [(0.0, &first), (1.0, &last)] {
        let still = load_json(&with(file, pointer, values)).unwrap();
        let [moved, still] = [bits(&scene, time, camera), bits(&still, 0.0, camera)];
        assert!(moved == still, "{pointer} at {time}:\n{moved}\n{still}");
    }
}

#[test]
fn a_moved_property_is_that_of_a_file_with_its_value() {
    for share in [0.0, 0.5] {
        let file = everything(share);
        for (path, width) in MATERIAL {
            assert_moves(&file, &format!("/materials/0/{path}"), width);
        }
        for (pointer, width) in OTHERS {
            assert_moves(&file, pointer, width);
        }
        assert_moves(&file, "/cameras/1/orthographic/znear", 1);
    }
}

#[test]
fn every_texture_moves_over_its_surface() {
    let file = everything(0.5);
    let core = CORE_TEXTURES.iter().map(|texture| (*texture).to_owned());
    let extended = EXTENSIONS.iter().flat_map(|(name, textures, _)| {
        textures.iter().map(move |texture| format!("extensions/{name}/{texture}"))
    });
    for texture in core.chain(extended) {
        for (member, width) in [("offset", 2), ("rotation", 1), ("scale", 2)] {
            let transform = "extensions/KHR_texture_transform";
            let pointer = format!("/materials/0/{texture}/{transform}/{member}");
            assert_moves(&file, &pointer, width);
        }
    }
}

#[test]
fn the_archived_model_moves_too() {
    let mut file = everything(0.0);
    let model = json!({ "diffuseTexture": textured(), "specularGlossinessTexture": textured() });
    file["materials"][0]["extensions"] = json!({ "KHR_materials_pbrSpecularGlossiness": model });
    for (path, width) in [
        ("diffuseFactor", 4),
        ("specularFactor", 3),
        ("glossinessFactor", 1),
        ("diffuseTexture/extensions/KHR_texture_transform/offset", 2),
    ] {
        let model = "/materials/0/extensions/KHR_materials_pbrSpecularGlossiness";
        assert_moves(&file, &format!("{model}/{path}"), width);
    }
}

#[test]
fn a_coat_that_comes_later_has_its_normal_map() {
    let mut file = everything(0.0);
    file["materials"][0].as_object_mut().unwrap().remove("normalTexture");
    let pointer = "/materials/0/extensions/KHR_materials_clearcoat/clearcoatFactor";
    let rotation = "/materials/0/extensions/KHR_materials_clearcoat/clearcoatNormalTexture/\
        extensions/KHR_texture_transform/rotation";
    let still = with(&with(&file, pointer, &[1.0]), rotation, &[0.25]);
    animate(&mut file, pointer, 1, &[0.0, 1.0]);
    animate(&mut file, rotation, 1, &[0.0, 0.25]);
    let [scene, still] = [&file, &still].map(|file| load_json(file).unwrap());
    assert_eq!(bits(&scene, 1.0, 0), bits(&still, 0.0, 0));
    let tangent = at(&scene, 0.0).vertices[0].tangent;
    assert_ne!(tangent, at(&scene, 1.0).vertices[0].tangent, "it turns with the map");
}

/// Adds an animation that hides and shows by whole seconds.
pub(crate) fn flash(file: &mut Value, pointer: &str, flags: &[u8]) {
    let times: Vec<f32> = (0..flags.len()).map(|second| second as f32).collect();
    let input = add_floats(file, "SCALAR", 1, &times);
    let output = add_accessor(file, "SCALAR", 5121, flags.len(), flags);
    play(file, pointer, (input, output), "STEP");
}

pub(crate) const VISIBLE: &str = "/nodes/0/extensions/KHR_node_visibility/visible";

#[test]
fn a_node_is_hidden_and_shown_over_time() {
    let mut file = everything(0.5);
    file["nodes"][0]["children"] = json!([1]);
    file["scenes"] = json!([{ "nodes": [0, 2, 3] }]);
    let hidden = {
        let mut file = file.clone();
        file["nodes"][0]["extensions"]["KHR_node_visibility"]["visible"] = json!(false);
        load_json(&file).unwrap()
    };
    let plain = load_json(&file).unwrap();
    flash(&mut file, VISIBLE, &[1, 0, 255]);
    let scene = load_json(&file).unwrap();
    assert_eq!(scene.report().warnings, [""; 0]);
    for (time, wanted) in [(0.0, &plain), (0.5, &plain), (1.0, &hidden), (2.0, &plain)] {
        assert_eq!(bits(&scene, time, 0), bits(wanted, 0.0, 0), "at {time}");
    }
    assert!(at(&scene, 1.0).triangles.is_empty() && scene.report().geometry_animated);
    // What is hidden in the file may be shown later.
    file["nodes"][0]["extensions"]["KHR_node_visibility"]["visible"] = json!(false);
    let scene = load_json(&file).unwrap();
    assert_eq!(bits(&scene, 2.0, 0), bits(&plain, 0.0, 0));
}

#[test]
fn a_hidden_lamp_shines_when_it_is_shown() {
    let mut file = everything(0.0);
    file["nodes"][3]["extensions"]["KHR_node_visibility"] = json!({ "visible": false });
    let kinds = |flat: FlatScene| -> Vec<u32> { flat.lights.iter().map(|l| l.kind).collect() };
    let (spot, environment) = (LightKind::Spot as u32, LightKind::Environment as u32);
    let still = load_json(&file).unwrap();
    assert_eq!(kinds(at(&still, 0.0)), [environment], "without any light, a white one");
    flash(&mut file, "/nodes/3/extensions/KHR_node_visibility/visible", &[0, 1]);
    let scene = load_json(&file).unwrap();
    assert_eq!(kinds(at(&scene, 0.0)), [0u32; 0], "a film whose lamp is off is dark");
    assert_eq!(kinds(at(&scene, 1.0)), [spot]);
}

#[test]
fn a_surface_shines_when_its_emission_comes() {
    let mut file = everything(0.0);
    file["materials"][0]["extensions"] = json!({});
    animate(&mut file, "/materials/0/emissiveFactor", 3, &[0.0, 0.0, 0.0, 1.0, 1.0, 0.5]);
    let scene = load_json(&file).unwrap();
    assert!(scene.report().geometry_animated);
    let lights = |time| {
        let flat = at(&scene, time);
        (flat.lights.len(), flat.triangles[1].light, flat.materials[0].emission_texture.texture)
    };
    assert_eq!(lights(0.0), (1, NONE, NONE), "the spot alone");
    assert_eq!(lights(0.5), (3, 2, 2), "with a texture that nothing wants before");
    assert_eq!(at(&scene, 0.0).textures.len(), 3);
    assert_eq!(at(&scene, 0.5).materials[0].emission, [0.5, 0.5, 0.25]);
}

#[test]
fn geometry_is_shared_where_only_colours_move() {
    let mut file = everything(0.5);
    let pointer = "/materials/0/pbrMetallicRoughness/baseColorFactor";
    file["materials"][0]["extensions"] = json!({});
    animate(&mut file, pointer, 4, &[1.0, 0.0, 0.0, 1.0, 0.0, 3.0, -1.0, 1.0]);
    let scene = load_json(&file).unwrap();
    let [first, middle, last] = [0.0, 0.5, 1.0].map(|time| at(&scene, time));
    assert!(first.triangles.ptr_eq(&last.triangles) && Arc::ptr_eq(&first.bvh, &last.bvh));
    assert!(!scene.report().geometry_animated);
    assert_eq!(middle.materials[0].base_color, [0.5, 1.0, 0.0, 1.0], "clamped when it is shown");
    assert_eq!(last.materials[0].base_color, [0.0, 1.0, 0.0, 1.0]);
    let (still, moved) = (at(&scene, 0.0), at(&scene, 0.0));
    assert!(still.layers.ptr_eq(&moved.layers), "what does not move is shared");
}

#[test]
fn a_mesh_that_may_shine_is_no_instance() {
    let instances = |pointer: &str, width: usize| {
        let mut file = everything(0.0);
        let mesh = &mut file["meshes"][0];
        mesh["primitives"][0].as_object_mut().unwrap().remove("targets");
        file["nodes"][0].as_object_mut().unwrap().remove("weights");
        animate(&mut file, pointer, width, &vec![0.5; 2 * width]);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
        let options = LoadOptions { instanced_from: 1, ..LoadOptions::default() };
        let flat = at(&load_in(folder.path(), &options).unwrap(), 1.0);
        (flat.instances.len(), flat.triangles.len())
    };
    assert_eq!(instances("/materials/0/pbrMetallicRoughness/baseColorFactor", 4), (2, 0));
    for (pointer, width) in [
        ("/materials/0/emissiveFactor", 3),
        ("/materials/0/extensions/KHR_materials_transmission/transmissionFactor", 1),
        ("/materials/0/normalTexture/extensions/KHR_texture_transform/rotation", 1),
    ] {
        assert_eq!(instances(pointer, width), (0, 2), "{pointer}");
    }
}

#[test]
fn the_committed_file_moves_every_kind_of_value() {
    let scene = load_bytes(MOVING).unwrap();
    assert_eq!(scene.report().warnings, [""; 0]);
    assert_eq!(scene.report().animations[0].channels, 8);
    let [first, last] = [0.0, 1.0].map(|time| at(&scene, time));
    assert_eq!((first.triangles.len(), last.triangles.len()), (4, 2), "one square is gone");
    let color = |flat: &FlatScene| flat.materials[1].base_color;
    assert_eq!([color(&first), color(&last)], [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, 1.0]]);
    let light = |flat: &FlatScene| flat.lights[0].emission;
    assert_eq!([light(&first), light(&last)], [[1.0; 3], [3.0; 3]], "three times as bright");
    assert_eq!((first.media.len(), last.media.len()), (0, 2), "glass is solid when it comes");
    assert_eq!((first.triangles[2].v0[2], last.triangles[0].v0[2]), (0.0, 0.5));
    assert!(first.camera.half_height > 1.9 * last.camera.half_height);
}

#[test]
fn broken_files_with_pointers_never_panic() {
    let mut state = 0x5eed_u64;
    let mut draw = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let mut read = 0;
    for _ in 0..2000 {
        let mut bytes = MOVING.to_vec();
        for _ in 0..=draw(3) {
            let (place, other) = (draw(bytes.len()), draw(bytes.len()));
            match draw(3) {
                0 => bytes[place] = b"0123456789-/~\"[]{}aeE."[draw(21)],
                1 => bytes[place] = bytes[other],
                _ => {
                    bytes.remove(place);
                }
            }
        }
        if let Ok(scene) = load_bytes(&bytes) {
            for time_secs in [0.0, 0.4, 1.0] {
                let options = FlattenOptions { time_secs, ..FlattenOptions::still(8, 8) };
                read += usize::from(scene.flatten(&options).is_ok());
            }
        }
    }
    // Else the test would not reach what it is about.
    assert!(read > 600, "many changes leave a file that can be read: {read} frames of 6000");
}

#[test]
fn steps_and_splines_move_values_too() {
    let pointer = "/extensions/KHR_lights_punctual/lights/0/intensity";
    let light = |keys: &[f32], interpolation: &str, time: f64| {
        let mut file = everything(0.0);
        let input = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
        let output = add_floats(&mut file, "SCALAR", 1, keys);
        play(&mut file, pointer, (input, output), interpolation);
        at(&load_json(&file).unwrap(), time).lights[0].emission[0]
    };
    assert_eq!([0.0, 0.75, 1.0].map(|time| light(&[1.0, 3.0], "STEP", time)), [1.0, 1.0, 3.0]);
    // Hermite with slopes 4 and -4: 1/2 + 4/8 + 4/8 in the middle.
    let keys = [0.0, 0.5, 4.0, -4.0, 0.5, 0.0];
    assert_eq!(light(&keys, "CUBICSPLINE", 0.5), 1.5);
    // Between its keys, a spline can go below what a file may give.
    let keys = [0.0, 0.0, -4.0, 4.0, 0.0, 0.0];
    assert_eq!(light(&keys, "CUBICSPLINE", 0.5), 0.0);
}

#[test]
fn one_animation_may_move_a_vertex_by_all_its_weights() {
    // The mesh's weights move, and one weight of a node that has its own.
    let mut file = everything(0.0);
    animate(&mut file, "/meshes/0/weights", 2, &[0.0, 0.0, 1.0, 2.0]);
    animate(&mut file, "/nodes/0/weights/0", 1, &[0.0, 4.0]);
    let z = |time: f64| {
        let flat = at(&load_json(&file).unwrap(), time);
        (flat.triangles[0].v0[2], flat.triangles[1].v0[2])
    };
    assert_eq!((z(0.0), z(1.0)), ((0.25, 0.0), (4.25, 3.0)));
}

#[test]
fn a_camera_that_frames_hidden_things_stands_still() {
    let mut file = everything(0.0);
    file["nodes"][3] = json!({});
    file["nodes"][2] = json!({});
    flash(&mut file, VISIBLE, &[1, 0]);
    let scene = load_json(&file).unwrap();
    let [first, last] = [0.0, 1.0].map(|time| at(&scene, time));
    assert_eq!((first.triangles.len(), last.triangles.len()), (2, 1));
    assert_eq!(first.camera.world_from_camera, last.camera.world_from_camera);
}

#[test]
fn a_chosen_animation_moves_values_alone() {
    let mut file = everything(0.0);
    let pointer = "/extensions/KHR_lights_punctual/lights/0/intensity";
    animate(&mut file, pointer, 1, &[1.0, 3.0]);
    animate(&mut file, pointer, 1, &[5.0, 7.0]);
    let scene = load_json(&file).unwrap();
    assert_eq!(at(&scene, 1.0).lights[0].emission, [3.0; 3], "the first one wins");
    let animations = &scene.report().animations;
    assert_eq!([0, 1].map(|clip| animations[clip].played), [true, false]);
    assert_eq!((animations[1].channels, animations[1].length_secs), (1, 1.0));
}
