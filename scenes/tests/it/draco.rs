//! Primitives that are compressed with Draco: they show the plain mesh, and what is broken is told
//! with its place.

use crate::support::{add_accessor, at, buffer, load_bytes, load_json, refusal, triangle};
use draco_core::{
    DataType, EncoderBuffer, EncoderOptions, GeometryAttributeType, Mesh, MeshEncoder,
    PointAttribute,
};
use serde_json::{Value, json};
use tessera_layout::{FlatScene, ShadingVertex};
use tessera_scenes::LoadOptions;

const NAME: &str = "KHR_draco_mesh_compression";
/// Vertices along a side of the grid.
const SIDE: usize = 9;
/// Methods of Draco.
const SEQUENTIAL: i32 = 0;
const EDGEBREAKER: i32 = 1;

/// A kind of numbers, for both formats.
#[derive(Clone, Copy)]
struct Kind {
    draco: DataType,
    gltf: u32,
}

const FLOATS: Kind = Kind { draco: DataType::Float32, gltf: 5126 };
const BYTES: Kind = Kind { draco: DataType::Uint8, gltf: 5121 };
const WORDS: Kind = Kind { draco: DataType::Uint16, gltf: 5123 };

/// An attribute of the grid.
struct Attribute {
    name: &'static str,
    role: GeometryAttributeType,
    width: usize,
    kind: Kind,
    normalized: bool,
    /// Bits to which floats are quantised; 0 keeps them.
    bits: i32,
    bytes: Vec<u8>,
}

fn vertices() -> impl Iterator<Item = [f32; 2]> {
    (0..SIDE * SIDE).map(|index| [(index % SIDE) as f32, (index / SIDE) as f32])
}

fn unit<const N: usize>(v: [f32; N]) -> [f32; N] {
    let length = v.iter().map(|c| c * c).sum::<f32>().sqrt();
    v.map(|c| c / length)
}

/// A hilly grid with everything that the extension may hold.
fn attributes(bits: i32) -> Vec<Attribute> {
    fn le<const N: usize>(values: impl Iterator<Item = [f32; N]>) -> Vec<u8> {
        values.flatten().flat_map(f32::to_le_bytes).collect()
    }
    let float = |name, role, width, bytes| Attribute {
        name,
        role,
        width,
        kind: FLOATS,
        normalized: false,
        bits,
        bytes,
    };
    let height = |x: f32, y: f32| (x * 1.7).sin() * (y * 0.9).cos();
    let weight = |x: f32| [x / 16.0, 1.0 - x / 16.0, 0.0, 0.0];
    let colors = vertices().flat_map(|[x, y]| [(x * 31.0) as u8, (y * 31.0) as u8, 128, 255]);
    let joints = vertices().flat_map(|[_, y]| [u16::from(y > 4.0), 1, 0, 0]);
    use GeometryAttributeType::{Color, Generic, Normal, Position, TexCoord};
    vec![
        float("POSITION", Position, 3, le(vertices().map(|[x, y]| [x, y, height(x, y)]))),
        float("NORMAL", Normal, 3, le(vertices().map(|[x, y]| unit([x - 4.0, y - 4.0, 3.0])))),
        float("TEXCOORD_0", TexCoord, 2, le(vertices().map(|[x, y]| [x / 8.0, 1.0 - y / 4.0]))),
        float(
            "TANGENT",
            Generic,
            4,
            le(vertices().map(|[x, _]| [0.6, 0.8, 0.0, 1.0 - 2.0 * (x % 2.0)])),
        ),
        Attribute {
            name: "COLOR_0",
            role: Color,
            width: 4,
            kind: BYTES,
            normalized: true,
            bits: 0,
            bytes: colors.collect(),
        },
        Attribute {
            name: "JOINTS_0",
            role: Generic,
            width: 4,
            kind: WORDS,
            normalized: false,
            bits: 0,
            bytes: joints.flat_map(u16::to_le_bytes).collect(),
        },
        float("WEIGHTS_0", Generic, 4, le(vertices().map(|[x, _]| weight(x)))),
    ]
}

fn indices() -> Vec<u32> {
    let cells = (0..SIDE * (SIDE - 1)).filter(|at| at % SIDE != SIDE - 1);
    let corners = cells.map(|at| [at, at + 1, at + SIDE, at + SIDE + 1].map(|at| at as u32));
    corners.flat_map(|[a, b, c, d]| [a, b, c, c, b, d]).collect()
}

/// A skinned file without geometry: its mesh is node 0, and its joints are moved along z.
fn skinned() -> Value {
    let mut file = triangle();
    file["skins"] = json!([{ "joints": [1, 2] }]);
    file["nodes"] = json!([
        { "mesh": 0, "skin": 0 },
        { "translation": [0.0, 0.0, 1.0] },
        { "translation": [0.0, 0.0, 2.0] },
    ]);
    file["scenes"][0]["nodes"] = json!([0, 1, 2]);
    file
}

fn plain() -> Value {
    let mut file = skinned();
    let mut names = json!({});
    for attribute in attributes(0) {
        let kind = format!("VEC{}", attribute.width);
        let bytes = &attribute.bytes;
        let accessor = add_accessor(&mut file, &kind, attribute.kind.gltf, SIDE * SIDE, bytes);
        file["accessors"][accessor]["normalized"] = json!(attribute.normalized);
        names[attribute.name] = json!(accessor);
    }
    let words: Vec<u8> = indices().iter().flat_map(|index| (*index as u16).to_le_bytes()).collect();
    let indices = add_accessor(&mut file, "SCALAR", 5123, words.len() / 2, &words);
    file["meshes"][0]["primitives"][0] = json!({ "attributes": names, "indices": indices });
    file
}

fn stream(attributes: &[Attribute], method: i32, speed: i32) -> Vec<u8> {
    let mut mesh = Mesh::new();
    let mut options = EncoderOptions::new();
    options.set_encoding_method(method);
    options.set_global_int("encoding_speed", speed);
    options.set_global_int("decoding_speed", speed);
    for attribute in attributes {
        let mut made = PointAttribute::new();
        let width = attribute.width as u8;
        let kind = attribute.kind.draco;
        made.init(attribute.role, width, kind, attribute.normalized, SIDE * SIDE);
        made.buffer_mut().write(0, &attribute.bytes);
        let id = mesh.add_attribute(made);
        if attribute.bits > 0 {
            options.set_attribute_quantization(id, attribute.bits);
        }
    }
    mesh.set_num_faces(indices().len() / 3);
    mesh.set_faces_from_flat_indices(&indices());
    let (mut encoder, mut bytes) = (MeshEncoder::new(), EncoderBuffer::new());
    encoder.set_mesh(mesh);
    encoder.encode(&options, &mut bytes).unwrap();
    bytes.data().to_vec()
}

/// The grid compressed.
fn packed(bits: i32, method: i32, speed: i32) -> Value {
    let attributes = attributes(bits);
    with_stream(&attributes, &stream(&attributes, method, speed))
}

/// The grid with any bytes in place of its stream.
fn with_stream(attributes: &[Attribute], bytes: &[u8]) -> Value {
    let mut file = skinned();
    let mut accessors = vec![json!({ "componentType": 5123, "count": indices().len(),
        "type": "SCALAR" })];
    let (mut names, mut ids) = (json!({}), json!({}));
    for (id, attribute) in attributes.iter().enumerate() {
        names[attribute.name] = json!(accessors.len());
        ids[attribute.name] = json!(id);
        accessors.push(json!({ "componentType": attribute.kind.gltf, "count": SIDE * SIDE,
            "type": format!("VEC{}", attribute.width), "normalized": attribute.normalized }));
    }
    file["accessors"] = json!(accessors);
    file["buffers"] = json!([buffer(bytes)]);
    file["bufferViews"] = json!([{ "buffer": 0, "byteLength": bytes.len() }]);
    file["extensionsUsed"] = json!([NAME]);
    file["extensionsRequired"] = json!([NAME]);
    file["meshes"][0]["primitives"][0] = json!({ "attributes": names, "indices": 0,
        "extensions": { NAME: { "bufferView": 0, "attributes": ids } } });
    file
}

/// The corners of a triangle.
type Corners = [([f32; 3], ShadingVertex); 3];

/// Triangles in an order that does not depend on that of the file: by their places on the grid,
/// which quantisation does not confuse.
fn sorted(flat: &FlatScene) -> Vec<Corners> {
    let key = |corner: &([f32; 3], ShadingVertex)| {
        let [x, y, _] = corner.0.map(|coordinate| coordinate.round() as i64);
        [x, y]
    };
    let mut shown: Vec<Corners> = flat
        .triangles
        .iter()
        .zip(flat.triangle_vertices.iter())
        .map(|(triangle, corners)| {
            let places = [triangle.v0, triangle.v1, triangle.v2];
            let at = |corner: usize| (places[corner], flat.vertices[corners[corner] as usize]);
            let mut corners = [at(0), at(1), at(2)];
            let first = (0..3).min_by_key(|corner| key(&corners[*corner])).unwrap();
            corners.rotate_left(first);
            corners
        })
        .collect();
    shown.sort_by_key(|corners| corners.each_ref().map(key));
    shown
}

fn numbers(vertex: &ShadingVertex) -> Vec<f32> {
    let directions = vertex.normal.into_iter().chain(vertex.tangent).chain([vertex.tangent_sign]);
    directions.chain([vertex.u0, vertex.v0]).chain(vertex.uv1).chain(vertex.color).collect()
}

/// The largest differences of positions and of other numbers.
fn difference(found: &[Corners], wanted: &[Corners]) -> [f32; 2] {
    assert_eq!(found.len(), wanted.len());
    let largest = |found: &[f32], wanted: &[f32]| {
        found.iter().zip(wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
    };
    let mut most = [0.0f32; 2];
    for (found, wanted) in found.iter().flatten().zip(wanted.iter().flatten()) {
        most[0] = most[0].max(largest(&found.0, &wanted.0));
        most[1] = most[1].max(largest(&numbers(&found.1), &numbers(&wanted.1)));
    }
    most
}

#[test]
fn every_method_of_draco_shows_the_plain_mesh() {
    let wanted = sorted(&at(&load_json(&plain()).unwrap(), 0.0));
    assert_eq!(wanted.len(), 2 * (SIDE - 1) * (SIDE - 1));
    for (method, speed) in
        [(SEQUENTIAL, 10), (SEQUENTIAL, 5), (EDGEBREAKER, 0), (EDGEBREAKER, 3), (EDGEBREAKER, 7)]
    {
        let scene = load_json(&packed(14, method, speed)).unwrap();
        assert!(scene.report().warnings.iter().all(|warning| !warning.contains("raco")));
        let most = difference(&sorted(&at(&scene, 0.0)), &wanted);
        assert!(most[0] < 2e-3 && most[1] < 2e-3, "{method} {speed}: {most:?}");
        let coarse = at(&load_json(&packed(8, method, speed)).unwrap(), 0.0);
        let most = difference(&sorted(&coarse), &wanted);
        assert!(most[0] > 2e-3 && most[0] < 0.1, "{method} {speed}: {most:?}");
    }
    // Numbers that are not quantised keep their bits.
    for method in [SEQUENTIAL, EDGEBREAKER] {
        let exact = at(&load_json(&packed(0, method, 5)).unwrap(), 0.0);
        assert_eq!(difference(&sorted(&exact), &wanted), [0.0; 2], "{method}");
    }
}

#[test]
fn streams_of_the_first_encoder_show_the_plain_mesh() {
    // The file's first mesh is plain; Draco's own encoder made the others from it.
    let file: Value = serde_json::from_str(include_str!("../files/draco.gltf")).unwrap();
    let only = |node: usize| {
        let mut file = file.clone();
        file["scenes"][0]["nodes"] = json!([node, 4, 5]);
        sorted(&at(&load_json(&file).unwrap(), 0.0))
    };
    let wanted = only(0);
    assert_eq!(wanted.len(), 32);
    for node in 1..4 {
        let most = difference(&only(node), &wanted);
        assert!(most[0] < 1e-3 && most[1] < 2e-3, "{node}: {most:?}");
    }
    assert_eq!(load_json(&file).unwrap().report().triangles, 4 * 32);
}

#[test]
fn shared_draco_scenes_show_their_plain_siblings() {
    let Some(shared) = crate::fixtures::shared() else {
        crate::fixtures::skipped("shared_draco_scenes_show_their_plain_siblings");
        return;
    };
    for (packed, plain) in [
        ("compressed/CesiumMan-Draco/CesiumMan.gltf", "CesiumMan.glb"),
        ("compressed/Sponza-draco-webp.glb", "Sponza.glb"),
    ] {
        let shown = |file: &str| {
            let scene = tessera_scenes::load(&shared, file, &LoadOptions::default()).unwrap();
            columns(&at(&scene, 0.0))
        };
        for (number, (found, wanted)) in shown(packed).iter().zip(shown(plain)).enumerate() {
            assert_eq!(found.len(), wanted.len(), "{packed}");
            let range = wanted[wanted.len() - 1] - wanted[0];
            let most = found.iter().zip(&wanted).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            // Normals have fewer bits than places and UVs.
            let steps = if (3..6).contains(&number) { 100.0 } else { 256.0 };
            assert!(most <= range / steps, "{packed}: column {number}: {most} of {range}");
        }
    }
}

/// Coordinates, normals and UVs of all corners, each column sorted. Moving every number by a little
/// moves the sorted ones by no more, so that corners need no matching.
fn columns(flat: &FlatScene) -> [Vec<f32>; 8] {
    let mut columns: [Vec<f32>; 8] = Default::default();
    for (triangle, corners) in flat.triangles.iter().zip(flat.triangle_vertices.iter()) {
        for (place, corner) in [triangle.v0, triangle.v1, triangle.v2].iter().zip(corners) {
            let vertex = flat.vertices[*corner as usize];
            let numbers = place.iter().chain(&vertex.normal).chain([&vertex.u0, &vertex.v0]);
            columns.iter_mut().zip(numbers).for_each(|(column, number)| column.push(*number));
        }
    }
    columns.iter_mut().for_each(|column| column.sort_by(f32::total_cmp));
    columns
}

#[test]
fn primitives_may_share_a_stream() {
    let mut file = packed(14, EDGEBREAKER, 5);
    let first = file["meshes"][0]["primitives"][0].clone();
    file["meshes"][0]["primitives"] = json!([first, first]);
    let flat = at(&load_json(&file).unwrap(), 0.0);
    assert_eq!(flat.triangles.len(), 4 * (SIDE - 1) * (SIDE - 1));
    // The same accessor cannot come from two attributes.
    let ids = &mut file["meshes"][0]["primitives"][1]["extensions"][NAME]["attributes"];
    ids["NORMAL"] = json!(0);
    let error = refusal(&file);
    let place = "meshes[0].primitives[1].extensions.KHR_draco_mesh_compression.attributes.NORMAL";
    assert!(error.contains(place) && error.contains("another place"), "{error}");
}

#[test]
fn numbers_beside_a_stream_are_checked_with_their_place() {
    let extension = "meshes[0].primitives[0].extensions.KHR_draco_mesh_compression";
    let refused = |pointer: &str, value: Value| {
        let mut file = packed(14, EDGEBREAKER, 5);
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        file.pointer_mut(parent).unwrap()[key] = value;
        refusal(&file)
    };
    let primitive = "/meshes/0/primitives/0";
    let json_of = |name: &str| format!("{primitive}/extensions/{NAME}/{name}");
    for (pointer, value, place, problem) in [
        ("/accessors/0/count".into(), json!(381), "", "holds more than its accessors say"),
        ("/accessors/0/count".into(), json!(387), "", "81 vertices and 384 indices"),
        ("/accessors/1/count".into(), json!(80), ".attributes.", "elements, but others have"),
        ("/accessors/1/type".into(), json!("VEC2"), ".attributes.POSITION", "3 components"),
        ("/accessors/1/componentType".into(), json!(5123), ".attributes.POSITION", "cannot hold"),
        (json_of("bufferView"), json!(9), ".bufferView", "bufferViews[9]"),
        (json_of("attributes/NORMAL"), json!(77), ".attributes.NORMAL", "attribute 77"),
        (json_of("attributes/_ID"), json!(1), ".attributes._ID", "not an attribute"),
        (json_of("attributes"), json!(7), "", "invalid type"),
    ] {
        let error = refused(&pointer, value);
        assert!(error.contains(&format!("{extension}{place}")), "{pointer}: {error}");
        assert!(error.contains(problem), "{pointer}: {error}");
    }
    let error = refused("/meshes/0/primitives/0/mode", json!(5));
    assert!(error.contains("primitives[0].mode") && error.contains("TRIANGLES"), "{error}");
}

#[test]
fn counts_far_beyond_a_stream_take_no_memory() {
    // A kilobyte that claims four billion triangles, and accessors that agree.
    let mut file = packed(14, SEQUENTIAL, 10);
    for accessor in 0..8 {
        file["accessors"][accessor]["count"] =
            json!(if accessor == 0 { 3u64 << 30 } else { 1 << 30 });
    }
    let error = refusal(&file);
    assert!(error.contains(NAME) || error.contains("memory"), "{error}");
}

#[test]
fn broken_draco_bytes_give_an_error_with_their_place() {
    let attributes = attributes(14);
    let mut state = 0x0d7a_c0d7_ac0d_7ac0_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as usize
    };
    for (method, speed) in [(SEQUENTIAL, 10), (EDGEBREAKER, 0), (EDGEBREAKER, 7)] {
        let good = stream(&attributes, method, speed);
        for cut in 0..good.len() / 16 {
            let error = refusal(&with_stream(&attributes, &good[..16 * cut]));
            assert!(error.contains(NAME), "cut to {}: {error}", 16 * cut);
        }
        let start = std::time::Instant::now();
        for round in 0..400 {
            let mut bad = good.clone();
            for _ in 0..1 + round % 4 {
                // Half of all damage goes to the headers.
                let reach = if round % 2 == 0 { bad.len() } else { 64 };
                let at = random() % reach;
                bad[at] =
                    if round % 3 == 0 { bad[at] ^ 1 << (random() % 8) } else { random() as u8 };
            }
            // Any numbers are a mesh; anything else names its place.
            if let Err(error) = load_bytes(with_stream(&attributes, &bad).to_string().as_bytes()) {
                let error = error.to_string();
                assert!(error.contains("primitives[0]") || error.contains("accessors["), "{error}");
            }
        }
        assert!(start.elapsed().as_secs() < 60, "{method} {speed}: {:?}", start.elapsed());
    }
    let error = refusal(&with_stream(&attributes, b"DRACO\x02\x02\x00\x00\x00\x00 point cloud"));
    assert!(error.contains("are not a Draco mesh"), "{error}");
}
