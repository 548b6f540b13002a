//! Files of frames in a bucket: nodes put them together and put them there, and another node looks.
//! A real S3 server.

use super::fault_proxy::{Proxy, Weather};
use super::s3::{assert_clean, delayed, keyed, start};
use super::store::utf8;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tessera_support::farm::{Farm, library, takes_minutes};
use tessera_support::seaweed::Seaweed;

/// Frames of two bands and their assembly each.
const FILM: [&str; 9] =
    ["--size", "512x384", "--spp", "2", "--tile", "16", "--format", "exr", "--aov=albedo"];

/// A coordinator that says how files of frames were made.
fn start_telling(farm: &mut Farm, address: &str) {
    let mut command: Command = keyed(farm.coordinator_command());
    command.args(["--blobs", address]).env("TESSERA_LOG", "info,tessera_coordinator=debug");
    farm.run_coordinator(command);
}

/// What the coordinator has logged.
fn said(farm: &Farm) -> String {
    std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log")
}

/// Waits for both nodes: one alone has nobody who looks.
fn wait_for_both(farm: &Farm) {
    farm.wait_for("two nodes", |farm| {
        let nodes: serde_json::Value =
            serde_json::from_str(&farm.text(&["nodes", "--json"])).expect("JSON");
        nodes.as_array().is_some_and(|nodes| nodes.len() == 2)
    });
}

/// How many frames nodes put together.
fn by_nodes(farm: &Farm) -> usize {
    said(farm).matches("files of a frame were put by nodes").count()
}

/// Bytes that pass between a server of objects and those that are no node or client of a farm:
/// their requests do not say so.
struct Counted {
    port: u16,
    bytes: Arc<AtomicU64>,
}

impl Counted {
    fn start(server: u16) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let port = listener.local_addr().expect("an address").port();
        let bytes = Arc::new(AtomicU64::new(0));
        let all = bytes.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let Ok(server) = TcpStream::connect((Ipv4Addr::LOCALHOST, server)) else { return };
                let all = all.clone();
                std::thread::spawn(move || pass(client, server, &all));
            }
        });
        Self { port, bytes }
    }
}

/// Carries the bytes of a connection both ways, and adds them to `all` unless its first request is
/// of a node or client.
fn pass(mut client: TcpStream, mut server: TcpStream, all: &Arc<AtomicU64>) {
    let mut head = vec![0; 64 << 10];
    let Ok(count @ 1..) = client.read(&mut head) else { return };
    let counts = !String::from_utf8_lossy(&head[..count]).contains("user-agent: tessera/");
    if server.write_all(&head[..count]).is_err() {
        return;
    }
    let of = |counts: bool| if counts { all.clone() } else { Arc::default() };
    of(counts).fetch_add(count as u64, Relaxed);
    let ends = (server.try_clone().expect("a socket"), client.try_clone().expect("a socket"));
    let back = of(counts);
    std::thread::spawn(move || carry(ends, &back));
    carry((client, server), &of(counts));
}

fn carry((mut from, mut to): (TcpStream, TcpStream), all: &AtomicU64) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        all.fetch_add(count as u64, Relaxed);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
    }
    // Either side may have gone.
    let _ = to.shutdown(std::net::Shutdown::Both);
}

/// Bytes of control for each unit: with nodes, and again with the bucket.
const UNIT_BYTES: u64 = 1024;
/// Bytes for a session or a start: handshakes, the scene, heartbeats, the description of a job.
const BEGIN_BYTES: u64 = 128 << 10;

/// What passed for a film.
struct Passed {
    units: u64,
    of_files: u64,
    /// Between the coordinator and each node, and its client.
    by_quic: u64,
    /// Between the coordinator and the bucket.
    by_http: u64,
    /// On a machine under load a node has found the bucket too slow, and has sent results to the
    /// coordinator for a while.
    went_round: bool,
}

/// What a node says then.
const GOES_ROUND: &str = "results go through the coordinator";
/// Films that are rendered until the bucket was quick enough for one.
const FILMS_MAX: u32 = 3;

/// Counts what passes for a film whose results all went to the bucket.
fn count_undisturbed(server: &Seaweed, frames: usize) -> Passed {
    let films = (0..FILMS_MAX).map(|film| count_film(server, &format!("farm{film}"), frames));
    let mut undisturbed = films.filter(|passed| !passed.went_round);
    undisturbed.next().expect("the bucket was too slow for every film")
}

/// A film is rendered by two nodes, and fetched; counts what passes meanwhile. Then it is rendered
/// again with all bytes through the coordinator, which makes the same files.
fn count_film(server: &Seaweed, name: &str, frames: usize) -> Passed {
    let counted = Counted::start(server.port());
    let mut farm = Farm::prepare();
    let bucket = server.address_at(counted.port, name);
    start_telling(&mut farm, &bucket);
    let address = farm.address().parse().expect("an address");
    let proxies: Vec<Proxy> =
        (0..3).map(|seed| Proxy::start(address, Weather::fair(), seed)).collect();
    for (index, proxy) in proxies[..2].iter().enumerate() {
        let through = vec![("TESSERA_COORDINATOR".into(), proxy.address().into())];
        farm.add_node_with(&format!("node-{index}"), &["--threads", "1"], through);
    }
    wait_for_both(&farm);
    let range = format!("--frames=1-{frames}");
    let film: Vec<&str> = FILM.into_iter().chain([range.as_str()]).collect();
    let job = farm.submit(&library("cornell-box.gltf"), &film);
    farm.text(&["wait", &job]);
    assert_eq!(by_nodes(&farm), frames, "{}", said(&farm));
    let folder = farm.folder().join("fetched");
    let arguments = ["fetch", &job, "-o", utf8(&folder), "--coordinator", &proxies[2].address()];
    farm.text(&arguments);
    let lengths = lengths_of_pictures(&folder);
    assert_eq!(lengths.len(), frames, "{lengths:?}");
    let (of_files, units) = (lengths.iter().sum::<u64>(), farm.units_committed(&job));
    let each: Vec<u64> = proxies.iter().map(|proxy| proxy.seen().bytes.load(Relaxed)).collect();
    let by_http = counted.bytes.load(Relaxed);
    println!("{of_files} bytes of files, {units} units; {each:?} by QUIC, {by_http} by HTTP");
    let went_round = farm.logs().contains(GOES_ROUND);
    let hashes = farm.hashes(&job);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    start_telling(&mut farm, &format!("{bucket}&direct=off"));
    let through = farm.submit(&library("cornell-box.gltf"), &film);
    assert_eq!(farm.hashes(&through), hashes);
    assert_eq!(by_nodes(&farm), frames, "{}", said(&farm));
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert_clean(&farm, &bucket);
    Passed { units, of_files, by_quic: each.iter().sum(), by_http, went_round }
}

fn lengths_of_pictures(folder: &Path) -> Vec<u64> {
    let files =
        std::fs::read_dir(folder).expect("a folder").map(|file| file.expect("a file").path());
    let pictures = files.filter(|path| path.extension().is_some_and(|end| end == "exr"));
    pictures.map(|path| path.metadata().expect("a length").len()).collect()
}

// promise: P1
#[test]
fn no_byte_of_a_frame_passes_the_coordinator() {
    let Some(server) = Seaweed::start("no_byte_of_a_frame_passes_the_coordinator") else { return };
    // At its beginning a film's leases are small, and each names places for results: some 0.6 MB a
    // node, a tenth more or less. Three frames pay for that.
    let Passed { units, of_files, by_quic, by_http, .. } = count_undisturbed(&server, 3);
    assert!(by_quic <= 3 * BEGIN_BYTES + units * UNIT_BYTES, "{by_quic}");
    assert!(by_http <= BEGIN_BYTES + units * UNIT_BYTES, "{by_http}");
    assert!(of_files > by_quic + by_http, "{of_files}");
}

/// The sessions of nodes and client and the coordinator's start are paid by thousands of units.
#[test]
fn control_of_a_unit_costs_less_than_a_kibibyte() {
    let name = "control_of_a_unit_costs_less_than_a_kibibyte";
    if !takes_minutes(name) {
        return;
    }
    let Some(server) = Seaweed::start(name) else { return };
    let Passed { units, by_quic, by_http, .. } = count_undisturbed(&server, 8);
    let each = (by_quic + by_http) / units;
    println!("{each} bytes of control for each of {units} units");
    assert!(each < UNIT_BYTES, "{each}");
}

/// One frame of one band.
const ONE: [&str; 8] = ["--size", "256x192", "--spp", "16", "--tile", "64", "--format", "exr"];

// promise: P1, P7
#[test]
fn a_file_that_differs_is_in_no_frame() {
    let Some(server) = Seaweed::start("a_file_that_differs_is_in_no_frame") else { return };
    let scene = library("cornell-box.gltf");
    let mut farm = Farm::prepare();
    start(&mut farm, &server.address("undisturbed"));
    farm.add_node("node-0", 1);
    // One node alone: nobody could look.
    let job = farm.submit(&scene, &ONE);
    let want = farm.hashes(&job);

    let port = delayed(server.port(), Duration::from_millis(700));
    let mut farm = Farm::prepare();
    start_telling(&mut farm, &server.address_at(port, "farm"));
    farm.add_node("node-0", 1);
    farm.add_node("node-1", 1);
    wait_for_both(&farm);
    let job = farm.submit(&scene, &ONE);
    let folder = format!("farm/results/{job}/0");
    let nobody = uuid::Uuid::nil().to_string();
    let copy = || server.names(&folder).into_iter().find(|name| name.starts_with(&nobody));
    farm.wait_for("the copy of a file", |_| copy().is_some());
    let name = format!("{folder}/{}", copy().expect("a copy"));
    let mut bytes = server.read(&name);
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    server.replace(&name, &bytes);
    assert_eq!(farm.hashes(&job), want, "{}", farm.logs());
    let said = said(&farm);
    assert!(said.contains("said something wrong about the files of a frame"), "{said}");
    assert_eq!(by_nodes(&farm), 0, "{said}");
}
