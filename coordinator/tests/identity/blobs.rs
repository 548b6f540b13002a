//! A node reads the blobs of its leases, and no others: neither another job's scene nor any frame.

use crate::farm::{Farm, PATIENCE, lives};
use crate::peers::{FakeNode, frame_file, submit};
use std::time::{Duration, Instant};
use tessera_protocol::FrameNumber;
use tessera_protocol::client::Role;
use tessera_transport::FarmClient;
use tessera_transport::blob::{Target, Wanted};

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_node_reads_the_files_of_its_leases_and_nothing_else() {
    let farm = Farm::start(lives(60, 60)).await;
    let folder = farm.folder.path();
    let client = FarmClient::new(farm.dial(&farm.person(Role::Artist, "ada")).await.unwrap());
    let mut scenes =
        [submit(&client, folder, b"scene one").await, submit(&client, folder, b"scene two").await];
    let identity = farm.node("n1");
    let mut node = FakeNode::join(&farm, &identity, Vec::new()).await;
    let unit = node.work().await;
    if scenes[0].0 != unit.job {
        scenes.reverse();
    }
    let [(job, own), (_, other)] = scenes;
    assert!(node.may_read(own, folder).await);
    assert!(!node.may_read(other, folder).await, "another job's scene was given");

    // The same process in another session continues with what it holds: it is not told of the job
    // again, and reads it all the same.
    drop(node);
    let mut node = FakeNode::join(&farm, &identity, vec![unit.lease()]).await;
    let begun = Instant::now();
    while !node.may_read(own, folder).await {
        assert!(begun.elapsed() < PATIENCE, "its own scene is not given after a reconnect");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(!node.may_read(other, folder).await);

    node.deliver(unit.lease()).await;
    let frame = frame_file(&client, job).await;
    // A viewer gets the frame's file with its frame, and the scene in no way.
    let viewer = FarmClient::new(farm.dial(&farm.person(Role::Viewer, "vera")).await.unwrap());
    let number = FrameNumber(0);
    for (hash, of, is_given) in [
        (frame, Some((job, number)), true),
        (frame, None, false),
        (own, Some((job, number)), false),
        (own, None, false),
    ] {
        let target = folder.join("of-viewer");
        let got = viewer
            .get_blob(Wanted { hash, of }, 1 << 20, Target::replacing(&target), &mut |_, _| {})
            .await;
        assert_eq!(got.is_ok(), is_given, "{of:?}: {got:?}");
    }
    assert!(!node.may_read(frame, folder).await, "a frame was given");
    // Its next unit is of the other job, and the first has ended.
    assert_ne!(node.work().await.job, job);
    assert!(node.may_read(other, folder).await);
    assert!(!node.may_read(own, folder).await, "the scene of a job that has ended was given");
    node.control.finish();
    farm.coordinator.shutdown().await.unwrap();
}
