//! A user pauses a job and lets it go on: how long nodes still work on it, what everybody is told,
//! and that it costs no bit.

use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, library};

/// Units that take a thread several seconds each, and more of them than anybody waits for.
const HEAVY: [&str; 8] =
    ["--size", "256x256", "--spp", "16384", "--tile", "256", "--unit-samples", "2048"];
/// A job of two frames that is over in a moment.
const LIGHT: [&str; 8] = ["--size", "64x64", "--spp", "8", "--frames", "1-2", "--tile", "16"];
/// A process that has used no more of the processor for so long has stopped working.
const QUIET: Duration = Duration::from_secs(2);

fn summary(farm: &Farm, id: &str) -> serde_json::Value {
    let job: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", id, "--json"])).expect("a job as JSON");
    job["summary"].clone()
}

/// Processor time that a process has used so far, in the kernel's ticks (mostly of 10 ms).
fn ticks(process: u32) -> u64 {
    let text =
        std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process that runs");
    let behind_name = text.rsplit(')').next().expect("the fields behind its name");
    let field =
        |index: usize| behind_name.split_whitespace().nth(index).and_then(|text| text.parse().ok());
    field(11).zip(field(12)).map(|(user, system): (u64, u64)| user + system).expect("its times")
}

/// The moment at which a process did its last work. Heartbeats take less than a tick each.
fn last_work(process: u32) -> Instant {
    let (mut last, mut before) = (Instant::now(), ticks(process));
    loop {
        std::thread::sleep(Duration::from_millis(100));
        let now = ticks(process);
        if now > before + 1 {
            last = Instant::now();
        } else if last.elapsed() > QUIET {
            return last;
        }
        before = now;
        assert!(last.elapsed() < Duration::from_secs(120));
    }
}

// promise: P6
#[test]
fn a_pause_stops_the_nodes_until_the_job_is_resumed() {
    let farm = Farm::start(1, 1);
    let node = farm.node_process(0);
    let job = farm.submit(&library("cornell-box.gltf"), &HEAVY);
    farm.wait_for("a unit in work", |farm| summary(farm, &job)["units_leased"].as_u64() > Some(0));
    let before = ticks(node);
    farm.wait_for("the node to render", |_| ticks(node) > before + 20);

    let asked = Instant::now();
    farm.text(&["pause", &job]);
    let answered = asked.elapsed();
    let stopped = last_work(node).saturating_duration_since(asked);
    println!(
        "pause: answered after {answered:.2?}, the node's last work {stopped:.2?} after it was \
         asked for"
    );
    assert!(stopped < Duration::from_secs(60), "{}", farm.logs());

    let paused = summary(&farm, &job);
    assert_eq!(
        (paused["state"].as_str(), paused["units_leased"].as_u64()),
        (Some("paused"), Some(0))
    );
    let note = paused["note"].as_str().expect("a note");
    assert!(note.starts_with("paused by `admin`; `tessera resume "), "{note}");
    assert!(farm.text(&["jobs"]).contains("paused"));
    assert!(farm.text(&["job", &job]).contains("state       paused"));
    // Whoever waits goes on waiting, and is told for what.
    let wait = farm.run(&["wait", &job, "--timeout", "1s"]);
    let said = String::from_utf8_lossy(&wait.stderr);
    assert!(wait.status.code() == Some(7) && said.contains("waiting: paused by `admin`"), "{said}");
    farm.text(&["pause", &job]);

    farm.text(&["resume", &job]);
    farm.text(&["resume", &job]);
    farm.wait_for("the job to go on", |farm| {
        summary(farm, &job)["units_leased"].as_u64() > Some(0)
    });
    let asked = Instant::now();
    farm.text(&["cancel", &job]);
    let stopped = last_work(node).saturating_duration_since(asked);
    println!("cancel: the node's last work {stopped:.2?} after it was asked for");
    assert!(stopped < Duration::from_secs(60), "{}", farm.logs());
    let refused = farm.run(&["pause", &job]);
    let said = String::from_utf8_lossy(&refused.stderr);
    assert!(!refused.status.success() && said.contains("has ended already"), "{said}");
}

// promise: P6
#[test]
fn a_job_that_was_paused_over_a_restart_has_the_same_pixels() {
    let mut farm = Farm::start(0, 1);
    let job = farm.submit(&library("cornell-box.gltf"), &LIGHT);
    farm.text(&["pause", &job]);
    farm.kill_coordinator();
    farm.start_coordinator();
    farm.add_node("node-0", 1);
    let straight = farm.submit(&library("cornell-box.gltf"), &LIGHT);
    let expected = farm.hashes(&straight);
    assert_eq!(summary(&farm, &job)["state"].as_str(), Some("paused"));
    assert_eq!(summary(&farm, &job)["units_committed"].as_u64(), Some(0));
    farm.text(&["resume", &job]);
    assert_eq!(farm.hashes(&job), expected);
}
