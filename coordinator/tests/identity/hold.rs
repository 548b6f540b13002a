//! A node that announces large results and sends next to nothing of them holds up nobody.

use crate::farm::{Farm, PATIENCE, secs};
use crate::peers::{FakeNode, frame_file, submit};
use std::time::Instant;
use tessera_protocol::BlobHash;
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::node::{ResultHeader, ResultHeaders};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey};
use tessera_transport::frame::open_one_way;
use tessera_transport::{FarmClient, Link};
use tokio::task::JoinSet;

/// Length that each result is announced with.
const LENGTH: u32 = 34 << 20;

/// Opens eight result streams, announces 34 MiB on each, and sends one byte every two seconds.
async fn hold(link: &Link) -> JoinSet<()> {
    let mut streams = JoinSet::new();
    for number in 0..8 {
        let unit = UnitKey { job: JobId::new(), frame: FrameNumber(0), unit: UnitIndex(0) };
        let lease = Lease { unit, epoch: Epoch(number) };
        let header = ResultHeader {
            lease,
            hash: BlobHash([1; 32]),
            length: LENGTH,
            device: 0,
            device_micros: 1,
            waited_micros: 0,
            device_bytes: 1,
            first_sample: 0,
            rays: 1,
        };
        let mut sender = open_one_way(&link.connection, StreamKind::Result).await.unwrap();
        sender.send(&ResultHeaders::one(header)).await.unwrap();
        streams.spawn(async move {
            while sender.send_raw(&[0]).await.is_ok() {
                tokio::time::sleep(secs(2)).await;
            }
        });
    }
    streams
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_holds_streams_stops_no_commits() {
    let farm = Farm::start_with(|_| ()).await;
    let folder = farm.folder.path();
    let client = FarmClient::new(farm.dial(&farm.person(Role::Artist, "ada")).await.unwrap());
    let mut attacker = FakeNode::join(&farm, &farm.node("held"), Vec::new()).await;
    attacker.drain().await;
    let _streams = hold(&attacker.link).await;
    tokio::time::sleep(secs(1)).await;

    let mut honest = FakeNode::join(&farm, &farm.node("honest"), Vec::new()).await;
    let begun = Instant::now();
    for scene in [b"scene one".as_slice(), b"scene two", b"scene three"] {
        let (job, _) = submit(&client, folder, scene).await;
        let unit = honest.work().await;
        assert_eq!(unit.job, job);
        honest.deliver(unit.lease()).await;
        frame_file(&client, job).await;
    }
    assert!(begun.elapsed() < secs(8), "three jobs took {:?}", begun.elapsed());

    // After ten seconds the operator is told whose results they are.
    let noted = loop {
        let answer = client.request(&Request::Nodes).await.unwrap();
        let Response::Nodes(nodes) = answer else { panic!("{answer:?}") };
        let held = nodes.iter().find(|node| node.name == "held").expect("it is listed");
        if held.note.contains("have been arriving") || begun.elapsed() > PATIENCE {
            break held.note.clone();
        }
        tokio::time::sleep(secs(1)).await;
    };
    assert!(noted.contains("8 results have been arriving for"), "{noted}");
    assert!(noted.contains("(1 MiB are here)") || noted.contains("(0 MiB are here)"), "{noted}");
    farm.coordinator.shutdown().await.unwrap();
}
