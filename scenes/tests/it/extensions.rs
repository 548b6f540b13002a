//! Extensions of nodes, core materials, textures and files, one at a time: what each changes, and
//! what is refused.

use crate::support::{add_accessor, add_floats, at, load_in, load_json, refusal, triangle};
use serde_json::{Value, json};
use tessera_layout::{LightKind, material_flags};
use tessera_scenes::{CameraChoice, FlattenOptions, LoadOptions};

/// A picture of one texel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A triangle of this material.
fn of(material: Value) -> Value {
    let mut file = triangle();
    file["materials"] = json!([material]);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    file
}

#[test]
fn a_hidden_node_hides_all_below_it_but_its_camera() {
    let mut file = triangle();
    let hidden = |visible: bool| json!({ "KHR_node_visibility": { "visible": visible } });
    file["extensionsRequired"] = json!(["KHR_node_visibility", "KHR_lights_punctual"]);
    file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [{ "type": "point" }] } });
    file["cameras"] =
        json!([{ "type": "perspective", "perspective": { "yfov": 1.0, "znear": 0.1 } }]);
    let mut lamp = hidden(true);
    lamp["KHR_lights_punctual"] = json!({ "light": 0 });
    file["nodes"] = json!([
        { "mesh": 0, "children": [1, 3], "translation": [0.0, 0.0, 5.0],
            "extensions": hidden(false) },
        { "mesh": 0, "children": [2], "extensions": hidden(true) },
        { "camera": 0, "extensions": lamp },
        { "mesh": 0 },
        { "mesh": 0, "translation": [7.0, 0.0, 0.0], "extensions": hidden(true) },
    ]);
    file["scenes"][0]["nodes"] = json!([0, 4]);
    let scene = load_json(&file).unwrap();
    let flat = at(&scene, 0.0);
    assert_eq!((flat.triangles.len(), flat.triangles[0].v0), (1, [7.0, 0.0, 0.0]));
    assert!(flat.lights.iter().all(|light| light.kind == LightKind::Environment as u32));
    assert_eq!(
        (scene.report().nodes, scene.report().punctual_lights, scene.report().cameras.len()),
        (5, 0, 1)
    );
    assert_eq!(flat.camera.world_from_camera[11], 5.0, "where a hidden node stands still counts");
    file["nodes"][0]["extensions"] = json!({ "KHR_node_visibility": {} });
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!((flat.triangles.len(), flat.lights[0].kind), (4, LightKind::Point as u32));
    file["nodes"][0]["extensions"] = json!({ "KHR_node_visibility": { "visible": 0 } });
    assert!(
        refusal(&file).contains("nodes[0].extensions.KHR_node_visibility"),
        "{}",
        refusal(&file)
    );
}

#[test]
fn extensions_without_visible_effect_are_accepted() {
    let plain = at(&load_json(&triangle()).unwrap(), 0.0);
    let names = [
        "EXT_mesh_manifold",
        "KHR_node_hoverability",
        "KHR_node_selectability",
        "KHR_xmp",
        "KHR_xmp_json_ld",
    ];
    let mut file = triangle();
    (file["extensionsUsed"], file["extensionsRequired"]) = (json!(names), json!(names));
    file["extensions"] = json!({ "KHR_xmp_json_ld": { "packets": [{ "@context": {} }] } });
    file["asset"]["extensions"] = json!({ "KHR_xmp_json_ld": { "packet": 0 } });
    file["nodes"][0]["extensions"] = json!({ "KHR_node_selectability": { "selectable": false } });
    let scene = load_json(&file).unwrap();
    assert!(
        scene.report().extensions.iter().all(|extension| extension.applied && extension.required)
    );
    assert_eq!(scene.report().extensions.len(), names.len());
    let seen = at(&scene, 0.0);
    assert_eq!(
        (&seen.triangles, &seen.vertices, &seen.materials),
        (&plain.triangles, &plain.vertices, &plain.materials)
    );
}

#[test]
fn unsupported_extensions_say_what_is_lost() {
    for (name, lost) in [
        ("KHR_gaussian_splatting", "splats are left out"),
        ("KHR_interactivity", "behaviours do not run"),
        ("KHR_materials_volume_scatter", "do not scatter"),
    ] {
        let mut file = triangle();
        file["extensionsUsed"] = json!([name]);
        let extension = json!({ name: { "bufferView": 77 } });
        file["meshes"][0]["primitives"][0]["extensions"] = extension;
        let scene = load_json(&file).unwrap();
        assert_eq!(at(&scene, 0.0).triangles.len(), 1);
        let warnings = scene.report().warnings.join("\n");
        assert!(
            warnings.contains(&format!("{name} is ignored: ")) && warnings.contains(lost),
            "{warnings}"
        );
        file["extensionsRequired"] = json!([name]);
        assert!(refusal(&file).contains(name), "{}", refusal(&file));
    }
}

#[test]
fn emission_is_multiplied_by_its_strength() {
    let with = |strength: Value| {
        of(json!({ "emissiveFactor": [0.5, 0.25, 1.0],
            "extensions": {
                "KHR_materials_emissive_strength": { "emissiveStrength": strength } } }))
    };
    let scene = load_json(&with(json!(8.0))).unwrap();
    assert_eq!(at(&scene, 0.0).materials[0].emission, [4.0, 2.0, 8.0]);
    assert_eq!(scene.report().emissive_triangles, 1);
    assert_eq!(load_json(&with(json!(0.0))).unwrap().report().emissive_triangles, 0);
    let plain = of(json!({ "emissiveFactor": [0.5, 0.25, 1.0] }));
    assert_eq!(at(&load_json(&plain).unwrap(), 0.0).materials[0].emission, [0.5, 0.25, 1.0]);
    for wrong in [json!(-1.0), json!(1e300), json!("bright")] {
        let error = refusal(&with(wrong));
        assert!(
            error.contains("materials[0].extensions.KHR_materials_emissive_strength"),
            "{error}"
        );
    }
}

#[test]
fn an_ior_is_read_and_0_means_infinite() {
    let with = |ior: Value| of(json!({ "extensions": { "KHR_materials_ior": { "ior": ior } } }));
    let read = |file: &Value| at(&load_json(file).unwrap(), 0.0).materials[0].ior;
    assert_eq!(
        [json!(1.0), json!(1.33), json!(2.42), json!(0.0)].map(|ior| read(&with(ior))),
        [1.0, 1.33, 2.42, 1e6]
    );
    assert_eq!(read(&of(json!({}))), 1.5);
    for wrong in [json!(0.5), json!(-1.0), json!(1e300)] {
        assert!(refusal(&with(wrong)).contains("KHR_materials_ior.ior"));
    }
}

#[test]
fn an_unlit_material_is_its_base_colour_and_nothing_else() {
    let mut file = of(json!({
        "pbrMetallicRoughness": { "baseColorFactor": [1.0, 0.5, 0.25, 1.0],
            "baseColorTexture": { "index": 0 },
            "metallicRoughnessTexture": { "index": 0 } },
        "normalTexture": { "index": 0 }, "emissiveFactor": [1.0, 1.0, 1.0],
        "extensions": { "KHR_materials_unlit": {},
        "KHR_materials_clearcoat": { "clearcoatFactor": 1.0 } } }));
    (file["images"], file["textures"]) = (json!([{ "uri": PIXEL }]), json!([{ "source": 0 }]));
    file["extensionsRequired"] = json!(["KHR_materials_unlit"]);
    let scene = load_json(&file).unwrap();
    let flat = at(&scene, 0.0);
    let material = &flat.materials[0];
    assert_eq!(material.flags & material_flags::UNLIT, material_flags::UNLIT);
    assert_eq!(
        (material.base_color, material.base_color_texture.texture),
        ([1.0, 0.5, 0.25, 1.0], 0)
    );
    assert_eq!((material.emission, material.layers, flat.textures.len()), ([0.0; 3], 0, 1));
    assert_eq!(scene.report().emissive_triangles, 0, "it lights nothing");
}

#[test]
fn texture_transforms_and_uv_sets_are_applied() {
    let with = |transform: Value| {
        let info = json!({ "index": 0, "texCoord": 0,
            "extensions": { "KHR_texture_transform": transform } });
        let mut file = of(json!({ "pbrMetallicRoughness": { "baseColorTexture": info } }));
        (file["images"], file["textures"]) = (json!([{ "uri": PIXEL }]), json!([{ "source": 0 }]));
        file
    };
    let read = |transform: Value| {
        at(&load_json(&with(transform)).unwrap(), 0.0).materials[0].base_color_texture
    };
    let plain = read(json!({}));
    assert_eq!((plain.uv_from_mesh, plain.uv_set), ([1.0, 0.0, 0.0, 0.0, 1.0, 0.0], 0));
    let moved = read(json!({ "offset": [0.5, -0.25], "scale": [2.0, 4.0], "texCoord": 1 }));
    assert_eq!((moved.uv_from_mesh, moved.uv_set), ([2.0, 0.0, 0.5, 0.0, 4.0, -0.25], 1));
    let quarter = read(json!({ "rotation": std::f64::consts::FRAC_PI_2, "scale": [2.0, 4.0] }));
    for (got, want) in quarter.uv_from_mesh.into_iter().zip([0.0, 4.0, 0.0, -2.0, 0.0, 0.0]) {
        assert!((got - want).abs() < 1e-6, "{quarter:?}");
    }
    let error = refusal(&with(json!({ "scale": [1e300, 1.0] })));
    assert!(error.contains("baseColorTexture.extensions.KHR_texture_transform"), "{error}");
}

#[test]
fn instances_are_scaled_and_turned_before_they_are_moved() {
    let mut file = triangle();
    let half = 0.5f32.sqrt();
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 5.0, 0.0, 0.0, 0.0]);
    let turns = add_floats(&mut file, "VEC4", 4, &[0.0, 0.0, half, half, 0.0, 0.0, 0.0, 1.0]);
    let scales = add_floats(&mut file, "VEC3", 3, &[3.0, 1.0, 1.0, 1.0, 1.0, 1.0]);
    file["extensionsRequired"] = json!(["EXT_mesh_gpu_instancing"]);
    file["nodes"][0]["extensions"] = json!({ "EXT_mesh_gpu_instancing": {
        "attributes": { "TRANSLATION": places, "ROTATION": turns, "SCALE": scales,
            "_COLOR": scales } } });
    let flat = at(&load_json(&file).unwrap(), 0.0);
    for (got, want) in flat.triangles[0].v1.into_iter().zip([0.0, 3.0, 5.0]) {
        assert!(
            (got - want).abs() < 1e-6,
            "+X, three times as long, turned to +Y: {:?}",
            flat.triangles[0]
        );
    }
    let few = add_floats(&mut file, "VEC3", 3, &[1.0, 1.0, 1.0]);
    file["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"]["SCALE"] = json!(few);
    assert!(refusal(&file).contains("not as many as others say"), "{}", refusal(&file));
}

#[test]
fn spot_cones_are_read_and_invalid_lights_are_refused() {
    let with = |light: Value| {
        let mut file = triangle();
        file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [light] } });
        file["nodes"][0]["extensions"] = json!({ "KHR_lights_punctual": { "light": 0 } });
        file
    };
    let spot = json!({ "type": "spot", "color": [1.0, 0.5, 0.0], "intensity": 4.0, "range": 9.0,
        "spot": { "innerConeAngle": 0.0, "outerConeAngle": std::f64::consts::FRAC_PI_3 } });
    let light = at(&load_json(&with(spot)).unwrap(), 0.0).lights[0];
    assert_eq!(
        (light.emission, light.range, light.direction),
        ([4.0, 2.0, 0.0], 9.0, [0.0, 0.0, -1.0])
    );
    // 1 on the axis and 0 where the cosine is that of the outer cone, one half.
    assert!((light.spot_scale + light.spot_offset - 1.0).abs() < 1e-6, "{light:?}");
    assert!((0.5 * light.spot_scale + light.spot_offset).abs() < 1e-6, "{light:?}");
    for (wrong, place) in [
        (json!({ "type": "area" }), "lights[0].type"),
        (json!({ "type": "point", "intensity": -1.0 }), "lights[0].intensity"),
        (json!({ "type": "point", "range": 0.0 }), "lights[0].range"),
        (
            json!({ "type": "spot", "spot": { "innerConeAngle": 1.0, "outerConeAngle": 0.5 } }),
            "lights[0].spot",
        ),
    ] {
        assert!(refusal(&with(wrong)).contains(place), "{place}");
    }
}

#[test]
fn quantized_normals_and_uvs_mean_what_their_floats_mean() {
    let mut file = triangle();
    let normals =
        add_accessor(&mut file, "VEC3", 5120, 3, &[0, 0, 127, 0, 0, 127, 0, 0, 0, 0, 127, 0]);
    let uvs = add_accessor(&mut file, "VEC2", 5121, 3, &[0, 0, 0, 0, 255, 51, 0, 0, 2, 3, 0, 0]);
    file["accessors"][normals]["normalized"] = json!(true);
    file["accessors"][uvs]["normalized"] = json!(true);
    (file["bufferViews"][1]["byteStride"], file["bufferViews"][2]["byteStride"]) =
        (json!(4), json!(4));
    file["extensionsRequired"] = json!(["KHR_mesh_quantization"]);
    let attributes = &mut file["meshes"][0]["primitives"][0]["attributes"];
    (attributes["NORMAL"], attributes["TEXCOORD_0"]) = (json!(normals), json!(uvs));
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(
        [flat.vertices[0].normal, flat.vertices[1].normal],
        [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    );
    assert_eq!((flat.vertices[1].u0, flat.vertices[1].v0), (1.0, 0.2));
    file["accessors"][uvs]["normalized"] = json!(false);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(
        (flat.vertices[2].u0, flat.vertices[2].v0),
        (2.0, 3.0),
        "whole numbers are themselves"
    );
}

#[test]
fn shared_texels_are_counted_once() {
    let folder = tempfile::tempdir().unwrap();
    image::RgbaImage::from_pixel(4, 4, image::Rgba([9; 4]))
        .save(folder.path().join("a.png"))
        .unwrap();
    let mut file = of(json!({ "pbrMetallicRoughness": { "baseColorTexture": { "index": 0 } },
        "emissiveTexture": { "index": 1 }, "emissiveFactor": [1.0, 1.0, 1.0],
        "normalTexture": { "index": 1 } }));
    file["images"] = json!([{ "uri": "a.png" }]);
    file["samplers"] = json!([{ "minFilter": 9729 }]);
    file["textures"] = json!([{ "source": 0, "sampler": 0 }, { "source": 0, "sampler": 0 }]);
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    let scene = load_in(folder.path(), &LoadOptions::default()).unwrap();
    let told: Vec<u64> = scene.report().textures.iter().map(|texture| texture.bytes).collect();
    let flat = scene
        .flatten(&FlattenOptions { camera: CameraChoice::Default, ..FlattenOptions::still(8, 8) });
    // Each begins at a multiple of 16.
    let (told_bytes, have) = (told.iter().sum::<u64>(), flat.unwrap().texels.len() as u64);
    assert!((told_bytes..told_bytes + 16).contains(&have), "{told_bytes} of {have}");
    assert_eq!(told.iter().filter(|bytes| **bytes == 0).count(), 1, "{told:?}");
}
