//! Peers that take too much: each meets its limit, and others are served as before. One test a
//! limit.

use std::net::UdpSocket;
use std::time::{Duration, Instant};
use tessera_protocol::client::Request;
use tessera_protocol::stream::{BlobOffer, BlobReceipt, BlobReply, StreamKind};
use tessera_protocol::{BlobHash, Fingerprint, Hello};
use tessera_support::farm::{Farm, library};
use tessera_transport::error::Ended;
use tessera_transport::frame::open_both;
use tessera_transport::{Address, CloseCode, ConnectError, FarmClient, Identity, Link, Timing};

/// A coordinator of these limits, a node, and nobody else.
fn farm(limits: &[&str]) -> Farm {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(limits);
    farm.run_coordinator(command);
    farm.add_node("node-0", 1);
    farm
}

/// The farm still does what it is for, for others.
fn is_well(farm: &Farm) {
    let job = farm.submit(&library("cornell-box.gltf"), &["--size", "32x32", "--spp", "1"]);
    assert_eq!(farm.hashes(&job).len(), 1);
}

fn within<T>(what: &str, work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let ended =
        runtime.block_on(async { tokio::time::timeout(Duration::from_secs(120), work).await });
    // Connections of a peer that does not leave would be waited for.
    runtime.shutdown_background();
    ended.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

async fn link(farm: &Farm, identity: &str) -> Link {
    dial(farm, identity).await.expect("a connection")
}

async fn dial(farm: &Farm, identity: &str) -> Result<Link, ConnectError> {
    let identity = Identity::load(identity.as_ref()).expect("an identity");
    let address: Address = farm.address().parse().expect("an address");
    let hello = Hello::ours(Fingerprint([7; 32]));
    tessera_transport::connect(&address, &identity, &hello, Timing::default()).await
}

// promise: P8
#[test]
fn an_identity_with_too_many_connections_gets_no_more() {
    let farm = farm(&["--connections-per-identity", "3"]);
    let eve = farm.enrol("artist", "eve");
    within("a refusal", async {
        let mut held = Vec::new();
        for _ in 0..3 {
            let client = FarmClient::new(link(&farm, &eve).await);
            client
                .request(&Request::Jobs(Default::default()))
                .await
                .expect("an answer within the limit");
            held.push(client);
        }
        // It may come while this side still dials, or after.
        let refused = match dial(&farm, &eve).await {
            Ok(link) => Ended::from(link.connection.closed().await),
            Err(ConnectError::Ended { source, .. }) => source,
            Err(error) => panic!("{error:?}"),
        };
        let Ended::Closed { code, reason } = &refused else { panic!("{refused:?}") };
        assert_eq!(*code, Some(CloseCode::Failed));
        assert!(reason.contains("3 connections"), "{reason}");
        is_well(&farm);
        // A place that is given up is free.
        held.pop().expect("a client").close().await;
        let begun = Instant::now();
        loop {
            if let Ok(link) = dial(&farm, &eve).await
                && FarmClient::new(link).request(&Request::Jobs(Default::default())).await.is_ok()
            {
                break;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "the place was never free again");
        }
    });
}

// promise: P8
#[test]
fn messages_beyond_the_rate_wait_and_others_do_not() {
    let farm = farm(&["--messages-per-second", "50"]);
    let eve = farm.enrol("artist", "eve");
    let begun = Instant::now();
    within("the flood's end", async {
        let client = std::sync::Arc::new(FarmClient::new(link(&farm, &eve).await));
        // A stream and a request each: 100 come at once, 300 more take 6 s.
        let asked: Vec<_> = (0..200)
            .map(|_| {
                let client = client.clone();
                tokio::spawn(async move {
                    client.request(&Request::Jobs(Default::default())).await.map(drop)
                })
            })
            .collect();
        is_well(&farm);
        println!("others were served after {:.1} s", begun.elapsed().as_secs_f32());
        for answer in asked {
            answer.await.expect("no panic").expect("an answer, late as it may be");
        }
    });
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(5), "200 requests took {took:?}");
}

// promise: P8
#[test]
fn bytes_beyond_the_rate_wait_and_others_do_not() {
    let farm = farm(&["--mib-per-second", "4"]);
    let eve = farm.enrol("artist", "eve");
    let begun = Instant::now();
    within("the flood's end", async {
        let eve = link(&farm, &eve).await;
        // 32 MiB that are not what their name says: 8 come at once, the rest takes 6 s.
        let (mut sender, mut receiver) =
            open_both(&eve.connection, StreamKind::BlobPut).await.expect("a stream");
        let offer = BlobOffer { hash: BlobHash([1; 32]), length: 32 << 20, ranges: None };
        sender.send(&offer).await.expect("an offer");
        let reply: BlobReply = receiver.expect(Duration::from_secs(60)).await.expect("an answer");
        assert!(matches!(reply, BlobReply::From { offset: 0, .. }), "{reply:?}");
        let flood = tokio::spawn(async move {
            let step = vec![0; 1 << 20];
            for _ in 0..32 {
                sender.send_raw(&step).await.expect("bytes are taken, late as it may be");
            }
            sender.finish();
        });
        is_well(&farm);
        flood.await.expect("no panic");
        let receipt: BlobReceipt =
            receiver.expect(Duration::from_secs(60)).await.expect("a receipt");
        assert!(matches!(receipt, BlobReceipt::Refused(_)), "{receipt:?}");
    });
    let took = begun.elapsed();
    assert!(took >= Duration::from_secs(4), "32 MiB took {took:?}");
}

// promise: P8
#[test]
fn streams_beyond_the_limit_are_not_opened() {
    let farm = farm(&[]);
    let eve = farm.enrol("artist", "eve");
    within("the streams", async {
        let link = link(&farm, &eve).await;
        let mut open = Vec::new();
        let limited = loop {
            // A message that announces more than ever comes.
            let stream =
                tokio::time::timeout(Duration::from_secs(3), link.connection.open_bi()).await;
            let Ok(Ok((mut send, receive))) = stream else { break stream.is_err() };
            if send.write_all(&[StreamKind::Request as u8, 200, 0, 0, 0, 1]).await.is_err() {
                break false;
            }
            open.push((send, receive));
        };
        println!("{} streams were opened", open.len());
        // Or else the coordinator has found it silent, and closed all of it.
        assert!(limited || link.connection.close_reason().is_some(), "the limit was never met");
        assert!(open.len() <= 256, "{} streams are open", open.len());
        is_well(&farm);
    });
}

// promise: P8
#[test]
fn unfinished_handshakes_lock_no_one_out() {
    let farm = farm(&["--handshakes", "16"]);
    let first = within("the first datagrams of 48 dials", first_datagrams(&farm, 48));
    // Another address than that of those who are well, and nobody there who answers.
    let sockets: Vec<UdpSocket> = first
        .iter()
        .map(|bytes| {
            let socket = UdpSocket::bind("127.0.0.2:0").expect("a socket");
            socket.send_to(bytes, farm.address()).expect("a datagram is sent");
            socket
        })
        .collect();
    let begun = Instant::now();
    is_well(&farm);
    println!("others were served within {:.1} s", begun.elapsed().as_secs_f32());
    // A long header of type 3 is a Retry: from a quarter of the limit on, whoever dials must show
    // its address.
    let retries = sockets
        .iter()
        .filter(|socket| first_answer(socket).is_some_and(|byte| byte & 0xf0 == 0xf0));
    let retries = retries.count();
    assert!(retries >= 40, "{retries} of 48 were asked to show their address\n{}", farm.logs());
}

/// The datagram that begins each of so many dials, from somebody who listens and never answers.
async fn first_datagrams(farm: &Farm, count: usize) -> Vec<Vec<u8>> {
    let listening = tokio::net::UdpSocket::bind("127.0.0.1:0").await.expect("a socket");
    let address = listening.local_addr().expect("a bound socket has an address");
    let folder = farm.data().join("admin");
    for _ in 0..count {
        let identity = Identity::load(&folder).expect("an identity");
        tokio::spawn(async move {
            let hello = Hello::ours(Fingerprint([7; 32]));
            // It fails, by design.
            drop(
                tessera_transport::connect(&address.into(), &identity, &hello, Timing::default())
                    .await,
            );
        });
    }
    let mut first = std::collections::BTreeMap::new();
    let mut buffer = [0; 2048];
    while first.len() < count {
        let (length, from) = listening.recv_from(&mut buffer).await.expect("a datagram");
        // The other kind of datagram is the byte that asks whether somebody listens.
        if length >= 1200 {
            first.entry(from).or_insert_with(|| buffer[..length].to_vec());
        }
    }
    first.into_values().collect()
}

/// First byte of the first answer that has come.
fn first_answer(socket: &UdpSocket) -> Option<u8> {
    socket.set_read_timeout(Some(Duration::from_millis(20))).expect("a time-out");
    let mut buffer = [0; 2048];
    socket.recv(&mut buffer).ok().map(|_| buffer[0])
}
