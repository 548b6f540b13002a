//! Films on devices: what frames have in common is sent once to each device, and the bits are those
//! of a processor.

use crate::device::bench::{Bench, expected_of, submit, unit};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use tessera_fake_cuda::{Config, Device};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{FilmImages, SceneImage};
use tessera_node::device::PreparedFrame;
use tessera_scenes::{EnvironmentSource, FlattenOptions, LoadOptions};

/// Cells of the hall's floor along a side.
const CELLS: u32 = 100;
/// Most that the library's cube, its light and a film's small arrays take.
const MOVING_BYTES: u64 = 64 << 10;

/// The library's spinning cube on a floor of many triangles. The cube's colour changes too.
fn hall(folder: &Path) -> PathBuf {
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("scenes/library/spinning-cube.gltf");
    let text = std::fs::read_to_string(library).expect("a file of the library");
    let mut scene: Value = serde_json::from_str(&text).expect("JSON");
    let side = CELLS + 1;
    let at = |cell: u32| cell as f32 / CELLS as f32 * 12.0 - 6.0;
    let corners = (0..side * side).flat_map(|index| {
        let (x, z) = (at(index % side), at(index / side));
        [x, 0.05 * (3.0 * x).sin() * (2.0 * z).cos(), z]
    });
    let cells = (0..CELLS * CELLS).flat_map(|cell| {
        let first = cell / CELLS * side + cell % CELLS;
        [first, first + side, first + 1, first + 1, first + side, first + side + 1]
    });
    let colors = (0..5).flat_map(|key| [0.2 * key as f32, 0.3, 0.9 - 0.2 * key as f32, 1.0]);
    let mut bytes: Vec<u8> = corners.flat_map(f32::to_le_bytes).collect();
    let indices_at = bytes.len();
    bytes.extend(cells.flat_map(u32::to_le_bytes));
    let colors_at = bytes.len();
    bytes.extend(colors.flat_map(f32::to_le_bytes));
    std::fs::write(folder.join("hall.bin"), &bytes).expect("the folder takes files");
    let mut add = |list: &str, value: Value| {
        let list = scene[list].as_array_mut().expect("a list");
        list.push(value);
        list.len() - 1
    };
    let buffer = add("buffers", json!({ "uri": "hall.bin", "byteLength": bytes.len() }));
    let mut view = |from: usize, to: usize| {
        let view = json!({ "buffer": buffer, "byteOffset": from, "byteLength": to - from });
        add("bufferViews", view)
    };
    let views = [view(0, indices_at), view(indices_at, colors_at), view(colors_at, bytes.len())];
    let corners = json!({ "bufferView": views[0], "componentType": 5126, "type": "VEC3",
        "count": side * side, "min": [-6.0, -0.05, -6.0], "max": [6.0, 0.05, 6.0] });
    let corners = add("accessors", corners);
    let indices = json!({ "bufferView": views[1], "componentType": 5125, "type": "SCALAR",
        "count": 6 * CELLS * CELLS });
    let indices = add("accessors", indices);
    let colors =
        json!({ "bufferView": views[2], "componentType": 5126, "type": "VEC4", "count": 5 });
    let colors = add("accessors", colors);
    scene["meshes"][0]["primitives"][0] =
        json!({ "attributes": { "POSITION": corners }, "indices": indices, "material": 0 });
    let spin = &mut scene["animations"][0];
    let times = spin["samplers"][0]["input"].clone();
    spin["samplers"]
        .as_array_mut()
        .expect("samplers")
        .push(json!({ "input": times, "output": colors }));
    let pointer = "/materials/1/pbrMetallicRoughness/baseColorFactor";
    spin["channels"].as_array_mut().expect("channels").push(json!({ "sampler": 1, "target": {
        "path": "pointer", "extensions": { "KHR_animation_pointer": { "pointer": pointer } } } }));
    scene["extensionsUsed"].as_array_mut().expect("a list").push("KHR_animation_pointer".into());
    let path = folder.join("hall.gltf");
    std::fs::write(&path, scene.to_string()).expect("the folder takes files");
    path
}

/// The first frames of a film of the hall, and the bytes of what stands in it.
fn film(frames: u32) -> (Vec<Arc<PreparedFrame>>, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    hall(folder.path());
    let environment = EnvironmentSource::Constant([0.2, 0.3, 0.4]);
    let options = LoadOptions { environment, ..LoadOptions::default() };
    let loaded = tessera_scenes::load(folder.path(), "hall.gltf", &options).expect("a scene");
    let images: Arc<Mutex<FilmImages>> = Arc::default();
    let mut last = None;
    let mut prepared = Vec::new();
    for frame in 0..frames {
        let time_secs = f64::from(frame) / 24.0;
        let view = FlattenOptions { time_secs, ..FlattenOptions::still(64, 64) };
        let flat = Arc::new(loaded.flatten(&view).expect("a frame"));
        let checked = CheckedScene::after(flat, last.as_deref()).expect("a right scene");
        assert_eq!(checked.instances.len(), 1, "the floor stands");
        last = Some(checked.checked_meshes().clone());
        let id = u64::from(frame) + 2;
        prepared.push(Arc::new(PreparedFrame::in_film(checked, id, images.clone())));
    }
    let whole = SceneImage::of(&prepared[0].scene).bytes();
    (prepared, whole)
}

/// A unit in the middle of the picture, where the cube is.
fn middle(frame: u32) -> tessera_layout::UnitParams {
    tessera_layout::UnitParams { frame, ..unit(4 * 8 + 3) }
}

#[test]
fn a_film_sends_what_stands_once_to_each_of_8_devices() {
    let bench = Bench::new(&Config::of(8, Device::default()), "cuda");
    let opened = bench.open();
    let sent = |device: usize| bench.rack.counts(device).uploaded_bytes;
    let before: Vec<u64> = (0..8).map(sent).collect();
    let (frames, whole) = film(48);
    let standing = u64::from(CELLS * CELLS) * 2 * 200;
    assert!(whole > standing, "{whole} bytes");
    for (round, frames) in frames.chunks(8).enumerate() {
        let at = |device: usize| middle((8 * round + device) as u32);
        let units = frames.iter().enumerate();
        let units: Vec<_> = units
            .map(|(device, frame)| submit(&*opened.devices[device], frame, at(device)))
            .collect();
        for (device, unit) in units.into_iter().enumerate() {
            let sums = unit.end().expect("a unit").sums.values;
            assert_eq!(sums, expected_of(&frames[device], &at(device)), "{round} {device}");
            let total = sent(device) - before[device];
            let most = whole + (round as u64 + 1) * MOVING_BYTES;
            assert!((standing..most).contains(&total), "{round} {device}: {total} bytes");
            let noted = frames[device].sent_bytes();
            assert!(noted <= if round == 0 { whole } else { MOVING_BYTES }, "{noted} bytes");
        }
    }
    // What was sent is also what the node says, but for the scene of a test with a known answer.
    let noted: u64 = frames.iter().map(|frame| frame.sent_bytes()).sum();
    let counted: u64 = (0..8).map(|device| sent(device) - before[device]).sum();
    assert!((noted..noted + 8 * MOVING_BYTES).contains(&counted), "{noted}, {counted}");
}

#[test]
fn a_device_without_room_for_two_frames_is_sent_each_whole() {
    let (frames, whole) = film(3);
    // What a unit takes beside its scene is measured where there is room.
    let used = {
        let bench = Bench::with(|_| {});
        let opened = bench.open();
        submit(&*opened.devices[0], &frames[0], middle(0)).end().expect("a unit");
        bench.rack.counts(0).used_bytes
    };
    let bench = Bench::with(|device| device.memory = used + whole / 2);
    let opened = bench.open();
    for (number, frame) in (0..).zip(&frames) {
        let before = bench.rack.counts(0).uploaded_bytes;
        let sums = submit(&*opened.devices[0], frame, middle(number)).end().expect("a unit");
        assert_eq!(sums.sums.values, expected_of(frame, &middle(number)), "{number}");
        let sent = bench.rack.counts(0).uploaded_bytes - before;
        assert!(sent > whole / 2, "{number}: {sent} of {whole} bytes");
    }
}
