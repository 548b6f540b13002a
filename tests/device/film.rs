//! Films on devices: what frames have in common is sent once to each device, and the bits are those
//! of a processor.

use crate::device::bench::{Bench, expected_of, submit, unit};
use crate::render::parts::{LATE_SECS, ways};
use std::process::Command;
use std::sync::{Arc, Mutex};
use tessera_fake_cuda::{Config, Device};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{FilmImages, SceneImage};
use tessera_node::device::PreparedFrame;
use tessera_scenes::{EnvironmentSource, FlattenOptions, LoadOptions};
use tessera_support::hall::{HALL_CELLS, write_hall};

/// Most that the library's cube, its light and a film's small arrays take.
const MOVING_BYTES: u64 = 64 << 10;

/// The first frames of a film of the hall, and the bytes of what stands in it.
fn film(frames: u32) -> (Vec<Arc<PreparedFrame>>, u64) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write_hall(folder.path(), false);
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
    let standing = u64::from(HALL_CELLS * HALL_CELLS) * 2 * 150;
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
            let noted = frames[device].sent().count();
            assert!(noted <= if round == 0 { whole } else { MOVING_BYTES }, "{noted} bytes");
        }
    }
    // What was sent is also what the node says, but for the scene of a test with a known answer.
    let noted: u64 = frames.iter().map(|frame| frame.sent().count()).sum();
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

/// Around the sheet and the cube, on the interpreter of the kernels that devices get.
#[test]
fn no_way_to_prepare_a_frame_in_parts_changes_a_bit_on_a_device() {
    let bench = Bench::with(|_| {});
    let opened = bench.open();
    let mut wanted = Vec::new();
    for (id, (name, scene)) in (2..).zip(ways(LATE_SECS)) {
        let frame = Arc::new(PreparedFrame::new(scene, id));
        for (number, part) in [26, 36].map(unit).into_iter().enumerate() {
            let found = submit(&*opened.devices[0], &frame, part).end().expect("a unit");
            if wanted.len() == number {
                wanted.push(expected_of(&frame, &part));
            }
            assert_eq!(found.sums.values, wanted[number], "{name}");
        }
    }
    assert_ne!(wanted[0], wanted[1]);
}

#[test]
fn the_report_of_a_film_says_what_a_device_was_sent() {
    let bench = Bench::with(|_| {});
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = write_hall(folder.path(), false);
    let output = Command::new(env!("CARGO_BIN_EXE_tessera"))
        .envs(bench.rack.environment())
        .arg("render")
        .arg(&scene)
        .args(["--device", "cuda", "--size", "16x16", "--spp", "1", "--depth", "2"])
        .args(["--frames", "0-2", "--json", "-q", "-o"])
        .arg(folder.path().join("f.##.exr"))
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // The frame that is prepared first is sent whole.
    let frames = report["frames"].as_array().expect("frames").iter();
    let mut sent: Vec<u64> =
        frames.map(|frame| frame["uploaded_bytes"].as_u64().expect("bytes")).collect();
    sent.sort_unstable();
    assert!(sent[..2].iter().all(|bytes| (1..MOVING_BYTES).contains(bytes)), "{report}");
    assert!(sent[2] > u64::from(HALL_CELLS * HALL_CELLS) * 2 * 150, "{report}");
}
