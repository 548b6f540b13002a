//! Results that share a stream: each stands for itself, whatever becomes of the others.

use crate::farm::Farm;
use crate::peers::{FakeNode, black_tile, frame_file, submit};
use tessera_protocol::client::Role;
use tessera_protocol::node::{CoordinatorToNode, NodeToCoordinator, ResultHeaders};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, JobId, Lease};
use tessera_transport::frame::open_one_way;
use tessera_transport::{FarmClient, FrameSender};

/// A farm with a node that holds the units of three jobs.
async fn three_units(farm: &Farm) -> (FarmClient, FakeNode, Vec<(JobId, Lease)>) {
    let client = FarmClient::new(farm.dial(&farm.person(Role::Artist, "ada")).await.unwrap());
    let mut node = FakeNode::join(farm, &farm.node("together"), Vec::new()).await;
    node.control.send(&NodeToCoordinator::Capacity { units: 3 }).await.unwrap();
    for scene in [b"scene one".as_slice(), b"scene two", b"scene three"] {
        submit(&client, farm.folder.path(), scene).await;
    }
    let mut units = Vec::new();
    while units.len() < 3 {
        if let CoordinatorToNode::Work(work) = node.next().await {
            units.extend(work.iter().map(|one| (one.job, one.lease())));
        }
    }
    (client, node, units)
}

/// Announces a black tile for each unit. `damage` changes the announcement.
async fn announce(
    node: &FakeNode,
    units: &[(JobId, Lease)],
    damage: impl FnOnce(&mut ResultHeaders),
) -> (FrameSender, Vec<Vec<u8>>) {
    let (headers, films) = units.iter().map(|(_, lease)| black_tile(*lease)).unzip();
    let mut announced = ResultHeaders { headers };
    damage(&mut announced);
    let opened = open_one_way(&node.link.connection, StreamKind::Result).await;
    let mut sender = opened.unwrap();
    sender.send(&announced).await.unwrap();
    (sender, films)
}

// promise: P2
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_result_on_a_stream_fails_alone() {
    let farm = Farm::start_with(|_| ()).await;
    let (client, mut node, units) = three_units(&farm).await;
    let (mut sender, films) = announce(&node, &units, |announced| {
        announced.headers[1].hash = BlobHash::of(b"something else");
    })
    .await;
    for film in &films {
        sender.send_raw(film).await.unwrap();
    }
    sender.finish();

    let (mut committed, mut again) = (Vec::new(), None);
    while committed.len() < 2 || again.is_none() {
        match node.next().await {
            CoordinatorToNode::Committed { lease } => committed.push(lease),
            CoordinatorToNode::Work(work) => again = work.first().map(|one| one.lease()),
            _ => {}
        }
    }
    committed.sort_unstable();
    let mut whole = vec![units[0].1, units[2].1];
    whole.sort_unstable();
    assert_eq!(committed, whole);
    let again = again.expect("the loop ends with it");
    assert!(again.unit == units[1].1.unit && again.epoch > units[1].1.epoch, "{again}");
    node.deliver(again).await;
    for (job, _) in units {
        frame_file(&client, job).await;
    }
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P1
#[tokio::test(flavor = "multi_thread")]
async fn results_before_the_end_of_a_cut_stream_count() {
    let farm = Farm::start_with(|_| ()).await;
    let (client, node, units) = three_units(&farm).await;
    let (mut sender, films) = announce(&node, &units, |_| ()).await;
    sender.send_raw(&films[0]).await.unwrap();
    sender.send_raw(&films[1]).await.unwrap();
    sender.send_raw(&films[2][..9]).await.unwrap();
    sender.finish();
    for (job, _) in &units[..2] {
        frame_file(&client, *job).await;
    }
    farm.coordinator.shutdown().await.unwrap();
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn too_many_results_on_a_stream_are_refused() {
    let farm = Farm::start_with(|_| ()).await;
    let (_client, node, units) = three_units(&farm).await;
    let (_sender, _) = announce(&node, &units, |announced| {
        announced.headers[0].length = 60 << 20;
        announced.headers[1].length = 60 << 20;
    })
    .await;
    let ended = tokio::time::timeout(crate::farm::PATIENCE, node.link.connection.closed()).await;
    let text = ended.expect("it is closed").to_string();
    assert!(text.contains("are longer than the limit of"), "{text}");
    farm.coordinator.shutdown().await.unwrap();
}
