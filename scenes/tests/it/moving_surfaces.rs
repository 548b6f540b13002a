//! Values that move beside what decides how a scene is placed and stored: its UV sets, its panes,
//! and its working space.

use crate::pointers::{
    CORE_TEXTURES, EXTENSIONS, MATERIAL, OTHERS, animate, assert_moves, assert_moves_between,
    everything,
};
use crate::support::{add_floats, at, load_json};
use serde_json::json;
use tessera_layout::triangle_flags;

#[test]
fn textures_on_any_uv_sets_move_too() {
    for share in [0.0, 0.5] {
        let mut file = everything(share);
        for (name, uvs) in [
            ("TEXCOORD_1", [0.5f32, 0.0, 1.0, 0.5, 0.0, 1.0]),
            ("TEXCOORD_2", [0.25, 0.0, 0.75, 0.5, 0.0, 0.5]),
        ] {
            let accessor = add_floats(&mut file, "VEC2", 2, &uvs);
            file["meshes"][0]["primitives"][0]["attributes"][name] = json!(accessor);
        }
        let material = &mut file["materials"][0];
        for texture in CORE_TEXTURES {
            material.pointer_mut(&format!("/{texture}")).unwrap()["texCoord"] = json!(1);
        }
        material["emissiveTexture"]["texCoord"] = json!(2);
        for (name, textures, _) in EXTENSIONS {
            for texture in textures {
                material["extensions"][name][texture]["texCoord"] = json!(2);
            }
        }
        for (path, width) in MATERIAL {
            assert_moves(&file, &format!("/materials/0/{path}"), width);
        }
        let transform = "extensions/KHR_texture_transform/offset";
        for texture in CORE_TEXTURES {
            assert_moves(&file, &format!("/materials/0/{texture}/{transform}"), 2);
        }
    }
}

#[test]
fn uv_sets_that_come_later_are_there_from_the_start() {
    let mut file = everything(0.0);
    let uvs = add_floats(&mut file, "VEC2", 2, &[0.5, 0.0, 1.0, 0.5, 0.25, 1.0]);
    file["meshes"][0]["primitives"][0]["attributes"]["TEXCOORD_2"] = json!(uvs);
    file["materials"][0]["extensions"] = json!({});
    file["materials"][0]["emissiveTexture"]["texCoord"] = json!(2);
    animate(&mut file, "/materials/0/emissiveFactor", 3, &[0.0, 0.0, 0.0, 1.0, 1.0, 0.5]);
    let scene = load_json(&file).unwrap();
    assert_eq!(scene.report().warnings, [""; 0]);
    let [dark, lit] = [0.0, 1.0].map(|time| at(&scene, time));
    assert_eq!(lit.materials[0].base_color_texture.uv_set, 0);
    assert_eq!(lit.materials[0].emission_texture.uv_set, 1);
    for flat in [dark, lit] {
        assert_eq!([flat.vertices[2].u0, flat.vertices[2].v0], [0.0, 1.0]);
        assert_eq!(flat.vertices[2].uv1, [0.25, 1.0]);
    }
}

/// A pointer to a member of the material's extension.
fn extended(member: &str) -> String {
    format!("/materials/0/extensions/KHR_materials_{member}")
}

#[test]
fn a_pane_is_one_only_while_it_is_smooth_and_clear() {
    let mut file = everything(0.0);
    file["materials"][0] = json!({
        "pbrMetallicRoughness": { "roughnessFactor": 0.0 },
        "extensions": {
            "KHR_materials_transmission": { "transmissionFactor": 1.0 },
            "KHR_materials_volume": { "thicknessFactor": 0.0 },
            "KHR_materials_anisotropy": { "anisotropyStrength": 0.0 },
        },
    });
    let roughness = "/materials/0/pbrMetallicRoughness/roughnessFactor".to_owned();
    for (pointer, keys, alpha) in [
        (roughness, [0.0, 0.5], [true, false]),
        (extended("transmission/transmissionFactor"), [0.0, 1.0], [false, true]),
        (extended("volume/thicknessFactor"), [0.5, 0.0], [false, true]),
        (extended("anisotropy/anisotropyStrength"), [0.0, 0.5], [true, false]),
    ] {
        if !pointer.contains("anisotropy") {
            // Where grain comes later, vertices have tangents from the start.
            assert_moves_between(&file, &pointer, keys.map(|key| vec![key]));
        }
        let mut moved = file.clone();
        animate(&mut moved, &pointer, 1, &keys);
        let scene = load_json(&moved).unwrap();
        assert!(scene.report().geometry_animated, "{pointer}");
        let flags = [0.0, 1.0].map(|time| at(&scene, time).triangles[0].flags);
        assert_eq!(flags.map(|flags| flags & triangle_flags::ALPHA != 0), alpha, "{pointer}");
    }
}

#[test]
fn far_and_tiny_scenes_move_as_others() {
    for (translation, scale, exponent) in [([3e5, 1e3, 0.0], 1.0, 0), ([0.0; 3], 1e-4, 15)] {
        let mut file = everything(0.5);
        let root = json!({ "children": [0, 1, 2, 3], "translation": translation,
            "scale": [scale, scale, scale] });
        file["nodes"].as_array_mut().unwrap().push(root);
        file["scenes"] = json!([{ "nodes": [4] }]);
        let extensions = &mut file["materials"][0]["extensions"];
        extensions["KHR_materials_volume"] = json!({ "thicknessFactor": 0.5,
            "attenuationColor": [0.5, 0.75, 1.0], "attenuationDistance": 2.0 });
        // So that the light is not so much brighter than all else that it looks like a mistake.
        extensions["KHR_materials_emissive_strength"] = json!({ "emissiveStrength": 1e7 });
        let space = load_json(&file).unwrap().report().space;
        assert_eq!((space.origin[0] > 0.0, space.exponent), (translation[0] > 0.0, exponent));
        assert_moves(&file, "/materials/0/emissiveFactor", 3);
        for (member, width) in [("attenuationColor", 3), ("attenuationDistance", 1)] {
            assert_moves(&file, &extended(&format!("volume/{member}")), width);
        }
        // What moves geometry, moves its bounds, about which a still file is placed.
        let is_value = |(pointer, _): &&(&str, usize)| {
            pointer.starts_with("/extensions") || pointer.starts_with("/cameras")
        };
        for (pointer, width) in OTHERS.iter().filter(is_value) {
            assert_moves(&file, pointer, *width);
        }
    }
}
