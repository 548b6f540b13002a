//! Compressed buffer views: every mode and filter shows the plain scene, and what is broken is told
//! with its place.

use crate::support::{
    add_accessor, add_floats, at, buffer, load_bytes, load_in, load_json, refusal, triangle,
};
use meshopt::EncodeExpMode;
use serde_json::{Value, json};
use tessera_layout::FlatScene;
use tessera_scenes::{LoadOptions, SceneError};

const EXT: &str = "EXT_meshopt_compression";
const KHR: &str = "KHR_meshopt_compression";
/// Vertices along a side of the grid: 289 of them are more than one block of ATTRIBUTES.
const SIDE: usize = 17;

/// A hilly grid with everything that can be compressed. Views come in the order of [`View`].
#[derive(Clone, Copy)]
enum View {
    Positions,
    Normals,
    Tangents,
    Colors,
    Indices,
    Times,
    Turns,
}

/// A view as it is compressed.
struct Packed {
    view: View,
    name: &'static str,
    mode: &'static str,
    filter: Option<&'static str>,
    stride: usize,
    bytes: Vec<u8>,
}

fn unit(v: [f32; 4]) -> [f32; 4] {
    let length = v.iter().map(|c| c * c).sum::<f32>().sqrt();
    v.map(|c| c / length)
}

fn places() -> impl Iterator<Item = (f32, f32)> {
    (0..SIDE * SIDE).map(|i| ((i % SIDE) as f32, (i / SIDE) as f32))
}

/// Multiples of a sixteenth: numbers that the exponential filter keeps.
fn positions() -> Vec<[f32; 3]> {
    places()
        .map(|(x, y)| [x, y, ((x * 1.7).sin() * (y * 0.9).cos() * 16.0).round() / 16.0])
        .collect()
}

fn normals() -> Vec<[f32; 4]> {
    places()
        .map(|(x, y)| {
            unit([(x - 8.0) * 0.3, (y - 8.0) * 0.2, 0.9 + 0.5 * (x * y * 0.1).sin(), 0.0])
        })
        .collect()
}

fn tangents() -> Vec<[f32; 4]> {
    let across = |[x, y, z, _]: [f32; 4]| {
        let [x, _, z, _] = unit([z, 0.0, -x, 0.0]);
        [x, 0.0, z, if y > 0.0 { 1.0 } else { -1.0 }]
    };
    normals().into_iter().map(across).collect()
}

fn turns() -> Vec<[f32; 4]> {
    (0..40).map(|i| unit([0.3, (i as f32 * 0.4).sin(), 0.2, (i as f32 * 0.3).cos()])).collect()
}

fn colors() -> Vec<[f32; 4]> {
    places().map(|(x, y)| [x / 16.0, y / 16.0, 0.5, 1.0 - x * y / 256.0]).collect()
}

fn times() -> Vec<f32> {
    (0..40).map(|i| i as f32 / 8.0).collect()
}

/// As the compressor of triangles turns them: it keeps their order and their winding.
fn indices() -> Vec<u32> {
    let mut indices = Vec::new();
    for at in (0..SIDE * (SIDE - 1)).filter(|at| at % SIDE != SIDE - 1) {
        let [a, b, c, d] = [at, at + 1, at + SIDE, at + SIDE + 1].map(|index| index as u32);
        indices.extend([a, b, c, c, b, d]);
    }
    let packed = meshopt::encode_index_buffer(&indices, SIDE * SIDE).unwrap();
    let turned: Vec<u32> = meshopt::decode_index_buffer(&packed, indices.len()).unwrap();
    for (a, b) in indices.chunks(3).zip(turned.chunks(3)) {
        assert!((0..3).any(|turn| (0..3).all(|i| a[i] == b[(i + turn) % 3])), "{a:?} became {b:?}");
    }
    turned
}

fn bytes_of<const N: usize>(elements: &[[f32; N]], one: f32) -> Vec<[i16; N]> {
    elements.iter().map(|element| element.map(|value| (value * one).round() as i16)).collect()
}

/// Elements of 16-bit words as bytes.
fn le<const N: usize>(elements: &[[i16; N]]) -> Vec<u8> {
    elements.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
}

fn plain() -> Value {
    let mut file = triangle();
    let count = SIDE * SIDE;
    let positions = add_floats(&mut file, "VEC3", 3, positions().as_flattened());
    let normals: Vec<u8> =
        bytes_of(&normals(), 127.0).iter().flatten().map(|word| *word as u8).collect();
    let normals = add_accessor(&mut file, "VEC3", 5120, count, &normals);
    let tangents =
        add_accessor(&mut file, "VEC4", 5122, count, &le(&bytes_of(&tangents(), 32_767.0)));
    let colors: Vec<u8> =
        colors().iter().flatten().map(|value| (value * 255.0).round() as u8).collect();
    let colors = add_accessor(&mut file, "VEC4", 5121, count, &colors);
    let words: Vec<u8> = indices().iter().flat_map(|index| (*index as u16).to_le_bytes()).collect();
    let indices = add_accessor(&mut file, "SCALAR", 5123, words.len() / 2, &words);
    let times = add_floats(&mut file, "SCALAR", 1, &times());
    let turns = add_accessor(&mut file, "VEC4", 5122, 40, &le(&bytes_of(&turns(), 32_767.0)));
    for accessor in [normals, tangents, colors, turns] {
        file["accessors"][accessor]["normalized"] = json!(true);
    }
    file["bufferViews"][normals]["byteStride"] = json!(4);
    let attributes =
        json!({ "POSITION": positions, "NORMAL": normals, "TANGENT": tangents, "COLOR_0": colors });
    file["meshes"][0]["primitives"][0] = json!({ "attributes": attributes, "indices": indices });
    file["animations"] = json!([{ "samplers": [{ "input": times, "output": turns }],
        "channels": [{ "sampler": 0, "target": { "node": 0, "path": "rotation" } }] }]);
    file["extensionsUsed"] = json!(["KHR_mesh_quantization", EXT, KHR]);
    file["extensionsRequired"] = file["extensionsUsed"].clone();
    file
}

/// Puts the compressed bytes into the file and takes the plain ones out.
fn compress(file: &mut Value, packed: &Packed) {
    let view = 1 + packed.view as usize;
    let plain = file["bufferViews"][view]["buffer"].as_u64().unwrap() as usize;
    let length = file["bufferViews"][view]["byteLength"].as_u64().unwrap();
    file["buffers"][plain] =
        json!({ "byteLength": length, "extensions": { (packed.name): { "fallback": true } } });
    let buffers = file["buffers"].as_array_mut().unwrap();
    // Not from its beginning, so that the offset counts.
    buffers.push(buffer(&[&[7; 3][..], &packed.bytes].concat()));
    let mut json = json!({ "buffer": buffers.len() - 1, "byteOffset": 3,
        "byteLength": packed.bytes.len(),
        "byteStride": packed.stride, "count": length / packed.stride as u64, "mode": packed.mode });
    if let Some(filter) = packed.filter {
        json["filter"] = json!(filter);
    }
    file["bufferViews"][view]["extensions"] = json!({ (packed.name): json });
}

fn vertices<T>(elements: &[T], version: i32) -> Vec<u8> {
    meshopt::encode_vertex_buffer_level(elements, 2, Some(version)).unwrap()
}

/// Every mode and every filter, of both extensions.
fn all() -> Vec<Packed> {
    let mut all = Vec::new();
    for (name, version) in [(EXT, 0), (KHR, 0), (KHR, 1)] {
        let mut add = |view, mode, filter, stride, bytes| {
            all.push(Packed { view, name, mode, filter, stride, bytes });
        };
        let quantized = bytes_of(&normals(), 127.0);
        let quantized: Vec<[i8; 4]> =
            quantized.iter().map(|normal| normal.map(|word| word as i8)).collect();
        add(View::Positions, "ATTRIBUTES", None, 12, vertices(&positions(), version));
        add(View::Normals, "ATTRIBUTES", Some("NONE"), 4, vertices(&quantized, version));
        add(View::Times, "ATTRIBUTES", None, 4, vertices(&times(), version));
        let eight: Vec<[i8; 4]> = meshopt::encode_filter_oct(&normals(), 8);
        add(View::Normals, "ATTRIBUTES", Some("OCTAHEDRAL"), 4, vertices(&eight, version));
        let sixteen: Vec<[i16; 4]> = meshopt::encode_filter_oct(&tangents(), 12);
        add(View::Tangents, "ATTRIBUTES", Some("OCTAHEDRAL"), 8, vertices(&sixteen, version));
        let turns = meshopt::encode_filter_quat(&turns(), 16);
        add(View::Turns, "ATTRIBUTES", Some("QUATERNION"), 8, vertices(&turns, version));
        let exact = meshopt::encode_filter_exp(&positions(), 24, EncodeExpMode::Separate);
        add(View::Positions, "ATTRIBUTES", Some("EXPONENTIAL"), 12, vertices(&exact, version));
        let triangles = meshopt::encode_index_buffer(&indices(), SIDE * SIDE).unwrap();
        add(View::Indices, "TRIANGLES", None, 2, triangles);
        let sequence = meshopt::encode_index_sequence(&indices(), SIDE * SIDE).unwrap();
        add(View::Indices, "INDICES", None, 2, sequence);
        if name == KHR {
            let colors: Vec<[u8; 4]> = meshopt::encode_filter_color(&colors(), 8);
            add(View::Colors, "ATTRIBUTES", Some("COLOR"), 4, vertices(&colors, version));
        }
    }
    all
}

/// How far numbers of two flattened scenes are apart at most; what is no number must be the same.
fn distance(a: &FlatScene, b: &FlatScene) -> f32 {
    assert_eq!(a.triangle_vertices, b.triangle_vertices);
    assert_eq!((a.vertices.len(), a.triangles.len()), (SIDE * SIDE, 512));
    let numbers = |scene: &FlatScene| -> Vec<f32> {
        let vertices = scene.vertices.iter();
        let vertices = vertices
            .flat_map(|v| [&v.normal[..], &v.tangent, &[v.tangent_sign], &v.color].concat());
        let corners = scene.triangles.iter().flat_map(|t| [t.v0, t.v1, t.v2].concat());
        vertices.chain(corners).collect()
    };
    let (a, b) = (numbers(a), numbers(b));
    assert_eq!(a.len(), b.len());
    a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max)
}

#[test]
fn every_mode_and_filter_shows_the_plain_scene() {
    let plain_scene = load_json(&plain()).unwrap();
    for packed in all() {
        let what = format!("{} {} {:?} {}", packed.name, packed.mode, packed.filter, packed.stride);
        let mut file = plain();
        compress(&mut file, &packed);
        let scene = load_json(&file).unwrap_or_else(|error| panic!("{what}: {error}"));
        assert!(scene.report().extensions.iter().all(|extension| extension.applied), "{what}");
        // The bits that filters spend are those of the plain numbers, or a few less for tangents.
        let far = match packed.filter {
            None | Some("NONE" | "EXPONENTIAL") => 0.0,
            Some("OCTAHEDRAL") if packed.stride == 8 => 2e-3,
            Some("QUATERNION") => 3e-3,
            Some(_) => 2e-2,
        };
        for time in [0.0, 1.3] {
            let distance = distance(&at(&plain_scene, time), &at(&scene, time));
            assert!(distance <= far, "{what} at {time}: {distance} apart");
        }
    }
}

#[test]
fn indices_of_four_bytes_are_read_as_those_of_two() {
    for (mode, bytes) in [
        ("TRIANGLES", meshopt::encode_index_buffer(&indices(), SIDE * SIDE).unwrap()),
        ("INDICES", meshopt::encode_index_sequence(&indices(), SIDE * SIDE).unwrap()),
    ] {
        let mut file = plain();
        let view = 1 + View::Indices as usize;
        file["accessors"][view]["componentType"] = json!(5125);
        file["bufferViews"][view]["byteLength"] = json!(4 * indices().len());
        compress(
            &mut file,
            &Packed { view: View::Indices, name: EXT, mode, filter: None, stride: 4, bytes },
        );
        let (plain, scene) = (load_json(&plain()).unwrap(), load_json(&file).unwrap());
        assert_eq!(distance(&at(&plain, 0.0), &at(&scene, 0.0)), 0.0, "{mode}");
    }
}

/// What a compressor of today has written stays readable: every mode, every filter, both versions
/// of ATTRIBUTES.
#[test]
fn the_committed_file_shows_its_strip_twice() {
    let scene = load_bytes(include_bytes!("../files/compressed-views.gltf")).unwrap();
    let flat = at(&scene, 0.6);
    let corners = |range: std::ops::Range<usize>| -> Vec<[[f32; 3]; 3]> {
        // Compressed triangles may begin at another of their corners.
        let turned = |t: &tessera_layout::Triangle| {
            let corners = [t.v0, t.v1, t.v2];
            let least =
                (0..3).min_by(|a, b| corners[*a].partial_cmp(&corners[*b]).unwrap()).unwrap();
            std::array::from_fn(|i| corners[(least + i) % 3])
        };
        flat.triangles[range].iter().map(turned).collect()
    };
    assert_eq!(flat.triangles.len(), 44);
    assert_eq!(corners(0..22), corners(22..44));
    assert!((flat.vertices[23].color[0] - 1.0).abs() < 0.02 && flat.vertices[0].color[0] < 0.02);
}

#[test]
fn fallback_buffers_of_compressed_views_are_not_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut file = plain();
    let packed = all().swap_remove(0);
    compress(&mut file, &packed);
    let view = 1 + packed.view as usize;
    let fallback = file["bufferViews"][view]["buffer"].as_u64().unwrap() as usize;
    let mut load = |change: &dyn Fn(&mut Value)| {
        change(&mut file);
        std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
        let files = tessera_scenes::files_of(&folder.path().join("scene.gltf"));
        (files.map(|files| files.len()), load_in(folder.path(), &LoadOptions::default()))
    };
    // Marked and without a URI, then with one that leads nowhere, then without the mark, then
    // without either.
    let (files, scene) = load(&|_| {});
    assert!(files.unwrap() == 1 && scene.is_ok());
    let (files, scene) = load(&|file| file["buffers"][fallback]["uri"] = json!("nowhere.bin"));
    assert!(files.unwrap() == 1 && scene.is_ok());
    let (files, scene) = load(&|file| file["buffers"][fallback]["extensions"] = json!({}));
    assert!(files.unwrap() == 1 && scene.is_ok());
    let (files, scene) = load(&|file| file["buffers"][fallback] = json!({ "byteLength": 1 }));
    assert!(files.unwrap() == 1 && scene.is_ok());
    // A plain view needs it.
    let (_, scene) = load(&|file| file["bufferViews"][view + 1]["buffer"] = json!(fallback));
    let error = scene.unwrap_err().to_string();
    assert!(error.contains(&format!("buffers[{fallback}]: has no uri")), "{error}");
    let (files, _) = load(&|file| file["buffers"][fallback]["uri"] = json!("nowhere.bin"));
    assert!(files.unwrap_err().to_string().contains("nowhere.bin"));
}

/// The file with one view compressed, and the place of what is said of it.
fn one(index: usize) -> (Value, Packed, String) {
    let mut file = plain();
    let packed = all().swap_remove(index);
    compress(&mut file, &packed);
    let place = format!("/bufferViews/{}/extensions/{}", 1 + packed.view as usize, packed.name);
    (file, packed, place)
}

#[test]
fn numbers_that_do_not_fit_are_refused_with_their_place() {
    let cases: &[(usize, &str, Value, &str)] = &[
        (0, "byteStride", json!(3), "byteStride is 3, but must be a multiple of 4 from 4 to 256"),
        (0, "byteStride", json!(0), "byteStride is 0"),
        (0, "byteStride", json!(260), "byteStride is 260"),
        (0, "byteStride", json!(u64::MAX), "byteStride is 18446744073709551615"),
        (0, "byteStride", json!(16), "is not the byteLength 3468 of bufferViews[1]"),
        (0, "count", json!(0), "count is 0"),
        (0, "count", json!(290), "count 290 times byteStride 12 is not the byteLength 3468"),
        (0, "count", json!(u64::MAX), "is not the byteLength"),
        (0, "byteLength", json!(u64::MAX), "reach beyond buffers["),
        (0, "byteOffset", json!(u64::MAX), "reach beyond buffers["),
        (0, "byteLength", json!(0), "take at least"),
        (
            0,
            "byteLength",
            json!(40),
            "its bytes are not ATTRIBUTES of 289 elements (they are cut short)",
        ),
        (
            0,
            "byteOffset",
            json!(2),
            "its bytes are not ATTRIBUTES of 289 elements (they begin as something else)",
        ),
        (0, "buffer", json!(99), "points at buffers[99]"),
        (0, "filter", json!("QUATERNION"), "byteStride is 12, but must be 8"),
        (0, "filter", json!("OCTAHEDRAL"), "byteStride is 12, but must be 4 or 8"),
        (0, "filter", json!("COLOR"), "which only KHR_meshopt_compression has"),
        (0, "filter", json!("SEPIA"), "unknown variant `SEPIA`"),
        (0, "mode", json!("TRIANGLES"), "byteStride is 12, but must be 2 or 4"),
        (0, "mode", json!("LINES"), "unknown variant `LINES`"),
        (0, "mode", json!(null), "invalid type: null"),
        (7, "filter", json!("EXPONENTIAL"), "TRIANGLES take no filter"),
        (7, "mode", json!("INDICES"), "take at least 1541 bytes as INDICES"),
        (
            8,
            "mode",
            json!("TRIANGLES"),
            "its bytes are not TRIANGLES of 1536 elements (they begin as something else)",
        ),
        (
            8,
            "byteLength",
            json!(1000),
            "take at least 1541 bytes as INDICES, but byteLength is 1000",
        ),
    ];
    for (index, key, value, wanted) in cases {
        let (mut file, _, place) = one(*index);
        file.pointer_mut(&place).unwrap()[key] = value.clone();
        let error = refusal(&file);
        let path = place
            .replacen("/bufferViews/", "bufferViews[", 1)
            .replacen('/', "].", 1)
            .replace('/', ".");
        assert!(error.contains(wanted) && error.contains(&path), "{key} {value}: {error}");
    }
    let (mut file, packed, place) = one(0);
    let json = file.pointer(&place).unwrap().clone();
    file["bufferViews"][1 + packed.view as usize]["extensions"][KHR] = json;
    assert!(refusal(&file).contains("bufferViews[1]: has both"), "{}", refusal(&file));
}

#[test]
fn impossible_view_sizes_are_refused_before_allocation() {
    for (index, stride) in [(0, 12), (7, 2), (8, 2)] {
        let (mut file, packed, place) = one(index);
        let count = 3u64 << 40;
        file.pointer_mut(&place).unwrap()["count"] = json!(count);
        file["bufferViews"][1 + packed.view as usize]["byteLength"] = json!(count * stride);
        let error = refusal(&file);
        assert!(error.contains("take at least") && error.contains(packed.name), "{error}");
    }
    // A view of zeros is small however many there are; the scene's memory is the limit.
    let zeros = vec![[0u32; 64]; 1 << 16];
    let (mut file, packed, place) = one(18);
    let bytes = vertices(&zeros, 1);
    assert!(bytes.len() < 1 << 20);
    let view = 1 + packed.view as usize;
    let buffers = file["buffers"].as_array_mut().unwrap();
    buffers.push(buffer(&bytes));
    let (at, length) = (buffers.len() - 1, zeros.len() * 256);
    let json = json!({ "buffer": at, "byteLength": bytes.len(), "byteStride": 256,
        "count": zeros.len(),
        "mode": "ATTRIBUTES" });
    *file.pointer_mut(&place).unwrap() = json;
    file["bufferViews"][view]["byteLength"] = json!(length);
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("scene.gltf"), file.to_string()).unwrap();
    let mut options = LoadOptions::default();
    options.limits.memory_bytes = 32 << 20;
    let error = load_in(folder.path(), &options).unwrap_err();
    let SceneError::Memory { path, .. } = &error else { panic!("{error}") };
    assert!(path.contains(KHR), "{error}");
}

/// Loads the file with other compressed bytes.
fn with_bytes(index: usize, change: impl Fn(&mut Vec<u8>)) -> Result<(), String> {
    let mut packed = all().swap_remove(index);
    change(&mut packed.bytes);
    let mut file = plain();
    compress(&mut file, &packed);
    let scene = load_json(&file).map_err(|error| error.to_string())?;
    let options = tessera_scenes::FlattenOptions {
        time_secs: 0.4,
        ..tessera_scenes::FlattenOptions::still(8, 8)
    };
    scene.flatten(&options).map(drop).map_err(|error| error.to_string())
}

#[test]
fn broken_compressed_bytes_never_panic() {
    let mut state = 0x5eed_u64;
    let mut next = move || {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) as usize
    };
    for (index, packed) in all().iter().enumerate() {
        let length = packed.bytes.len();
        for cut in (0..length).step_by(1 + length / 12).chain([length - 1]) {
            let error = with_bytes(index, |bytes| bytes.truncate(cut)).unwrap_err();
            assert!(
                error.contains(packed.name) && error.contains("bufferViews["),
                "{cut}: {error}"
            );
        }
        let error = with_bytes(index, |bytes| bytes.push(0)).unwrap_err();
        assert!(error.contains(packed.mode), "{error}");
        for round in 0..15 {
            let places: Vec<(usize, u8)> =
                (0..1 + round % 5).map(|_| (next() % length, next() as u8)).collect();
            // Another number may be as good as the first one; only a panic or endless work would be
            // wrong.
            let _ =
                with_bytes(index, |bytes| places.iter().for_each(|(at, byte)| bytes[*at] = *byte));
            let noise: Vec<u8> = (0..length).map(|_| next() as u8).collect();
            let error = with_bytes(index, |bytes| bytes[1..].copy_from_slice(&noise[1..]));
            assert!(error.is_err(), "noise is read as {} {:?}", packed.mode, packed.filter);
        }
    }
}
