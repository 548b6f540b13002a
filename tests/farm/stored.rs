//! Results in a bucket: nodes put them there and finish frames from there, and what the bucket
//! loses or changes is rendered again. A real S3 server.

use super::fault_proxy::{Proxy, Weather};
use super::s3::{assert_clean, keyed, start};
use std::sync::atomic::Ordering::Relaxed;
use tessera_support::farm::{Farm, library};
use tessera_support::seaweed::Seaweed;

/// A job of a second or two on one thread, in 192 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "64", "--tile", "16", "--format", "exr"];

/// One of several seconds.
const LONG: [&str; 8] = ["--size", "256x192", "--spp", "256", "--tile", "16", "--format", "exr"];

/// Names of the objects that have the results of a job's only frame.
fn objects(server: &Seaweed, job: &str) -> Vec<String> {
    let folder = format!("farm/results/{job}/0");
    server.names(&folder).into_iter().map(|name| format!("{folder}/{name}")).collect()
}

// promise: P1
#[test]
fn results_are_put_into_the_bucket_by_their_nodes() {
    let what = "results_are_put_into_the_bucket_by_their_nodes";
    let Some(server) = Seaweed::start(what) else { return };
    let address = server.address("farm");
    let mut farm = Farm::prepare();
    start(&mut farm, &address);
    farm.add_node("node-0", 1);
    let scene = library("cornell-box.gltf");
    let job = farm.submit(&scene, &OPTIONS);
    farm.wait_for("an object", |_| !objects(&server, &job).is_empty());
    let spools = std::fs::read_dir(farm.data().join("spool")).expect("a folder").count();
    assert_eq!(spools, 0, "nothing is on the disk");
    let want = farm.hashes(&job);
    farm.wait_for("the end of its objects", |_| objects(&server, &job).is_empty());
    // A coordinator that is killed in the middle finds them there.
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 40);
    farm.kill_coordinator();
    start(&mut farm, &address);
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    assert!(!farm.logs().contains("rendered again"), "{}", farm.logs());
    // The same bits by way of the coordinator, and from its disk.
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    start(&mut farm, &format!("{address}&direct=off"));
    let through = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&through), want, "{}", farm.logs());
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_clean(&farm, &address);
}

// promise: P1, P3
#[test]
fn results_that_the_bucket_lost_or_changed_are_made_again() {
    let what = "results_that_the_bucket_lost_or_changed_are_made_again";
    let Some(server) = Seaweed::start(what) else { return };
    let mut farm = Farm::prepare();
    start(&mut farm, &server.address("farm"));
    farm.add_node("node-0", 1);
    let scene = library("cornell-box.gltf");
    let want = {
        let undisturbed = farm.submit(&scene, &LONG);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &LONG);
    farm.wait_for("some objects", |_| objects(&server, &open).len() >= 3);
    let of_frame = objects(&server, &open);
    let mut wrong = server.read(&of_frame[0]);
    let half = wrong.len() / 2;
    wrong[half] ^= 1;
    server.replace(&of_frame[0], &wrong);
    server.delete(&of_frame[1]);
    server.replace(&of_frame[2], &wrong[..half]);
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    let failures = farm.text(&["job", &open, "--json"]);
    let said = farm.logs();
    assert!(said.contains("what a finishing unit reads cannot be read"), "{said}\n{failures}");
}

// promise: P1, P3
#[test]
fn results_go_to_the_disk_while_the_bucket_is_away() {
    let what = "results_go_to_the_disk_while_the_bucket_is_away";
    let Some(mut server) = Seaweed::start(what) else { return };
    let address = format!("{}&patience=1", server.address("farm"));
    let mut farm = Farm::prepare();
    start(&mut farm, &address);
    farm.add_node("node-0", 1);
    let scene = library("cornell-box.gltf");
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 20);
    server.kill();
    farm.wait_for("all commits", |farm| farm.units_committed(&open) >= 192);
    let logs = farm.logs();
    assert!(logs.contains("they go to the disk of this coordinator"), "{logs}");
    farm.kill_coordinator();
    server.restart();
    start(&mut farm, &address);
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
}

// promise: P1, P3
#[test]
fn a_full_bucket_loses_nothing_and_is_said() {
    let Some(mut server) = Seaweed::start("a_full_bucket_loses_nothing_and_is_said") else {
        return;
    };
    let mut farm = Farm::prepare();
    start(&mut farm, &format!("{}&patience=1", server.address("farm")));
    farm.add_node("node-0", 1);
    let scene = library("cornell-box.gltf");
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    server.fill();
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("all commits", |farm| farm.units_committed(&open) >= 192);
    let said = |farm: &Farm, what: &str| farm.logs().contains(what);
    assert!(said(&farm, "they go to the disk of this coordinator"), "{}", farm.logs());
    // Its frame waits for room.
    farm.wait_for("word of the frame", |farm| said(farm, "frame cannot be made"));
    server.make_room();
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
}

/// Bytes of control for each unit, both ways, beside those of a session.
const CONTROL_BYTES: u64 = 1024;
/// Bytes of a session for its handshake, its join, the job and heartbeats.
const SESSION_BYTES: u64 = 64 << 10;

// promise: P1
#[test]
fn no_result_passes_the_coordinator() {
    let Some(server) = Seaweed::start("no_result_passes_the_coordinator") else { return };
    let mut farm = Farm::prepare();
    let mut command = keyed(farm.coordinator_command());
    command.args(["--blobs", &server.address("farm")]);
    farm.run_coordinator(command);
    let address = farm.address().parse().expect("an address");
    let proxy = Proxy::start(address, Weather::fair(), 1);
    let through = vec![("TESSERA_COORDINATOR".into(), proxy.address().into())];
    farm.add_node_with("node-0", &["--threads", "2"], through);
    let scene = library("cornell-box.gltf");
    let options = ["--size", "512x384", "--spp", "8", "--tile", "16", "--format", "exr"];
    let job = farm.submit(&scene, &options);
    farm.hashes(&job);
    let units = farm.units_committed(&job);
    let bytes = proxy.seen().bytes.load(Relaxed);
    println!("{bytes} bytes passed for {units} units: {} each", bytes / units);
    assert!(bytes <= SESSION_BYTES + units * CONTROL_BYTES, "{bytes} bytes for {units} units");
}
