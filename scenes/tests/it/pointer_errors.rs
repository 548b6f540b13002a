//! KHR_animation_pointer: pointers, keys and outputs that are refused with their place, and what is
//! read with a warning.

use crate::pointers::{VISIBLE, animate, bits, everything, flash, play, with};
use crate::support::{add_floats, at, load_json, refusal};
use serde_json::{Value, json};
use tessera_scenes::FlattenOptions;

#[test]
fn pointers_that_lead_nowhere_are_refused_with_their_place() {
    let place = "animations[0].channels[0].target.extensions.KHR_animation_pointer.pointer";
    for (pointer, problem) in [
        ("", "is not a JSON pointer"),
        ("nodes/0/scale", "is not a JSON pointer"),
        ("/nodes/0/sca~2le", "after ~ it needs 0 or 1"),
        ("/nodes/0/scale~", "after ~ it needs 0 or 1"),
        ("/", "is no property that glTF can animate"),
        ("/nodes/9/scale", "points at nodes[9], but there are 4"),
        ("/nodes/-1/scale", "has \"-1\" where nodes need a number"),
        ("/nodes/01/scale", "has \"01\" where nodes need a number"),
        ("/nodes/4294967296/scale", "where nodes need a number"),
        ("/meshes/1/weights", "points at meshes[1], but there are 1"),
        ("/materials/1/alphaCutoff", "points at materials[1], but there are 1"),
        ("/cameras/2/perspective/yfov", "points at cameras[2], but there are 2"),
        ("/extensions/KHR_lights_punctual/lights/1/color", "points at lights[1]"),
        ("/nodes/length", "is read-only"),
        ("/nodes.length", "is read-only"),
        ("/nodes/0/weights.length", "is read-only"),
        ("/nodes/0/weights/length", "is read-only"),
        ("/nodes/0/name", "is read-only"),
        ("/nodes/0/mesh", "is read-only"),
        ("/nodes/0/matrix", "is read-only"),
        ("/nodes/0/children/0", "is read-only"),
        ("/nodes/3/extensions/KHR_lights_punctual/light", "is read-only"),
        ("/materials/0/alphaMode", "is read-only"),
        ("/materials/0/normalTexture/index", "is read-only"),
        ("/scenes/0/nodes", "is read-only"),
        ("/asset/version", "is read-only"),
        ("/nodes/0", "is no property"),
        ("/nodes/0/translation/1", "is no property; point at a whole vector"),
        ("/materials/0/pbrMetallicRoughness/baseColorFactor/3", "is no property; point at a"),
        ("/materials/0/pbrMetallicRoughness/glitter", "is no property that glTF can animate"),
        ("/materials/0/pbrMetallicRoughness~1metallicFactor", "is no property that glTF can"),
        ("/materials/0/extensions/KHR_materials_ior/glitter", "is no property that glTF can"),
        ("/nodes/0/weights/first", "has \"first\" where a weight needs its number"),
        ("/materials/0/extensions/KHR_materials_unlit/x", "is no property that glTF can"),
        ("/cameras/1/perspective/yfov", "needs \"perspective\", which the file does not have"),
    ] {
        let mut file = everything(0.0);
        animate(&mut file, pointer, 1, &[0.5, 0.25]);
        let error = refusal(&file);
        assert!(error.contains(place) && error.contains(problem), "{pointer}: {error}");
    }
    for (parent, left_out, pointer) in [
        ("/cameras/0/perspective", "zfar", "/cameras/0/perspective/zfar"),
        ("/materials/0", "normalTexture", "/materials/0/normalTexture/scale"),
        (
            "/extensions/KHR_lights_punctual/lights/0",
            "spot",
            "/extensions/KHR_lights_punctual/lights/0/spot/innerConeAngle",
        ),
        (
            "/materials/0/extensions",
            "KHR_materials_pbrSpecularGlossiness",
            "/materials/0/extensions/KHR_materials_pbrSpecularGlossiness/glossinessFactor",
        ),
    ] {
        let mut file = everything(0.0);
        file.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(left_out);
        animate(&mut file, pointer, 1, &[0.5, 0.25]);
        let error = refusal(&file);
        assert!(error.contains(place) && error.contains(left_out), "{pointer}: {error}");
    }
}

#[test]
fn pointers_are_read_as_blender_writes_them() {
    // Its exporter points into extensions that it leaves out, and joins two members by a dot.
    let mut file = everything(0.5);
    let pointer = "/materials/0/extensions/KHR_materials_emissive_strength/emissiveStrength";
    file["materials"][0]["extensions"] = json!({});
    animate(&mut file, pointer, 1, &[1.0, 8.0]);
    let scene = load_json(&file).unwrap();
    assert_eq!([0.0, 1.0].map(|time| at(&scene, time).materials[0].emission[0]), [0.5, 4.0]);
    let warnings = scene.report().warnings.join("\n");
    assert!(warnings.contains("emissive_strength is not in the file there"), "{warnings}");
    let mut file = everything(0.0);
    let light = "/extensions/KHR_lights_punctual/lights/0";
    let still = with(&file, &format!("{light}/spot/outerConeAngle"), &[0.5]);
    animate(&mut file, &format!("{light}/spot.outerConeAngle"), 1, &[0.75, 0.5]);
    let [scene, still] = [&file, &still].map(|file| load_json(file).unwrap());
    assert_eq!(bits(&scene, 1.0, 0), bits(&still, 0.0, 0));
}

#[test]
fn keys_that_a_property_cannot_take_are_refused() {
    for (pointer, value, problem) in [
        ("/materials/0/extensions/KHR_materials_ior/ior", 0.5, "must be 0, or at least 1"),
        ("/materials/0/extensions/KHR_materials_dispersion/dispersion", -1.0, "0 or greater"),
        ("/materials/0/extensions/KHR_materials_volume/attenuationDistance", 0.0, "greater than 0"),
        ("/extensions/KHR_lights_punctual/lights/0/intensity", -1.0, "0 or greater"),
        ("/extensions/KHR_lights_punctual/lights/0/range", 0.0, "greater than 0"),
        ("/extensions/KHR_lights_punctual/lights/0/spot/outerConeAngle", 2.0, "0 to pi/2"),
        ("/cameras/0/perspective/yfov", 4.0, "between 0 and pi"),
    ] {
        let mut file = everything(0.0);
        animate(&mut file, pointer, 1, &[1.0, value]);
        let error = refusal(&file);
        let place = "animations[0].samplers[0].output: key 1 gives";
        assert!(error.contains(place) && error.contains(problem), "{pointer}: {error}");
    }
    // Values that do not go together are found where they meet.
    let mut file = everything(0.0);
    animate(&mut file, "/cameras/0/perspective/znear", 1, &[1.0, 9.5]);
    let scene = load_json(&file).unwrap();
    let error = scene.flatten(&FlattenOptions { time_secs: 1.0, ..FlattenOptions::still(8, 8) });
    let error = error.unwrap_err().to_string();
    assert!(error.contains("cameras[0]: znear 9.5 and zfar 9 must be"), "{error}");
    assert!(error.contains("as animated, at 1.000 s"), "{error}");
}

#[test]
fn outputs_of_another_type_or_count_are_refused() {
    let color = "/materials/0/pbrMetallicRoughness/baseColorFactor";
    let refused = |change: &dyn Fn(&mut Value), problem: &str| {
        let mut file = everything(0.0);
        change(&mut file);
        let error = refusal(&file);
        assert!(error.contains(problem), "{problem}: {error}");
    };
    refused(&|file| animate(file, color, 3, &[0.0; 6]), "has 3 components");
    let four = |kind: &str, count: usize| {
        let kind = kind.to_owned();
        move |file: &mut Value| {
            let input = add_floats(file, "SCALAR", 1, &[0.0, 1.0]);
            let output = add_floats(file, &kind, 4, &vec![0.0; 4 * count]);
            play(file, color, (input, output), "LINEAR");
        }
    };
    refused(&four("MAT2", 2), "is a matrix");
    refused(&four("VEC4", 3), "holds 12 numbers, but 2 keys need 8");
    refused(&|file| flash(file, color, &[0, 1]), "has 1 components");
    let floats = |file: &mut Value| {
        animate(file, VISIBLE, 1, &[0.0, 1.0]);
        file["animations"][0]["samplers"][0]["interpolation"] = json!("STEP");
    };
    refused(&floats, "must be unsigned bytes");
    let linear = |file: &mut Value| {
        flash(file, VISIBLE, &[0, 1]);
        file["animations"][0]["samplers"][0]["interpolation"] = json!("LINEAR");
    };
    refused(&linear, "animations[0].samplers[0].interpolation: must be STEP");
    refused(&|file| animate(file, "/nodes/0/weights/2", 1, &[0.0, 1.0]), "there are 2 morph");
    refused(&|file| animate(file, "/nodes/0/weights", 3, &[0.0; 6]), "2 keys need 4");
}

#[test]
fn one_property_has_one_channel_in_an_animation() {
    let pair = |first: &str, second: Value| {
        let mut file = everything(0.0);
        let width = if first.ends_with("/1") { 1 } else { 3 };
        animate(&mut file, first, width, &vec![0.5; 2 * width]);
        let mut sampler = file["animations"][0]["samplers"][0].clone();
        if second.to_string().contains("weights\"") {
            sampler["output"] = json!(add_floats(&mut file, "SCALAR", 1, &[0.0; 4]));
        }
        file["animations"][0]["samplers"].as_array_mut().unwrap().push(sampler);
        let channel = json!({ "sampler": 1, "target": second });
        file["animations"][0]["channels"].as_array_mut().unwrap().push(channel);
        file
    };
    let pointer = |text: &str| {
        json!({ "path": "pointer",
            "extensions": { "KHR_animation_pointer": { "pointer": text } } })
    };
    for (first, second) in [
        ("/nodes/0/scale", pointer("/nodes/0/scale")),
        ("/nodes/0/scale", json!({ "node": 0, "path": "scale" })),
        ("/materials/0/emissiveFactor", pointer("/materials/0/emissiveFactor")),
        ("/nodes/0/weights/1", pointer("/nodes/0/weights")),
    ] {
        let error = refusal(&pair(first, second));
        assert!(error.contains("animations[0].channels[1]: moves what channels[0]"), "{error}");
    }
    assert!(load_json(&pair("/nodes/0/scale", pointer("/nodes/1/scale"))).is_ok());
}

#[test]
fn a_pointer_has_no_node_and_the_path_pointer() {
    let channel = |change: &dyn Fn(&mut Value)| {
        let mut file = everything(0.0);
        animate(&mut file, "/nodes/0/scale", 3, &[1.0; 6]);
        change(&mut file["animations"][0]["channels"][0]["target"]);
        refusal(&file)
    };
    let error = channel(&|target| target["node"] = json!(0));
    assert!(error.contains("channels[0].target.node: must be left out"), "{error}");
    let error = channel(&|target| target["path"] = json!("scale"));
    assert!(error.contains("channels[0].target.path: must be \"pointer\""), "{error}");
    let error = channel(&|target| target["extensions"]["KHR_animation_pointer"] = json!({}));
    assert!(error.contains("KHR_animation_pointer: missing field `pointer`"), "{error}");
    let mut file = everything(0.0);
    file["nodes"][0] = json!({ "mesh": 0,
        "matrix": [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1] });
    animate(&mut file, "/nodes/0/scale", 3, &[1.0; 6]);
    let error = refusal(&file);
    assert!(error.contains("nodes[0], which has a matrix"), "{error}");
}

#[test]
fn pointers_into_unknown_extensions_are_warned_of() {
    for pointer in [
        "/materials/0/extensions/ACME_glitter/density",
        "/extensions/EXT_lights_image_based/lights/0/intensity",
        "/nodes/0/extensions/EXT_lights_ies/multiplier",
        "/materials/0/extras/tessera_medium_priority",
    ] {
        let mut file = everything(0.0);
        animate(&mut file, pointer, 1, &[0.0, 1.0]);
        let scene = load_json(&file).unwrap();
        let warned = format!("{pointer:?}, which Tessera does not show; it stands still");
        assert!(scene.report().warnings[0].contains(&warned), "{:?}", scene.report().warnings);
        assert_eq!(scene.report().animations[0].channels, 0);
    }
    // What no picture shows needs no warning.
    let mut file = everything(0.0);
    file["nodes"][0]["extensions"]["KHR_node_selectability"] = json!({});
    flash(&mut file, "/nodes/0/extensions/KHR_node_selectability/selectable", &[0, 1]);
    assert_eq!(load_json(&file).unwrap().report().warnings, [""; 0]);
}
