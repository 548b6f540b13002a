//! Which peers get a connection, and what all others are told.

use crate::farm::*;
use std::time::{Duration, Instant};
use tessera_protocol::HelloError;
use tessera_transport::error::Ended;
use tessera_transport::server::HelloFailure;
use tessera_transport::{
    AcceptError, Address, Authority, CloseCode, ConnectError, ConnectFailure, Identity, Timing,
    connect,
};

#[tokio::test]
async fn both_ends_know_each_other() {
    let farm = Farm::start(Timing::default());
    let (served, dialled) = farm.pair(&farm.identity("ada")).await;
    assert_eq!(served.peer, Some(user("ada")));
    assert_eq!(dialled.peer, None);
    let newest = tessera_protocol::PROTOCOL_VERSION;
    assert_eq!((served.version, dialled.version), (newest, newest));
    assert_eq!(dialled.hello, hello());

    let peer = node("n7.lan");
    let (served, _dialled) = farm.pair(&farm.authority.issue(&peer).unwrap()).await;
    assert_eq!(served.peer, Some(peer));
}

#[tokio::test]
async fn an_identity_of_another_farm_is_refused() {
    let farm = Farm::start(Timing::default());
    let stranger = Authority::generate().unwrap().issue(&user("eve")).unwrap();
    let ours = hello();
    let (served, dialled) = tokio::join!(
        farm.next_peer(&ours),
        connect(&farm.address, &stranger, &ours, Timing::default())
    );
    assert!(matches!(served, Err(AcceptError::Handshake(_))), "{served:?}");
    let error = dialled.unwrap_err();
    assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
    assert_eq!(error.failure(), ConnectFailure::NotAllowed);
}

#[tokio::test]
async fn the_coordinator_rejects_certificates_of_other_authorities() {
    // This client trusts the right coordinator, but its own certificate is signed by another
    // authority.
    let farm = Farm::start(Timing::default());
    let forged =
        forge(&farm.identity("ada"), &Authority::generate().unwrap().issue(&user("ada")).unwrap());
    let ours = hello();
    let (served, dialled) = tokio::join!(
        farm.next_peer(&ours),
        connect(&farm.address, &forged, &ours, Timing::default())
    );
    assert!(matches!(served, Err(AcceptError::Handshake(_))), "{served:?}");
    let error = dialled.unwrap_err();
    assert!(matches!(error, ConnectError::Rejected { .. }), "{error:?}");
    assert!(error.hint().is_some());
}

/// Key and certificate of `own`, with the authority of `trusting`, by way of the file they are kept
/// in.
fn forge(trusting: &Identity, own: &Identity) -> Identity {
    let folder = tempfile::tempdir().unwrap();
    let text = |identity: &Identity| {
        identity.save(folder.path()).unwrap();
        std::fs::read_to_string(folder.path().join("identity.pem")).unwrap()
    };
    const MARK: &str = "-----BEGIN CERTIFICATE-----";
    let (own, trusting) = (text(own), text(trusting));
    let own: Vec<&str> = own.split(MARK).collect();
    let trusting: Vec<&str> = trusting.split(MARK).collect();
    let forged = [own[0], own[1], trusting[2]].join(MARK);
    std::fs::write(folder.path().join("identity.pem"), forged).unwrap();
    Identity::load(folder.path()).unwrap()
}

#[tokio::test]
async fn a_closed_port_is_reported_at_once() {
    let free = std::net::UdpSocket::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let identity = Authority::generate().unwrap().issue(&user("ada")).unwrap();
    let started = Instant::now();
    let error = connect(&free.into(), &identity, &hello(), Timing::default()).await.unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(5));
    assert_eq!(error.failure(), ConnectFailure::Unreachable);
}

#[tokio::test]
async fn a_silent_port_times_out() {
    let silent = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let identity = Authority::generate().unwrap().issue(&user("ada")).unwrap();
    let timing = Timing { dial: Duration::from_millis(400), ..Timing::default() };
    let address = silent.local_addr().unwrap().into();
    let error = connect(&address, &identity, &hello(), timing).await.unwrap_err();
    assert!(matches!(error, ConnectError::Unreachable { .. }), "{error:?}");
}

/// Passes datagrams on between a server and its clients, but for those of the first that says
/// anything of QUIC: of that one nothing is heard.
async fn deaf_to_the_first(server: std::net::SocketAddr, relay: tokio::net::UdpSocket) {
    let mut first = None;
    let mut later = None;
    let upstream = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
    let (mut up, mut down) = ([0; 2048], [0; 2048]);
    loop {
        tokio::select! {
            received = relay.recv_from(&mut up) => {
                let (length, from) = received.unwrap();
                let is_probe = length == 1;
                if is_probe || *first.get_or_insert(from) == from {
                    continue;
                }
                later = Some(from);
                upstream.send_to(&up[..length], server).await.unwrap();
            }
            received = upstream.recv_from(&mut down) => {
                let (length, _) = received.unwrap();
                relay.send_to(&down[..length], later.expect("a client")).await.unwrap();
            }
        }
    }
}

#[tokio::test]
async fn a_silent_handshake_is_joined_by_another() {
    let farm = Farm::start(Timing::default());
    let relay = tokio::net::UdpSocket::bind(LOOPBACK).await.unwrap();
    let address = relay.local_addr().unwrap().into();
    let server = farm.server.local_address().unwrap();
    tokio::spawn(deaf_to_the_first(server, relay));
    let (identity, ours) = (farm.identity("ada"), hello());
    let (served, dialled) =
        tokio::join!(farm.next_peer(&ours), connect(&address, &identity, &ours, Timing::default()));
    assert_eq!(served.unwrap().peer, Some(user("ada")));
    assert_eq!(dialled.unwrap().hello, ours);
}

#[tokio::test]
async fn an_unresolvable_host_is_named_in_the_error() {
    let identity = Authority::generate().unwrap().issue(&user("ada")).unwrap();
    let address = "no-such-host.invalid:7420".parse().unwrap();
    let error = connect(&address, &identity, &hello(), Timing::default()).await.unwrap_err();
    assert!(error.to_string().contains("no-such-host.invalid"), "{error}");
    assert_eq!(error.failure(), ConnectFailure::Unreachable);
}

#[tokio::test]
async fn a_newer_coordinator_is_named_by_the_client() {
    let farm = Farm::start(Timing::default());
    let identity = farm.identity("ada");
    let (theirs, ours) = (strange_hello(), hello());
    let (served, dialled) = tokio::join!(
        farm.next_peer(&theirs),
        connect(&farm.address, &identity, &ours, Timing::default())
    );
    let error = dialled.unwrap_err();
    let ConnectError::Version { source, .. } = &error else { panic!("{error:?}") };
    assert!(source.to_string().contains("tessera from the future"), "{source}");
    assert_eq!(error.failure(), ConnectFailure::Version);
    // The newer build takes the older one's range for good here; it learns by the close.
    let ended = Ended::from(served.unwrap().connection.closed().await);
    assert!(matches!(&ended, Ended::Closed { code: Some(CloseCode::Version),
            reason } if reason.contains("900")));
}

#[tokio::test]
async fn a_newer_client_is_named_by_the_coordinator() {
    let farm = Farm::start(short());
    let identity = farm.identity("ada");
    let (theirs, ours) = (strange_hello(), hello());
    let (served, dialled) = tokio::join!(farm.next_peer(&ours), async {
        let link = connect(&farm.address, &identity, &theirs, Timing::default()).await?;
        // The hello was answered, so that this side could name the versions; then the coordinator
        // closes.
        Err::<(), _>(ConnectError::Ended {
            address: farm.address.clone(),
            source: link.connection.closed().await.into(),
        })
    });
    let error = served.unwrap_err();
    assert!(matches!(
        error,
        AcceptError::Hello(HelloFailure::Hello(HelloError::Version { newest: 901, .. }))
    ));
    assert!(error.to_string().contains("tessera from the future"), "{error}");
    let error = dialled.unwrap_err();
    let ConnectError::Ended { source: Ended::Closed { code, reason }, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!(*code, Some(CloseCode::Version));
    assert!(reason.contains("900 to 901"), "{reason}");
}

#[tokio::test]
async fn a_close_tells_its_reason_and_a_stopped_server_says_so() {
    let farm = Farm::start(Timing::default());
    let (served, dialled) = farm.pair(&farm.identity("ada")).await;
    dialled.close(CloseCode::Done, "bye\nnow").await;
    let ended = Ended::from(served.connection.closed().await);
    assert_eq!(ended, Ended::Closed { code: Some(CloseCode::Done), reason: "bye now".into() });

    let (_served, dialled) = farm.pair(&farm.identity("bob")).await;
    farm.server.close(CloseCode::ShuttingDown, "maintenance").await;
    let ended = Ended::from(dialled.connection.closed().await);
    assert_eq!(
        ended,
        Ended::Closed { code: Some(CloseCode::ShuttingDown), reason: "maintenance".into() }
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_close_returns_as_soon_as_the_peer_knows() {
    let farm = Farm::start(Timing::default());
    let identity = farm.identity("ada");
    let mut fastest = Duration::MAX;
    for _ in 0..10 {
        let (served, dialled) = farm.pair(&identity).await;
        let started = Instant::now();
        dialled.close(CloseCode::Done, "done").await;
        fastest = fastest.min(started.elapsed());
        let reason = served.connection.close_reason().map(Ended::from);
        let told = matches!(reason, Some(Ended::Closed { code: Some(CloseCode::Done), .. }));
        assert!(told, "the peer is not told yet: {reason:?}");
    }
    // The time in which a lost datagram may show is three probe timeouts, each of 25 ms and more.
    assert!(fastest < Duration::from_millis(50), "{fastest:?}");
    println!("a close takes {:.1} ms", fastest.as_secs_f64() * 1e3);
}

/// Datagrams for this UDP port that the system had no room for.
fn dropped(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/udp").expect("Linux lists its sockets");
    let ending = format!(":{port:04X}");
    let mut lines = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let found = lines.find(|line| line.get(1).is_some_and(|local| local.ends_with(&ending)));
    found.expect("the socket").last().expect("a column").parse().expect("a count")
}

#[tokio::test]
async fn packets_are_read_while_all_else_is_busy() {
    const DATAGRAMS: u64 = 10_000;
    let farm = Farm::start(Timing::default());
    let address = farm.server.local_address().unwrap();
    let stranger = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    // This thread is the runtime's only one. Until it is done here, no task runs.
    for _ in 0..DATAGRAMS / 10 {
        for _ in 0..10 {
            stranger.send_to(&[0; 1200], address).unwrap();
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let dropped = dropped(address.port());
    assert!(dropped < DATAGRAMS / 3, "{dropped} of {DATAGRAMS} found the socket's buffer full");
}

#[tokio::test]
async fn a_dropped_server_serves_what_is_open_and_refuses_others() {
    let farm = Farm::start(Timing::default());
    let identity = farm.identity("ada");
    let (served, dialled) = farm.pair(&identity).await;
    let Farm { server, address, .. } = farm;
    drop(server);
    let mut sent = dialled.connection.open_uni().await.unwrap();
    sent.write_all(b"still here").await.unwrap();
    sent.finish().unwrap();
    let mut received = served.connection.accept_uni().await.unwrap();
    assert_eq!(received.read_to_end(100).await.unwrap(), b"still here");
    let error = connect(&address, &identity, &hello(), short()).await.unwrap_err();
    assert_eq!(error.failure(), ConnectFailure::Unreachable, "{error:?}");
}

/// An address of these places, in this order.
fn places(places: &[String]) -> Address {
    places.join(",").parse().unwrap()
}

/// A place where a socket is that never answers.
fn silent() -> (std::net::UdpSocket, String) {
    let socket = std::net::UdpSocket::bind(LOOPBACK).unwrap();
    let place = socket.local_addr().unwrap().to_string();
    (socket, place)
}

#[tokio::test]
async fn the_place_that_answers_is_found_among_others() {
    let farm = Farm::start(Timing::default());
    let foreign = Farm::start(Timing::default());
    let (_silent, quiet) = silent();
    let nobody = "127.0.0.1:1".to_owned();
    let [ours, others] = [&farm, &foreign].map(|farm| farm.address.to_string());
    let identity = farm.identity("ada");
    let strangers = tokio::spawn(async move {
        while let Ok(Err(_)) | Err(_) =
            tokio::time::timeout(Duration::from_secs(30), foreign.next_peer(&hello())).await
        {
        }
    });
    for list in [vec![nobody.clone(), quiet, others.clone(), ours], vec![nobody, others]] {
        let begun = Instant::now();
        let greeting = hello();
        let address = places(&list);
        let dialled = connect(&address, &identity, &greeting, Timing::default());
        if list.len() == 4 {
            let (served, dialled) = tokio::join!(farm.next_peer(&greeting), dialled);
            assert_eq!(served.unwrap().peer, Some(user("ada")));
            dialled.unwrap();
            assert!(begun.elapsed() < Timing::default().dial, "the silent place was waited for");
        } else {
            let error = dialled.await.unwrap_err();
            assert!(matches!(error, ConnectError::Foreign { .. }), "{error:?}");
        }
    }
    strangers.abort();
}

#[tokio::test]
async fn places_without_a_coordinator_say_each_what_was_found() {
    let farm = Farm::start(short());
    let (_silent, quiet) = silent();
    let list = ["127.0.0.1:1".to_owned(), quiet.clone(), "nobody.invalid".to_owned()];
    let address = places(&list);
    let failed = connect(&address, &farm.identity("ada"), &hello(), short()).await;
    let error = failed.unwrap_err();
    assert_eq!(error.failure(), ConnectFailure::Unreachable, "{error:?}");
    let said = error.to_string();
    for part in [
        "nothing listens at `127.0.0.1:1`",
        "`nobody.invalid`",
        &format!("no answer from `{quiet}`"),
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
}
