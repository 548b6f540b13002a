//! What a caller chooses in a file: its scene, its animations, the light around it.

use crate::support::{add_floats, at, load_in, load_json, triangle};
use serde_json::json;
use tessera_scenes::{Choice, EnvironmentSource, LoadOptions, LoadedScene, SceneError};

/// Returns a scene whose triangle the first clip moves along x and the second along y, 1 m/s.
fn two_clips() -> serde_json::Value {
    let mut file = triangle();
    let times = add_floats(&mut file, "SCALAR", 1, &[0.0, 1.0]);
    let clip = |file: &mut serde_json::Value, name: &str, end: [f32; 3]| {
        let places = add_floats(file, "VEC3", 3, &[&[0.0; 3][..], &end[..]].concat());
        json!({ "name": name, "samplers": [{ "input": times, "output": places }],
            "channels": [{ "sampler": 0, "target": { "node": 0, "path": "translation" } }] })
    };
    let walk = clip(&mut file, "Walk", [1.0, 0.0, 0.0]);
    let run = clip(&mut file, "Run", [0.0, 1.0, 0.0]);
    file["animations"] = json!([walk, run]);
    file
}

/// Loads a scene with these options.
fn load_with(file: &serde_json::Value, options: &LoadOptions) -> Result<LoadedScene, SceneError> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    load_in(folder.path(), options)
}

#[test]
fn the_chosen_animation_plays_and_an_unknown_one_is_refused() {
    let file = two_clips();
    let moved = |animations: &[Choice]| {
        let options = LoadOptions { animations: animations.to_vec(), ..LoadOptions::default() };
        let scene = load_with(&file, &options).map_err(|error| error.to_string())?;
        let [x, y, _] = at(&scene, 1.0).triangles[0].v0;
        Ok::<_, String>((x, y, scene.report().warnings.len()))
    };
    let (walk, run) = (Choice::Named("Walk".into()), Choice::Index(1));
    let light = load_json(&triangle()).unwrap().report().warnings.len();
    assert_eq!(moved(&[]), Ok((1.0, 0.0, light + 1)), "one warning for the second clip");
    assert_eq!(moved(std::slice::from_ref(&walk)), Ok((1.0, 0.0, light)));
    assert_eq!(moved(std::slice::from_ref(&run)), Ok((0.0, 1.0, light)));
    assert_eq!(moved(&[run, walk]), Ok((0.0, 1.0, light + 1)), "the first that is named wins");
    let refused = moved(&[Choice::Named("Fly".into())]).unwrap_err();
    assert!(refused.contains("0 \"Walk\", 1 \"Run\""), "{refused}");
}

#[test]
fn the_chosen_scene_is_shown_and_an_unknown_one_is_refused() {
    let mut file = triangle();
    file["nodes"] = json!([{ "mesh": 0 }, { "mesh": 0, "translation": [5, 0, 0] }]);
    file["scenes"] = json!([{ "nodes": [0] }, { "name": "Far", "nodes": [1] }]);
    let corner = |scene: Option<Choice>| {
        let options = LoadOptions { scene, ..LoadOptions::default() };
        let scene = load_with(&file, &options).map_err(|error| error.to_string())?;
        let (scenes, shown) = (scene.report().scenes.clone(), scene.report().shown_scene);
        assert_eq!(scenes, ["", "Far"]);
        Ok::<_, String>((at(&scene, 0.0).triangles[0].v0[0], shown))
    };
    assert_eq!(corner(None), Ok((0.0, 0)));
    assert_eq!(corner(Some(Choice::Index(1))), Ok((5.0, 1)));
    assert_eq!(corner(Some(Choice::Named("Far".into()))), Ok((5.0, 1)));
    let refused = corner(Some(Choice::Index(2))).unwrap_err();
    assert!(refused.contains("there is no scene 2; the file has 0 \"\", 1 \"Far\""), "{refused}");
}

#[test]
fn no_environment_is_none_also_where_the_scene_has_no_light() {
    let present = |environment| {
        let options = LoadOptions { environment, ..LoadOptions::default() };
        at(&load_with(&triangle(), &options).unwrap(), 0.0).environment.present
    };
    assert_eq!(present(EnvironmentSource::Auto), 1);
    assert_eq!(present(EnvironmentSource::None), 0);
}
