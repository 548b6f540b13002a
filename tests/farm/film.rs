//! A film whose geometry moves on a farm, through kills of nodes, of the coordinator and of the
//! processes that read the scene, and through a pause: no bit changes, and nothing is lost.

use crate::farm::importer::importers;
use crate::farm::kills::{Chance, is_clean, strike};
use std::process::Command;
use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, send_signal, takes_minutes, tessera};
use tessera_support::hall::write_hall;

const FRAMES: u32 = 6;
const OPTIONS: [&str; 8] =
    ["--size", "160x120", "--spp", "32", "--tile", "32", "--unit-samples", "16"];

/// The hash of a frame that is rendered alone, as a still.
fn still(scene: &std::path::Path, frame: u32) -> String {
    let picture = scene.with_file_name("still.exr");
    let output = Command::new(tessera())
        .arg("render")
        .arg(scene)
        .args(OPTIONS)
        .args(["--device", "cpu", "--json", "-q", "--frames", &frame.to_string(), "-o"])
        .arg(&picture)
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["frames"][0]["pixels_sha256"].as_str().expect("a hash").to_owned()
}

// promise: P1, P2, P3, P5
#[test]
fn a_film_keeps_its_bits_through_kills_of_everything() {
    if !takes_minutes("a film under kills") {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = write_hall(folder.path(), true);
    let want: Vec<String> = (0..FRAMES).map(|frame| still(&scene, frame)).collect();
    let mut farm = Farm::start(2, 1);
    let frames = format!("0-{}", FRAMES - 1);
    let options = [&OPTIONS[..], &["--frames", &frames]].concat();
    let mut jobs = vec![farm.submit(&scene, &options)];
    let mut chance = Chance::new(34);
    let mut killed = 0;
    for round in 0..4 {
        std::thread::sleep(Duration::from_millis(300 + chance.below(900)));
        for node in [0, 1] {
            for importer in importers(farm.node_process(node)) {
                // It may have ended by itself.
                send_signal(importer, "KILL");
                killed += 1;
            }
        }
        std::thread::sleep(Duration::from_millis(chance.below(600)));
        strike(&mut farm, round, &mut chance);
        if round == 1 {
            farm.text(&["pause", &jobs[0]]);
            farm.text(&["resume", &jobs[0]]);
        }
        jobs.push(farm.submit(&scene, &options));
    }
    for job in &jobs {
        assert_eq!(farm.hashes(job), want, "job {job}\n{}", farm.logs());
    }
    assert!(killed > 0, "no process that reads a scene was met");
    assert!(farm.stop_coordinator(), "the coordinator did not end by itself\n{}", farm.logs());
    is_clean(&farm);
}

// promise: P8
#[test]
fn a_scene_process_that_is_killed_between_frames_costs_nothing() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = write_hall(folder.path(), false);
    let farm = Farm::start(1, 1);
    let first = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&first), [still(&scene, 0)]);
    let idle = importers(farm.node_process(0));
    assert_eq!(idle.len(), 1, "it is kept for the next frame");
    idle.iter().for_each(|importer| send_signal(*importer, "KILL"));
    let second = farm.submit(&scene, &[&OPTIONS[..], &["--frames", "3"]].concat());
    assert_eq!(farm.hashes(&second), [still(&scene, 3)]);
    let job: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &second, "--json"])).expect("a job as JSON");
    assert_eq!(job["summary"]["units_failed"].as_u64().unwrap_or(0), 0, "{job}");
    assert!(farm.logs().contains("a scene is loaded again"), "{}", farm.logs());
}

#[test]
fn a_film_says_how_long_devices_waited_for_its_frames() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let scene = write_hall(folder.path(), true);
    let farm = Farm::start(1, 1);
    let begun = Instant::now();
    let job = farm.submit(&scene, &[&OPTIONS[..], &["--frames", "0-2"]].concat());
    assert_eq!(farm.hashes(&job).len(), 3);
    let most = begun.elapsed().as_secs_f64();
    let text = farm.text(&["job", &job]);
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("a job as JSON");
    // The only device had nothing to do before the first frame was prepared.
    let waited = detail["devices_waited_s"].as_f64().expect("a time");
    assert!(waited > 0.0 && waited < most, "{waited} s of {most} s");
    assert!(text.contains("devices     waited "), "{text}");
}
