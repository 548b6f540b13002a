//! Attributes beyond the usual ones: colours of instances, morphed colours and UVs, further UV
//! sets.

use crate::support::{add_accessor, add_floats, at, load_json, loaded_from, refusal, triangle};
use serde_json::{Value, json};
use tessera_layout::FlatScene;
use tessera_scenes::LoadedScene;

const WHITE: [f32; 4] = [1.0; 4];
const RED: [f32; 4] = [1.0, 0.0, 0.0, 1.0];
const GREEN: [f32; 4] = [0.0, 1.0, 0.0, 1.0];

/// Colours of the vertices in the world, one of each triangle.
fn colors(flat: &FlatScene) -> Vec<[f32; 4]> {
    flat.triangle_vertices.iter().map(|corners| flat.vertices[corners[0] as usize].color).collect()
}

/// The triangle in as many places as there are colours.
fn colored(colors: &[f32], kind: &str, width: usize) -> Value {
    let mut file = triangle();
    let count = colors.len() / width;
    let offsets: Vec<f32> = (0..count).flat_map(|place| [2.0 * place as f32, 0.0, 0.0]).collect();
    let offsets = add_floats(&mut file, "VEC3", 3, &offsets);
    let colors = add_floats(&mut file, kind, width, colors);
    file["extensionsUsed"] = json!(["EXT_mesh_gpu_instancing"]);
    file["nodes"][0]["extensions"] = json!({ "EXT_mesh_gpu_instancing":
        { "attributes": { "TRANSLATION": offsets, "_COLOR_0": colors } } });
    file
}

#[test]
fn instances_have_their_colors() {
    let file = colored(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0], "VEC3", 3);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [RED, GREEN]);
    let mut file = colored(&[1.0, 0.5, 1.0, 0.25], "VEC4", 4);
    let own = add_floats(&mut file, "VEC4", 4, &[0.5, 0.5, 0.25, 0.5].repeat(3));
    file["meshes"][0]["primitives"][0]["attributes"]["COLOR_0"] = json!(own);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [[0.5, 0.25, 0.25, 0.125]]);
    let mut file = colored(&[0.0; 6], "VEC3", 3);
    let bytes = [255, 0, 0, 255, 0, 255, 0, 255];
    let packed = add_accessor(&mut file, "VEC4", 5121, 2, &bytes);
    file["accessors"][packed]["normalized"] = json!(true);
    file["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"]["_COLOR_0"] =
        json!(packed);
    assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [RED, GREEN]);
}

#[test]
fn a_mesh_is_held_once_for_each_color() {
    let file = colored(&[RED, GREEN, RED, GREEN, WHITE].concat(), "VEC4", 4);
    let flat = at(&loaded_from(&file, 1), 0.0);
    // White is shown once, so that it is no instance.
    assert_eq!(
        (flat.instances.len(), flat.triangles.len(), flat.meshes.triangles.len()),
        (4, 1, 2)
    );
    assert_eq!(colors(&flat), [WHITE]);
    let shown = flat.instances.iter().map(|instance| {
        let corners = flat.meshes.triangle_vertices[instance.first_triangle as usize];
        flat.meshes.vertices[corners[0] as usize].color
    });
    assert_eq!(shown.collect::<Vec<_>>(), [RED, GREEN, RED, GREEN]);
    assert_eq!(at(&loaded_from(&file, 2), 0.0).instances.len(), 0);
}

#[test]
fn colors_of_instances_are_as_many_as_their_places() {
    let mut file = colored(&[1.0; 6], "VEC3", 3);
    let few = add_floats(&mut file, "VEC3", 3, &[1.0; 3]);
    file["nodes"][0]["extensions"]["EXT_mesh_gpu_instancing"]["attributes"]["_COLOR_0"] =
        json!(few);
    assert!(refusal(&file).contains("EXT_mesh_gpu_instancing.attributes._COLOR_0"));
}

/// The triangle with a morph target of these attributes at this weight.
fn morphed(attributes: &Value, target: &Value, weight: f32, file: &mut Value) {
    let primitive = &mut file["meshes"][0]["primitives"][0];
    for (name, accessor) in attributes.as_object().unwrap() {
        primitive["attributes"][name] = accessor.clone();
    }
    primitive["targets"] = json!([target]);
    file["meshes"][0]["weights"] = json!([weight]);
}

#[test]
fn morph_targets_change_colors() {
    for (kind, width, base, change, weight, wanted) in [
        ("VEC3", 3, RED, [-1.0, 1.0, 0.0, 0.0], 1.0, GREEN),
        ("VEC3", 3, RED, [-1.0, 1.0, 0.0, 0.0], 0.25, [0.75, 0.25, 0.0, 1.0]),
        ("VEC4", 4, [0.5, 0.5, 0.5, 0.5], [0.25, 0.0, -0.25, 0.5], 0.5, [0.625, 0.5, 0.375, 0.75]),
        // Morphed colours stay in [0, 1].
        ("VEC4", 4, [0.5; 4], [1.0, -1.0, 0.0, 2.0], 1.0, [1.0, 0.0, 0.5, 1.0]),
    ] {
        let mut file = triangle();
        let own = add_floats(&mut file, kind, width, &base[..width].repeat(3));
        let change = add_floats(&mut file, kind, width, &change[..width].repeat(3));
        morphed(&json!({ "COLOR_0": own }), &json!({ "COLOR_0": change }), weight, &mut file);
        assert_eq!(colors(&at(&load_json(&file).unwrap(), 0.0)), [wanted], "{kind} {weight}");
    }
}

#[test]
fn morph_targets_change_uvs() {
    let mut file = triangle();
    let own = add_floats(&mut file, "VEC2", 2, &[0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let change = add_floats(&mut file, "VEC2", 2, &[0.5, 0.25].repeat(3));
    let names = |accessor: usize| json!({ "TEXCOORD_0": accessor, "TEXCOORD_1": accessor });
    morphed(&names(own), &names(change), 0.5, &mut file);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    let first: Vec<_> = flat.vertices.iter().map(|vertex| [vertex.u0, vertex.v0]).collect();
    let second: Vec<_> = flat.vertices.iter().map(|vertex| vertex.uv1).collect();
    assert_eq!(first, [[0.25, 0.125], [1.25, 0.125], [0.25, 1.125]]);
    assert_eq!(second, first);
}

#[test]
fn animated_weights_move_colors_alone() {
    let mut file = triangle();
    let own = add_floats(&mut file, "VEC4", 4, &RED.repeat(3));
    let change = add_floats(&mut file, "VEC4", 4, &[-1.0, 1.0, 0.0, 0.0].repeat(3));
    morphed(&json!({ "COLOR_0": own }), &json!({ "COLOR_0": change }), 0.0, &mut file);
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let weights = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": weights }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "weights" } }] }]);
    let scene = load_json(&file).unwrap();
    let color = |secs: f64| colors(&at(&scene, secs))[0];
    assert_eq!([color(0.0), color(0.5), color(1.0)], [RED, [0.5, 0.5, 0.0, 1.0], GREEN]);
}

#[test]
fn targets_of_equal_positions_keep_their_own_colors() {
    let mut file = triangle();
    let changes = [[-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]];
    let changes = changes.map(|change| add_floats(&mut file, "VEC3", 3, &change.repeat(3)));
    let primitive = |change: usize| {
        let targets = json!([{ "COLOR_0": change }]);
        json!({ "attributes": { "POSITION": 0 }, "targets": targets })
    };
    file["meshes"][0] =
        json!({ "primitives": [primitive(changes[0]), primitive(changes[1])], "weights": [1.0] });
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(colors(&flat), [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0]]);
}

#[test]
fn invalid_attributes_of_targets_are_refused_with_their_place() {
    let refused = |target: Value| {
        let mut file = triangle();
        add_floats(&mut file, "VEC4", 4, &[0.0; 8]);
        morphed(&json!({}), &target, 1.0, &mut file);
        refusal(&file)
    };
    let place = "meshes[0].primitives[0].targets[0].COLOR_0";
    assert!(refused(json!({ "COLOR_0": 99 })).contains(place));
    assert!(refused(json!({ "COLOR_0": "red" })).contains(place));
    assert!(refused(json!({ "COLOR_0": 1 })).contains("has 2 elements, but POSITION has 3"));
    assert!(refused(json!({ "TEXCOORD_0": 0 })).contains("3 components"));
}

/// A one-pixel picture.
fn pixel() -> Value {
    let mut bytes = std::io::Cursor::new(Vec::new());
    image::RgbImage::new(1, 1).write_to(&mut bytes, image::ImageFormat::Png).unwrap();
    let uri = crate::support::buffer(bytes.get_ref())["uri"].as_str().unwrap().to_owned();
    json!({ "uri": uri.replace("application/octet-stream", "image/png") })
}

/// The triangle with six UV sets, whose first coordinate is the set's number.
fn six_uv_sets(material: Value) -> Value {
    let mut file = triangle();
    for set in 0..6 {
        let uvs = add_floats(&mut file, "VEC2", 2, &[set as f32, 0.5].repeat(3));
        file["meshes"][0]["primitives"][0]["attributes"][format!("TEXCOORD_{set}")] = json!(uvs);
    }
    file["images"] = json!([pixel()]);
    file["textures"] = json!([{ "source": 0 }]);
    file["materials"] = json!([material]);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    file
}

/// Warnings about materials.
fn warnings(scene: &LoadedScene) -> Vec<&str> {
    let warnings = scene.report().warnings.iter().map(String::as_str);
    warnings.filter(|warning| warning.contains("materials[")).collect()
}

#[test]
fn any_two_uv_sets_of_a_material_are_read() {
    for (base, normal, sets) in
        [(0, 1, [0, 1]), (2, 2, [2, 1]), (5, 1, [5, 1]), (0, 3, [0, 3]), (4, 2, [4, 2])]
    {
        let file = six_uv_sets(json!({
            "pbrMetallicRoughness": { "baseColorTexture": { "index": 0, "texCoord": base } },
            "normalTexture": { "index": 0, "texCoord": normal },
        }));
        let scene = load_json(&file).unwrap();
        assert!(warnings(&scene).is_empty(), "{:?}", warnings(&scene));
        let flat = at(&scene, 0.0);
        let (vertex, material) = (flat.vertices[0], flat.materials[0]);
        assert_eq!([vertex.u0, vertex.uv1[0]], sets.map(|set: u32| set as f32));
        let found = [material.base_color_texture, material.normal_texture];
        assert_eq!(found.map(|texture| sets[texture.uv_set as usize]), [base, normal]);
    }
}

#[test]
fn equal_primitives_have_the_uv_sets_of_their_materials() {
    let base = |set: u32| {
        let texture = json!({ "index": 0, "texCoord": set });
        json!({ "pbrMetallicRoughness": { "baseColorTexture": texture } })
    };
    let mut file = six_uv_sets(base(2));
    file["materials"] = json!([base(2), base(3)]);
    let mut second = file["meshes"][0]["primitives"][0].clone();
    second["material"] = json!(1);
    file["meshes"][0]["primitives"].as_array_mut().unwrap().push(second);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    let first = |triangle: usize| flat.vertices[flat.triangle_vertices[triangle][0] as usize].u0;
    assert_eq!([first(0), first(1)], [2.0, 3.0]);
}

#[test]
fn a_third_uv_set_is_left_out_with_its_material() {
    let file = six_uv_sets(json!({
        "pbrMetallicRoughness": {
            "baseColorTexture": { "index": 0, "texCoord": 3 },
            "metallicRoughnessTexture": { "index": 0, "texCoord": 0 },
        },
        "normalTexture": { "index": 0, "texCoord": 1 },
    }));
    let scene = load_json(&file).unwrap();
    let wanted = "materials[0] uses more than 2 UV sets; its textures on TEXCOORD_0 are left out";
    assert_eq!(warnings(&scene), [wanted]);
    let material = at(&scene, 0.0).materials[0];
    assert_eq!(material.metallic_roughness_texture.texture, tessera_layout::NONE);
    assert_eq!((material.base_color_texture.uv_set, material.normal_texture.uv_set), (0, 1));
}
