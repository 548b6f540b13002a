//! Decoders of scene files, in this process: what a child would be ended for, a test is to see.

use std::cell::RefCell;
use std::path::PathBuf;
use tempfile::TempDir;
use tessera_kernels::CheckedScene;
use tessera_scenes::{EnvironmentSource, FlattenOptions, Limits, LoadOptions};

const TRIANGLE: &str = r#"{"asset":{"version":"2.0"},"scenes":[{"nodes":[0]}],
"nodes":[{"mesh":0,"scale":[1,2,1]}],
"meshes":[{"primitives":[{"attributes":{"POSITION":0,"TEXCOORD_0":1},"indices":2,"material":0,
"targets":[{"POSITION":0}],
"extensions":{"KHR_materials_variants":{"mappings":[{"material":0,"variants":[1,0]}]}}}]}],
"extensions":{"KHR_materials_variants":{"variants":[{"name":"day"},{"name":"night"}]}},
"materials":[{"pbrMetallicRoughness":{"baseColorTexture":{"index":0}},
"normalTexture":{"index":0},"emissiveFactor":[1,0,0]}],
"textures":[{"source":0,"extensions":{"EXT_texture_webp":{"source":0}}}],
"images":[{"uri":"image.png"}],
"accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"},
{"bufferView":0,"componentType":5126,"count":3,"type":"VEC2"},{"componentType":5125,"count":3,
"type":"SCALAR","sparse":
{"count":2,"indices":{"bufferView":1,"componentType":5121},"values":{"bufferView":1,
"byteOffset":4}}},
{"componentType":5126,"count":3,"type":"SCALAR"}],
"animations":[{"channels":[{"sampler":0,"target":{"node":0,"path":"translation"}}],
"samplers":[{"input":3,"output":0}]}],
"bufferViews":[{"buffer":0,"byteLength":36},{"buffer":0,"byteOffset":36,"byteLength":12}],
"buffers":[{"byteLength":48,"uri":"data:;base64,AAAAAAAAAAAAAAAAAACAPwAAAAAAAAAAAAAAAAAAgD8AAAAAAQIAAAEAAAACAAAA"}]}"#;

/// Limits of a scene here: small, so that what is believed too early is seen soon.
fn limits() -> Limits {
    Limits {
        memory_bytes: 16 << 20,
        file_bytes: 1 << 20,
        expansion_bytes: 4 << 20,
        ..Limits::default()
    }
}

thread_local! {
    static FOLDER: RefCell<Option<(TempDir, PathBuf)>> = const { RefCell::new(None) };
}

/// A folder of this thread, in memory where there is a place for that.
fn folder() -> PathBuf {
    FOLDER.with_borrow_mut(|folder| {
        let made = || {
            let here = tempfile::tempdir_in("/dev/shm")
                .or_else(|_| tempfile::tempdir())
                .expect("a folder");
            let path = here.path().to_owned();
            (here, path)
        };
        folder.get_or_insert_with(made).1.clone()
    })
}

fn load(files: &[(&str, &[u8])], environment: EnvironmentSource) -> Result<(), String> {
    let folder = folder();
    for (name, bytes) in files {
        std::fs::write(folder.join(name), bytes).expect("a file");
    }
    let options = LoadOptions { environment, limits: limits(), ..LoadOptions::default() };
    let scene =
        tessera_scenes::load(&folder, "scene.gltf", &options).map_err(|error| error.to_string())?;
    for time_secs in [0.0, 0.7] {
        let options = FlattenOptions { time_secs, ..FlattenOptions::still(8, 8) };
        let flat = scene.flatten(&options).map_err(|error| error.to_string())?;
        // What importers give, kernels take: but for what is too large for floats.
        CheckedScene::new(flat.into()).map_err(|error| error.to_string())?;
    }
    Ok(())
}

pub(crate) fn scene(bytes: &[u8]) -> Result<(), String> {
    load(&[("scene.gltf", bytes), ("image.png", &png())], EnvironmentSource::Auto)
}

pub(crate) fn scenes() -> Vec<Vec<u8>> {
    let json = TRIANGLE.as_bytes();
    let head = [&b"glTF\x02\0\0\0"[..], &(20 + json.len() as u32).to_le_bytes()].concat();
    let glb = [&head[..], &(json.len() as u32).to_le_bytes(), b"JSON", json].concat();
    let library = include_bytes!("../../scenes/library/spinning-cube.gltf");
    let compressed = include_bytes!("../../scenes/tests/files/compressed-views.gltf");
    let draco = include_bytes!("../../scenes/tests/files/draco.gltf");
    let moving = include_bytes!("../../scenes/tests/files/moving-values.gltf");
    let files = [&glb[..], library, compressed, draco, moving];
    [json].into_iter().chain(files).map(<[u8]>::to_vec).collect()
}

pub(crate) fn map(bytes: &[u8]) -> Result<(), String> {
    let files =
        [("scene.gltf", TRIANGLE.as_bytes()), ("image.png", &png()[..]), ("map.hdr", bytes)];
    load(&files, EnvironmentSource::Map { path: "map.hdr".into() })
}

pub(crate) fn maps() -> Vec<Vec<u8>> {
    let hdr = [&b"#?RADIANCE\nFORMAT=32-bit_rle_rgbe\n\n-Y 2 +X 8\n"[..], &[128; 64]].concat();
    let run = [&b"#?RADIANCE\n\n-Y 1 +X 16\n\x02\x02\x00\x10"[..], &[144, 7].repeat(4)].concat();
    let file = folder().join("seed.exr");
    exr::prelude::write_rgb_file(&file, 8, 4, |x, y| (x as f32, y as f32, 0.5f32)).expect("an EXR");
    vec![hdr, run, std::fs::read(file).expect("an EXR")]
}

pub(crate) fn image(bytes: &[u8]) -> Result<(), String> {
    load(&[("scene.gltf", TRIANGLE.as_bytes()), ("image.png", bytes)], EnvironmentSource::Auto)
}

pub(crate) fn images() -> Vec<Vec<u8>> {
    let files = [
        &include_bytes!("../../scenes/tests/images/ramp-420.jpg")[..],
        include_bytes!("../../scenes/tests/images/ramp-422-progressive.jpg"),
        include_bytes!("../../scenes/tests/images/ramp-grey.jpg"),
        include_bytes!("../../scenes/tests/images/ramp-lossy.webp"),
        include_bytes!("../../scenes/tests/images/ramp-alpha.webp"),
        include_bytes!("../../scenes/tests/images/ramp-lossless.webp"),
        include_bytes!("../../scenes/tests/images/ramp-etc1s.ktx2"),
        include_bytes!("../../scenes/tests/images/ramp-etc1s-alpha.ktx2"),
        include_bytes!("../../scenes/tests/images/ramp-uastc.ktx2"),
    ];
    files.iter().map(|bytes| bytes.to_vec()).chain([png()]).collect()
}

fn png() -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, 4, 4);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().expect("a header");
    writer.write_image_data(&[200; 64]).expect("a picture");
    drop(writer);
    bytes
}
