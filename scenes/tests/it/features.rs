//! What glTF files may hold, one thing at a time.

use crate::support::{add_accessor, add_floats, at, load_in, load_json, triangle};
use serde_json::json;
use std::sync::Arc;
use tessera_layout::{Bvh, NONE, light_child_bits, triangle_flags};
use tessera_scenes::{
    Aperture, Blades, CameraChoice, EnvironmentSource, FlattenOptions, Focus, Lens, LightUnits,
    LoadOptions, SceneError,
};

#[test]
fn a_bare_triangle_gets_normals_camera_and_white_light() {
    let scene = load_json(&triangle()).unwrap();
    let flat = at(&scene, 0.0);
    assert_eq!(flat.triangles[0].v1, [1.0, 0.0, 0.0]);
    assert!(flat.vertices.iter().all(|vertex| vertex.normal == [0.0, 0.0, 1.0]));
    assert_eq!((flat.environment.present, flat.environment.constant), (1, [1.0; 3]));
    assert_eq!((flat.environment.light, flat.lights.len()), (0, 1));
    let report = scene.report();
    assert!(report.warnings.iter().any(|warning| warning.contains("no light")));
    assert!(
        report.camera_note(&CameraChoice::Default).is_some_and(|note| note.contains("no camera"))
    );
    assert_eq!(report.camera_note(&CameraChoice::Index(0)), None);
}

#[test]
fn a_mirrored_node_keeps_its_front_and_says_so() {
    let mut file = triangle();
    file["nodes"][0]["scale"] = json!([-1.0, 1.0, 1.0]);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(flat.triangles[0].v2, [-1.0, 0.0, 0.0], "the winding is turned round");
    assert_eq!(flat.triangles[0].flags, triangle_flags::MIRRORED);
    assert!(flat.vertices.iter().all(|vertex| vertex.normal == [0.0, 0.0, 1.0]));
}

#[test]
fn normalized_quantized_positions_are_scaled() {
    let mut file = triangle();
    let bytes = [0, 0, 0, 0, 127, 0, 0, 0, 0, 128, 0, 0];
    let accessor = add_accessor(&mut file, "VEC3", 5120, 3, &bytes);
    file["accessors"][accessor]["normalized"] = json!(true);
    file["bufferViews"][1]["byteStride"] = json!(4);
    file["meshes"][0]["primitives"][0]["attributes"]["POSITION"] = json!(accessor);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!((flat.triangles[0].v1, flat.triangles[0].v2), ([1.0, 0.0, 0.0], [0.0, -1.0, 0.0]));
}

#[test]
fn a_sparse_accessor_needs_no_base_view() {
    let mut file = triangle();
    let indices = add_accessor(&mut file, "SCALAR", 5121, 2, &[1, 2]);
    let values = add_floats(&mut file, "VEC3", 3, &[5.0, 0.0, 0.0, 0.0, 6.0, 0.0]);
    let view = |accessor: usize| file["accessors"][accessor]["bufferView"].clone();
    let sparse = json!({ "count": 2, "indices": { "bufferView": view(indices),
        "componentType": 5121 },
        "values": { "bufferView": view(values) } });
    file["accessors"][0] =
        json!({ "componentType": 5126, "count": 3, "type": "VEC3", "sparse": sparse });
    let flat = at(&load_json(&file).unwrap(), 0.0);
    let triangle = &flat.triangles[0];
    assert_eq!(
        [triangle.v0, triangle.v1, triangle.v2],
        [[0.0; 3], [5.0, 0.0, 0.0], [0.0, 6.0, 0.0]]
    );
}

#[test]
fn points_and_lines_are_left_out_by_name() {
    let mut file = triangle();
    file["meshes"][0]["primitives"][0]["mode"] = json!(1);
    let scene = load_json(&file).unwrap();
    assert!(at(&scene, 0.0).triangles.is_empty());
    assert!(scene.report().warnings.iter().any(|w| w.contains("meshes[0].primitives[0]")));
}

#[test]
fn an_animated_node_moves_and_a_still_one_is_shared() {
    let mut file = triangle();
    let still = load_json(&file).unwrap();
    assert!(at(&still, 0.0).triangles.ptr_eq(&at(&still, 5.0).triangles));
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 2.0]);
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": places }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "translation" } }] }]);
    let scene = load_json(&file).unwrap();
    let x = |time: f64| at(&scene, time).triangles[0].v0[0];
    assert_eq!([x(-1.0), x(0.0), x(0.5), x(2.0), x(9.0)], [0.0, 0.0, 1.0, 4.0, 4.0]);
    assert_eq!(scene.report().animations[0].length_secs, 2.0);
}

#[test]
fn frames_have_arrays_that_were_put_in_place_of_shared_ones() {
    let mut scene = load_json(&triangle()).unwrap();
    let first = at(&scene, 0.0);
    let shared = scene.shared_arrays();
    let triangles = shared.triangles.unwrap();
    assert!(triangles.ptr_eq(&first.triangles));
    *triangles = triangles.to_vec().into();
    let bvh = shared.bvh.unwrap();
    *bvh = Arc::new(Bvh::clone(bvh));
    let (put, put_bvh) = (triangles.clone(), Arc::clone(bvh));
    let second = at(&scene, 0.0);
    assert!(second.triangles.ptr_eq(&put) && Arc::ptr_eq(&second.bvh, &put_bvh));
    assert_eq!(second.triangles, first.triangles);
    assert!(!second.triangles.ptr_eq(&first.triangles));
}

#[test]
fn a_camera_on_an_animated_node_moves_over_still_geometry() {
    let mut file = triangle();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 3.0, 0.5, 0.0, 3.0]);
    file["cameras"] = json!([{ "name": "eye", "type": "perspective", "perspective": { "yfov": 1.0,
        "znear": 0.1 } }]);
    file["nodes"] = json!([{ "mesh": 0 }, { "camera": 0 }]);
    file["scenes"][0]["nodes"] = json!([0, 1]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": places }],
        "channels": [{ "sampler": 0, "target": { "node": 1, "path": "translation" } }] }]);
    let scene = load_json(&file).unwrap();
    let (first, last) = (at(&scene, 0.0), at(&scene, 1.0));
    assert_eq!((first.camera.world_from_camera[3], last.camera.world_from_camera[3]), (0.0, 0.5));
    assert!(Arc::ptr_eq(&first.bvh, &last.bvh), "the hierarchy is built once");
    let named = |name: &str| {
        let camera = CameraChoice::Named(name.into());
        scene.flatten(&FlattenOptions { camera, ..FlattenOptions::still(8, 8) })
    };
    assert!(named("eye").is_ok());
    assert!(
        matches!(named("nobody"), Err(SceneError::Camera { problem }) if problem.contains("eye"))
    );
}

#[test]
fn a_shift_reaches_the_camera_of_the_frame() {
    let scene = load_json(&triangle()).unwrap();
    let through = |shift| scene.flatten(&FlattenOptions { shift, ..FlattenOptions::still(8, 8) });
    let plain = through([0.0; 2]).unwrap().camera;
    let shifted = through([0.25, -0.5]).unwrap().camera;
    assert_eq!((shifted.shift_x, shifted.shift_y), (0.5, -1.0), "in halves of the frame's edges");
    assert_eq!(tessera_layout::Camera { shift_x: 0.0, shift_y: 0.0, ..shifted }, plain);
    assert!(matches!(through([f32::NAN, 0.0]), Err(SceneError::Camera { .. })));
}

#[test]
fn a_lens_takes_its_aperture_and_focus_in_either_form() {
    let scene = load_json(&triangle()).unwrap();
    let camera = CameraChoice::LookAt {
        eye: [1.0, 0.0, 5.0],
        target: [1.0, 0.0, 0.0],
        up: [0.0, 1.0, 0.0],
        // Half of it has the tangent 0.24: a focal length of 50 mm.
        vfov_degrees: 2.0 * 13.495_733,
    };
    let through = |aperture, focus| {
        let lens = Some(Lens { aperture, focus, blades: None, sensor_width: None });
        let view = FlattenOptions { camera: camera.clone(), lens, ..FlattenOptions::still(8, 8) };
        scene.flatten(&view).map(|frame| (frame.camera.lens_radius, frame.camera.focus_distance))
    };
    let plain = through(Aperture::Radius(0.125), Focus::Distance(3.5));
    assert_eq!(plain.unwrap(), (0.125, 3.5));
    let (radius, distance) = through(Aperture::FStop(2.0), Focus::Point([7.0, -2.0, 1.5])).unwrap();
    assert!((radius - 0.0125).abs() < 1e-7, "a diameter of 25 mm: {radius}");
    assert_eq!(distance, 3.5, "along the axis, not along the way");
    for behind in [[0.0, 0.0, 5.0], [1.0, 0.0, 9.0]] {
        let refused = through(Aperture::FStop(2.0), Focus::Point(behind));
        let Err(SceneError::Camera { problem }) = refused else { panic!("{refused:?}") };
        assert!(problem.contains("not in front of it"), "{problem}");
    }
}

#[test]
fn a_bladed_lens_has_a_corner_at_the_top() {
    let scene = load_json(&triangle()).unwrap();
    let through = |blades| {
        let (aperture, focus) = (Aperture::Radius(0.125), Focus::Distance(3.5));
        let lens = Lens { aperture, focus, blades, sensor_width: None };
        let view = FlattenOptions { lens: Some(lens), ..FlattenOptions::still(8, 8) };
        scene.flatten(&view).map(|frame| frame.camera)
    };
    let round = through(None).unwrap();
    assert_eq!((round.blades, round.lens_radius), (0, 0.125));
    for (count, rotation_degrees, turn) in
        [(6, 0.0, 0.25), (3, 36.0, 0.35), (16, -720.0 - 90.0, 0.0)]
    {
        let camera = through(Some(Blades { count, rotation_degrees })).unwrap();
        assert_eq!((camera.blades, camera.lens_radius), (count, 0.125));
        assert!(
            (camera.blade_turn - turn).abs() < 1e-6,
            "{rotation_degrees}: {}",
            camera.blade_turn
        );
        let half = std::f32::consts::PI / count as f32;
        assert!((camera.blade_apothem - half.cos()).abs() < 1e-6);
        assert!((camera.blade_half_side - half.sin()).abs() < 1e-6);
    }
    for (count, rotation_degrees) in
        [(0, 0.0), (2, 0.0), (17, 0.0), (6, f32::NAN), (6, f32::INFINITY)]
    {
        let refused = through(Some(Blades { count, rotation_degrees }));
        let Err(SceneError::Camera { problem }) = refused else { panic!("{refused:?}") };
        assert!(problem.contains("blades"), "{problem}");
    }
}

#[test]
fn morph_targets_and_skins_are_posed() {
    let mut file = triangle();
    let delta = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 2.0, 0.0, 0.0, 2.0, 0.0, 0.0, 2.0]);
    file["meshes"][0]["primitives"][0]["targets"] = json!([{ "POSITION": delta }]);
    file["meshes"][0]["weights"] = json!([0.5]);
    assert_eq!(at(&load_json(&file).unwrap(), 0.0).triangles[0].v0, [0.0, 0.0, 1.0]);
    let joints = add_accessor(&mut file, "VEC4", 5121, 3, &[0u8; 12]);
    let weights = add_floats(&mut file, "VEC4", 4, &[2.0, 0.0, 0.0, 0.0].repeat(3));
    let attributes = &mut file["meshes"][0]["primitives"][0]["attributes"];
    attributes["JOINTS_0"] = json!(joints);
    attributes["WEIGHTS_0"] = json!(weights);
    file["skins"] = json!([{ "joints": [1] }]);
    file["nodes"] = json!([{ "mesh": 0, "skin": 0, "translation": [9.0, 9.0, 9.0] },
        { "translation": [0.0, 3.0, 0.0] }]);
    file["scenes"][0]["nodes"] = json!([0, 1]);
    assert_eq!(
        at(&load_json(&file).unwrap(), 0.0).triangles[0].v0,
        [0.0, 3.0, 1.0],
        "the mesh's own node counts not"
    );
    let none = add_floats(&mut file, "VEC4", 4, &[0.0; 12]);
    file["meshes"][0]["primitives"][0]["attributes"]["WEIGHTS_0"] = json!(none);
    let scene = load_json(&file).unwrap();
    assert_eq!(at(&scene, 0.0).triangles[0].v0, [0.0, 0.0, 1.0], "the rest pose");
    let warned = |text: &String| text.contains("3 vertices have no weight for any joint");
    assert!(scene.report().warnings.iter().any(warned), "{:?}", scene.report().warnings);
}

#[test]
fn a_sensor_lies_along_the_longer_edge() {
    let scene = load_json(&triangle()).unwrap();
    let radius = |sensor_width, (width, height)| {
        let (aperture, focus) = (Aperture::FStop(2.0), Focus::Distance(1.0));
        let lens = Some(Lens { aperture, focus, blades: None, sensor_width });
        let camera = CameraChoice::LookAt {
            eye: [0.0, 0.0, 3.0],
            target: [0.0; 3],
            up: [0.0, 1.0, 0.0],
            vfov_degrees: 90.0,
        };
        let view = FlattenOptions { camera, lens, ..FlattenOptions::still(width, height) };
        scene.flatten(&view).unwrap().camera.lens_radius
    };
    // At 90 degrees half the height of the view is 1 at distance 1: film gives f = 12 mm.
    assert_eq!(radius(None, (64, 32)), 0.003);
    // Half the longer edge is 2 and 1: 36 mm give 9 mm and 18 mm.
    assert_eq!(radius(Some(0.036), (64, 32)), 0.00225);
    assert_eq!(radius(Some(0.036), (32, 64)), 0.0045);
}

/// Returns a triangle in the light of one punctual light, 2 m above it.
fn lit_by(light: serde_json::Value) -> serde_json::Value {
    let mut file = triangle();
    file["extensionsUsed"] = json!(["KHR_lights_punctual"]);
    file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [light] } });
    let place = json!({ "KHR_lights_punctual": { "light": 0 } });
    file["nodes"] = json!([{ "mesh": 0 }, { "translation": [0, 0, 2], "extensions": place }]);
    file["scenes"][0]["nodes"] = json!([0, 1]);
    file
}

#[test]
fn a_spot_with_equal_cones_is_a_disk_with_a_hard_edge() {
    let spot = json!({ "innerConeAngle": 0.5, "outerConeAngle": 0.5 });
    let light = json!({ "type": "spot", "intensity": 100, "spot": spot });
    let light = at(&load_json(&lit_by(light)).unwrap(), 0.0).lights[0];
    let falloff = |angle: f32| (angle.cos() * light.spot_scale + light.spot_offset).clamp(0.0, 1.0);
    assert_eq!((falloff(0.0), falloff(0.4975), falloff(0.5005)), (1.0, 1.0, 0.0));
}

#[test]
fn photometric_lights_are_divided_by_683_lumens_a_watt() {
    let light = json!({ "type": "directional", "intensity": 2049.0, "color": [1.0, 0.5, 0.0] });
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), lit_by(light).to_string()).unwrap();
    let load = |lights| {
        let scene = load_in(folder.path(), &LoadOptions { lights, ..LoadOptions::default() });
        let scene = scene.unwrap();
        let hints = scene.report().warnings.iter();
        let hints = hints.filter(|text| text.contains("--lights photometric")).count();
        (at(&scene, 0.0).lights[0].emission, hints)
    };
    assert_eq!(load(LightUnits::Radiometric), ([2049.0, 1024.5, 0.0], 1));
    let (emission, hints) = load(LightUnits::Photometric);
    assert!((emission[0] - 3.0).abs() < 1e-6 && (emission[1] - 1.5).abs() < 1e-6, "{emission:?}");
    assert_eq!(hints, 0);
}

#[test]
fn ordinary_lights_get_no_hint_about_their_units() {
    for light in [
        json!({ "type": "directional", "intensity": 10.0 }),
        json!({ "type": "point", "intensity": 80.0 }),
        json!({ "type": "spot", "intensity": 0.0, "spot": {} }),
    ] {
        let scene = load_json(&lit_by(light)).unwrap();
        assert_eq!(scene.report().warnings, [""; 0]);
    }
}

#[test]
fn lights_stand_in_order_and_are_picked_by_power() {
    let mut file = triangle();
    file["extensionsUsed"] = json!(["KHR_lights_punctual"]);
    file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [
        { "type": "point", "intensity": 1.0 }, { "type": "spot", "intensity": 3.0,
            "spot": {} }] } });
    file["materials"] = json!([{ "emissiveFactor": [1.0, 1.0, 1.0] }]);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    let light =
        |number: u32| json!({ "extensions": { "KHR_lights_punctual": { "light": number } } });
    file["nodes"] = json!([{ "mesh": 0 }, light(0), light(1)]);
    file["scenes"][0]["nodes"] = json!([2, 1, 0]);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    let kinds: Vec<u32> = flat.lights.iter().map(|light| light.kind).collect();
    assert_eq!(kinds, [1, 0, 3]);
    assert_eq!((flat.triangles[0].light, flat.triangles[0].flags), (2, triangle_flags::EMISSIVE));
    assert_eq!((flat.environment.present, flat.environment.light), (0, NONE));
    // 2 pi 3 (1 - (1 + cos 45 degrees) / 2), 4 pi and pi / 2, over their sum.
    let powers = [3.0 * (1.0 - 0.5f64.sqrt()), 4.0, 0.5];
    for (light, power) in (0u32..).zip(powers) {
        let lanes = flat.light_nodes.iter().flat_map(|node| node.child.into_iter().zip(node.power));
        let mut leaves = lanes.filter(|(child, _)| child & light_child_bits::LEAF != 0);
        let leaf = leaves.find(|(child, _)| child & light_child_bits::INDEX == light);
        let wanted = power / powers.iter().sum::<f64>();
        assert!((f64::from(leaf.unwrap().1) - wanted).abs() < 1e-6, "{leaf:?} {wanted}");
    }
}

#[test]
fn instances_multiply_a_mesh() {
    let mut file = triangle();
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 7.0, 0.0, 0.0]);
    file["extensionsRequired"] = json!(["EXT_mesh_gpu_instancing"]);
    file["nodes"][0]["extensions"] =
        json!({ "EXT_mesh_gpu_instancing": { "attributes": { "TRANSLATION": places } } });
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!((flat.triangles.len(), flat.triangles[1].v0), (2, [7.0, 0.0, 0.0]));
}

#[test]
fn an_unknown_extension_is_a_warning_or_an_error_by_name() {
    let mut file = triangle();
    file["extensionsUsed"] = json!(["MSFT_lod", "ACME_teapot"]);
    let scene = load_json(&file).unwrap();
    let warnings = scene.report().warnings.join("\n");
    assert!(
        warnings.contains("MSFT_lod is ignored: the finest") && warnings.contains("ACME_teapot")
    );
    file["extensionsRequired"] = json!(["ACME_teapot"]);
    assert!(crate::support::refusal(&file).contains("ACME_teapot"));
}

#[test]
fn animation_channels_without_a_node_are_ignored() {
    let mut file = triangle();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 2.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": times }],
        "channels": [{ "sampler": 0, "target": { "path": "pointer" } }] }]);
    let scene = load_json(&file).unwrap();
    assert_eq!(scene.report().animations[0].channels, 0);
}

#[test]
fn textures_are_decoded_per_use_and_bombs_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let image = image::RgbaImage::from_pixel(2, 3, image::Rgba([255, 128, 0, 64]));
    image.save(folder.path().join("a b.png")).unwrap();
    let mut file = triangle();
    file["images"] = json!([{ "uri": "a%20b.png" }]);
    file["samplers"] = json!([{ "magFilter": 9728, "wrapS": 33071 }]);
    file["textures"] = json!([{ "source": 0, "sampler": 0 }]);
    file["materials"] = json!([{ "pbrMetallicRoughness": {
        "baseColorTexture": { "index": 0 }, "metallicRoughnessTexture": { "index": 0 } } }]);
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    let mut options = LoadOptions::default();
    let flat = at(&load_in(folder.path(), &options).unwrap(), 0.0);
    assert_eq!(flat.textures.len(), 2);
    assert_eq!((flat.textures[0].format, flat.textures[1].format), (0, 1));
    assert_eq!(
        (flat.textures[0].bilinear, flat.textures[0].wrap_u, flat.textures[0].wrap_v),
        (0, 1, 0)
    );
    assert_eq!(
        (flat.textures[0].level_count, flat.textures[1].level_count),
        (1, 1),
        "nearest has one level"
    );
    assert_eq!(flat.textures[1].offset, 32);
    assert_eq!(flat.texels[..4], [255, 128, 0, 64]);
    options.limits.texture_edge = 2;
    let error = load_in(folder.path(), &options).unwrap_err().to_string();
    assert!(error.contains("images[0]") && error.contains("2x3"), "{error}");
    options.limits.texture_edge = 16_384;
    options.limits.texture_bytes = 30;
    assert!(load_in(folder.path(), &options).unwrap_err().to_string().contains("more than 30"));
    let files = tessera_scenes::files_of(&folder.path().join("scene.gltf")).unwrap();
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["scene.gltf", "a b.png"]);
}

#[test]
fn a_webp_image_takes_the_place_of_its_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let images = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    std::fs::copy(images.join("ramp-lossless.webp"), folder.path().join("a.webp")).unwrap();
    image::RgbaImage::from_pixel(2, 3, image::Rgba([255; 4]))
        .save(folder.path().join("a.png"))
        .unwrap();
    let mut file = triangle();
    file["extensionsUsed"] = json!(["EXT_texture_webp"]);
    file["images"] = json!([{ "uri": "a.png" }, { "uri": "a.webp" }]);
    file["textures"] =
        json!([{ "source": 0, "extensions": { "EXT_texture_webp": { "source": 1 } } }]);
    file["materials"] = json!([{ "pbrMetallicRoughness": { "baseColorTexture": { "index": 0 } } }]);
    let load = |file: &serde_json::Value| {
        std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
        load_in(folder.path(), &LoadOptions::default())
    };
    let flat = at(&load(&file).unwrap(), 0.0);
    assert_eq!((flat.textures[0].width, flat.textures[0].height), (35, 29));
    assert_eq!(flat.textures[0].level_count, 6);
    assert_eq!(flat.texels.len(), 4 * (35 * 29 + 17 * 14 + 8 * 7 + 4 * 3 + 2 + 1));
    assert_eq!(flat.texels[4 * 36..4 * 37], [7, 8, 128, 249]);
    // Without a fallback, as where the extension is required; and where it names no image.
    file["extensionsRequired"] = json!(["EXT_texture_webp"]);
    file["textures"] = json!([{ "extensions": { "EXT_texture_webp": { "source": 1 } } }]);
    let scene = load(&file).unwrap();
    assert_eq!((at(&scene, 0.0).textures[0].width, scene.report().warnings.len()), (35, 1));
    file["textures"] = json!([{ "extensions": { "EXT_texture_webp": { "source": 2 } } }]);
    assert!(load(&file).unwrap_err().to_string().contains("images[2]"));
}

#[test]
fn a_basis_universal_image_takes_the_place_of_its_fallback() {
    let folder = tempfile::tempdir().unwrap();
    let images = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/images");
    for name in ["ramp-uastc.ktx2", "ramp-etc1s.ktx2", "ramp-lossless.webp"] {
        std::fs::copy(images.join(name), folder.path().join(name)).unwrap();
    }
    image::RgbaImage::from_pixel(2, 3, image::Rgba([255; 4]))
        .save(folder.path().join("a.png"))
        .unwrap();
    let mut file = triangle();
    file["extensionsUsed"] = json!(["KHR_texture_basisu"]);
    file["images"] = json!([{ "uri": "a.png" }, { "uri": "ramp-uastc.ktx2" },
        { "uri": "ramp-etc1s.ktx2" },
        { "uri": "ramp-lossless.webp" }]);
    file["textures"] =
        json!([{ "source": 0, "extensions": { "KHR_texture_basisu": { "source": 1 } } }]);
    file["materials"] = json!([{ "pbrMetallicRoughness": { "baseColorTexture": { "index": 0 } } }]);
    let load = |file: &serde_json::Value| {
        std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
        load_in(folder.path(), &LoadOptions::default())
    };
    let scene = load(&file).unwrap();
    assert!(scene.report().extensions[0].applied);
    let flat = at(&scene, 0.0);
    assert_eq!(
        (flat.textures[0].width, flat.textures[0].height, flat.textures[0].level_count),
        (35, 29, 6)
    );
    // Levels are Tessera's own, as those of every other image.
    assert_eq!(flat.texels.len(), 4 * (35 * 29 + 17 * 14 + 8 * 7 + 4 * 3 + 2 + 1));
    let far = |texel: &[u8], want: [u8; 4]| {
        texel.iter().zip(want).map(|(a, b)| a.abs_diff(b)).max().unwrap()
    };
    assert!(
        far(&flat.texels[4 * 36..4 * 37], [7, 8, 128, 249]) <= 3,
        "{:?}",
        &flat.texels[4 * 36..4 * 37]
    );
    // Required and without a fallback; beside a WebP image, which loses nothing; and where it names
    // no image.
    file["extensionsRequired"] = json!(["KHR_texture_basisu"]);
    file["textures"] = json!([{ "extensions": { "KHR_texture_basisu": { "source": 2 } } }]);
    let flat = at(&load(&file).unwrap(), 0.0);
    assert_eq!((flat.textures[0].width, flat.texels[4 * 36 + 3]), (35, 255), "without alpha");
    file["textures"][0]["extensions"]["EXT_texture_webp"] = json!({ "source": 3 });
    assert_eq!(at(&load(&file).unwrap(), 0.0).texels[4 * 36..4 * 37], [7, 8, 128, 249]);
    file["textures"] = json!([{ "extensions": { "KHR_texture_basisu": { "source": 9 } } }]);
    assert!(load(&file).unwrap_err().to_string().contains("images[9]"));
    std::fs::write(folder.path().join("ramp-etc1s.ktx2"), b"\xabKTX 20\xbb\r\n\x1a\n").unwrap();
    file["textures"] = json!([{ "extensions": { "KHR_texture_basisu": { "source": 2 } } }]);
    assert!(load(&file).unwrap_err().to_string().contains("images[2]: it is cut short"));
}

#[test]
fn a_constant_environment_is_scaled_and_a_black_one_dropped() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), triangle().to_string()).unwrap();
    let environment = EnvironmentSource::Constant([1.0, 2.0, 3.0]);
    let scene =
        load_in(folder.path(), &LoadOptions { environment, ..LoadOptions::default() }).unwrap();
    let with = |environment_intensity: f32| {
        scene
            .flatten(&FlattenOptions { environment_intensity, ..FlattenOptions::still(8, 8) })
            .unwrap()
    };
    assert_eq!(with(2.0).environment.constant, [2.0, 4.0, 6.0]);
    assert_eq!((with(0.0).environment.light, with(0.0).lights.len()), (NONE, 0));
}

#[test]
fn a_placed_camera_does_not_move_during_an_animation() {
    let mut file = triangle();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 2.0]);
    let places = add_floats(&mut file, "VEC3", 3, &[0.0, 0.0, 0.0, 4.0, 0.0, 0.0]);
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": places }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "translation" } }] }]);
    let scene = load_json(&file).unwrap();
    let (first, last) = (at(&scene, 0.0), at(&scene, 2.0));
    assert_ne!(first.triangles[0].v0, last.triangles[0].v0, "the triangle moves");
    assert_eq!(first.camera.world_from_camera, last.camera.world_from_camera);
    assert_eq!(first.camera.world_from_camera[3], 2.5, "halfway along all that is shown");
}
