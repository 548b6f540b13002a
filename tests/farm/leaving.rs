//! How a node leaves: by a signal, by two, and by itself when there is no work.

use tessera_support::farm::{Farm, Process, library};

/// Units that take a thread several seconds each, and more of them than anybody waits for.
const HEAVY: [&str; 8] =
    ["--size", "256x256", "--spp", "16384", "--tile", "256", "--unit-samples", "96"];
/// A job that is over in a moment.
const LIGHT: [&str; 4] = ["--size", "64x64", "--spp", "8"];

fn leased(farm: &Farm, id: &str) -> u64 {
    count(farm, id, "units_leased")
}

fn count(farm: &Farm, id: &str, of: &str) -> u64 {
    let job: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", id, "--json"])).expect("a job as JSON");
    job["summary"][of].as_u64().expect("a count of units")
}

/// A node with more options, started by hand.
fn node(farm: &mut Farm, name: &str, options: &[&str]) -> Process {
    farm.invite(name, 1);
    let mut command = farm.node_command(0);
    command.args(options);
    farm.spawn(command, name)
}

#[test]
fn a_second_signal_hands_every_unit_back_at_once() {
    let mut farm = Farm::start(0, 1);
    let mut node = node(&mut farm, "node-0", &[]);
    let id = farm.submit(&library("cornell-box.gltf"), &HEAVY);
    // A unit that has not begun is given back at the first signal.
    farm.wait_for("a second unit to begin", |farm| count(farm, &id, "units_committed") > 0);
    node.signal("TERM");
    farm.wait_for("the node to drain", |farm| farm.text(&["nodes", "--json"]).contains("draining"));
    node.signal("TERM");
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    farm.wait_for("the units to be open again", |farm| leased(farm, &id) == 0);
    // Units of a node that is lost are attempts that failed; these were given back.
    let told = farm.text(&["job", &id, "--json"]);
    assert!(told.contains("\"failures\":[]"), "{told}\n{}", farm.logs());
    assert!(farm.logs().contains("stopped at once"), "{}", farm.logs());
}

#[test]
fn a_node_with_once_waits_for_work_and_then_leaves() {
    let mut farm = Farm::start(0, 1);
    let mut node = node(&mut farm, "node-0", &["--once"]);
    let id = farm.submit(&library("cornell-box.gltf"), &LIGHT);
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    assert_eq!(farm.hashes(&id).len(), 1);
}

#[test]
fn an_idle_node_leaves_with_success_unless_it_found_no_farm() {
    let mut farm = Farm::start(0, 1);
    let mut idle = node(&mut farm, "node-0", &["--max-idle", "2s"]);
    assert_eq!(idle.wait(), Some(0), "{}", farm.logs());
    farm.kill_coordinator();
    let mut command = farm.node_command(0);
    command.args(["--max-idle", "2s"]);
    let mut alone = farm.spawn(command, "node-0");
    assert_eq!(alone.wait(), Some(6), "{}", farm.logs());
}
