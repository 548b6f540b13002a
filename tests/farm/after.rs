//! Jobs that wait for other jobs on a real farm: chains of render and compute jobs, with a node
//! killed, a job that fails, cancels, retries and a restart of the coordinator between them.

use serde_json::Value;
use tessera_support::farm::{Farm, library};

/// A job of two frames that is over in a moment.
const LIGHT: [&str; 8] = ["--size", "64x64", "--spp", "8", "--frames", "1-2", "--tile", "16"];
/// A job that takes as long as a test lets it.
const ENDLESS: [&str; 6] = ["--size", "256x256", "--spp", "1000000", "--frames", "1-2"];

fn submit(farm: &Farm, options: &[&str], after: &[&str]) -> String {
    farm.submit(&library("cornell-box.gltf"), &[options, after].concat())
}

fn detail(farm: &Farm, id: &str) -> Value {
    serde_json::from_str(&farm.text(&["job", id, "--json"])).expect("a job as JSON")
}

fn state(farm: &Farm, id: &str) -> String {
    detail(farm, id)["summary"]["state"].as_str().expect("a state").to_owned()
}

fn note(farm: &Farm, id: &str) -> String {
    detail(farm, id)["summary"]["note"].as_str().expect("a note").to_owned()
}

/// A compute job that waits for others.
fn compute(farm: &Farm, after: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("in.npy");
    std::fs::write(&input, plain_array(8, 8)).expect("an array");
    let input = format!("image={}", input.display());
    let kernel = ["compute", "builtin:resize", "--domain", "4x4", "--detach", "--input", &input];
    farm.text(&[&kernel[..], after].concat()).trim().to_owned()
}

/// A picture of one channel as a file of NumPy.
fn plain_array(width: usize, height: usize) -> Vec<u8> {
    let shape = format!("({height}, {width}, 1)");
    let head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let padded = format!("{head:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    bytes.extend((0..width * height).flat_map(|at| (at as f32).to_le_bytes()));
    bytes
}

// promise: P4
#[test]
fn a_chain_of_jobs_runs_in_its_order_over_failures() {
    let mut farm = Farm::start(0, 1);
    let first = submit(&farm, &LIGHT, &["--name", "first"]);
    let second = submit(&farm, &LIGHT, &["--after", &format!("{first}:frames")]);
    let third = compute(&farm, &["--after", &second]);
    // By the name, and several by comma.
    let fourth = submit(&farm, &LIGHT, &["--after", &format!("{third},first")]);
    assert!(note(&farm, &fourth).starts_with("waits for job `"), "{}", note(&farm, &fourth));
    let told = farm.text(&["job", &fourth]);
    assert!(told.contains("after ") && told.contains("until it succeeds: 0 of 2 frames"), "{told}");
    let told = farm.text(&["job", &first]);
    assert!(told.contains("before ") && told.contains("frame by frame: 0 of 2 frames"), "{told}");
    assert!(farm.text(&["jobs"]).contains("waits for another job"));
    assert!(farm.text(&["explain", &second]).contains("0 of 2 frames"));
    farm.kill_coordinator();
    farm.start_coordinator();
    farm.add_node("node-0", 1);
    farm.add_node("node-1", 1);
    farm.text(&["wait", &first]);
    farm.kill_node(0);
    for job in [&second, &third, &fourth] {
        farm.text(&["wait", job]);
        assert_eq!(state(&farm, job), "done");
    }
    // The same pixels as of a job that waited for none.
    assert_eq!(farm.hashes(&second), farm.hashes(&first));
    let ended = |id: &str| detail(&farm, id)["summary"]["ended_at"].as_u64().expect("an end");
    assert!(ended(&second) <= ended(&third) && ended(&third) <= ended(&fourth));
    farm.text(&["forget", &first]);
    let told = farm.text(&["job", &fourth]);
    assert!(told.contains("the wait is over, forgotten"), "{told}");
}

// promise: P4
#[test]
fn jobs_end_with_the_one_that_they_wait_for() {
    let mut farm = Farm::start(1, 1);
    let first = submit(&farm, &ENDLESS, &[]);
    let second = submit(&farm, &LIGHT, &["--after", &first]);
    let third = submit(&farm, &LIGHT, &["--after", &second]);
    let anyway = submit(&farm, &LIGHT, &["--after-any", &first]);
    let paused = submit(&farm, &LIGHT, &["--after-any", &first]);
    farm.text(&["pause", &paused]);
    farm.text(&["cancel", &first]);
    let wait = farm.run(&["wait", &third]);
    assert_eq!(wait.status.code(), Some(3));
    assert!(note(&farm, &second).contains(&first) && note(&farm, &third).contains(&second));
    farm.text(&["wait", &anyway]);
    assert_eq!(state(&farm, &paused), "paused");

    let refused = farm.run(&["retry", &second]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("retry that one first"), "{said}");
    farm.text(&["retry", &first]);
    farm.text(&["retry", &second]);
    farm.kill_coordinator();
    farm.start_coordinator();
    assert_eq!(state(&farm, &second), "queued");
    assert!(note(&farm, &second).contains(&first));
    // A job that waits is cancelled as any other.
    farm.text(&["cancel", &second]);
    assert_eq!(state(&farm, &second), "cancelled");
    farm.text(&["resume", &paused]);
    farm.text(&["cancel", &first]);
    farm.text(&["wait", &paused]);
}

#[test]
fn what_cannot_be_waited_for_is_named() {
    let farm = Farm::start(0, 1);
    let scene = library("cornell-box.gltf");
    let scene = scene.to_str().expect("a path");
    let first = submit(&farm, &LIGHT, &[]);
    let said = |after: &[&str]| {
        let submit = ["submit", scene, "--spp", "1", "--size", "16x16"];
        let output = farm.run(&[&submit[..], after].concat());
        assert!(!output.status.success());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, text) = said(&["--after", "nothing"]);
    assert!(status == Some(4) && text.contains("--after: there is no job `nothing`"), "{text}");
    let unknown = "00000000-0000-4000-8000-000000000000";
    let (status, text) = said(&["--after-any", unknown]);
    assert!(status == Some(4) && text.contains(unknown), "{text}");
    let (status, text) = said(&["--after-any", &format!("{first}:frames")]);
    assert!(status == Some(2) && text.contains("waits for the end of a whole job"), "{text}");
    let (_, text) = said(&["--frames", "2-3", "--after", &format!("{first}:frames")]);
    assert!(text.contains("has no frame 3; its frames are 1-2"), "{text}");
    let (_, text) = said(&["--after", &format!("{first},{first}")]);
    assert!(text.contains("is named twice"), "{text}");
    farm.text(&["cancel", &first]);
    let (_, text) = said(&["--after", &first]);
    assert!(text.contains("was cancelled") && text.contains("--after-any"), "{text}");
}
