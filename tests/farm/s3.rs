//! A farm whose files are on a real S3 server: one that is killed, slow and lies, and copies of the
//! files there and back.

use super::store::{SMALL, utf8};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};
use tessera_support::farm::{Farm, library};
use tessera_support::seaweed::{KEY, SECRET, Seaweed};

/// A job of a second or two on one thread, in 48 units.
const OPTIONS: [&str; 8] = ["--size", "256x192", "--spp", "48", "--tile", "32", "--format", "exr"];

/// A command of the farm's machine, with the key for the files.
pub(super) fn keyed(mut command: Command) -> Command {
    command.env("AWS_ACCESS_KEY_ID", KEY).env("AWS_SECRET_ACCESS_KEY", SECRET);
    command
}

pub(super) fn start(farm: &mut Farm, address: &str) {
    let mut command = keyed(farm.coordinator_command());
    command.args(["--blobs", address]);
    farm.run_coordinator(command);
}

/// Runs a command that must succeed, with the key. Returns what it prints.
fn text(farm: &Farm, arguments: &[&str]) -> String {
    let output = keyed(farm.command(arguments)).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}\n{}", farm.logs());
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub(super) fn assert_clean(farm: &Farm, address: &str) {
    let data = farm.data();
    let report = text(farm, &["fsck", "--json", "--data", utf8(&data), "--blobs", address]);
    let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
    assert_eq!(report["clean"], true, "{report}");
}

// promise: P1, P3
#[test]
fn a_farm_waits_for_a_store_of_files_that_was_killed() {
    let what = "a_farm_waits_for_a_store_of_files_that_was_killed";
    let Some(mut server) = Seaweed::start(what) else { return };
    let scene = library("cornell-box.gltf");
    // Shorter than the time without it: frames must be tried again.
    let address = format!("{}&patience=1", server.address("farm"));
    let mut farm = Farm::prepare();
    start(&mut farm, &address);
    farm.add_node("node-0", 1);
    let want = {
        let undisturbed = farm.submit(&scene, &OPTIONS);
        farm.hashes(&undisturbed)
    };
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 5);
    server.kill();
    farm.wait_for("all commits", |farm| farm.units_committed(&open) >= 48);
    farm.wait_for("a frame that waits", |farm| {
        let logs = farm.logs();
        logs.contains("frame cannot be made") || logs.contains("a frame waits")
    });
    let logs = farm.logs();
    assert_eq!(logs.matches("the store of files does not take results").count(), 1, "{logs}");
    let refused = farm.run(&["submit", utf8(&library("drink.gltf"))]);
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && said.contains("the store of files"), "{said}");
    assert!(said.contains("try again later"), "{said}");
    farm.kill_coordinator();
    server.restart();
    start(&mut farm, &address);
    assert_eq!(farm.hashes(&open), want, "{}", farm.logs());
    let folder = farm.folder().join("fetched");
    farm.text(&["fetch", &open, "-o", utf8(&folder)]);
    assert!(std::fs::read_dir(&folder).is_ok_and(|mut files| files.next().is_some()));
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_clean(&farm, &address);
    let data = farm.data();
    for arguments in [&["fsck", "--data"][..], &["coordinator", "--data"]] {
        let refused = farm.run(&[arguments, &[utf8(&data)]].concat());
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(!refused.status.success() && said.contains("by --blobs"), "{said}");
    }
    let own = std::fs::read_dir(data.join("blobs")).expect("a folder");
    assert_eq!(own.count(), 0, "nothing is on the disk too");
}

/// Lets every request to a server wait for a time. Returns the port on which it listens.
pub(super) fn delayed(port: u16, by: Duration) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    let here = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else { return };
            let copies = [(client.try_clone(), server.try_clone(), by)];
            let back = [(server.try_clone(), client.try_clone(), Duration::ZERO)];
            for (from, to, by) in copies.into_iter().chain(back) {
                let (from, to) = (from.expect("a socket"), to.expect("a socket"));
                std::thread::spawn(move || carry(from, to, by));
            }
        }
    });
    here
}

/// Carries bytes. What begins after a pause is a new request.
fn carry(mut from: TcpStream, mut to: TcpStream, by: Duration) {
    let mut buffer = vec![0; 64 << 10];
    let mut last: Option<Instant> = None;
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        if last.is_none_or(|last| last.elapsed() > Duration::from_millis(20)) {
            std::thread::sleep(by);
        }
        if to.write_all(&buffer[..count]).is_err() {
            return;
        }
        last = Some(Instant::now());
    }
    // Either side may have gone.
    let _ = to.shutdown(std::net::Shutdown::Both);
}

#[test]
fn a_slow_store_of_files_makes_nothing_fail() {
    let Some(server) = Seaweed::start("a_slow_store_of_files_makes_nothing_fail") else { return };
    let scene = library("cornell-box.gltf");
    let port = delayed(server.port(), Duration::from_secs(1));
    let mut farm = Farm::prepare();
    start(&mut farm, &server.address_at(port, "farm"));
    farm.add_node("node-0", 1);
    let job = farm.submit(&scene, &OPTIONS);
    let slow = farm.hashes(&job);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    start(&mut farm, &server.address("farm"));
    let again = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&again), slow, "{}", farm.logs());
}

// promise: P3
#[test]
fn bytes_that_the_store_of_files_changed_are_in_no_picture() {
    let what = "bytes_that_the_store_of_files_changed_are_in_no_picture";
    let Some(server) = Seaweed::start(what) else { return };
    let address = server.address("farm");
    let mut farm = Farm::prepare();
    start(&mut farm, &address);
    let scene = library("cornell-box.gltf");
    let job = farm.submit(&scene, &OPTIONS);
    let detail: serde_json::Value =
        serde_json::from_str(&farm.text(&["job", &job, "--json"])).expect("JSON");
    let hash = detail["spec"]["kind"]["Render"]["files"][0]["hash"].as_str().expect("a hash");
    let name = format!("farm/blobs/{hash}");
    let right = std::fs::read(&scene).expect("the scene");
    let mut wrong = right.clone();
    let last = wrong.len() - 2;
    wrong[last] ^= 1;
    server.replace(&name, &wrong);
    farm.add_node("node-0", 1);
    farm.wait_for("a refusal", |farm| farm.logs().contains("they were thrown away"));
    assert_eq!(farm.units_committed(&job), 0, "{}", farm.logs());
    farm.wait_for("the reason", |farm| farm.text(&["explain", &job]).contains("thrown away"));
    server.replace(&name, &right);
    let hashes = farm.hashes(&job);
    let undisturbed = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&undisturbed), hashes, "{}", farm.logs());
}

#[test]
fn files_and_frames_are_read_from_the_bucket_itself() {
    let what = "files_and_frames_are_read_from_the_bucket_itself";
    let Some(server) = Seaweed::start(what) else { return };
    let scene = library("material-row.gltf");
    let begin = |farm: &mut Farm, address: &str| {
        let mut command = keyed(farm.coordinator_command());
        command.args(["--blobs", address]).env("TESSERA_LOG", "info,tessera_blobs_s3=debug");
        farm.run_coordinator(command);
        farm.add_node("node-0", 1);
    };
    let passed = |farm: &Farm| farm.logs().matches("by way of the coordinator").count();
    let mut farm = Farm::prepare();
    begin(&mut farm, &server.address("direct"));
    let job = farm.submit(&scene, &OPTIONS);
    let want = farm.hashes(&job);
    let folder = farm.folder().join("fetched");
    farm.text(&["fetch", &job, "-o", utf8(&folder)]);
    assert_eq!(passed(&farm), 0, "{}", farm.logs());
    // Switched off, the same bytes come by way of the coordinator.
    let mut farm = Farm::prepare();
    begin(&mut farm, &format!("{}&direct=off", server.address("through")));
    let job = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    let folder = farm.folder().join("fetched");
    farm.text(&["fetch", &job, "-o", utf8(&folder)]);
    assert!(passed(&farm) >= 2, "{}", farm.logs());
}

// promise: P3
#[test]
fn a_farms_files_go_to_a_bucket_and_back() {
    let Some(server) = Seaweed::start("a_farms_files_go_to_a_bucket_and_back") else { return };
    let scene = library("cornell-box.gltf");
    let mut farm = Farm::start(1, 1);
    let finished = farm.submit(&scene, &SMALL);
    let small = farm.hashes(&finished);
    let open = farm.submit(&scene, &OPTIONS);
    farm.wait_for("some commits", |farm| farm.units_committed(&open) >= 3);
    farm.kill_coordinator();
    let (data, there) = (farm.data(), server.address("farm"));
    let here = format!("disk:{}", utf8(&data));
    let said = text(&farm, &["store", "migrate", "--from", &here, "--to", &there]);
    assert!(said.contains("files, "), "{said}");
    assert_clean(&farm, &there);
    start(&mut farm, &there);
    farm.wait_for("more commits", |farm| farm.units_committed(&open) >= 6);
    assert_eq!(farm.hashes(&finished), small);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    text(&farm, &["store", "migrate", "--from", &there, "--to", &here]);
    assert_eq!(super::store::fsck(&farm)["clean"], true);
    farm.start_coordinator();
    let hashes = farm.hashes(&open);
    assert_eq!(farm.hashes(&finished), small);
    let undisturbed = farm.submit(&scene, &OPTIONS);
    assert_eq!(farm.hashes(&undisturbed), hashes, "{}", farm.logs());
}

#[test]
fn a_key_for_files_is_never_shown() {
    let farm = Farm::prepare();
    let data = farm.data();
    for address in [
        "s3://me:hush-hush@films",
        "s3://films?secret=hush-hush",
        "s3://films?endpoint=http://127.0.0.1:1&patience=1",
    ] {
        let arguments = ["coordinator", "--data", utf8(&data), "--blobs", address];
        let mut command = keyed(farm.command(&arguments));
        let output = command.env("TESSERA_LOG", "trace").output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && !said.contains("hush-hush"), "{said}");
    }
}
