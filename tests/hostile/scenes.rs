//! Scenes with traps that somebody thought of: ways out of the folder, numbers that explode, graphs
//! that never end.

use crate::hostile::traps::Trap;
use base64::Engine as _;
use serde_json::{Value, json};

/// A buffer that embeds these bytes.
pub(crate) fn buffer(bytes: &[u8]) -> Value {
    let data = base64::engine::general_purpose::STANDARD.encode(bytes);
    json!({ "byteLength": bytes.len(),
        "uri": format!("data:application/octet-stream;base64,{data}") })
}

/// A scene of one triangle with indices, normals, UVs, a material, an animation, a skin and a
/// camera: something to change everywhere.
pub(crate) fn whole() -> Value {
    let floats: [f32; 36] = std::array::from_fn(|index| match index {
        3 | 7 | 11 | 14 | 17 => 1.0,
        _ => index as f32 * 0.03125,
    });
    let bytes: Vec<u8> =
        floats.iter().flat_map(|value| value.to_le_bytes()).chain([0, 0, 1, 0, 2, 0]).collect();
    json!({
        "asset": { "version": "2.0" },
        "scene": 0,
        "scenes": [{ "nodes": [0, 1, 2] }],
        "nodes": [
            { "name": "mesh", "mesh": 0, "skin": 0, "scale": [1, 1, 1] },
            { "name": "camera", "camera": 0, "translation": [0, 0, 3] },
            { "name": "joint", "rotation": [0, 0, 0, 1], "children": [3] },
            { "name": "lamp", "extensions": { "KHR_lights_punctual": { "light": 0 } } }
        ],
        "meshes": [{ "weights": [0.5], "primitives": [{
            "attributes": { "POSITION": 0, "NORMAL": 1, "TEXCOORD_0": 2, "JOINTS_0": 6,
                "WEIGHTS_0": 5 },
            "indices": 3, "material": 0, "mode": 4, "targets": [{ "POSITION": 1 }]
        }] }],
        "materials": [{
            "pbrMetallicRoughness": { "baseColorFactor": [1, 1, 1, 1], "metallicFactor": 0.5 },
            "emissiveFactor": [0, 0, 0], "alphaMode": "MASK", "alphaCutoff": 0.5
        }],
        "cameras": [{ "type": "perspective", "perspective": { "yfov": 0.7, "znear": 0.01 } }],
        "skins": [{ "joints": [2] }],
        "animations": [{
            "channels": [{ "sampler": 0, "target": { "node": 2, "path": "translation" } }],
            "samplers": [{ "input": 4, "output": 0, "interpolation": "LINEAR" }]
        }],
        "extensionsUsed": ["KHR_lights_punctual"],
        "extensions": { "KHR_lights_punctual": { "lights": [{ "type": "point", "intensity": 5,
        "color": [1, 1, 1] }] } },
        "accessors": [
            { "bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3" },
            { "bufferView": 0, "byteOffset": 36, "componentType": 5126, "count": 3,
            "type": "VEC3" },
            { "bufferView": 0, "byteOffset": 72, "componentType": 5126, "count": 3,
            "type": "VEC2" },
            { "bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR" },
            { "bufferView": 0, "byteOffset": 72, "componentType": 5126, "count": 3,
            "type": "SCALAR" },
            { "bufferView": 0, "byteOffset": 96, "componentType": 5126, "count": 3,
            "type": "VEC4" },
            { "componentType": 5123, "count": 3, "type": "VEC4" }
        ],
        "bufferViews": [
            { "buffer": 0, "byteLength": 144 },
            { "buffer": 0, "byteOffset": 144, "byteLength": 6 }
        ],
        "buffers": [buffer(&bytes)]
    })
}

/// The whole scene with a change.
pub(crate) fn changed(name: impl Into<String>, change: impl FnOnce(&mut Value)) -> Trap {
    let mut scene = whole();
    change(&mut scene);
    Trap::new(name, scene.to_string())
}

/// All of them.
pub(crate) fn all() -> Vec<Trap> {
    let mut traps = vec![Trap::new("the scene that is changed", whole().to_string()).good()];
    traps.extend(ways_out());
    traps.extend(bombs());
    traps.extend(graphs());
    traps.extend(texts());
    traps
}

/// URIs that lead out of the folder, or to what is no file.
const URIS: &[&str] = &[
    "../secret/canary.bin",
    "sub/../../secret/canary.bin",
    "./../secret/canary.bin",
    "%2e%2e/secret/canary.bin",
    "..%2fsecret%2fcanary.bin",
    "%2e%2e%2fsecret%2fcanary.bin",
    "sub/%2e%2e/%2e%2e/secret/canary.bin",
    "..\\secret\\canary.bin",
    "..%5csecret%5ccanary.bin",
    "link.bin",
    "./link.bin",
    "away/canary.bin",
    "sub/../away/canary.bin",
    "zero.bin",
    "loop.bin",
    "pipe.bin",
    "sub",
    ".",
    "..",
    "",
    "/etc/passwd",
    "//etc/passwd",
    "%2fetc%2fpasswd",
    "/dev/zero",
    "/dev/stdin",
    "/proc/self/environ",
    "/proc/self/mem",
    "file:///etc/passwd",
    "FILE:/etc/passwd",
    "http://127.0.0.1:9/x.bin",
    "https://example.org/x.bin",
    "ftp://example.org/x.bin",
    "//example.org/x.bin",
    "smb://example.org/x",
    "javascript:alert(1)",
    "c:/windows/system.ini",
    "x.bin\u{0}.png",
    "x%00.bin",
    "x%0a.bin",
    "%",
    "%1",
    "%zz",
    "%c0%ae%c0%ae/secret/canary.bin",
    "~/.ssh/id_rsa",
    "$HOME/x",
    "*",
    "data:",
    "data:,",
    "data:;base64,====",
    "data:;base64,A",
    "data:;base64,\u{ff21}",
    "missing.bin",
    "scene.gltf",
];

/// Each of them as a buffer and as an image.
fn ways_out() -> Vec<Trap> {
    let mut traps = Vec::new();
    for uri in URIS {
        traps.push(changed(format!("buffer at {uri:?}"), |scene| {
            scene["buffers"][0]["uri"] = json!(uri)
        }));
        let trap = changed(format!("image at {uri:?}"), |scene| {
            scene["images"] = json!([{ "uri": uri }]);
            scene["textures"] = json!([{ "source": 0 }]);
            scene["materials"][0]["pbrMetallicRoughness"]["baseColorTexture"] =
                json!({ "index": 0 });
        });
        traps.push(trap.refused(""));
    }
    let long = "a/".repeat(100_000);
    traps.push(
        changed("a path of 200,000 bytes", |scene| scene["buffers"][0]["uri"] = json!(long))
            .refused(""),
    );
    traps
}

/// A little file that asks for much.
fn bombs() -> Vec<Trap> {
    let zeros =
        |count: u64, kind: &str| json!({ "componentType": 5126, "count": count, "type": kind });
    let plain = |accessors: Value, mesh: Value, node: Value| {
        json!({
            "asset": { "version": "2.0" }, "scenes": [{ "nodes": [0] }], "nodes": [node],
                "meshes": [mesh],
            "accessors": accessors, "extensionsUsed": ["EXT_mesh_gpu_instancing"]
        })
    };
    let instanced = json!({ "mesh": 0,
        "extensions": { "EXT_mesh_gpu_instancing": { "attributes": { "TRANSLATION": 0 } } } });
    let mesh = json!({ "primitives": [{ "attributes": { "POSITION": 1 } }] });
    let empties = json!({ "primitives": vec![json!({ "attributes": {} }); 1000] });
    let indices = json!({ "componentType": 5125, "count": 4_000_000, "type": "SCALAR" });
    let targets = json!({ "primitives": [{ "attributes": { "POSITION": 1 }, "indices": 2, "mode": 5,
        "targets": vec![json!({ "POSITION": 1 }); 1000] }] });
    let only = json!({ "mesh": 0 });
    let many = |count: u64| json!([zeros(count, "VEC3"), zeros(3, "VEC3"), indices]);
    let scenes = [
        (
            "four million instances of a fan",
            plain(many(4_000_000), mesh.clone(), instanced.clone()),
        ),
        ("more instances than there are numbers", plain(many(u64::MAX), mesh, instanced.clone())),
        ("four billion primitives in place", plain(many(4_000_000), empties, instanced)),
        ("a thousand targets of twelve million vertices", plain(many(3), targets, only.clone())),
        ("ten thousand copies of an accessor", {
            let copies: serde_json::Map<String, Value> = (0..8)
                .map(|set| (format!("TEXCOORD_{set}"), json!(0)))
                .chain([("POSITION".into(), json!(0))])
                .collect();
            let primitive = |number: u64| {
                json!({ "attributes": copies, "mode": 4,
                "material": null, "extras": number })
            };
            let primitives: Vec<Value> = (0..10_000).map(primitive).collect();
            plain(json!([zeros(4_000_000, "VEC3")]), json!({ "primitives": primitives }), only)
        }),
    ];
    let mut traps: Vec<Trap> = scenes
        .into_iter()
        .map(|(name, scene)| Trap::new(name, scene.to_string()).refused(""))
        .collect();
    traps.extend(long_lists());
    traps
}

/// Lists whose length is the harm.
fn long_lists() -> Vec<Trap> {
    let mut traps = Vec::new();
    let many = "{},".repeat(8_000_000);
    traps.push(
        Trap::new(
            "eight million nodes",
            format!(r#"{{"asset":{{"version":"2.0"}},"nodes":[{many}{{}}]}}"#),
        )
        .refused("--scene-memory"),
    );
    traps.push(changed("matrices for a hundred thousand skins", |scene| {
        scene["accessors"][6] = json!({ "componentType": 5126, "count": 250_000, "type": "MAT4" });
        scene["skins"] = json!(vec![json!({ "joints": [2], "inverseBindMatrices": 6 }); 100_000]);
    }));
    traps.push(changed("a key a channel, a hundred thousand times", |scene| {
        scene["accessors"][6] = json!({ "componentType": 5126, "count": 1_000_000,
            "type": "SCALAR" });
        scene["animations"][0]["samplers"] = json!(vec![
            json!({ "input": 6,
            "output": 6 });
            10_000
        ]);
        let channel = |sampler: u64| {
            json!({ "sampler": sampler, "target": { "node": 2,
                "path": "weights" } })
        };
        scene["animations"][0]["channels"] = (0..10_000).map(channel).collect();
        scene["nodes"][2]["mesh"] = json!(0);
    }));
    traps
}

/// Nodes, children and indices that form no tree.
fn graphs() -> Vec<Trap> {
    let chain = |length: usize| -> Value {
        let mut nodes: Vec<Value> =
            (1..length).map(|child| json!({ "children": [child] })).collect();
        nodes.push(json!({ "mesh": 0 }));
        json!(nodes)
    };
    let mut traps = vec![
        changed("a chain of 200,000 nodes", |scene| {
            scene["nodes"] = chain(200_000);
            scene["scenes"][0]["nodes"] = json!([0]);
            scene["skins"] = json!([]);
            scene["animations"] = json!([]);
        })
        .good(),
        changed("a circle of 10,000 nodes", |scene| {
            scene["nodes"] = chain(10_000);
            scene["nodes"][9_999]["children"] = json!([0]);
        })
        .refused("ancestor"),
        changed("200,000 roots, the last twice", |scene| {
            scene["nodes"] = json!(vec![json!({}); 200_000]);
            scene["scenes"][0]["nodes"] = (0..200_000).chain([199_999]).collect();
            scene["skins"] = json!([]);
            scene["animations"] = json!([]);
        })
        .refused("twice"),
        changed("a name of two million letters in a circle", |scene| {
            scene["nodes"][2] = json!({ "name": "x".repeat(2_000_000), "children": [2] });
        })
        .refused("nodes[2]"),
        changed("a hundred thousand extensions", |scene| {
            scene["extensionsUsed"] =
                (0..100_000).map(|number| json!(format!("X_{number}"))).collect();
        }),
        changed("a hundred thousand required extensions", |scene| {
            scene["extensionsRequired"] =
                (0..100_000).map(|number| json!(format!("X_{number}"))).collect();
        })
        .refused("extensionsRequired"),
        changed("a hundred thousand cameras", |scene| {
            scene["cameras"] = json!(vec![scene["cameras"][0].clone(); 100_000]);
            scene["nodes"] = (0..100_000).map(|camera| json!({ "camera": camera })).collect();
            scene["scenes"][0]["nodes"] = (0..100_000).collect();
            scene["skins"] = json!([]);
            scene["animations"] = json!([]);
        })
        .good(),
        changed("animations by the hundred thousand", |scene| {
            scene["animations"] = json!(vec![scene["animations"][0].clone(); 100_000]);
        }),
    ];
    for (name, value) in
        [("NaN", "NaN"), ("infinity", "1e999"), ("the smallest", "1e-45"), ("beyond f32", "1e39")]
    {
        let text =
            whole().to_string().replace("\"scale\":[1,1,1]", &format!("\"scale\":[{value},1,1]"));
        traps.push(Trap::new(format!("a scale of {name}"), text));
    }
    for scale in
        [json!([0, 0, 0]), json!([1e30, 1e30, 1e30]), json!([-1, -1, -1]), json!([1e-30, 1, 1])]
    {
        traps.push(changed(format!("a scale of {scale}"), |scene| {
            scene["nodes"][0]["scale"] = scale
        }));
    }
    traps
}

/// Texts that are no scene at all.
fn texts() -> Vec<Trap> {
    let deep =
        |open: &str, close: &str| format!("{}{}", open.repeat(200_000), close.repeat(200_000));
    let texts = [
        ("nothing", String::new()),
        ("a brace", "{".into()),
        ("an empty object", "{}".into()),
        ("a list", "[]".into()),
        ("objects 200,000 deep", deep("{\"a\":", "}")),
        ("lists 200,000 deep", format!("{{\"extras\":{}}}", deep("[", "]"))),
        ("a name that never ends", format!("{{\"{}", "a".repeat(1 << 20))),
        ("two roots", format!("{}{}", whole(), whole())),
        ("zeros", "\0".repeat(4096)),
        ("a byte order mark alone", "\u{feff}".into()),
        ("UTF-16", whole().to_string().chars().flat_map(|c| [c, '\0']).collect()),
        (
            "a number of a million digits",
            format!("{{\"asset\":{{\"version\":{}}}}}", "9".repeat(1 << 20)),
        ),
        ("glTF 1.0", r#"{"asset":{"version":"1.0"}}"#.into()),
        ("glTF 2.99", r#"{"asset":{"version":"2.0","minVersion":"2.99"}}"#.into()),
        ("no scene", r#"{"asset":{"version":"2.0"}}"#.into()),
        (
            "XML",
            "<?xml version=\"1.0\"?><!DOCTYPE x [<!ENTITY a SYSTEM \
                \"file:///etc/passwd\">]><x>&a;</x>"
                .into(),
        ),
    ];
    texts.into_iter().map(|(name, text)| Trap::new(name, text).refused("")).collect()
}
