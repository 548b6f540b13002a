//! Results that other nodes render again: who is asked, who is believed, and what becomes of a liar
//! and its work.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Core, Input, Record, SessionId, Settings};
use tessera_protocol::node::{CoordinatorToNode, Failure, Join};
use tessera_protocol::status::{FrameState, NodeState};
use tessera_support::inputs::{self, node};

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

fn wait(farm: &mut SmallFarm) {
    farm.later(Duration::from_secs(21));
}

#[test]
fn a_frame_is_resolved_once_its_checks_agree() {
    let mut farm = SmallFarm::new(all(), 2, 2);
    // Each takes a unit; the other renders it again.
    farm.work(1, 7);
    farm.work(2, 7);
    assert!(!farm.is_resolving());
    assert_eq!(farm.leased(1), [1], "the unit that the other has done");
    farm.work(1, 7);
    assert!(!farm.is_resolving());
    farm.work(2, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.audit(), 2);
}

#[test]
fn a_single_node_is_not_checked() {
    let mut farm = SmallFarm::new(all(), 2, 1);
    farm.work(1, 7);
    farm.work(1, 7);
    assert!(farm.is_resolving());
}

#[test]
fn nothing_is_checked_when_verification_is_off() {
    let mut farm = SmallFarm::new(all().without_checks(), 2, 2);
    farm.work(1, 7);
    farm.work(2, 9);
    assert!(farm.is_resolving());
}

// promise: P7
#[test]
fn the_odd_one_of_three_is_quarantined_and_its_work_redone() {
    let mut farm = SmallFarm::new(all(), 3, 3);
    farm.work(1, 9);
    let other = if farm.leased(2).contains(&0) { 2 } else { 3 };
    farm.work(2, 7);
    farm.work(3, 7);
    for _ in 0..8 {
        (2..=3).for_each(|number| farm.work(number, 7));
    }
    assert!(farm.is_resolving(), "with the first unit done again, by {other} or the third");
    let rows = farm.core.nodes(farm.now);
    let liar = rows.iter().find(|row| row.node == node(1)).expect("it is listed");
    assert_eq!(liar.state, NodeState::Unfit);
    assert!(
        liar.note.contains("quarantined") && liar.note.contains("tessera undrain n1"),
        "{}",
        liar.note
    );
    let quarantines = farm.core.quarantines();
    let [quarantine] = quarantines.as_slice() else { panic!("{quarantines:?}") };
    assert_eq!((quarantine.node, quarantine.word), (node(1), "wrong"));
    assert!(farm.leased(1).is_empty());
    let taken = farm
        .records
        .iter()
        .filter(|record| matches!(record, Record::UnitsTakenBack { .. }))
        .count();
    assert_eq!(taken, 1);
    assert_eq!(farm.audit(), 3);
    // An operator puts it back.
    farm.undrain("n1");
    let rows = farm.core.nodes(farm.now);
    assert!(
        rows.iter().all(|row| row.state == NodeState::Ready && row.note.is_empty()),
        "{rows:?}"
    );
}

#[test]
fn trust_and_checks_survive_restarts_and_snapshots() {
    let mut farm = SmallFarm::new(all(), 3, 3);
    farm.work(1, 9);
    farm.work(2, 7);
    let parts = farm.core.snapshot();
    let bytes: Vec<Vec<u8>> =
        parts.iter().map(|part| part.to_bytes().expect("a part has bytes")).collect();
    let parts =
        bytes.iter().map(|bytes| tessera_core::SnapshotPart::from_bytes(bytes).expect("and back"));
    let replayed =
        Core::replay(all(), [], farm.records.clone(), farm.now).expect("a journal of its own");
    let restored = Core::replay(all(), parts, [], farm.now).expect("a snapshot of its own");
    for other in [replayed, restored] {
        assert_eq!(farm.core.durable_difference(&other), None);
        other.verify().expect("the core stands by its invariants");
    }
}

// promise: P7
#[test]
fn of_two_nodes_the_one_that_contradicts_itself_is_found() {
    let mut farm = SmallFarm::new(all(), 1, 2);
    farm.work(1, 9);
    farm.work(2, 7);
    assert!(!farm.is_resolving());
    assert!(farm.leased(1).is_empty() && farm.leased(2).is_empty(), "both were heard");
    wait(&mut farm);
    // Whoever gets it first; the liar says something else the second time.
    farm.work(1, 8);
    farm.work(2, 7);
    farm.work(2, 7);
    let rows = farm.core.nodes(farm.now);
    assert_eq!(
        rows.iter().find(|row| row.node == node(1)).map(|row| row.state),
        Some(NodeState::Unfit)
    );
    assert_eq!(
        rows.iter().find(|row| row.node == node(2)).map(|row| row.state),
        Some(NodeState::Ready)
    );
    // No node checks its own result, for the liar gets no work: the check is waived in the end.
    wait(&mut farm);
    wait(&mut farm);
    assert!(farm.is_resolving());
}

#[test]
fn a_liars_old_results_stay_void_after_a_restart() {
    for from_snapshot in [false, true] {
        let mut farm = SmallFarm::new(all(), 2, 2);
        farm.work(1, 9);
        farm.work(2, 7);
        // Each has the other's unit now, says something else of it, and takes no more.
        let again = farm.lease(1).expect("a check");
        assert_eq!(again.unit.unit.0, 1);
        for (number, hash) in [(1, 9), (2, 7)] {
            farm.step(Input::Capacity { session: SessionId(number), units: 0 });
            farm.work(number, hash);
        }
        // A third node knows better about the first.
        farm.step(inputs::joined(3, inputs::join(3, 1)));
        assert_eq!(farm.leased(3), [0]);
        farm.step(Input::Capacity { session: SessionId(3), units: 0 });
        farm.work(3, 7);
        assert!(farm.records.iter().any(|record| matches!(record, Record::UnitsTakenBack { .. })));

        // Its word about the other's unit has been struck out.
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(1));
        let records = farm.records.len();
        farm.step(inputs::joined(11, Join { finished: vec![again], ..inputs::join(1, 0) }));
        farm.step(Input::ResultArrived {
            session: SessionId(11),
            result: inputs::result(again, 9),
        });
        assert_eq!(farm.records.len(), records, "{:?}", &farm.records[records..]);
        assert_eq!(farm.told.last(), Some(&CoordinatorToNode::Unwanted { lease: again }));
    }
}

// promise: P7
#[test]
fn a_vote_is_heard_once_though_its_unit_is_done_again() {
    for from_snapshot in [false, true] {
        let lease = Duration::from_secs(1000);
        let settings = Settings { lease, lease_longest: lease, check_wait: lease, ..all() };
        let mut farm = SmallFarm::new(settings, 1, 4);
        farm.work(1, 9);
        let slow = farm.lease(2).expect("the check");
        let mut votes = Vec::new();
        for _ in 0..2 {
            // The second is slow, and others who have a copy say something else.
            farm.later(Duration::from_secs(31));
            let other = (3..=4).find(|number| farm.lease(*number).is_some()).expect("a copy");
            votes.push((other, farm.lease(other).expect("it has one")));
            farm.work(other, 7);
        }
        assert!(farm.records.iter().any(|record| matches!(record, Record::UnitsTakenBack { .. })));
        // What it has of the check is committed now, by a lease older than theirs.
        assert!(farm.lease(2) == Some(slow) && votes.iter().all(|(_, of)| slow.epoch < of.epoch));
        farm.work(2, 7);
        let is_committed = matches!(farm.frame(), Some(FrameState::Open { committed: 1, .. }));
        assert!(is_committed, "{:?}", farm.frame());

        farm.restart(from_snapshot);
        let records = farm.records.len();
        for (number, lease) in votes {
            let join = Join { finished: vec![lease], ..inputs::join(number, 0) };
            farm.step(inputs::joined(10 + number, join));
            let (session, result) = (SessionId(10 + number), inputs::result(lease, 7));
            farm.step(Input::ResultArrived { session, result });
            assert_eq!(farm.told.last(), Some(&CoordinatorToNode::Unwanted { lease }));
        }
        let checked = |record: &Record| matches!(record, Record::UnitChecked { .. });
        assert!(!farm.records[records..].iter().any(checked));
    }
}

// promise: P4
#[test]
fn a_tie_of_two_nodes_fails_the_frame_with_its_reason() {
    let mut farm = SmallFarm::new(all(), 1, 2);
    farm.work(1, 9);
    farm.work(2, 7);
    for _ in 0..6 {
        wait(&mut farm);
        farm.work(1, 9);
        farm.work(2, 7);
    }
    let Some(FrameState::Failed(reason)) = farm.frame() else { panic!("{:?}", farm.frame()) };
    assert!(reason.contains("has different results on `n1` and `n2`"), "{reason}");
    for row in farm.core.nodes(farm.now) {
        assert!(row.state == NodeState::Ready && row.note.contains("in doubt"), "{row:?}");
    }
    let words: Vec<_> = farm.core.quarantines().into_iter().map(|one| one.word).collect();
    assert_eq!(words, ["doubted", "doubted"]);
}

// promise: P4
#[test]
fn the_last_node_keeps_working_though_it_lied() {
    let mut farm = SmallFarm::new(all(), 3, 3);
    farm.work(1, 9);
    for _ in 0..8 {
        (2..=3).for_each(|number| farm.work(number, 7));
    }
    assert!(farm.is_resolving());
    farm.submit(2);
    assert!(farm.leased(1).is_empty());
    for number in [2, 3] {
        farm.step(Input::SessionLost { session: tessera_core::SessionId(number) });
    }
    assert!(farm.leased(1).is_empty(), "the others may come back");
    wait(&mut farm);
    assert!(!farm.leased(1).is_empty(), "they are lost, and a job must end");
    let rows = farm.core.nodes(farm.now);
    let liar = rows.iter().find(|row| row.node == node(1)).expect("it is listed");
    assert!(liar.note.contains("no other node may have any"), "{}", liar.note);
}

// promise: P4
#[test]
fn a_check_that_fails_costs_its_unit_nothing() {
    let settings = Settings { attempts: 1, ..all() };
    let mut farm = SmallFarm::new(settings, 1, 2);
    farm.work(1, 7);
    let lease = farm.lease(2).expect("the check");
    farm.step(Input::UnitFailed {
        session: tessera_core::SessionId(2),
        lease,
        failure: Failure::Device("broken".to_owned()),
    });
    assert!(matches!(farm.frame(), Some(FrameState::Open { committed: 1, units: 1, .. })));
    wait(&mut farm);
    assert!(farm.is_resolving(), "no other node may check it");
    assert!(farm.records.iter().any(|record| matches!(record, Record::CheckWaived { .. })));
}

// promise: P7
#[test]
fn an_order_to_resolve_is_void_if_units_are_taken_back() {
    // Node 1 is well known, so that its unit in the first frame is not checked.
    let settings = Settings { check_share: 0, check_first: 1, ..all() };
    let mut farm = SmallFarm::new(settings, 1, 3);
    farm.work(1, 7);
    (2..=3).for_each(|number| farm.work(number, 7));
    assert!(farm.is_resolving());
    farm.finish();
    let first = farm.job;
    // Every second result is checked now: submit until one of a liar is not, and one is.
    let (mut blind, mut found) = (None, false);
    for number in 2..40 {
        farm.submit(number);
        let leased =
            (1..=3).find(|number| !farm.leased(*number).is_empty()).expect("somebody has it");
        farm.work(leased, if leased == 1 { 9 } else { 7 });
        if leased == 1 && blind.is_none() && farm.is_resolving() {
            blind = Some(farm.job);
            continue;
        }
        for number in [2, 3, 2, 3] {
            farm.work(number, 7);
            found = farm.core.nodes(farm.now).iter().any(|row| !row.note.is_empty());
            if found {
                break;
            }
        }
        if found {
            break;
        }
        farm.finish();
    }
    assert!(found, "a node that always lies is found");
    let blind = blind.expect("one of its results was not checked");
    assert_ne!(blind, first);
    let open = |farm: &SmallFarm| matches!(farm.frame_of(blind), Some(FrameState::Open { .. }));
    assert!(open(&farm), "its work is taken back");
    for _ in 0..4 {
        (2..=3).for_each(|number| farm.work(number, 7));
    }
    assert!(matches!(farm.frame_of(blind), Some(FrameState::Resolving)), "and done again");
    assert_eq!(farm.orders_of(blind), 1, "the old order is still under way");
    farm.job = blind;
    farm.finish();
    assert!(
        !matches!(farm.frame_of(blind), Some(FrameState::Done(_))),
        "the old picture is not wanted"
    );
    assert_eq!(farm.orders_of(blind), 2);
    farm.finish();
    assert!(matches!(farm.frame_of(blind), Some(FrameState::Done(_))));
}
