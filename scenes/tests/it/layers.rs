//! Material extensions as files say them: units, defaults, bounds, and what is refused.

use crate::support::{at, load_json, refusal, triangle};
use serde_json::{Value, json};
use tessera_layout::{FlatScene, LayersTexture, Medium, layers_flags};

fn with(extensions: Value) -> Value {
    let mut file = triangle();
    file["materials"] = json!([{ "extensions": extensions }]);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    file
}

fn flat(extensions: Value) -> FlatScene {
    at(&load_json(&with(extensions)).unwrap(), 0.0)
}

#[test]
fn materials_without_effective_extensions_have_no_layers() {
    for extensions in [
        json!({}),
        json!({ "KHR_materials_specular": {} }),
        json!({ "KHR_materials_clearcoat": { "clearcoatRoughnessFactor": 0.5 } }),
        json!({ "KHR_materials_sheen": { "sheenRoughnessFactor": 0.5 } }),
        json!({ "KHR_materials_transmission": {},
        "KHR_materials_volume": { "thicknessFactor": 1 } }),
        json!({ "KHR_materials_volume": { "attenuationDistance": 2, "attenuationColor": [0.5, 0.5,
        0.5] } }),
        json!({ "KHR_materials_iridescence": {}, "KHR_materials_anisotropy": {} }),
        json!({ "KHR_materials_unlit": {},
        "KHR_materials_transmission": { "transmissionFactor": 1 } }),
        json!({ "KHR_materials_ior": { "ior": 1.8 } }),
        json!({ "KHR_materials_dispersion": { "dispersion": 1 } }),
    ] {
        let scene = flat(extensions.clone());
        assert!(scene.layers.is_empty() && scene.materials[0].layers == 0, "{extensions}");
    }
}

#[test]
fn every_factor_reaches_the_kernels_in_their_units() {
    let scene = flat(json!({
        "KHR_materials_ior": { "ior": 1.7 },
        "KHR_materials_specular": { "specularFactor": 0.5, "specularColorFactor": [2.0, 1.0, 0.5] },
        "KHR_materials_clearcoat": { "clearcoatFactor": 0.9, "clearcoatRoughnessFactor": 0.2 },
        "KHR_materials_sheen": { "sheenColorFactor": [0.1, 0.2, 0.3], "sheenRoughnessFactor": 0.4 },
        "KHR_materials_transmission": { "transmissionFactor": 0.8 },
        "KHR_materials_volume":
            { "thicknessFactor": 0.01, "attenuationDistance": 2.0, "attenuationColor": [1.0, 0.25,
                0.0] },
        "KHR_materials_dispersion": { "dispersion": 0.3 },
        "KHR_materials_anisotropy": { "anisotropyStrength": 0.6, "anisotropyRotation": 1.5 },
        "KHR_materials_iridescence":
            { "iridescenceFactor": 0.7, "iridescenceIor": 1.8, "iridescenceThicknessMaximum": 500 },
        "KHR_materials_diffuse_transmission":
            { "diffuseTransmissionFactor": 0.25, "diffuseTransmissionColorFactor": [0.5, 0.6,
                0.7] },
    }));
    assert_eq!((scene.layers.len(), scene.materials[0].layers), (2, 1));
    let layers = &scene.layers[1];
    assert_eq!((layers.specular, layers.specular_color), (0.5, [2.0, 1.0, 0.5]));
    assert_eq!((layers.clearcoat, layers.clearcoat_roughness), (0.9, 0.2));
    assert_eq!((layers.sheen_color, layers.sheen_roughness), ([0.1, 0.2, 0.3], 0.4));
    assert_eq!((layers.flags, layers.transmission, layers.medium), (0, 0.8, 1));
    let inside = &scene.media[1];
    assert_eq!((scene.media.len(), inside.ior, inside.priority), (2, 1.7, 0));
    // KHR_materials_dispersion: (ior - 1) times 0.025 times the number.
    assert!((inside.half_spread - 0.7 * 0.025 * 0.3).abs() < 1e-7);
    // ln 4 / 2 per metre, and almost nothing after two metres.
    assert!(
        (inside.absorption[1] - std::f32::consts::LN_2).abs() < 1e-5 && inside.absorption[0] == 0.0
    );
    assert!(inside.absorption[2] > 6.0 && inside.absorption[2] < 8.0, "{:?}", inside.absorption);
    assert!((layers.anisotropy_cosine - 1.5f32.cos()).abs() < 1e-6 && layers.anisotropy == 0.6);
    assert_eq!((layers.iridescence, layers.iridescence_ior), (0.7, 1.8));
    assert_eq!(
        (layers.iridescence_thickness_min, layers.iridescence_thickness_max),
        (100.0, 500.0)
    );
    assert_eq!(layers.diffuse_transmission_color, [0.5, 0.6, 0.7]);
    assert!(layers.textures.iter().all(|texture| texture.texture == tessera_layout::NONE));
}

#[test]
fn a_thin_wall_has_no_inside() {
    let scene = flat(json!({
        "KHR_materials_transmission": { "transmissionFactor": 1 },
        "KHR_materials_volume": { "attenuationDistance": 1, "attenuationColor": [0.5, 0.5, 0.5] },
        "KHR_materials_dispersion": { "dispersion": 1 },
    }));
    assert_eq!((scene.layers[1].medium, &*scene.media), (0, [Medium::AIR].as_slice()));
}

#[test]
fn the_archived_model_takes_the_place_of_metal_and_roughness() {
    let mut file = with(json!({ "KHR_materials_pbrSpecularGlossiness":
        { "diffuseFactor": [0.2, 0.4, 0.6, 0.5], "specularFactor": [0.1, 0.2, 0.3],
            "glossinessFactor": 0.75 } }));
    file["materials"][0]["pbrMetallicRoughness"] =
        json!({ "metallicFactor": 1, "roughnessFactor": 1 });
    let scene = at(&load_json(&file).unwrap(), 0.0);
    let (material, layers) = (&scene.materials[0], &scene.layers[1]);
    assert_eq!((material.base_color, material.metallic), ([0.2, 0.4, 0.6, 0.5], 0.0));
    assert_eq!((material.roughness, layers.specular_color), (0.25, [0.1, 0.2, 0.3]));
    assert_eq!(layers.flags, layers_flags::SPECULAR_GLOSSINESS);
}

#[test]
fn textures_of_extensions_are_found_with_their_transforms() {
    let pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let mut file = with(json!({ "KHR_materials_clearcoat": { "clearcoatFactor": 1,
        "clearcoatTexture": { "index": 0, "texCoord": 1,
        "extensions": { "KHR_texture_transform": { "scale": [2, 3] } } },
        "clearcoatNormalTexture": { "index": 0, "scale": 0.5 } } }));
    file["images"] = json!([{ "uri": pixel }]);
    file["textures"] = json!([{ "source": 0 }]);
    let scene = at(&load_json(&file).unwrap(), 0.0);
    let coat = &scene.layers[1].textures[LayersTexture::Clearcoat as usize];
    assert_eq!((coat.texture, coat.uv_set), (0, 1));
    assert_eq!((coat.uv_from_mesh[0], coat.uv_from_mesh[4]), (2.0, 3.0));
    assert_eq!(scene.layers[1].clearcoat_normal_scale, 0.5);
    file["materials"][0]["extensions"]["KHR_materials_clearcoat"]["clearcoatTexture"]["index"] =
        json!(7);
    assert!(refusal(&file).contains("clearcoatTexture"), "{}", refusal(&file));
}

#[test]
fn factors_beyond_their_range_are_clamped() {
    let scene = flat(json!({
        "KHR_materials_clearcoat": { "clearcoatFactor": 7, "clearcoatRoughnessFactor": -3 },
        "KHR_materials_sheen": { "sheenColorFactor": [-1, 2, 1e30] },
        "KHR_materials_specular": { "specularColorFactor": [1e30, -1, 1] },
        "KHR_materials_transmission": { "transmissionFactor": 1e30 },
        "KHR_materials_volume":
            { "thicknessFactor": 1e30, "attenuationDistance": 1e-38, "attenuationColor": [-1, 2,
                0.5] },
        "KHR_materials_dispersion": { "dispersion": 1e30 },
    }));
    let layers = &scene.layers[1];
    assert_eq!(
        (layers.clearcoat, layers.clearcoat_roughness, layers.transmission),
        (1.0, 0.0, 1.0)
    );
    assert_eq!((layers.sheen_color, layers.specular_color), ([0.0, 1.0, 1.0], [1e4, 0.0, 1.0]));
    let inside = &scene.media[1];
    assert_eq!((inside.absorption, inside.half_spread), ([1e8, 0.0, 1e8], 125.0));
}

#[test]
fn nan_and_infinity_are_refused_with_their_place() {
    for (extension, key, value) in [
        ("clearcoat", "clearcoatFactor", json!("much")),
        ("clearcoat", "clearcoatRoughnessFactor", json!(1e300)),
        ("clearcoat", "clearcoatNormalTexture", json!({ "scale": 1e300, "index": 0 })),
        ("sheen", "sheenColorFactor", json!([1, 2])),
        ("sheen", "sheenColorFactor", json!([1, 2, null])),
        ("specular", "specularColorFactor", json!(1)),
        ("volume", "attenuationDistance", json!(0)),
        ("volume", "attenuationDistance", json!(-1)),
        ("volume", "thicknessFactor", json!(-1)),
        ("dispersion", "dispersion", json!(-1)),
        ("iridescence", "iridescenceIor", json!(0.5)),
        ("iridescence", "iridescenceThicknessMinimum", json!(-5)),
        ("anisotropy", "anisotropyRotation", json!(1e300)),
        ("transmission", "transmissionFactor", json!([1])),
        ("pbrSpecularGlossiness", "diffuseFactor", json!([1, 1, 1])),
        ("pbrSpecularGlossiness", "diffuseTexture", json!({})),
    ] {
        let name = format!("KHR_materials_{extension}");
        let error = refusal(&with(json!({ name.as_str(): { key: value } })));
        assert!(error.contains(&name) && error.contains(key), "{error}");
    }
    assert!(refusal(&with(json!({ "KHR_materials_sheen": 3 }))).contains("is not an object"));
}

#[test]
fn a_grain_gets_tangents() {
    let mut file = with(json!({ "KHR_materials_anisotropy": { "anisotropyStrength": 1 } }));
    let uvs = crate::support::add_floats(&mut file, "VEC2", 2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    file["meshes"][0]["primitives"][0]["attributes"]["TEXCOORD_0"] = json!(uvs);
    let scene = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(scene.vertices[0].tangent, [1.0, 0.0, 0.0]);
}
