//! Nodes that come and go: what is known of absent ones, also after restarts, and what operators do
//! about them.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::journal::Gone;
use tessera_core::{Input, Record, RequestId, SessionId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::NodeId;
use tessera_protocol::node::{CoordinatorToNode, Heartbeat};
use tessera_protocol::status::{NodeState, NodeSummary};
use tessera_support::inputs::{self, node};

/// A farm of so many nodes, with little time to come back.
fn farm(nodes: u64) -> SmallFarm {
    SmallFarm::new(Settings::default().without_checks(), 8, nodes)
}

fn row(farm: &SmallFarm, id: NodeId) -> Option<NodeSummary> {
    farm.core.nodes(farm.now).into_iter().find(|row| row.node == id)
}

fn state(farm: &SmallFarm, number: u64) -> Option<NodeState> {
    row(farm, node(number)).map(|row| row.state)
}

fn lose(farm: &mut SmallFarm, number: u64) {
    farm.step(Input::SessionLost { session: SessionId(number) });
    farm.later(Duration::from_secs(2));
}

fn leave(farm: &mut SmallFarm, number: u64, why: &str) {
    farm.step(Input::NodeLeft { session: SessionId(number), why: why.to_owned() });
}

/// A node joins, in a session of this number.
fn join(farm: &mut SmallFarm, session: u64, (number, name): (u64, &str)) {
    let mut join = inputs::join(number, 1);
    join.name = name.to_owned();
    farm.step(inputs::joined(session, join));
}

fn remove(farm: &mut SmallFarm, name: &str) -> Response {
    let (request, node, by) = (RequestId(9), name.to_owned(), "root".to_owned());
    farm.ask(Input::RemoveNode { request, node, by })
}

fn only(answer: Response) -> NodeSummary {
    let Response::Nodes(mut rows) = answer else { panic!("{answer:?}") };
    assert_eq!(rows.len(), 1);
    rows.remove(0)
}

#[test]
fn a_drained_node_stays_and_is_idle_over_restarts() {
    for from_snapshot in [false, true] {
        let mut farm = farm(2);
        farm.told.clear();
        let row = only(farm.drain("n1", true, false));
        assert_eq!((row.state, row.drained), (NodeState::Draining, true), "it has a unit");
        assert!(farm.told.contains(&CoordinatorToNode::Drained { drained: true }));
        assert!(!farm.told.contains(&CoordinatorToNode::Leave), "it stays");
        farm.work(1, 1);
        assert!(farm.leased(1).is_empty());
        assert_eq!(state(&farm, 1), Some(NodeState::Drained));
        farm.restart(from_snapshot);
        (1..=2).for_each(|n| farm.step(inputs::joined(n + 10, inputs::join(n, 1))));
        farm.later(Duration::from_secs(3));
        assert!(farm.leased(1).is_empty());
        assert_eq!(farm.leased(2).len(), 1);
        assert_eq!(only(farm.drain("n1", false, false)).state, NodeState::Ready);
        assert_eq!(farm.leased(1).len(), 1, "it works again");
        farm.audit();
    }
}

#[test]
fn an_absent_node_is_undrained_by_name_or_id() {
    for by_name in [true, false] {
        let mut farm = farm(2);
        farm.drain("n1", true, false);
        lose(&mut farm, 1);
        farm.restart(false);
        let name = if by_name { "n1".to_owned() } else { node(1).to_string() };
        let told = only(farm.drain(&name, false, false));
        assert_eq!((told.state, told.drained), (NodeState::Lost, false));
        join(&mut farm, 11, (1, "n1"));
        farm.later(Duration::from_secs(3));
        assert_eq!(farm.leased(1).len(), 1);
    }
}

#[test]
fn a_node_leaves_once_when_it_is_drained_to_leave() {
    let mut farm = farm(2);
    farm.told.clear();
    farm.drain("n1", true, true);
    assert!(farm.told.contains(&CoordinatorToNode::Leave));
    // A new session before it has left: it is told again.
    farm.told.clear();
    join(&mut farm, 11, (1, "n1"));
    assert!(farm.told.contains(&CoordinatorToNode::Leave));
    farm.step(Input::NodeLeft { session: SessionId(11), why: "drained".to_owned() });
    assert_eq!(state(&farm, 1), Some(NodeState::Left));
    farm.restart(true);
    // Whoever starts it again finds it idle.
    farm.told.clear();
    join(&mut farm, 21, (1, "n1"));
    assert_eq!(farm.told, [CoordinatorToNode::Drained { drained: true }]);
    assert_eq!(state(&farm, 1), Some(NodeState::Drained));
    // An absent one is not told to leave when it comes back.
    lose(&mut farm, 21);
    farm.drain("n1", true, true);
    farm.told.clear();
    join(&mut farm, 31, (1, "n1"));
    assert!(!farm.told.contains(&CoordinatorToNode::Leave));
}

#[test]
fn who_left_and_who_was_lost_is_known_after_a_restart() {
    for from_snapshot in [false, true] {
        let mut farm = farm(4);
        let at = farm.now.secs();
        leave(&mut farm, 1, "it was told to stop");
        lose(&mut farm, 2);
        let before = farm.core.nodes(farm.now);
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(60));
        let told = |number| row(&farm, node(number)).expect("it is listed");
        assert_eq!((told(1).state, told(1).since), (NodeState::Left, at));
        assert_eq!(told(1).note, "it was told to stop");
        assert_eq!(told(2).state, NodeState::Lost);
        assert_eq!(told(2).since, before[1].since);
        assert_eq!(told(2).note, "connection lost");
        // These were there, and did not come back.
        assert_eq!(told(3).state, NodeState::Lost);
        assert_eq!(told(3).note, "it has not come back since the coordinator started");
    }
}

#[test]
fn nodes_have_time_to_come_back_after_a_restart() {
    let mut farm = farm(3);
    farm.restart(false);
    assert_eq!(state(&farm, 1), Some(NodeState::Away));
    farm.later(Duration::from_secs(20));
    join(&mut farm, 11, (1, "n1"));
    assert_eq!(state(&farm, 2), Some(NodeState::Away));
    let records = farm.records.len();
    farm.later(Duration::from_secs(20));
    assert_eq!(state(&farm, 1), Some(NodeState::Ready));
    assert_eq!(state(&farm, 2), Some(NodeState::Lost));
    let gone = |record: &&Record| matches!(record, Record::NodeGone { how: Gone::Lost, .. });
    assert_eq!(farm.records[records..].iter().filter(gone).count(), 2);
}

#[test]
fn a_short_interruption_and_a_heartbeat_are_not_recorded() {
    let mut farm = farm(1);
    let of_nodes = |farm: &SmallFarm| {
        let is = |record: &&Record| {
            matches!(record, Record::NodeJoined { .. } | Record::NodeGone { .. })
        };
        farm.records.iter().filter(is).count()
    };
    assert_eq!(of_nodes(&farm), 1);
    farm.step(Input::SessionLost { session: SessionId(1) });
    join(&mut farm, 11, (1, "n1"));
    farm.later(Duration::from_secs(30));
    assert_eq!(of_nodes(&farm), 1);
}

#[test]
fn an_absent_node_is_removed_and_a_connected_one_is_not() {
    let mut farm = farm(3);
    let answer = remove(&mut farm, "n1");
    let Response::Error(RequestError::Invalid(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("`tessera drain n1 --leave`"), "{text}");
    farm.step(Input::SessionLost { session: SessionId(1) });
    let answer = remove(&mut farm, "n1");
    let Response::Error(RequestError::Invalid(text)) = answer else { panic!("{answer:?}") };
    assert!(text.contains("may come back"), "{text}");
    farm.later(Duration::from_secs(2));
    farm.drain("n1", true, false);
    assert_eq!(only(remove(&mut farm, "n1")).state, NodeState::Removed);
    for ask in [remove(&mut farm, "n1"), farm.drain("n1", true, false)] {
        assert!(matches!(ask, Response::Error(RequestError::NotFound(_))), "{ask:?}");
    }
    farm.restart(true);
    let told = row(&farm, node(1)).expect("it is kept");
    assert_eq!((told.state, told.note.as_str()), (NodeState::Removed, "removed by `root`"));
    // If it comes back, it is a node like others.
    join(&mut farm, 11, (1, "n1"));
    assert_eq!(state(&farm, 1), Some(NodeState::Ready));
}

#[test]
fn a_reinstalled_machine_replaces_its_old_self() {
    let mut farm = farm(2);
    farm.drain("n1", true, false);
    lose(&mut farm, 1);
    join(&mut farm, 17, (7, "n1"));
    assert_eq!(state(&farm, 1), Some(NodeState::Removed));
    assert!(row(&farm, node(1)).unwrap().note.contains(&node(7).to_string()));
    // It is still drained, and the name means one.
    assert_eq!(state(&farm, 7), Some(NodeState::Drained));
    assert_eq!(only(farm.drain("n1", false, false)).node, node(7));
    // Also if the new one is faster than the old one's grace.
    farm.step(Input::SessionLost { session: SessionId(2) });
    join(&mut farm, 18, (8, "N2"));
    farm.later(Duration::from_secs(2));
    assert_eq!(state(&farm, 2), Some(NodeState::Removed));
    assert_eq!(state(&farm, 8), Some(NodeState::Ready));
    farm.restart(false);
}

#[test]
fn several_nodes_of_a_name_are_told_apart_by_their_ids() {
    let mut farm = farm(2);
    join(&mut farm, 13, (3, "n1"));
    let answers = [farm.drain("n1", true, false), farm.drain("n1", false, false)];
    for answer in answers.into_iter().chain([remove(&mut farm, "n1")]) {
        let Response::Error(RequestError::SeveralNodes(text)) = answer else {
            panic!("{answer:?}")
        };
        assert!(text.contains(&format!("{}, {}", node(1), node(3))), "{text}");
    }
}

#[test]
fn a_void_identity_is_taken_off_the_list_with_its_leases() {
    let mut farm = farm(2);
    let lease = farm.lease(1).expect("it has a unit");
    let (request, why) = (RequestId(5), "its name was taken away".to_owned());
    assert_eq!(farm.ask(Input::RetireNode { request, node: node(1), why }), Response::Done);
    assert_eq!(state(&farm, 1), Some(NodeState::Removed));
    assert!(farm.core.leases().all(|(held, _)| held != lease));
    let (request, why) = (RequestId(6), String::new());
    assert_eq!(farm.ask(Input::RetireNode { request, node: node(1), why }), Response::Done);
}

#[test]
fn a_renamed_or_moved_node_is_known_by_its_new_name_and_pool() {
    let mut farm = farm(1);
    let mut join = inputs::join(1, 1);
    (join.name, join.pool) = ("rig".to_owned(), Some("gpu".to_owned()));
    farm.step(inputs::joined(11, join));
    lose(&mut farm, 11);
    farm.restart(true);
    let told = row(&farm, node(1)).unwrap();
    assert_eq!((told.name.as_str(), told.pool.as_deref()), ("rig", Some("gpu")));
}

#[test]
fn only_so_many_absent_nodes_are_kept() {
    let settings = Settings { absent_nodes: 3, ..Settings::default() }.without_checks();
    let mut farm = SmallFarm::new(settings, 8, 6);
    farm.drain("n1", true, false);
    for number in 1..=6 {
        leave(&mut farm, number, "done");
        farm.later(Duration::from_secs(5));
    }
    let kept: Vec<u64> = (1..=6).filter(|number| state(&farm, *number).is_some()).collect();
    assert_eq!(kept, [1, 5, 6], "the drained one, and the last ones");
    farm.restart(true);
    assert_eq!(farm.core.nodes(farm.now).len(), 3);
}

#[test]
fn a_node_tells_how_busy_it_is_in_numbers_that_make_sense() {
    let mut farm = farm(2);
    assert_eq!(farm.row(1).busy, None, "it has told nothing");
    for (told, shown) in [
        (Some(0.75), Some(0.75)),
        (Some(1.0), Some(1.0)),
        (Some(1.5), None),
        (Some(-0.1), None),
        (Some(f32::NAN), None),
        (Some(0.0), Some(0.0)),
        (None, None),
    ] {
        let heartbeat = Heartbeat { busy: told, ..inputs::beat(Vec::new()) };
        farm.step(Input::Heartbeat { session: SessionId(1), heartbeat });
        assert_eq!(farm.row(1).busy, shown, "{told:?}");
    }
    assert_eq!(farm.row(2).busy, None, "it is another one");
}
