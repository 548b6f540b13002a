//! Scenes far from the origin and of extreme scale: what kernels see of them is what they see of
//! the same scene at the origin.

use crate::support::{add_accessor, add_floats, at, load_in, load_json, triangle};
use serde_json::{Value, json};
use tessera_layout::{FlatScene, LightKind};
use tessera_scenes::{
    Aperture, CameraChoice, FlattenOptions, Focus, Lens, LoadOptions, LoadedScene, SceneError,
    SpaceChoice, WorkingSpace,
};

/// A triangle of 4 m and a camera 6 m before it, below one parent, and a light of each kind.
fn room() -> Value {
    let mut file = triangle();
    file["nodes"] = json!([
        { "children": [1, 2, 3, 4] },
        { "mesh": 0, "scale": [4, 4, 4], "translation": [-2, -2, 0] },
        { "camera": 0, "translation": [0, 1, 6] },
        { "translation": [1, 3, 2], "extensions": { "KHR_lights_punctual": { "light": 0 } } },
        { "extensions": { "KHR_lights_punctual": { "light": 1 } } },
    ]);
    file["cameras"] =
        json!([{ "type": "perspective", "perspective": { "yfov": 0.8, "znear": 0.25 } }]);
    file["extensionsUsed"] = json!(["KHR_lights_punctual"]);
    file["extensions"] = json!({ "KHR_lights_punctual": { "lights": [
        { "type": "point", "intensity": 40, "range": 16 },
        { "type": "directional", "intensity": 3 },
    ] } });
    file
}

fn space(scene: &LoadedScene) -> WorkingSpace {
    scene.report().space
}

fn corners(frame: &FlatScene) -> Vec<[f32; 3]> {
    frame.triangles.iter().flat_map(|triangle| [triangle.v0, triangle.v1, triangle.v2]).collect()
}

/// Corners relative to the camera, in units of `unit`.
fn from_camera(frame: &FlatScene, unit: f32) -> Vec<[f32; 3]> {
    let m = frame.camera.world_from_camera;
    let place = [m[3], m[7], m[11]];
    let relative = |corner: [f32; 3]| std::array::from_fn(|k| (corner[k] - place[k]) / unit);
    corners(frame).into_iter().map(relative).collect()
}

#[test]
fn ordinary_scenes_stay_where_they_are() {
    for (translation, scale) in
        [([0.0, 0.0, 0.0], 1.0), ([200.0, -3.0, 100.0], 1.0), ([0.0, 0.0, 0.0], 64.0)]
    {
        let mut file = room();
        file["nodes"][0]["translation"] = json!(translation);
        file["nodes"][0]["scale"] = json!([scale, scale, scale]);
        let scene = load_json(&file).unwrap();
        assert_eq!(space(&scene), WorkingSpace::FILE, "{translation:?} {scale}");
        assert!(scene.report().warnings.is_empty(), "{:?}", scene.report().warnings);
    }
}

#[test]
fn a_far_scene_has_the_numbers_of_one_at_the_origin() {
    let near = at(&load_json(&room()).unwrap(), 0.0);
    for translation in [
        [1000.0, 0.0, 0.0],
        [1e4, 0.0, 2e4],
        [1e5, 0.0, 1.5e5],
        [3e5, 1e3, 0.0],
        [1_489_123.0, 0.0, 6_894_012.0],
        [2e7, 0.0, -2e7],
    ] {
        let mut file = room();
        file["nodes"][0]["translation"] = json!(translation);
        let scene = load_json(&file).unwrap();
        let frame = at(&scene, 0.0);
        assert_eq!((space(&scene).origin, space(&scene).exponent), (translation, 0));
        assert_eq!(corners(&frame), corners(&near), "{translation:?}");
        assert_eq!((frame.camera, &frame.lights), (near.camera, &near.lights), "{translation:?}");
        assert_eq!(frame.bvh.padding, near.bvh.padding);
        let report = scene.report();
        let [x, y, z] = translation;
        assert_eq!(report.bounds_lower, [x - 2.0, y - 2.0, z].map(|c| c as f32));
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
    }
}

#[test]
fn a_tiny_or_huge_scene_is_seen_in_ordinary_numbers() {
    let near = at(&load_json(&room()).unwrap(), 0.0);
    for exponent in [-30, -20, -14, 9, 12, 22, 27] {
        let scale = 2f64.powi(exponent);
        let mut file = room();
        file["nodes"][0]["scale"] = json!([scale, scale, scale]);
        file["cameras"][0]["perspective"]["znear"] = json!(0.25 * scale);
        let light = &mut file["extensions"]["KHR_lights_punctual"]["lights"][0];
        (light["intensity"], light["range"]) = (json!(40.0 * scale * scale), json!(16.0 * scale));
        let scene = load_json(&file).unwrap();
        let frame = at(&scene, 0.0);
        let unit = 2f32.powi(exponent + space(&scene).exponent);
        assert_eq!(unit, if exponent < 0 { 4.0 } else { 16.0 });
        assert_eq!(space(&scene).origin, [0.0; 3]);
        assert_eq!(from_camera(&frame, unit), from_camera(&near, 1.0), "{exponent}");
        assert_eq!(frame.camera.near, 0.25 * unit);
        assert_eq!(frame.camera.half_height, near.camera.half_height);
        // The same irradiance of the same surfaces.
        let (placed, sun) = (frame.lights[0], frame.lights[1]);
        assert_eq!((placed.kind, placed.range), (LightKind::Point as u32, 16.0 * unit));
        assert_eq!(placed.emission, [40.0 * unit * unit; 3]);
        assert_eq!((sun.kind, sun.emission), (LightKind::Directional as u32, [3.0; 3]));
        let share = |lights: &[tessera_layout::Light]| lights[0].pick_probability;
        assert_eq!(share(&frame.lights), share(&near.lights));
    }
}

#[test]
fn a_tiny_scene_far_away_is_moved_and_enlarged() {
    let mut file = room();
    file["nodes"][0]["translation"] = json!([1e6, 0.0, 2e6]);
    file["nodes"][0]["scale"] = json!([0.0001, 0.0001, 0.0001]);
    let scene = load_json(&file).unwrap();
    let WorkingSpace { origin, exponent } = space(&scene);
    assert!((origin[0] - 1e6).abs() < 1e-3 && (origin[2] - 2e6).abs() < 1e-3, "{origin:?}");
    assert_eq!(exponent, 15, "4e-4 m become 13");
    let near = at(&load_json(&room()).unwrap(), 0.0);
    let unit = 0.0001 * 32_768.0;
    for (far, near) in from_camera(&at(&scene, 0.0), unit).iter().zip(from_camera(&near, 1.0)) {
        for (far, near) in far.iter().zip(near) {
            assert!((far - near).abs() < 1e-5, "{far} {near}");
        }
    }
}

#[test]
fn translations_of_a_moved_scene_are_in_double_precision() {
    let mut file = triangle();
    let matrix: Vec<f64> =
        [1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0].into_iter().map(f64::from).collect();
    let matrix = [matrix, vec![6_894_012.83, 0.0, 1_489_123.62, 1.0]].concat();
    file["nodes"] = json!([
        { "mesh": 0, "translation": [6_894_012.81, 0.0, 1_489_123.37] },
        { "mesh": 0, "matrix": matrix },
    ]);
    file["scenes"][0]["nodes"] = json!([0, 1]);
    let triangles = at(&load_json(&file).unwrap(), 0.0).triangles;
    let apart: [f32; 3] = std::array::from_fn(|k| triangles[1].v0[k] - triangles[0].v0[k]);
    for (apart, wanted) in apart.iter().zip([0.02, 0.0, 0.25]) {
        assert!((apart - wanted).abs() < 1e-6, "{apart:?}");
    }
}

#[test]
fn every_length_of_a_view_is_scaled() {
    let view = |file: &Value, options: &FlattenOptions| {
        let scene = load_json(file).unwrap();
        let unit = 2f32.powi(space(&scene).exponent);
        let camera = scene.flatten(options).unwrap().camera;
        let m = camera.world_from_camera;
        let place = [m[3], m[7], m[11]].map(|c| c / unit);
        let lengths = [camera.half_height, camera.near, camera.far, camera.lens_radius];
        (place, lengths.map(|length| length / unit), camera.focus_distance / unit, camera)
    };
    let scale = 2f32.powi(-16);
    let mut file = room();
    file["nodes"][0]["scale"] = json!([scale, scale, scale]);
    file["cameras"][0] = json!({ "type": "orthographic", "orthographic":
        { "xmag": 2.0 * scale, "ymag": 3.0 * scale, "znear": 0.5 * scale, "zfar": 64.0 * scale } });
    let (place, lengths, ..) = view(&file, &FlattenOptions::still(8, 8));
    assert_eq!(place, [0.0, scale, 6.0 * scale]);
    assert_eq!(lengths, [3.0 * scale, 0.5 * scale, 64.0 * scale, 0.0]);
    let wide = f64::from(scale);
    let camera = CameraChoice::LookAt {
        eye: [0.0, 2.0 * wide, 4.0 * wide],
        target: [0.0, 2.0 * wide, 0.0],
        up: [0.0, 1.0, 0.0],
        vfov_degrees: 40.0,
    };
    let aperture = Aperture::Radius(0.25 * scale);
    for focus in [Focus::Distance(3.0 * scale), Focus::Point([wide, 0.0, wide])] {
        let lens = Some(Lens { aperture, focus, blades: None, sensor_width: None });
        let options =
            FlattenOptions { camera: camera.clone(), lens, ..FlattenOptions::still(8, 8) };
        let (place, lengths, distance, _) = view(&file, &options);
        assert_eq!(place, [0.0, 2.0 * scale, 4.0 * scale]);
        assert_eq!((lengths[1], lengths[3], distance), (0.0, 0.25 * scale, 3.0 * scale));
        assert_eq!(lengths[2], f32::INFINITY);
    }
}

#[test]
fn a_placed_camera_sees_a_far_scene_as_a_near_one() {
    let mut file = room();
    file["nodes"][2] = json!({});
    let near = load_json(&file).unwrap();
    let place = [1_489_123.37, 123.41, 6_894_012.83];
    file["nodes"][0]["translation"] = json!(place);
    let far = load_json(&file).unwrap();
    let through = |scene: &LoadedScene, offset: [f64; 3]| {
        let shifted = |point: [f64; 3]| std::array::from_fn(|axis| point[axis] + offset[axis]);
        let camera = CameraChoice::LookAt {
            eye: shifted([1.0, 2.0, 7.0]),
            target: shifted([0.0, 0.5, 0.0]),
            up: [0.0, 1.0, 0.0],
            vfov_degrees: 45.0,
        };
        let frame = scene
            .flatten(&FlattenOptions { camera, ..FlattenOptions::still(8, 8) })
            .expect("a frame");
        from_camera(&frame, 1.0)
    };
    let apart = |one: &[[f32; 3]], other: &[[f32; 3]]| {
        let pairs = one.iter().flatten().zip(other.iter().flatten());
        pairs.fold(0.0f32, |apart, (one, other)| apart.max((one - other).abs()))
    };
    assert!(apart(&through(&near, [0.0; 3]), &through(&far, place)) < 1e-5);
    // Without a camera of its own, the scene is framed alike.
    let framed = |scene: &LoadedScene| from_camera(&at(scene, 0.0), 1.0);
    assert!(apart(&framed(&near), &framed(&far)) < 1e-4);
}

#[test]
fn skins_instances_and_media_are_in_the_working_space() {
    let scale = 2f32.powi(-12);
    let mut file = triangle();
    file["nodes"] = json!([
        { "children": [1, 2, 3], "scale": [scale, scale, scale] },
        { "mesh": 0 },
        { "mesh": 0, "translation": [4, 0, 0] },
        { "mesh": 0, "translation": [0, 4, 0] },
    ]);
    file["materials"] = json!([{ "extensions": {
        "KHR_materials_transmission": { "transmissionFactor": 1 },
        "KHR_materials_volume": { "thicknessFactor": 1, "attenuationDistance": 0.5 * scale,
            "attenuationColor": [0.5, 0.5, 0.5] },
    } }]);
    file["extensionsUsed"] = json!(["KHR_materials_transmission", "KHR_materials_volume"]);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    let options = LoadOptions { instanced_from: 1, ..LoadOptions::default() };
    let scene = load_in(folder.path(), &options).unwrap();
    let frame = at(&scene, 0.0);
    let unit = scale * 2f32.powi(space(&scene).exponent);
    assert!(unit > 1.0);
    assert_eq!(frame.instances.len(), 3);
    let [row, ..] = frame.instances[1].world_from_mesh;
    assert_eq!((row[0], row[3]), (unit, 4.5 * unit), "about the middle of the mesh");
    // Half of the light is left after half a unit of the file.
    let left = libm::exp(-f64::from(frame.media[1].absorption[0]) * f64::from(0.5 * unit));
    assert!((left - 0.5).abs() < 1e-6, "{left}");

    let mut file = triangle();
    let joints = add_accessor(&mut file, "VEC4", 5121, 3, &[0; 12]);
    let weights = add_floats(&mut file, "VEC4", 4, &[0.0; 12]);
    let attributes = &mut file["meshes"][0]["primitives"][0]["attributes"];
    (attributes["JOINTS_0"], attributes["WEIGHTS_0"]) = (json!(joints), json!(weights));
    file["nodes"] = json!([{ "mesh": 0, "skin": 0 }, { "translation": [9, 0, 0] }]);
    file["skins"] = json!([{ "joints": [1] }]);
    let space = WorkingSpace { origin: [0.0, 0.0, 1.0], exponent: 3 };
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    let options = LoadOptions { space: SpaceChoice::Given(space), ..LoadOptions::default() };
    let frame = at(&load_in(folder.path(), &options).unwrap(), 0.0);
    assert_eq!(corners(&frame)[1], [8.0, 0.0, -8.0], "vertices without weights stay");
}

#[test]
fn all_frames_of_a_film_are_in_one_space() {
    let mut file = room();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let places = add_floats(&mut file, "VEC3", 3, &[1e5, 0.0, 0.0, 1e5 + 64.0, 0.0, 0.0]);
    file["animations"] = json!([{
        "samplers": [{ "input": times, "output": places }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "translation" } }],
    }]);
    let scene = load_json(&file).unwrap();
    assert_eq!(space(&scene).origin, [1e5, 0.0, 0.0]);
    let (first, last) = (at(&scene, 0.0), at(&scene, 1.0));
    assert_eq!(corners(&first)[0], [-2.0, -2.0, 0.0]);
    assert_eq!(corners(&last)[0], [62.0, -2.0, 0.0]);
}

#[test]
fn what_is_still_beyond_is_told() {
    let warning = |file: &Value| {
        let warnings = load_json(file).unwrap().report().warnings.clone();
        assert_eq!(warnings.len(), 1, "{warnings:?}");
        warnings[0].clone()
    };
    // Vertices that are themselves far away.
    let mut baked = room();
    let far: Vec<f32> = [0.0, 0.0, 0.0, 6.0, 0.0, 0.0, 0.0, 6.0, 0.0]
        .iter()
        .zip([1.5e7, 0.0, 7e6].iter().cycle())
        .map(|(near, far)| near + far)
        .collect();
    let positions = add_floats(&mut baked, "VEC3", 3, &far);
    baked["meshes"][0]["primitives"][0]["attributes"]["POSITION"] = json!(positions);
    baked["nodes"][1] = json!({ "mesh": 0 });
    baked["nodes"][2]["translation"] = json!([1.5e7, 1.0, 7e6 + 6.0]);
    assert!(warning(&baked).contains("meshes[0]"), "{}", warning(&baked));
    // Two places far from each other, and a camera at each.
    let mut apart = room();
    apart["nodes"].as_array_mut().unwrap().push(json!(
        { "mesh": 0, "translation": [2e5, 0, 0], "children": [6] }));
    apart["nodes"].as_array_mut().unwrap().push(json!({ "camera": 0, "translation": [0, 0, 6] }));
    apart["scenes"][0]["nodes"] = json!([0, 5]);
    assert!(warning(&apart).starts_with("camera 1"), "{}", warning(&apart));
    // The first camera's place is the one that is seen well.
    let scene = load_json(&apart).unwrap();
    assert!(space(&scene).origin[0].abs() < 1.0, "{:?}", space(&scene));
    (apart["nodes"][2], apart["nodes"][6]) = (json!({}), json!({}));
    assert!(warning(&apart).contains("triangles"), "{}", warning(&apart));
}

#[test]
fn a_space_that_is_given_is_taken_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), room().to_string()).unwrap();
    let within = |origin, exponent| {
        let space = SpaceChoice::Given(WorkingSpace { origin, exponent });
        load_in(folder.path(), &LoadOptions { space, ..LoadOptions::default() })
    };
    let scene = within([1.0, 0.0, 0.0], 1).unwrap();
    assert_eq!(corners(&at(&scene, 0.0))[0], [-6.0, -4.0, 0.0]);
    assert_eq!(scene.report().bounds_lower, [-2.0, -2.0, 0.0]);
    for (origin, exponent) in [([f64::NAN, 0.0, 0.0], 0), ([0.0; 3], 101), ([0.0; 3], i32::MIN)] {
        assert!(matches!(within(origin, exponent), Err(SceneError::Option { .. })));
    }
}
