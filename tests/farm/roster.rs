//! Nodes that come and go, with real processes: drained over a restart, left beside lost, installed
//! anew, renamed.

use serde_json::Value;
use tessera_support::farm::{Farm, library};

/// A job that is over in a moment.
const LIGHT: [&str; 4] = ["--size", "64x64", "--spp", "8"];

fn nodes(farm: &Farm) -> Vec<Value> {
    serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("nodes as JSON")
}

/// State and note of the one node of a name.
fn node(farm: &Farm, name: &str) -> (String, String) {
    let listed = nodes(farm);
    let named: Vec<&Value> = listed.iter().filter(|node| node["name"] == name).collect();
    assert_eq!(named.len(), 1, "{listed:?}");
    let text = |field: &str| named[0][field].as_str().expect("a text").to_owned();
    (text("state"), text("note"))
}

fn until(farm: &Farm, name: &str, state: &str) {
    farm.wait_for(&format!("{name} to be {state}"), |farm| {
        nodes(farm).iter().any(|node| node["name"] == name && node["state"] == state)
    });
}

/// Standard error and status of a command.
fn said(farm: &Farm, arguments: &[&str]) -> (String, Option<i32>) {
    let output = farm.run(arguments);
    (String::from_utf8_lossy(&output.stderr).into_owned(), output.status.code())
}

#[test]
fn a_drained_node_stays_drained_over_restarts() {
    let mut farm = Farm::start(1, 1);
    until(&farm, "node-0", "ready");
    let (text, status) = said(&farm, &["drain", "node-0"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("gets no new work") && text.contains("stays connected"), "{text}");
    until(&farm, "node-0", "drained");
    farm.kill_coordinator();
    farm.start_coordinator();
    until(&farm, "node-0", "drained");
    // Another process of the node is drained too, and stays.
    assert!(farm.drain_node(0));
    until(&farm, "node-0", "left");
    farm.start_node(0);
    until(&farm, "node-0", "drained");
    let job = farm.submit(&library("cornell-box.gltf"), &LIGHT);
    farm.kill_node(0);
    until(&farm, "node-0", "lost");
    farm.kill_coordinator();
    farm.start_coordinator();
    // An absent node that this coordinator has never seen.
    let (text, status) = said(&farm, &["undrain", "node-0"]);
    assert_eq!(status, Some(0), "{text}");
    assert!(text.contains("node-0 is not connected (lost "), "{text}");
    assert!(text.contains("It will get work when it comes back"), "{text}");
    farm.start_node(0);
    assert_eq!(farm.hashes(&job).len(), 1);
    let log = std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log");
    let line =
        |words: &[&str]| log.lines().any(|line| words.iter().all(|word| line.contains(word)));
    for words in [
        &["INFO", "session begun", "name=\"node-0\"", "from=127.0.0.1:"][..],
        &["INFO", "session lost", "name=\"node-0\"", "reason="],
        &["INFO", "node drained", "name=\"node-0\"", "by=\"admin\"", "leave=false"],
        &["INFO", "node left", "name=\"node-0\"", "SIGTERM"],
        &["INFO", "node lost", "name=\"node-0\""],
        &["INFO", "node undrained", "name=\"node-0\""],
        &["INFO", "job accepted", &job, "owner=\"admin\""],
        &["INFO", "job ended", &job, "state=Done"],
    ] {
        assert!(line(words), "{words:?}\n{log}");
    }
}

#[test]
fn left_and_lost_nodes_are_told_apart_after_a_restart() {
    let mut farm = Farm::start(3, 1);
    for name in ["node-0", "node-1", "node-2"] {
        until(&farm, name, "ready");
    }
    assert!(farm.drain_node(0));
    farm.kill_node(1);
    let (text, status) = said(&farm, &["drain", "node-2", "--leave"]);
    assert_eq!(status, Some(0));
    assert!(text.contains("and leaves"), "{text}");
    until(&farm, "node-0", "left");
    until(&farm, "node-1", "lost");
    until(&farm, "node-2", "left");
    farm.kill_coordinator();
    farm.start_coordinator();
    let (state, note) = node(&farm, "node-0");
    assert!(state == "left" && note.contains("SIGTERM"), "{state} {note}");
    assert_eq!(node(&farm, "node-1"), ("lost".to_owned(), "connection lost".to_owned()));
    let (state, note) = node(&farm, "node-2");
    assert!(state == "left" && note.contains("--leave") && note.contains("drained by"), "{note}");
    // A list without them.
    let (text, status) = said(&farm, &["nodes", "remove", "node-1"]);
    assert_eq!(status, Some(0), "{text}");
    assert_eq!(nodes(&farm).len(), 2);
    let all: Vec<Value> =
        serde_json::from_str(&farm.text(&["nodes", "--all", "--json"])).expect("JSON");
    assert!(all.iter().any(|node| node["state"] == "removed"), "{all:?}");
    assert_eq!(said(&farm, &["nodes", "remove", "node-1"]).1, Some(4));
    farm.start_node(0);
    until(&farm, "node-0", "ready");
    let (text, status) = said(&farm, &["nodes", "remove", "node-0"]);
    assert!(status == Some(1) && text.contains("tessera drain node-0 --leave"), "{text}");
}

#[test]
fn a_reinstalled_machine_is_one_and_a_renamed_one_is_refused() {
    let mut farm = Farm::start(1, 1);
    until(&farm, "node-0", "ready");
    assert!(farm.drain_node(0));
    std::fs::remove_dir_all(farm.folder().join("node-0")).expect("its data folder goes");
    let token = ["token", "create", "--role", "node", "--name", "node-0", "--replace"];
    let token = farm.text(&token);
    std::fs::write(farm.folder().join("node-0.token"), token).expect("a token file");
    farm.start_node(0);
    until(&farm, "node-0", "ready");
    assert_eq!(nodes(&farm).len(), 1);
    let shown = farm.text(&["nodes", "node-0"]);
    assert!(shown.contains("ready"), "{shown}");
    // Another name for the same data folder.
    assert!(farm.drain_node(0));
    let data = farm.folder().join("node-0");
    let data = data.to_str().expect("a UTF-8 path");
    let renamed = ["node", "--name", "node-9", "--device", "cpu", "--threads", "1", "--data", data];
    let (text, status) = said(&farm, &renamed);
    assert_eq!(status, Some(2), "{text}");
    assert!(text.contains("enrolled as `node-0`, and --name says `node-9`"), "{text}");
    assert!(text.contains("tessera members remove node-0"), "{text}");
}
