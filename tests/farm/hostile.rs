//! Peers and people that do wrong things: each gets a clear answer or none, and the coordinator
//! goes on serving the others.

use std::error::Error;
use std::net::UdpSocket;
use std::time::Duration;
use tessera_protocol::client::Request;
use tessera_protocol::{Fingerprint, Hello};
use tessera_support::farm::{Farm, library};
use tessera_transport::{Address, FarmClient, Identity, Link, Timing};

const SMALL: [&str; 4] = ["--size", "32x32", "--spp", "1"];

/// Runs a command that must fail with this status; its words.
fn refused(farm: &Farm, arguments: &[&str], status: i32) -> String {
    let output = farm.run(arguments);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "tessera {}: {error}", arguments.join(" "));
    assert!(error.starts_with("error: ") || status == 2, "{error}");
    error
}

/// The farm still does what it is for.
fn is_well(farm: &Farm) {
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    assert_eq!(farm.hashes(&job).len(), 1);
}

fn hello() -> Hello {
    Hello::ours(Fingerprint([7; 32]))
}

async fn link(farm: &Farm) -> Link {
    let identity = Identity::load(&farm.data().join("admin")).expect("the admin's identity");
    let address: Address = farm.address().parse().expect("an address");
    tessera_transport::connect(&address, &identity, &hello(), Timing::default())
        .await
        .expect("a connection")
}

// promise: P8
#[test]
fn garbage_datagrams_are_ignored() {
    let farm = Farm::start(1, 1);
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let mut noise: u32 = 1;
    for length in (1..1400).step_by(7) {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                noise = noise.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (noise >> 24) as u8
            })
            .collect();
        socket.send_to(&bytes, farm.address()).expect("a datagram is sent");
    }
    is_well(&farm);
}

// promise: P8
#[test]
fn garbage_ends_its_stream_and_no_other() {
    let farm = Farm::start(1, 1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        // Kind by kind: an oversized length, garbage of the right length, a message cut short, and
        // nothing at all.
        let openings: [&[u8]; 4] = [
            &[0xff, 0xff, 0xff, 0xff],
            &[0, 0, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8],
            &[0, 0, 0, 200, 1],
            &[],
        ];
        let mut kept = Vec::new();
        for kind in 0..=9u8 {
            for opening in openings {
                let link = link(&farm).await;
                let (mut send, mut receive) = link.connection.open_bi().await.expect("a stream");
                // Whatever the coordinator does with it, it may do at once.
                let _ = send.write_all(&[&[kind], opening].concat()).await;
                let _ = send.finish();
                let answer =
                    tokio::time::timeout(Duration::from_millis(300), receive.read_to_end(1 << 20))
                        .await;
                if let Ok(Ok(bytes)) = answer {
                    assert!(bytes.len() < 4096, "{} bytes of answer to garbage", bytes.len());
                }
                kept.push(link);
            }
        }
        is_well(&farm);
    });
}

#[test]
fn another_protocol_version_is_refused_by_name() {
    let farm = Farm::start(0, 1);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let error = runtime.block_on(async {
        let identity = Identity::load(&farm.data().join("admin")).expect("the admin's identity");
        let address: Address = farm.address().parse().expect("an address");
        let strange = Hello { oldest: 900, newest: 901, ..hello() };
        match FarmClient::connect(&address, &identity, &strange).await {
            Err(error) => error.to_string(),
            // The refusal may come after this side is content.
            Ok(client) => match client.request(&Request::Jobs(Default::default())).await {
                Ok(_) => String::new(),
                Err(error) => {
                    format!(
                        "{error}: {}",
                        error.source().map(ToString::to_string).unwrap_or_default()
                    )
                }
            },
        }
    });
    assert!(error.contains("protocol 900 to 901"), "{error}");
}

// promise: P8
#[test]
fn wrong_used_and_expired_tokens_are_refused() {
    let farm = Farm::start(0, 1);
    let enrol = |token: &str, who: &str, status: Option<i32>| {
        let file = farm.folder().join("token");
        std::fs::write(&file, token).expect("a token file");
        let (file, folder) =
            (file.display().to_string(), farm.folder().join(who).display().to_string());
        let arguments = ["enrol", "--token-file", &file, "--name", who, "--identity", &folder];
        match status {
            Some(status) => refused(&farm, &arguments, status),
            None => farm.text(&arguments),
        }
    };
    let token = farm.text(&["token", "create", "--role", "artist"]);
    enrol(&token, "ada", None);
    let used = enrol(&token, "eve", Some(5));
    assert!(used.contains("used") && used.contains("hint:"), "{used}");
    let brief = farm.text(&["token", "create", "--role", "artist", "--ttl", "1s"]);
    std::thread::sleep(Duration::from_millis(2100));
    let expired = enrol(&brief, "eve", Some(5));
    assert!(expired.contains("expired"), "{expired}");
    let mut wrong = token.clone();
    wrong.replace_range(10..14, "AAAA");
    enrol(&wrong, "eve", Some(5));
    enrol("not a token", "eve", Some(5));
    assert!(!farm.folder().join("eve").join("identity.pem").exists());

    // What a user may do, and may not.
    let ada = farm.folder().join("ada").display().to_string();
    farm.text(&["jobs", "--identity", &ada]);
    refused(&farm, &["token", "create", "--role", "node", "--identity", &ada], 5);
    refused(&farm, &["drain", "anything", "--identity", &ada], 5);
    let admins = farm.submit(&library("cornell-box.gltf"), &SMALL);
    refused(&farm, &["cancel", &admins, "--identity", &ada], 5);
    farm.text(&["cancel", &admins]);
}

// promise: P8
#[test]
fn nodes_may_not_ask_what_users_may() {
    let farm = Farm::start(1, 1);
    is_well(&farm);
    let node = farm.folder().join("node-0").join("identity").display().to_string();
    refused(&farm, &["jobs", "--identity", &node], 5);
    refused(&farm, &["token", "create", "--role", "admin", "--identity", &node], 5);
}

// promise: P1
#[test]
fn a_full_disk_is_reported_and_waited_for() {
    let mut farm = Farm::start(1, 1);
    let want = {
        let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
        farm.hashes(&job)
    };
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    // More in reserve than any disk has: for the coordinator, the same as no room at all.
    let mut full = farm.coordinator_command();
    full.args(["--disk-reserve", "1000000000"]);
    farm.run_coordinator(full);
    let scene = library("cornell-box.gltf").display().to_string();
    let error = refused(&farm, &[&["submit", &scene][..], &SMALL].concat(), 1);
    assert!(error.contains("disk") || error.contains("room"), "{error}");
    farm.kill_coordinator();
    farm.start_coordinator();
    let job = farm.submit(&library("cornell-box.gltf"), &SMALL);
    assert_eq!(farm.hashes(&job), want);
}
