//! A node on a machine that its cloud takes back: it hears of it, stops taking work, and hands its units back before the machine is gone.

use crate::harness::{Farm, library};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Units that take a thread far longer than a notice, and units that take it less than a second.
const LONG: [&str; 8] = ["--size", "256x256", "--spp", "65536", "--tile", "256", "--unit-samples", "32768"];
const SHORT: [&str; 8] = ["--size", "128x128", "--spp", "256", "--tile", "64", "--unit-samples", "128"];

/// Amazon's metadata service as its documents describe it: a token, and an action once there is one.
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
                while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1)
                {
                    request.push(byte[0]);
                }
                let request = String::from_utf8_lossy(&request).into_owned();
                let (status, body) = match request.split(' ').nth(1).unwrap_or_default() {
                    "/latest/api/token" if request.starts_with("PUT ") => ("200 OK", "secret"),
                    _ if !request.contains("X-aws-ec2-metadata-token: secret") => ("401 Unauthorized", ""),
                    "/latest/meta-data/spot/instance-action" if noticed.load(Relaxed) => {
                        ("200 OK", r#"{"action": "terminate", "time": "2026-09-18T08:22:00Z"}"#)
                    }
                    _ => ("404 Not Found", ""),
                };
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
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
fn begun(metadata: &Metadata, options: &[&str]) -> (Farm, crate::harness::Process, String) {
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

#[test]
fn units_that_would_outlast_the_machine_are_handed_back() {
    // Twenty-five seconds of one core: with the long tests.
    if std::env::var_os("TESSERA_BAD_NETWORK").is_none() {
        return crate::harness::skipped(
            "NOT RUN: a unit longer than a notice: TESSERA_BAD_NETWORK is not set",
        );
    }
    let metadata = Metadata::start();
    let (farm, mut node, id) = begun(&metadata, &LONG);
    metadata.notice.store(true, Relaxed);
    let noticed = std::time::Instant::now();
    assert_eq!(node.wait(), Some(0), "{}", farm.logs());
    println!("handed back after {:.1} s", noticed.elapsed().as_secs_f32());
    assert!(farm.logs().contains("is handed back"), "{}", farm.logs());
    farm.wait_for("the units to be open again", |farm| summary(farm, &id)["units_leased"] == 0);
}
