//! Two processes with the identity of one node.

use crate::farm::{Farm, PATIENCE, closed, lives};
use crate::roles::ask;
use std::time::Instant;
use tessera_protocol::client::{Request, Response, Role};
use tessera_protocol::node::{CoordinatorToNode, Join, NodeToCoordinator};
use tessera_protocol::status::NodeState;
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{NodeId, ProcessEpoch};
use tessera_transport::frame::open_both;
use tessera_transport::{CloseCode, FrameReceiver, FrameSender, Identity, Link, Timing};

/// A node's process with a session.
pub(crate) struct Process {
    pub(crate) link: Link,
    _control: FrameSender,
    incoming: FrameReceiver,
}

pub(crate) async fn process(farm: &Farm, identity: &Identity, process: u64) -> Process {
    let link = farm.dial(identity).await.unwrap();
    let (mut control, incoming) =
        open_both(&link.connection, StreamKind::NodeControl).await.unwrap();
    let join = Join::new(identity.peer.node.unwrap(), "rig", ProcessEpoch(process));
    control.send(&NodeToCoordinator::Join(join)).await.unwrap();
    Process { link, _control: control, incoming }
}

async fn next(process: &mut Process) -> CoordinatorToNode {
    let message = tokio::time::timeout(PATIENCE, process.incoming.receive()).await;
    message.expect("a message in time").unwrap().expect("a message")
}

/// State and note of a node in the listing.
pub(crate) async fn listed(farm: &Farm, node: NodeId) -> Option<(NodeState, String)> {
    let viewer = farm.person(Role::Viewer, "eve");
    let Response::Nodes(nodes) = ask(farm, &viewer, Request::Nodes).await.unwrap() else {
        panic!("no list")
    };
    nodes.into_iter().find(|one| one.node == node).map(|one| (one.state, one.note))
}

pub(crate) async fn until_listed(farm: &Farm, node: NodeId) {
    let begun = Instant::now();
    while listed(farm, node).await.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_second_process_of_a_node_is_refused_and_both_hear() {
    let farm = Farm::start(lives(60, 60)).await;
    let rig = farm.node("rig");
    let node = rig.peer.node.unwrap();
    let mut older = process(&farm, &rig, 1).await;
    until_listed(&farm, node).await;
    for _ in 0..2 {
        let begun = Instant::now();
        let mut newer = process(&farm, &rig, 2).await;
        let CoordinatorToNode::Refused { reason } = next(&mut newer).await else {
            panic!("it is not refused")
        };
        assert!(begun.elapsed() >= Timing::default().idle * 2, "{:?}", begun.elapsed());
        assert!(reason.contains("enrol this copy anew"), "{reason}");
        assert_eq!(closed(&newer.link).await.0, Some(CloseCode::Refused));
        let CoordinatorToNode::Notice { text } = next(&mut older).await else {
            panic!("the older one is not told")
        };
        assert!(text.contains("another process has this node's identity"), "{text}");
    }
    assert_eq!(older.link.connection.close_reason(), None, "nobody replaces anybody");
    let (_, note) = listed(&farm, node).await.unwrap();
    assert!(note.contains("enrol that copy anew"), "{note}");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_process_or_a_dead_one_is_replaced_at_once() {
    let farm = Farm::start(lives(60, 60)).await;
    let rig = farm.node("rig");
    let first = process(&farm, &rig, 1).await;
    until_listed(&farm, rig.peer.node.unwrap()).await;
    // The same process again: its former connection is closed.
    let begun = Instant::now();
    let again = process(&farm, &rig, 1).await;
    assert_eq!(closed(&first.link).await.0, Some(CloseCode::Replaced));
    // Another one waits while the connection lives, and has the place when it is gone.
    let newer = process(&farm, &rig, 2).await;
    again.link.close(CloseCode::Done, "the machine starts again").await;
    drop(again);
    let last = process(&farm, &rig, 2).await;
    assert_eq!(closed(&newer.link).await.0, Some(CloseCode::Replaced));
    assert!(begun.elapsed() < Timing::default().idle * 2, "{:?}", begun.elapsed());
    assert_eq!(last.link.connection.close_reason(), None);
    farm.coordinator.shutdown().await.unwrap();
}
