//! Nodes that come and go, over real connections and restarts of the coordinator.

use crate::farm::{Farm, PATIENCE, closed, lives, start_with};
use crate::rivals::{listed, process, until_listed};
use crate::roles::{ask, join, replacing};
use std::time::{Duration, Instant};
use tessera_protocol::NodeId;
use tessera_protocol::client::{Request, RequestError, Response, Role};
use tessera_protocol::status::NodeState;
use tessera_transport::{ClientError, CloseCode};

async fn until(farm: &Farm, node: NodeId, state: NodeState) -> String {
    let begun = Instant::now();
    loop {
        match listed(farm, node).await {
            Some((found, note)) if found == state => return note,
            other => assert!(begun.elapsed() < PATIENCE, "{other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_says_goodbye_has_left_and_others_are_lost() {
    let mut farm = Farm::start(lives(60, 60)).await;
    let [leaves, silent] = ["rig-1", "rig-2"].map(|name| farm.node(name));
    let ids = [&leaves, &silent].map(|identity| identity.peer.node.unwrap());
    let first = process(&farm, &leaves, 1).await;
    let second = process(&farm, &silent, 1).await;
    for id in ids {
        until_listed(&farm, id).await;
    }
    first.link.close(CloseCode::Leaving, "told to stop").await;
    second.link.close(CloseCode::Done, "the process is over").await;
    assert_eq!(until(&farm, ids[0], NodeState::Left).await, "told to stop");
    assert_eq!(until(&farm, ids[1], NodeState::Lost).await, "connection lost");
    farm.coordinator.shutdown().await.unwrap();
    farm.coordinator = start_with(farm.folder.path(), |_| {}).await;
    assert_eq!(until(&farm, ids[0], NodeState::Left).await, "told to stop");
    assert_eq!(until(&farm, ids[1], NodeState::Lost).await, "connection lost");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_taken_away_takes_its_node_off_the_list() {
    let farm = Farm::start(lives(60, 60)).await;
    let (rig, admin) = (farm.node("rig"), farm.person(Role::Admin, "root"));
    let node = rig.peer.node.unwrap();
    let running = process(&farm, &rig, 1).await;
    until_listed(&farm, node).await;
    // Its connection goes on: it is not only off the list.
    let remove = Request::RemoveNode { node: "rig".into() };
    let refused = ask(&farm, &admin, remove.clone()).await;
    let Err(ClientError::Request(RequestError::Invalid(text))) = refused else {
        panic!("{refused:?}")
    };
    assert!(text.contains("tessera drain rig --leave"), "{text}");
    ask(&farm, &admin, Request::RemoveMember { member: "rig".into() }).await.unwrap();
    assert_eq!(closed(&running.link).await.0, Some(CloseCode::Denied));
    let note = until(&farm, node, NodeState::Removed).await;
    assert!(note.contains("taken away by `root`"), "{note}");
    let again = ask(&farm, &admin, remove).await;
    assert!(matches!(again, Err(ClientError::Request(RequestError::NotFound(_)))), "{again:?}");
    farm.coordinator.shutdown().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replaced_node_is_drained_if_its_old_self_was() {
    let farm = Farm::start(lives(60, 60)).await;
    let (rig, admin) = (farm.node("rig"), farm.person(Role::Admin, "root"));
    let old = rig.peer.node.unwrap();
    let running = process(&farm, &rig, 1).await;
    until_listed(&farm, old).await;
    let drain = Request::Drain { node: "rig".into(), drain: true, leave: false };
    let Response::Nodes(rows) = ask(&farm, &admin, drain).await.unwrap() else { panic!("no node") };
    assert!(rows[0].drained && rows[0].identity > 0, "{rows:?}");
    let token = farm.coordinator.create_token(replacing(Role::Node, "rig")).await.unwrap();
    let new = NodeId(uuid::Uuid::now_v7());
    let identity = join(&farm, &token, "rig", Some(new)).await.unwrap();
    assert_eq!(closed(&running.link).await.0, Some(CloseCode::Denied));
    let _installed = process(&farm, &identity, 1).await;
    assert!(until(&farm, new, NodeState::Drained).await.contains("drained by `root`"));
    assert!(until(&farm, old, NodeState::Removed).await.contains(&new.to_string()));
    let undrain = Request::Drain { node: "rig".into(), drain: false, leave: false };
    let Response::Nodes(rows) = ask(&farm, &admin, undrain).await.unwrap() else { panic!("none") };
    assert_eq!((rows[0].node, rows[0].drained), (new, false));
    farm.coordinator.shutdown().await.unwrap();
}
