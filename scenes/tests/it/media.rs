//! What closed surfaces enclose: which media a scene has, and the priority that `extras` give them.

use crate::support::{at, load_json, refusal, triangle};
use serde_json::{Value, json};

/// Glass whose colour at a metre has so much red, with these extras.
fn glass(red: f64, extras: Value) -> Value {
    json!({
        "extensions": {
            "KHR_materials_transmission": { "transmissionFactor": 1 },
            "KHR_materials_volume":
                { "thicknessFactor": 1, "attenuationDistance": 1, "attenuationColor": [red, 1, 1] },
        },
        "extras": extras,
    })
}

fn of(materials: Vec<Value>) -> Value {
    let mut file = triangle();
    file["materials"] = json!(materials);
    file["meshes"][0]["primitives"][0]["material"] = json!(0);
    file
}

#[test]
fn equal_media_have_one_number_and_others_their_own() {
    let pane =
        json!({ "extensions": { "KHR_materials_transmission": { "transmissionFactor": 1 } } });
    let first = json!({ "tessera_medium_priority": 1 });
    let file = of(vec![
        glass(0.5, json!(null)),
        pane,
        glass(0.25, json!({})),
        glass(0.5, json!([])),
        glass(0.5, first),
    ]);
    let scene = at(&load_json(&file).unwrap(), 0.0);
    let numbers: Vec<u32> = scene.layers.iter().map(|layers| layers.medium).collect();
    assert_eq!(numbers, [0, 1, 0, 2, 1, 3]);
    let priorities: Vec<i32> = scene.media.iter().map(|medium| medium.priority).collect();
    assert_eq!(priorities, [i32::MIN, 0, 0, 1]);
}

#[test]
fn a_priority_is_a_whole_number_near_zero() {
    for (value, want) in [(json!(-1000), -1000), (json!(7.0), 7), (json!(1000), 1000)] {
        let scene = at(
            &load_json(&of(vec![glass(0.5, json!({ "tessera_medium_priority": value }))])).unwrap(),
            0.0,
        );
        assert_eq!(scene.media[1].priority, want);
    }
    for value in [json!(1001), json!(-1e300), json!(0.5), json!("first"), json!(null), json!([1])] {
        let error = refusal(&of(vec![glass(0.5, json!({ "tessera_medium_priority": value }))]));
        assert!(error.contains("materials[0].extras.tessera_medium_priority"), "{error}");
        assert!(error.contains("must be a whole number from -1000 to 1000"), "{error}");
    }
}

#[test]
fn a_priority_without_a_medium_is_a_warning() {
    let file = of(vec![json!({ "extras": { "tessera_medium_priority": 1, "more": true } })]);
    let scene = load_json(&file).unwrap();
    let warnings = scene.report().warnings.join("\n");
    assert!(
        warnings.contains("materials[0].extras.tessera_medium_priority has no effect"),
        "{warnings}"
    );
    assert!(at(&scene, 0.0).media.is_empty());
}

#[test]
fn more_media_than_a_path_can_tell_apart_are_refused() {
    let many =
        |count: u32| (0..count).map(|at| glass(f64::from(at + 1) / 512.0, json!({}))).collect();
    assert_eq!(at(&load_json(&of(many(255))).unwrap(), 0.0).media.len(), 256);
    let error = refusal(&of(many(256)));
    assert!(
        error.contains("materials[255]") && error.contains("more than 255 different media"),
        "{error}"
    );
}
