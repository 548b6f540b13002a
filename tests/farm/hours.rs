//! Nodes that work at some hours only, and machines that are woken when there is work.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tessera_support::farm::{Farm, library, takes_minutes};

/// The state and the note of a node, as `nodes` has them.
fn standing(farm: &Farm, name: &str) -> Option<(String, String)> {
    let nodes: serde_json::Value =
        serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
    let all = nodes.as_array().expect("a list");
    let node = all.iter().find(|node| node["name"] == name)?;
    let text = |field: &str| node[field].as_str().unwrap_or_default().to_owned();
    Some((text("state"), text("note")))
}

/// A node of one thread with more arguments, in this time zone.
fn add(farm: &mut Farm, name: &str, arguments: &[&str], zone: &str) {
    let all = [&["--device", "cpu", "--threads", "1"][..], arguments].concat();
    farm.add_node_with(name, &all, vec![("TZ".into(), zone.into())]);
}

/// Minute of the day in UTC.
fn minute() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 60 % (24 * 60)
}

fn time(minute: u64) -> String {
    let minute = minute % (24 * 60);
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

/// `--hours` from one minute of the day up to another.
fn hours(from: u64, to: u64) -> String {
    format!("{}-{}", time(from), time(to))
}

#[test]
fn outside_its_hours_a_node_rests_and_ends_when_it_is_told_to() {
    let mut farm = Farm::start(0, 1);
    let (later, end) = (minute() + 60, minute() + 61);
    add(&mut farm, "night", &["--hours", &hours(later, end)], "UTC0");
    farm.wait_for("it rests", |farm| farm.logs().contains("rests until its hours begin"));
    assert_eq!(standing(&farm, "night"), None, "it has not joined");
    assert!(farm.drain_node(0), "{}", farm.logs());
    assert!(farm.logs().contains("stopped outside its hours"), "{}", farm.logs());
    // The same hours in a place that is an hour ahead.
    add(&mut farm, "ahead", &["--hours", &hours(later, end + 10)], "AHEAD-1");
    farm.wait_for("it works", |farm| standing(farm, "ahead").is_some_and(|at| at.0 == "ready"));
}

#[test]
fn a_node_leaves_when_its_hours_are_over_and_comes_again() {
    if !takes_minutes("a node whose hours end and begin") {
        return;
    }
    let mut farm = Farm::start(0, 1);
    let now = minute();
    let spans = format!("{},{}", hours(now, now + 2), hours(now + 3, now + 30));
    add(&mut farm, "night", &["--hours", &spans], "UTC0");
    farm.wait_for("it works", |farm| standing(farm, "night").is_some_and(|at| at.0 == "ready"));
    let options = ["--size", "64x64", "--spp", "20000", "--frames", "1-400"];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    farm.wait_for("it leaves", |farm| standing(farm, "night").is_some_and(|at| at.0 == "left"));
    let (_, note) = standing(&farm, "night").expect("it is listed");
    assert!(note.contains("its hours are over: it works "), "{note}");
    let done = farm.units_committed(&job);
    farm.wait_for("it comes", |farm| standing(farm, "night").is_some_and(|at| at.0 == "ready"));
    farm.wait_for("it goes on", |farm| farm.units_committed(&job) > done);
    let failures = farm.text(&["job", &job, "--json"]);
    let detail: serde_json::Value = serde_json::from_str(&failures).expect("JSON");
    assert_eq!(detail["failures"].as_array().map(Vec::len), Some(0), "no attempt is lost");
    farm.text(&["cancel", &job]);
}

#[test]
fn machines_of_absent_nodes_are_woken_when_units_wait() {
    let mut farm = Farm::prepare();
    let program = farm.folder().join("wake");
    let told = farm.folder().join("told");
    let script = format!("#!/bin/sh\necho \"$1 $TESSERA_POOL\" >> '{}'\n", told.display());
    std::fs::write(&program, script).expect("a script");
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).expect("its mode");
    let mut command = farm.coordinator_command();
    command.arg("--wake").arg(&program);
    farm.run_coordinator(command);
    add(&mut farm, "asleep", &["--pool", "den"], "UTC0");
    farm.add_node("drained", 1);
    farm.wait_for("both work", |farm| {
        ["asleep", "drained"].iter().all(|name| standing(farm, name).is_some())
    });
    farm.text(&["drain", "drained"]);
    assert!(farm.drain_node(0) && farm.drain_node(1), "{}", farm.logs());
    let woken = || std::fs::read_to_string(&told).unwrap_or_default();
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(woken(), "", "there is no work");
    let options = ["--size", "32x32", "--spp", "1"];
    let job = farm.submit(&library("cornell-box.gltf"), &options);
    farm.wait_for("it is woken", |_| !woken().is_empty());
    assert_eq!(woken(), "asleep den\n");
    farm.start_node(0);
    farm.text(&["wait", &job]);
    assert!(farm.logs().contains("its machine is woken"), "{}", farm.logs());
    assert_eq!(woken(), "asleep den\n", "once, and a drained node is left alone");
}
