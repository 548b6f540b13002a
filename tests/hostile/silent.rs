//! Scenes that could give a picture, but not that of their file: each is an error with its place.

use crate::hostile::scenes::{buffer, changed};
use crate::hostile::traps::Trap;
use serde_json::{Value, json};

const DRACO: &str = include_str!("../../scenes/tests/files/draco.gltf");

/// All of them.
pub(crate) fn all() -> Vec<Trap> {
    let mut traps = vec![
        changed("a mesh of nothing", |scene| scene["meshes"][0]["primitives"] = json!([]))
            .refused("meshes[0].primitives"),
        changed("an animation of nothing", |scene| scene["animations"][0]["channels"] = json!([]))
            .refused("animations[0].channels"),
        changed("weights of a lamp", |scene| {
            let target = &mut scene["animations"][0]["channels"][0]["target"];
            *target = json!({ "node": 3, "path": "weights" });
        })
        .refused("animations[0].channels[0]"),
        changed("a corner too many", |scene| {
            scene["accessors"][3] =
                json!({ "bufferView": 1, "componentType": 5121, "count": 4, "type": "SCALAR" });
        })
        .refused("meshes[0].primitives[0].indices"),
        changed("a joint of another skin", |scene| {
            // The bytes of 1.0 are four joints.
            scene["accessors"][6] = json!({ "bufferView": 0, "byteOffset": 12,
                "componentType": 5121, "count": 3, "type": "VEC4" });
        })
        .refused("meshes[0].primitives[0].attributes.JOINTS_0"),
    ];
    for (bytes, component) in [(&[0, 0, 255][..], 5121), (&[0, 0, 0, 0, 255, 255], 5123)] {
        let name = format!("an index of {component} that restarts");
        let trap = Trap::new(name, of_indices(bytes, component).to_string());
        traps.push(trap.refused("meshes[0].primitives[0].indices"));
    }
    for (extent, value) in
        [("min", json!([0.0])), ("max", json!([1.0, 1.0, 0.0, 0.0])), ("max", json!(1))]
    {
        traps.push(
            changed(format!("{extent} of {value}"), |scene| scene["accessors"][0][extent] = value)
                .refused("accessors[0].m"),
        );
    }
    traps.extend(draco());
    traps
}

fn of_indices(bytes: &[u8], component: u32) -> Value {
    json!({
        "asset": { "version": "2.0" },
        "scenes": [{ "nodes": [0] }],
        "nodes": [{ "mesh": 0 }],
        "meshes": [{ "primitives": [{ "attributes": { "POSITION": 0 }, "indices": 1 }] }],
        "accessors": [
            { "componentType": 5126, "count": 70_000, "type": "VEC3" },
            { "bufferView": 0, "componentType": component, "count": 3, "type": "SCALAR" }
        ],
        "bufferViews": [{ "buffer": 0, "byteLength": bytes.len() }],
        "buffers": [buffer(bytes)]
    })
}

/// Streams that are cut short, or hold something else.
fn draco() -> Vec<Trap> {
    let file: Value = serde_json::from_str(DRACO).expect("a scene");
    let stream = |mesh: usize| {
        let extensions = &file["meshes"][mesh]["primitives"][0]["extensions"];
        let view = &extensions["KHR_draco_mesh_compression"]["bufferView"];
        view.as_u64().expect("a view") as usize
    };
    let mut traps = vec![Trap::new("Draco: whole", DRACO).good()];
    for mesh in 1..4 {
        for part in 0..8 {
            let mut cut = file.clone();
            let length = &mut cut["bufferViews"][stream(mesh)]["byteLength"];
            *length = json!(length.as_u64().expect("a length") * part / 8);
            let name = format!("Draco: mesh {mesh} cut to {part} eighths");
            traps.push(Trap::new(name, cut.to_string()).refused("KHR_draco_mesh_compression"));
        }
        let mut other = file.clone();
        other["bufferViews"][stream(mesh)]["byteOffset"] = json!(0);
        let name = format!("Draco: mesh {mesh} of plain numbers");
        traps.push(Trap::new(name, other.to_string()).refused("KHR_draco_mesh_compression"));
    }
    traps
}
