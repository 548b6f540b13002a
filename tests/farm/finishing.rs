//! Frames that nodes finish: their files are those of one process, whatever the cut, the nodes, and
//! what happens to them.

use crate::farm::kills::{Chance, is_clean, strike};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tessera_support::farm::{Farm, library, takes_minutes, tessera};

/// Says in the coordinator's log which frames nodes have finished.
const TOLD: &str = "frame put together from what nodes finished";

/// A frame of four bands, if it is denoised: 128 tiles are 51 of its rows.
const BANDS: [&str; 10] =
    ["--size", "160x128", "--spp", "4", "--depth", "3", "--tile", "8", "--unit-samples", "2"];

fn farm(nodes: usize) -> Farm {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.env("TESSERA_LOG", "info,tessera_coordinator::resolve=debug");
    farm.run_coordinator(command);
    (0..nodes).for_each(|index| farm.add_node(&format!("node-{index}"), 1));
    farm
}

/// Returns how many frames the farm's nodes have finished so far.
fn by_nodes(farm: &Farm) -> usize {
    let log = std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log");
    log.matches(TOLD).count()
}

/// The files of a folder by extension: of a PNG or JPEG all bytes, and of an EXR all its channels,
/// since its header names the job.
fn pictures(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let read = |file: PathBuf| {
        let extension = file.extension().expect("an extension").to_string_lossy().into_owned();
        match extension.as_str() {
            "exr" => (extension, channels(&file)),
            _ => (extension, std::fs::read(file).expect("a file")),
        }
    };
    let is_picture = |file: &PathBuf| {
        file.extension()
            .is_some_and(|extension| ["exr", "png", "jpg"].iter().any(|of| extension == *of))
    };
    files.filter(is_picture).map(read).collect()
}

fn channels(file: &Path) -> Vec<u8> {
    let image = exr::prelude::read_first_flat_layer_from_file(file).expect("an EXR file");
    let list = &image.layer_data.channel_data.list;
    let of = |channel: &exr::image::AnyChannel<exr::image::FlatSamples>| {
        let values = channel.sample_data.values_as_f32().flat_map(f32::to_le_bytes);
        channel.name.to_string().into_bytes().into_iter().chain(values).collect::<Vec<u8>>()
    };
    list.iter().flat_map(of).collect()
}

/// Renders a frame in one process.
fn alone(scene: &Path, options: &[&str], formats: &[&str]) -> BTreeMap<String, Vec<u8>> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut command = Command::new(tessera());
    command.arg("render").arg(scene).args(options).args(["--device", "cpu", "-q"]);
    for format in formats {
        command.arg("-o").arg(folder.path().join(format!("a.{format}")));
    }
    let output = command.output().expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    pictures(folder.path())
}

/// Renders the same frame on a farm, and fetches its files.
fn on_farm(
    farm: &Farm,
    scene: &Path,
    options: &[&str],
    formats: &str,
) -> BTreeMap<String, Vec<u8>> {
    let job = farm.submit(scene, &[options, &["--format", formats]].concat());
    fetched(farm, &job)
}

fn fetched(farm: &Farm, job: &str) -> BTreeMap<String, Vec<u8>> {
    farm.text(&["wait", job]);
    let folder = farm.folder().join(format!("out-{job}"));
    farm.text(&["fetch", job, "-o", folder.to_str().expect("a UTF-8 path")]);
    pictures(&folder)
}

// promise: P5
#[test]
fn frames_that_nodes_finish_have_the_files_of_one_process() {
    let farm = farm(2);
    let scene = library("cornell-box.gltf");
    let small = ["--size", "96x72", "--spp", "4", "--depth", "3"];
    let layers = ["--aov", "albedo,normal,depth,position"];
    let cases: [(&str, Vec<&str>); 7] = [
        ("one band", small.to_vec()),
        ("layers", [&small[..], &layers].concat()),
        ("one denoised band", [&small[..], &["--denoise"]].concat()),
        ("denoised bands", [&BANDS[..], &["--denoise"]].concat()),
        ("denoised bands with layers", [&BANDS[..], &layers, &["--denoise"]].concat()),
        (
            "a crop with overscan",
            [&BANDS[..], &["--denoise", "--crop", "40,30,100x80", "--overscan", "9"]].concat(),
        ),
        ("transparent", [&BANDS[..], &["--denoise", "--transparent"]].concat()),
    ];
    for (count, (what, options)) in cases.iter().enumerate() {
        let formats: &[&str] = match options.contains(&"--transparent") {
            true => &["exr", "png"],
            false => &["exr", "png", "jpg"],
        };
        let want = alone(&scene, options, formats);
        let found = on_farm(&farm, &scene, options, &formats.join(",").replace("jpg", "jpeg"));
        assert_eq!(want.keys().collect::<Vec<_>>(), found.keys().collect::<Vec<_>>(), "{what}");
        for (format, bytes) in &want {
            assert!(found[format] == *bytes, "{what}: the {format} differs\n{}", farm.logs());
        }
        assert_eq!(by_nodes(&farm), count + 1, "{what}: not by nodes\n{}", farm.logs());
    }
}

// promise: P1, P2, P5
#[test]
fn kills_while_nodes_finish_change_no_bit() {
    if !takes_minutes("kills of nodes that finish") {
        return;
    }
    let scene = library("cornell-box.gltf");
    let options = [&BANDS[..], &["--denoise", "--frames", "1-6"]].concat();
    let quiet = farm(1);
    let job = quiet.submit(&scene, &options);
    let want = quiet.hashes(&job);
    assert_eq!(by_nodes(&quiet), 6, "{}", quiet.logs());
    drop(quiet);

    let mut farm = farm(2);
    let job = farm.submit(&scene, &options);
    let mut chance = Chance::new(33);
    for round in 0..6 {
        std::thread::sleep(Duration::from_millis(200 + chance.below(1200)));
        strike(&mut farm, round, &mut chance);
    }
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "the coordinator did not end by itself\n{}", farm.logs());
    is_clean(&farm);
}

/// The longest file in a folder and those below it.
fn longest(folder: &Path) -> Option<(u64, PathBuf)> {
    let entries = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let of = |path: PathBuf| match path.is_dir() {
        true => longest(&path),
        false => path.metadata().ok().map(|file| (file.len(), path)),
    };
    entries.filter_map(of).max()
}

// promise: P2
#[test]
fn damaged_results_are_made_again_for_the_frame() {
    let mut farm = farm(1);
    let scene = library("cornell-box.gltf");
    let options = ["--size", "256x192", "--spp", "256", "--tile", "32", "--denoise"];
    let undisturbed = farm.submit(&scene, &options);
    let want = farm.hashes(&undisturbed);
    let job = farm.submit(&scene, &options);
    let spool =
        |farm: &Farm| longest(&farm.data().join("spool")).filter(|(bytes, _)| *bytes > 100_000);
    farm.wait_for("results in a spool", |farm| spool(farm).is_some());
    farm.signal_node(0, "STOP");
    farm.kill_coordinator();
    let (_, path) = spool(&farm).expect("a spool");
    let mut bytes = std::fs::read(&path).expect("a spool");
    bytes[50_000] ^= 0x10;
    std::fs::write(&path, bytes).expect("a spool");
    farm.start_coordinator();
    farm.signal_node(0, "CONT");
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    let log = std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log");
    assert!(log.contains("bytes of results are lost"), "{log}");
}
