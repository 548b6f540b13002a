//! Material variants: what is chosen is shown, on instances and in motion too, and nothing of a
//! broken mapping is believed.

use crate::support::{add_floats, at, load_in, load_json, refusal, triangle};
use serde_json::{Value, json};
use tessera_scenes::{LoadOptions, LoadedScene, SceneError};

/// Two triangles: the first is grey, red by "day" and shines by "night", and the second is grey
/// whatever is chosen.
fn lamp() -> Value {
    let mut file = triangle();
    file["extensionsUsed"] = json!(["KHR_materials_variants", "EXT_mesh_gpu_instancing"]);
    file["extensions"] = json!({ "KHR_materials_variants": { "variants": [{ "name": "day" },
        { "name": "night" }] } });
    let color = |rgb: [f32; 4]| json!({ "pbrMetallicRoughness": { "baseColorFactor": rgb } });
    let mut night = color([0.0, 0.0, 1.0, 1.0]);
    night["emissiveFactor"] = json!([1.0, 1.0, 1.0]);
    file["materials"] = json!([color([0.5, 0.5, 0.5, 1.0]), color([1.0, 0.0, 0.0, 1.0]), night]);
    let mappings = json!([{ "material": 1, "variants": [0] }, { "material": 2, "variants": [1] }]);
    file["meshes"][0]["primitives"] = json!([
        { "attributes": { "POSITION": 0 }, "material": 0,
          "extensions": { "KHR_materials_variants": { "mappings": mappings } } },
        { "attributes": { "POSITION": 0 }, "material": 0 },
    ]);
    file
}

fn load_variant(file: &Value, variant: &str) -> Result<LoadedScene, SceneError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    load_in(folder.path(), &LoadOptions { variant: Some(variant.into()), ..LoadOptions::default() })
}

/// The material of every triangle at a time in seconds.
fn materials(scene: &LoadedScene, time_secs: f64) -> Vec<u32> {
    at(scene, time_secs).triangles.iter().map(|triangle| triangle.material).collect()
}

#[test]
fn a_variant_is_chosen_by_its_name() {
    let file = lamp();
    let plain = load_json(&file).unwrap();
    assert_eq!(plain.report().variants, ["day", "night"]);
    assert!(!plain.report().warnings.iter().any(|warning| warning.contains("variant")));
    assert_eq!((materials(&plain, 0.0), plain.report().emissive_triangles), (vec![0, 0], 0));
    let day = load_variant(&file, "day").unwrap();
    assert_eq!((materials(&day, 0.0), day.report().emissive_triangles), (vec![1, 0], 0));
    let night = load_variant(&file, "night").unwrap();
    assert_eq!((materials(&night, 0.0), night.report().emissive_triangles), (vec![2, 0], 1));
}

#[test]
fn a_variant_is_as_if_the_file_named_its_materials() {
    let mut other = lamp();
    other["meshes"][0]["primitives"][0]["material"] = json!(2);
    let (chosen, named) = (load_variant(&lamp(), "night").unwrap(), load_json(&other).unwrap());
    let (chosen, named) = (at(&chosen, 0.0), at(&named, 0.0));
    assert_eq!((&chosen.triangles, &chosen.lights), (&named.triangles, &named.lights));
    assert_eq!((&chosen.materials, &chosen.vertices), (&named.materials, &named.vertices));
}

#[test]
fn instances_and_frames_show_the_chosen_variant() {
    let mut file = lamp();
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 5.0, 0.0, 0.0]);
    file["nodes"][0]["extensions"] =
        json!({ "EXT_mesh_gpu_instancing": { "attributes": { "TRANSLATION": places } } });
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 2.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": places }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "translation" } }] }]);
    let scene = load_variant(&file, "night").unwrap();
    assert_eq!(materials(&scene, 0.0), [2, 0, 2, 0]);
    assert_eq!(materials(&scene, 1.0), [2, 0, 2, 0]);
    assert_eq!((at(&scene, 1.0).triangles[0].v0[0], at(&scene, 1.0).lights.len()), (2.5, 2));
}

#[test]
fn a_variant_may_need_tangents_that_another_does_not() {
    let mut file = lamp();
    let uvs = add_floats(&mut file, "VEC2", 2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    for primitive in 0..2 {
        file["meshes"][0]["primitives"][primitive]["attributes"]["TEXCOORD_0"] = json!(uvs);
    }
    file["materials"][1]["extensions"] =
        json!({ "KHR_materials_anisotropy": { "anisotropyStrength": 1 } });
    let tangent = |scene: &LoadedScene| at(scene, 0.0).vertices[0].tangent;
    assert_eq!(tangent(&load_variant(&file, "day").unwrap()), [1.0, 0.0, 0.0]);
    assert_eq!(tangent(&load_variant(&file, "night").unwrap()), [0.0; 3]);
}

#[test]
fn an_unknown_variant_is_refused_with_the_known_ones() {
    let message = |file: &Value, name: &str| load_variant(file, name).unwrap_err().to_string();
    let error = message(&lamp(), "noon");
    assert!(error.contains("\"noon\"") && error.contains("\"day\", \"night\""), "{error}");
    assert!(message(&triangle(), "noon").contains("the scene has none"));
    let mut file = lamp();
    let many: Vec<Value> =
        (0..1000).map(|index| json!({ "name": format!("{index}{}", "x".repeat(500)) })).collect();
    file["extensions"]["KHR_materials_variants"]["variants"] = json!(many);
    let error = message(&file, "noon");
    assert!(error.contains("and 968 more") && error.len() < 4096, "{error}");
}

#[test]
fn an_invalid_variant_mapping_is_always_refused() {
    let mapping = "/meshes/0/primitives/0/extensions/KHR_materials_variants/mappings/1";
    for (field, value) in [("material", json!(3)), ("variants", json!([0, 2]))] {
        let mut file = lamp();
        file.pointer_mut(mapping).unwrap()[field] = value;
        let error = refusal(&file);
        assert!(error.contains(&format!("mappings[1].{field}")), "{error}");
        assert!(load_variant(&file, "day").is_err());
    }
    for broken in
        [json!(7), json!({ "mappings": [{ "material": 0 }] }), json!({ "mappings": [[]] })]
    {
        let mut file = lamp();
        file["meshes"][0]["primitives"][0]["extensions"]["KHR_materials_variants"] = broken;
        assert!(refusal(&file).contains("KHR_materials_variants"), "{}", refusal(&file));
    }
    let mut file = lamp();
    file["extensions"]["KHR_materials_variants"] = json!({ "variants": "day" });
    assert!(refusal(&file).contains("extensions.KHR_materials_variants"));
}
