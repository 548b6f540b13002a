//! A node on a machine that its cloud takes back: it hears of it, stops taking work, and hands in
//! what its units have before the machine is gone.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tessera_support::farm::{Farm, library};

/// A unit that takes a thread the best part of an hour, one that takes it longer than a notice, and
/// some that take it less than a second.
const ENDLESS: [&str; 8] =
    ["--size", "64x64", "--spp", "1000000", "--tile", "64", "--unit-samples", "1000000"];
const LONG: [&str; 8] =
    ["--size", "64x64", "--spp", "150000", "--tile", "64", "--unit-samples", "150000"];
const SHORT: [&str; 8] =
    ["--size", "128x128", "--spp", "256", "--tile", "64", "--unit-samples", "128"];

/// Amazon's metadata service as its documents describe it: a token, and an action once there is
/// one.
struct Metadata {
    address: String,
    /// The machine is taken back.
    notice: Arc<AtomicBool>,
}

impl Metadata {
    fn start() -> Metadata {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a socket");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let notice = Arc::new(AtomicBool::new(false));
        let noticed = notice.clone();
        // Ends with the process.
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.expect("a connection");
                let mut request = Vec::new();
                let mut byte = [0];
                while !request.ends_with(b"\r\n\r\n")
                    && stream.read(&mut byte).is_ok_and(|count| count == 1)
                {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let (status, body) = match request.split(' ').nth(1).unwrap_or_default() {
                    "/latest/api/token" if request.starts_with("PUT ") => ("200 OK", "secret"),
                    _ if !request.contains("X-aws-ec2-metadata-token: secret") => {
                        ("401 Unauthorized", "")
                    }
                    "/latest/meta-data/spot/instance-action" if noticed.load(Relaxed) => {
                        ("200 OK", r#"{"action": "terminate", "time": "2026-09-18T08:22:00Z"}"#)
                    }
                    _ => ("404 Not Found", ""),
                };
                let answer =
                    format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                // A node that has gone meanwhile needs no answer.
                drop(stream.write_all(answer.as_bytes()));
            }
        });
        Metadata { address, notice }
    }
}

fn summary(farm: &Farm, id: &str) -> serde_json::Value {
    let job: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", id, "--json"])).expect("a job as JSON");
    assert_eq!(job["failures"].as_array().map(Vec::len), Some(0), "{job}\n{}", farm.logs());
    job["summary"].clone()
}

/// A farm of one node on such a machine, with a job that it has begun.
fn begun(metadata: &Metadata, options: &[&str]) -> (Farm, tessera_support::farm::Process, String) {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    farm.invite("node-0", 1);
    let mut command = farm.node_command(0);
    command.args(["--spot", "aws"]).env("TESSERA_METADATA", &metadata.address);
    let node = farm.spawn(command, "node-0");
    let id = farm.submit(&library("cornell-box.gltf"), options);
    farm.wait_for("leased units", |farm| summary(farm, &id)["units_leased"].as_u64() > Some(0));
    (farm, node, id)
}

// promise: P4
#[test]
fn a_notice_ends_a_node_whose_units_others_finish() {
    let metadata = Metadata::start();
    let (mut farm, mut node, id) = begun(&metadata, &SHORT);
    metadata.notice.store(true, Relaxed);
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    assert!(farm.logs().contains("AWS takes this machine back"), "{}", farm.logs());
    assert_eq!(summary(&farm, &id)["units_leased"], 0);
    farm.add_node("node-1", 2);
    assert_eq!(farm.hashes(&id).len(), 1);
}

/// Camera samples of a job that were kept from nodes that left, and all that are committed.
fn samples(farm: &Farm, id: &str) -> (u64, u64) {
    let summary = summary(farm, id);
    let count = |name: &str| summary[name].as_u64().expect("a count of samples");
    (count("samples_kept"), count("samples_committed"))
}

/// Waits until the only node's device has begun the unit, and has told so: its heartbeats say how
/// busy it was.
fn wait_until_busy(farm: &Farm) {
    farm.wait_for("a device at work", |farm| {
        let nodes: serde_json::Value =
            serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("nodes as JSON");
        nodes[0]["telemetry"][0]["busy"].as_f64().is_some_and(|busy| busy > 0.0)
    });
}

// promise: P4
#[test]
fn a_node_that_leaves_hands_in_the_samples_that_it_has() {
    let mut farm = Farm::prepare();
    farm.start_coordinator();
    farm.invite("node-0", 1);
    let mut command = farm.node_command(0);
    command.args(["--hand-in-after", "0s"]);
    let mut node = farm.spawn(command, "node-0");
    let id = farm.submit(&library("cornell-box.gltf"), &ENDLESS);
    wait_until_busy(&farm);
    node.signal("TERM");
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    let (kept, committed) = samples(&farm, &id);
    // So many samples of every pixel, and no unit.
    assert!(
        kept > 0 && kept == committed && kept.is_multiple_of(64 * 64),
        "{kept}\n{}",
        farm.logs()
    );
    let job = summary(&farm, &id);
    assert_eq!((&job["units_leased"], &job["units_committed"]), (&0.into(), &0.into()));
    let told = farm.text(&["job", &id]);
    assert!(told.contains("kept from nodes that left"), "{told}");
    // Another one goes on where it stopped; the coordinator may have ended meanwhile.
    farm.kill_coordinator();
    farm.start_coordinator();
    farm.add_node("node-1", 1);
    farm.wait_for("the rest to be leased", |farm| {
        summary(farm, &id)["units_leased"].as_u64() > Some(0)
    });
    assert_eq!(samples(&farm, &id), (kept, committed));
}

// promise: P4
#[test]
fn units_longer_than_the_notice_are_handed_in_partly() {
    // Minutes of a core: with the long tests.
    if std::env::var_os("TESSERA_BAD_NETWORK").is_none() {
        return tessera_support::farm::skipped(
            "NOT RUN: a unit longer than a notice: TESSERA_BAD_NETWORK is not set",
        );
    }
    let metadata = Metadata::start();
    let (mut farm, mut node, id) = begun(&metadata, &LONG);
    wait_until_busy(&farm);
    metadata.notice.store(true, Relaxed);
    let noticed = std::time::Instant::now();
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    let (kept, committed) = samples(&farm, &id);
    println!("left after {:.1} s, {kept} samples kept", noticed.elapsed().as_secs_f32());
    assert!(farm.logs().contains("are handed in"), "{}", farm.logs());
    assert!(kept > 0 && kept == committed && kept < 64 * 64 * 150_000, "{kept}\n{}", farm.logs());
    assert_eq!(summary(&farm, &id)["units_leased"], 0);
    // Others render the rest, and the picture is the one of a farm that nobody has left.
    farm.add_node("node-1", 2);
    let hashes = farm.hashes(&id);
    assert_eq!(samples(&farm, &id), (kept, 64 * 64 * 150_000));
    let again = farm.submit(&library("cornell-box.gltf"), &LONG);
    assert_eq!(farm.hashes(&again), hashes);
    assert_eq!(samples(&farm, &again).0, 0);
}
