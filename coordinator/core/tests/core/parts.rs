//! Units of which a node that leaves hands in the samples that it has: they count once, and another
//! node renders the rest.

use crate::stand::Stand;
use std::time::Duration;
use tessera_core::{Input, Record, SessionId, Settings};
use tessera_protocol::ids::{Lease, ProcessEpoch};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{CoordinatorToNode, Task};
use tessera_protocol::status::FrameState;
use tessera_support::inputs::{self as plain, node};

/// Samples of the unit.
const SPP: u32 = 32;
/// Pixels of the unit.
const PIXELS: u64 = (plain::TILE * plain::TILE) as u64;

/// Nothing is checked.
fn trusting() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default() }.without_checks()
}

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

/// So many nodes with room for one unit, and a job of one unit of many samples.
fn stand(settings: Settings, nodes: u64) -> Stand {
    let mut stand = Stand::new(settings, 1, 0);
    stand.submit_render(2, RenderSpec { spp: SPP, unit_samples: SPP, ..plain::render() });
    let first = plain::submit(
        tessera_protocol::ids::JobId(uuid::Uuid::from_u128(1)),
        plain::job(plain::render()),
    );
    let Input::Submit { request, job, caller, .. } = first else { unreachable!() };
    stand.step(Input::Cancel { request, job, caller });
    (1..=nodes).for_each(|number| stand.step(plain::joined(number, plain::join(number, 1))));
    stand
}

/// The samples that a node was told to render of what it holds.
fn samples(stand: &Stand, number: u64) -> Option<(u32, u32)> {
    match stand.given.get(&stand.lease(number)?)? {
        Task::Tile { samples, .. } => Some((samples.first, samples.count)),
        Task::Chunk { .. } => None,
    }
}

fn arrive(stand: &mut Stand, number: u64, lease: Lease, hash: u8, range: (u32, u32)) {
    stand.told.clear();
    let result = plain::film(lease, hash, range);
    stand.step(Input::ResultArrived { session: SessionId(number), result });
}

/// A node that leaves hands in the first of the samples that it was to render.
fn leave(stand: &mut Stand, number: u64, hash: u8, count: u32) -> Lease {
    let lease = stand.lease(number).expect("a unit in hand");
    let (first, _) = samples(stand, number).expect("samples to render");
    stand.step(Input::NodeDraining { session: SessionId(number) });
    arrive(stand, number, lease, hash, (first, count));
    lease
}

/// A node renders all that it was told to.
fn finish(stand: &mut Stand, number: u64, hash: u8) {
    let lease = stand.lease(number).expect("a unit in hand");
    let range = samples(stand, number).expect("samples to render");
    arrive(stand, number, lease, hash, range);
}

fn holder(stand: &Stand) -> u64 {
    (1..=9).find(|number| stand.lease(*number).is_some()).expect("somebody has the unit")
}

/// Samples per pixel that are committed, and those of them that came in parts.
fn counted(stand: &Stand) -> (u64, u64) {
    let summary = stand.core.job_summary(stand.job).expect("the job");
    (summary.samples_committed / PIXELS, summary.samples_kept / PIXELS)
}

// promise: P2
#[test]
fn samples_of_a_node_that_leaves_count_and_another_renders_the_rest() {
    let mut stand = stand(trusting(), 2);
    assert_eq!(samples(&stand, 1), Some((0, 32)));
    let lease = leave(&mut stand, 1, 7, 10);
    assert!(stand.told.contains(&CoordinatorToNode::Committed { lease }));
    assert_eq!((counted(&stand), samples(&stand, 2)), ((10, 10), Some((10, 22))));
    assert!(matches!(stand.frame(), Some(FrameState::Open { committed: 0, units: 1, .. })));
    finish(&mut stand, 2, 8);
    assert!(stand.is_resolving());
    assert_eq!((counted(&stand), stand.audit()), ((32, 10), 1));
    stand.finish();
    assert_eq!(counted(&stand), (32, 10));
}

// promise: P2
#[test]
fn a_part_that_arrives_twice_counts_once_and_is_acknowledged_twice() {
    let mut stand = stand(trusting(), 2);
    let lease = leave(&mut stand, 1, 7, 10);
    arrive(&mut stand, 1, lease, 7, (0, 10));
    assert!(stand.told.contains(&CoordinatorToNode::Committed { lease }), "{:?}", stand.told);
    assert_eq!(counted(&stand), (10, 10));
    // Nor does the whole of the same lease count, nor another part of it.
    for range in [(0, 32), (10, 22), (10, 3)] {
        arrive(&mut stand, 1, lease, 7, range);
    }
    assert_eq!(counted(&stand), (10, 10));
    finish(&mut stand, 2, 8);
    assert_eq!((counted(&stand), stand.audit()), ((32, 10), 1));
}

// promise: P2
#[test]
fn a_lease_from_before_a_part_is_void() {
    let mut stand = stand(trusting(), 1);
    let old = stand.lease(1).expect("the unit");
    stand.step(Input::SessionLost { session: SessionId(1) });
    stand.later(Duration::from_secs(60));
    stand.step(plain::joined(2, plain::join(2, 1)));
    leave(&mut stand, 2, 7, 10);
    // The first node comes back with all of it.
    stand.told.clear();
    stand.step(plain::joined(11, plain::join(1, 0)));
    arrive(&mut stand, 11, old, 7, (0, 32));
    assert!(stand.told.contains(&CoordinatorToNode::Unwanted { lease: old }), "{:?}", stand.told);
    assert_eq!(counted(&stand), (10, 10));
}

// promise: P2
#[test]
fn a_part_may_come_after_the_end_of_its_lease_and_after_a_restart() {
    let mut late = stand(trusting(), 1);
    let lease = late.lease(1).expect("the unit");
    late.step(Input::SessionLost { session: SessionId(1) });
    late.later(Duration::from_secs(60));
    late.step(plain::joined(11, plain::join(1, 0)));
    arrive(&mut late, 11, lease, 7, (0, 10));
    assert_eq!(counted(&late), (10, 10));

    for from_snapshot in [false, true] {
        let mut stand = stand(trusting(), 1);
        leave(&mut stand, 1, 7, 10);
        stand.step(plain::joined(2, plain::join(2, 1)));
        let lease = stand.lease(2).expect("the rest");
        stand.restart(from_snapshot);
        stand.later(Duration::from_secs(1));
        let join = tessera_protocol::node::Join { finished: vec![lease], ..plain::join(2, 0) };
        stand.step(plain::joined(12, join));
        arrive(&mut stand, 12, lease, 7, (10, 5));
        assert_eq!(counted(&stand), (15, 15));
        stand.step(plain::joined(3, plain::join(3, 1)));
        assert_eq!(samples(&stand, 3), Some((15, 17)));
        finish(&mut stand, 3, 8);
        assert_eq!((counted(&stand), stand.audit()), ((32, 15), 1));
    }
}

#[test]
fn a_unit_has_four_parts_and_a_fifth_is_as_if_it_had_been_given_back() {
    let mut stand = stand(trusting(), 6);
    for part in 1..=4 {
        leave(&mut stand, part, 7, 3);
    }
    assert_eq!(counted(&stand), (12, 12));
    let lease = leave(&mut stand, 5, 7, 3);
    assert!(stand.told.contains(&CoordinatorToNode::Unwanted { lease }), "{:?}", stand.told);
    assert_eq!((counted(&stand), samples(&stand, 6)), ((12, 12), Some((12, 20))));
    finish(&mut stand, 6, 7);
    assert_eq!((counted(&stand), stand.audit()), ((32, 12), 1));
    assert!(!stand.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. })));
}

#[test]
fn what_is_no_first_part_of_the_lease_is_a_failure() {
    for range in [(1, 10), (0, 33), (0, 0), (31, 2)] {
        let mut stand = stand(trusting(), 2);
        let lease = stand.lease(1).expect("the unit");
        arrive(&mut stand, 1, lease, 7, range);
        assert_eq!(counted(&stand), (0, 0), "{range:?}");
        let failed =
            stand.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. }));
        assert!(failed, "{range:?}");
        assert_eq!(stand.audit(), 0);
    }
}

// promise: P7
#[test]
fn every_part_is_rendered_again_by_a_node_that_did_not_make_it() {
    let mut stand = stand(all(), 3);
    let first = holder(&stand);
    leave(&mut stand, first, 7, 10);
    let second = holder(&stand);
    finish(&mut stand, second, 8);
    assert!(!stand.is_resolving(), "its parts are to be checked");
    let checks = holder(&stand);
    assert!(checks != first, "it leaves");
    assert_eq!(samples(&stand, checks), Some((0, 10)));
    finish(&mut stand, checks, 7);
    assert!(!stand.is_resolving());
    stand.restart(true);
    stand.later(Duration::from_secs(1));
    stand.step(plain::joined(10 + second, plain::join(second, 1)));
    assert_eq!(stand.lease(second), None, "it has made the last part");
    stand.step(plain::joined(4, plain::join(4, 1)));
    assert_eq!(samples(&stand, 4), Some((10, 22)));
    finish(&mut stand, 4, 8);
    assert!(stand.is_resolving());
    assert_eq!((counted(&stand), stand.audit()), ((32, 10), 1));
}

// promise: P7
#[test]
fn the_check_of_a_part_is_not_taken_up_again_for_the_next() {
    for from_snapshot in [false, true] {
        let mut stand = stand(all(), 3);
        let first = holder(&stand);
        leave(&mut stand, first, 7, 10);
        let second = holder(&stand);
        stand.step(Input::NodeDraining { session: SessionId(second) });
        finish(&mut stand, second, 8);
        let checks = holder(&stand);
        assert!(checks != second, "it leaves");
        let lease = stand.lease(checks).expect("the check of the first part");
        finish(&mut stand, checks, 7);
        stand.restart(from_snapshot);
        stand.later(Duration::from_secs(1));
        // Its process ended before it heard that the result had been compared.
        let join = tessera_protocol::node::Join {
            process: ProcessEpoch(2),
            finished: vec![lease],
            ..plain::join(checks, 0)
        };
        stand.told.clear();
        stand.step(plain::joined(10 + checks, join));
        assert!(stand.told.contains(&CoordinatorToNode::Unwanted { lease }));
        stand.step(plain::joined(4, plain::join(4, 1)));
        assert_eq!(
            samples(&stand, 4),
            Some((10, 22)),
            "nobody else holds the check of the second part"
        );
        finish(&mut stand, 4, 8);
        assert!(stand.is_resolving());
    }
}

// promise: P7
#[test]
fn a_liars_part_is_found_and_the_unit_is_done_again_whole() {
    let mut stand = stand(all(), 4);
    let first = holder(&stand);
    leave(&mut stand, first, 9, 10);
    let rest = holder(&stand);
    finish(&mut stand, rest, 8);
    for _ in 0..2 {
        let judge = holder(&stand);
        assert_eq!(samples(&stand, judge), Some((0, 10)));
        finish(&mut stand, judge, 7);
    }
    let rows = stand.core.nodes(stand.now);
    let liar = rows.iter().find(|row| row.node == node(first)).expect("it is listed");
    assert!(liar.note.contains("gave a wrong result"), "{}", liar.note);
    assert_eq!((counted(&stand), stand.audit()), ((0, 0), 0));
    let again = holder(&stand);
    assert_eq!(samples(&stand, again), Some((0, 32)));
    finish(&mut stand, again, 7);
    stand.restart(false);
}

// promise: P7
#[test]
fn parts_of_a_node_that_is_found_out_elsewhere_are_dropped_and_the_rest_is_not_wanted() {
    let mut stand = stand(all(), 1);
    leave(&mut stand, 1, 9, 10);
    stand.step(plain::joined(2, plain::join(2, 1)));
    let rest = stand.lease(2).expect("the rest");
    // Another process of the first one lies about another job.
    let begun = stand.job;
    stand.submit(3);
    let join = tessera_protocol::node::Join { process: ProcessEpoch(2), ..plain::join(1, 1) };
    stand.step(plain::joined(11, join));
    let lease = stand.lease(1).expect("the other job");
    arrive(&mut stand, 11, lease, 9, (0, 1));
    for number in [3, 4] {
        stand.step(plain::joined(number, plain::join(number, 1)));
        let lease = stand.lease(number).expect("the check");
        arrive(&mut stand, number, lease, 7, (0, 1));
    }
    assert!(stand.records.iter().any(|record| matches!(record, Record::PartsDropped { .. })));
    stand.job = begun;
    assert_eq!(counted(&stand), (0, 0));
    arrive(&mut stand, 2, rest, 8, (10, 22));
    assert!(stand.told.contains(&CoordinatorToNode::Unwanted { lease: rest }), "{:?}", stand.told);
    assert_eq!(counted(&stand), (0, 0));
    let ranges: Vec<_> = (2..=4).filter_map(|number| samples(&stand, number)).collect();
    assert!(ranges.contains(&(0, 32)), "{ranges:?}");
    stand.audit();
    stand.restart(false);
}

#[test]
fn a_part_of_a_check_compares_with_nothing_and_costs_nothing() {
    let mut stand = stand(all(), 2);
    let first = holder(&stand);
    finish(&mut stand, first, 7);
    let other = 3 - first;
    assert_eq!(samples(&stand, other), Some((0, 32)));
    let lease = leave(&mut stand, other, 9, 10);
    assert!(stand.told.contains(&CoordinatorToNode::Unwanted { lease }), "{:?}", stand.told);
    stand.step(plain::joined(3, plain::join(3, 1)));
    assert_eq!(samples(&stand, 3), Some((0, 32)), "the check goes to the next");
    finish(&mut stand, 3, 7);
    assert!(stand.is_resolving());
    assert_eq!(counted(&stand), (32, 0));
}

#[test]
fn a_frame_that_fails_keeps_the_count_of_its_parts() {
    let mut stand = stand(trusting(), 1);
    leave(&mut stand, 1, 7, 10);
    stand.step(plain::joined(2, plain::join(2, 1)));
    let lease = stand.lease(2).expect("the rest");
    let failure = tessera_protocol::node::Failure::Scene("no camera".to_owned());
    stand.step(Input::UnitFailed { session: SessionId(2), lease, failure });
    assert!(matches!(stand.frame(), Some(FrameState::Failed(_))));
    assert_eq!(counted(&stand), (10, 10));
    stand.audit();
    stand.restart(true);
}
