//! Units of which a node that leaves hands in the samples that it has: they count once, and another
//! node renders the rest.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Input, Record, SessionId, Settings};
use tessera_protocol::ids::{Lease, ProcessEpoch};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{CoordinatorToNode, Task};
use tessera_protocol::status::FrameState;
use tessera_support::inputs::{self, node};

/// Samples of the unit.
const SPP: u32 = 32;
/// Pixels of the unit.
const PIXELS: u64 = (inputs::TILE * inputs::TILE) as u64;

/// Nothing is checked.
fn trusting() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default() }.without_checks()
}

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

/// So many nodes with room for one unit, and a job of one unit of many samples.
fn farm(settings: Settings, nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 0);
    farm.submit_render(2, RenderSpec { spp: SPP, unit_samples: SPP, ..inputs::render() });
    let first = inputs::submit(
        tessera_protocol::ids::JobId(uuid::Uuid::from_u128(1)),
        inputs::job(inputs::render()),
    );
    let Input::Submit { job, caller, .. } = first else { unreachable!() };
    farm.cancel(job, caller);
    (1..=nodes).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm
}

/// The samples that a node was told to render of what it holds.
fn samples(farm: &SmallFarm, number: u64) -> Option<(u32, u32)> {
    match farm.given.get(&farm.lease(number)?)? {
        Task::Tile { samples, .. } => Some((samples.first, samples.count)),
        Task::Chunk { .. } | Task::Finish(_) => None,
    }
}

fn arrive(farm: &mut SmallFarm, number: u64, lease: Lease, hash: u8, range: (u32, u32)) {
    farm.told.clear();
    let result = inputs::film(lease, hash, range);
    farm.step(Input::ResultArrived { session: SessionId(number), result });
}

/// A node that leaves hands in the first of the samples that it was to render.
fn leave(farm: &mut SmallFarm, number: u64, hash: u8, count: u32) -> Lease {
    let lease = farm.lease(number).expect("a unit in hand");
    let (first, _) = samples(farm, number).expect("samples to render");
    farm.step(Input::NodeDraining { session: SessionId(number) });
    arrive(farm, number, lease, hash, (first, count));
    lease
}

/// A node renders all that it was told to.
fn finish(farm: &mut SmallFarm, number: u64, hash: u8) {
    let lease = farm.lease(number).expect("a unit in hand");
    let range = samples(farm, number).expect("samples to render");
    arrive(farm, number, lease, hash, range);
}

fn holder(farm: &SmallFarm) -> u64 {
    (1..=9).find(|number| farm.lease(*number).is_some()).expect("somebody has the unit")
}

/// Samples per pixel that are committed, and those of them that came in parts.
fn counted(farm: &SmallFarm) -> (u64, u64) {
    let summary = farm.core.job_summary(farm.job).expect("the job");
    (summary.samples_committed / PIXELS, summary.samples_kept / PIXELS)
}

// promise: P2
#[test]
fn samples_of_a_leaving_node_count_and_another_adds_the_rest() {
    let mut farm = farm(trusting(), 2);
    assert_eq!(samples(&farm, 1), Some((0, 32)));
    let lease = leave(&mut farm, 1, 7, 10);
    assert!(farm.told.contains(&CoordinatorToNode::Committed { lease }));
    assert_eq!((counted(&farm), samples(&farm, 2)), ((10, 10), Some((10, 22))));
    assert!(matches!(farm.frame(), Some(FrameState::Open { committed: 0, units: 1, .. })));
    finish(&mut farm, 2, 8);
    assert!(farm.is_resolving());
    assert_eq!((counted(&farm), farm.audit()), ((32, 10), 1));
    farm.finish();
    assert_eq!(counted(&farm), (32, 10));
}

// promise: P1
#[test]
fn parts_whose_bytes_are_lost_are_rendered_again() {
    let mut farm = farm(trusting(), 2);
    leave(&mut farm, 1, 7, 10);
    assert_eq!((counted(&farm), samples(&farm, 2)), ((10, 10), Some((10, 22))));
    let (job, frame) = (farm.job, tessera_protocol::ids::FrameNumber(1));
    let units = vec![tessera_protocol::ids::UnitIndex(0)];
    farm.step(Input::ResultsLost { job, frame, units, reason: "its disk is gone".into() });
    assert!(farm.records.iter().any(|record| matches!(record, Record::PartsDropped { .. })));
    assert_eq!((counted(&farm), samples(&farm, 2)), ((0, 0), Some((0, 32))));
    finish(&mut farm, 2, 8);
    assert!(farm.is_resolving());
    assert_eq!((counted(&farm), farm.audit()), ((32, 0), 1));
}

// promise: P2
#[test]
fn a_repeated_part_counts_once_and_is_acknowledged_twice() {
    let mut farm = farm(trusting(), 2);
    let lease = leave(&mut farm, 1, 7, 10);
    arrive(&mut farm, 1, lease, 7, (0, 10));
    assert!(farm.told.contains(&CoordinatorToNode::Committed { lease }), "{:?}", farm.told);
    assert_eq!(counted(&farm), (10, 10));
    // Nor does the whole of the same lease count, nor another part of it.
    for range in [(0, 32), (10, 22), (10, 3)] {
        arrive(&mut farm, 1, lease, 7, range);
    }
    assert_eq!(counted(&farm), (10, 10));
    finish(&mut farm, 2, 8);
    assert_eq!((counted(&farm), farm.audit()), ((32, 10), 1));
}

// promise: P2
#[test]
fn a_lease_from_before_a_part_is_void() {
    let mut farm = farm(trusting(), 1);
    let old = farm.lease(1).expect("the unit");
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(Duration::from_secs(60));
    farm.step(inputs::joined(2, inputs::join(2, 1)));
    leave(&mut farm, 2, 7, 10);
    // The first node comes back with all of it.
    farm.told.clear();
    farm.step(inputs::joined(11, inputs::join(1, 0)));
    arrive(&mut farm, 11, old, 7, (0, 32));
    assert!(farm.told.contains(&CoordinatorToNode::Unwanted { lease: old }), "{:?}", farm.told);
    assert_eq!(counted(&farm), (10, 10));
}

// promise: P2
#[test]
fn late_parts_count_even_after_a_restart() {
    let mut late = farm(trusting(), 1);
    let lease = late.lease(1).expect("the unit");
    late.step(Input::SessionLost { session: SessionId(1) });
    late.later(Duration::from_secs(60));
    late.step(inputs::joined(11, inputs::join(1, 0)));
    arrive(&mut late, 11, lease, 7, (0, 10));
    assert_eq!(counted(&late), (10, 10));

    for from_snapshot in [false, true] {
        let mut farm = farm(trusting(), 1);
        leave(&mut farm, 1, 7, 10);
        farm.step(inputs::joined(2, inputs::join(2, 1)));
        let lease = farm.lease(2).expect("the rest");
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(1));
        let join = tessera_protocol::node::Join { finished: vec![lease], ..inputs::join(2, 0) };
        farm.step(inputs::joined(12, join));
        arrive(&mut farm, 12, lease, 7, (10, 5));
        assert_eq!(counted(&farm), (15, 15));
        farm.step(inputs::joined(3, inputs::join(3, 1)));
        assert_eq!(samples(&farm, 3), Some((15, 17)));
        finish(&mut farm, 3, 8);
        assert_eq!((counted(&farm), farm.audit()), ((32, 15), 1));
    }
}

#[test]
fn a_fifth_part_of_a_unit_is_treated_as_a_returned_unit() {
    let mut farm = farm(trusting(), 6);
    for part in 1..=4 {
        leave(&mut farm, part, 7, 3);
    }
    assert_eq!(counted(&farm), (12, 12));
    let lease = leave(&mut farm, 5, 7, 3);
    assert!(farm.told.contains(&CoordinatorToNode::Unwanted { lease }), "{:?}", farm.told);
    assert_eq!((counted(&farm), samples(&farm, 6)), ((12, 12), Some((12, 20))));
    finish(&mut farm, 6, 7);
    assert_eq!((counted(&farm), farm.audit()), ((32, 12), 1));
    assert!(!farm.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. })));
}

#[test]
fn an_impossible_first_part_is_a_failure() {
    for range in [(1, 10), (0, 33), (0, 0), (31, 2)] {
        let mut farm = farm(trusting(), 2);
        let lease = farm.lease(1).expect("the unit");
        arrive(&mut farm, 1, lease, 7, range);
        assert_eq!(counted(&farm), (0, 0), "{range:?}");
        let failed =
            farm.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. }));
        assert!(failed, "{range:?}");
        assert_eq!(farm.audit(), 0);
    }
}

// promise: P7
#[test]
fn every_part_is_rendered_again_by_a_node_that_did_not_make_it() {
    let mut farm = farm(all(), 3);
    let first = holder(&farm);
    leave(&mut farm, first, 7, 10);
    let second = holder(&farm);
    finish(&mut farm, second, 8);
    assert!(!farm.is_resolving(), "its parts are to be checked");
    let checks = holder(&farm);
    assert!(checks != first, "it leaves");
    assert_eq!(samples(&farm, checks), Some((0, 10)));
    finish(&mut farm, checks, 7);
    assert!(!farm.is_resolving());
    farm.restart(true);
    farm.later(Duration::from_secs(1));
    farm.step(inputs::joined(10 + second, inputs::join(second, 1)));
    assert_eq!(farm.lease(second), None, "it has made the last part");
    farm.step(inputs::joined(4, inputs::join(4, 1)));
    assert_eq!(samples(&farm, 4), Some((10, 22)));
    finish(&mut farm, 4, 8);
    assert!(farm.is_resolving());
    assert_eq!((counted(&farm), farm.audit()), ((32, 10), 1));
}

// promise: P7
#[test]
fn the_check_of_a_part_is_not_taken_up_again_for_the_next() {
    for from_snapshot in [false, true] {
        let mut farm = farm(all(), 3);
        let first = holder(&farm);
        leave(&mut farm, first, 7, 10);
        let second = holder(&farm);
        farm.step(Input::NodeDraining { session: SessionId(second) });
        finish(&mut farm, second, 8);
        let checks = holder(&farm);
        assert!(checks != second, "it leaves");
        let lease = farm.lease(checks).expect("the check of the first part");
        finish(&mut farm, checks, 7);
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(1));
        // Its process ended before it heard that the result had been compared.
        let join = tessera_protocol::node::Join {
            process: ProcessEpoch(2),
            finished: vec![lease],
            ..inputs::join(checks, 0)
        };
        farm.told.clear();
        farm.step(inputs::joined(10 + checks, join));
        assert!(farm.told.contains(&CoordinatorToNode::Unwanted { lease }));
        farm.step(inputs::joined(4, inputs::join(4, 1)));
        assert_eq!(
            samples(&farm, 4),
            Some((10, 22)),
            "no other node holds the check of the second part"
        );
        finish(&mut farm, 4, 8);
        assert!(farm.is_resolving());
    }
}

// promise: P7
#[test]
fn a_liars_part_is_found_and_the_unit_is_done_again_whole() {
    let mut farm = farm(all(), 4);
    let first = holder(&farm);
    leave(&mut farm, first, 9, 10);
    let rest = holder(&farm);
    finish(&mut farm, rest, 8);
    for _ in 0..2 {
        let judge = holder(&farm);
        assert_eq!(samples(&farm, judge), Some((0, 10)));
        finish(&mut farm, judge, 7);
    }
    let rows = farm.core.nodes(farm.now);
    let liar = rows.iter().find(|row| row.node == node(first)).expect("it is listed");
    assert!(liar.note.contains("gave a wrong result"), "{}", liar.note);
    assert_eq!((counted(&farm), farm.audit()), ((0, 0), 0));
    let again = holder(&farm);
    assert_eq!(samples(&farm, again), Some((0, 32)));
    finish(&mut farm, again, 7);
    farm.restart(false);
}

// promise: P7
#[test]
fn parts_of_a_liar_caught_in_another_job_are_dropped() {
    let mut farm = farm(all(), 1);
    leave(&mut farm, 1, 9, 10);
    farm.step(inputs::joined(2, inputs::join(2, 1)));
    let rest = farm.lease(2).expect("the rest");
    // Another process of the first one lies about another job.
    let begun = farm.job;
    farm.submit(3);
    let join = tessera_protocol::node::Join { process: ProcessEpoch(2), ..inputs::join(1, 1) };
    farm.step(inputs::joined(11, join));
    let lease = farm.lease(1).expect("the other job");
    arrive(&mut farm, 11, lease, 9, (0, 1));
    for number in [3, 4] {
        farm.step(inputs::joined(number, inputs::join(number, 1)));
        let lease = farm.lease(number).expect("the check");
        arrive(&mut farm, number, lease, 7, (0, 1));
    }
    assert!(farm.records.iter().any(|record| matches!(record, Record::PartsDropped { .. })));
    farm.job = begun;
    assert_eq!(counted(&farm), (0, 0));
    arrive(&mut farm, 2, rest, 8, (10, 22));
    assert!(farm.told.contains(&CoordinatorToNode::Unwanted { lease: rest }), "{:?}", farm.told);
    assert_eq!(counted(&farm), (0, 0));
    let ranges: Vec<_> = (2..=4).filter_map(|number| samples(&farm, number)).collect();
    assert!(ranges.contains(&(0, 32)), "{ranges:?}");
    farm.audit();
    farm.restart(false);
}

#[test]
fn a_part_of_a_check_compares_with_nothing_and_costs_nothing() {
    let mut farm = farm(all(), 2);
    let first = holder(&farm);
    finish(&mut farm, first, 7);
    let other = 3 - first;
    assert_eq!(samples(&farm, other), Some((0, 32)));
    let lease = leave(&mut farm, other, 9, 10);
    assert!(farm.told.contains(&CoordinatorToNode::Unwanted { lease }), "{:?}", farm.told);
    farm.step(inputs::joined(3, inputs::join(3, 1)));
    assert_eq!(samples(&farm, 3), Some((0, 32)), "the check goes to the next");
    finish(&mut farm, 3, 7);
    assert!(farm.is_resolving());
    assert_eq!(counted(&farm), (32, 0));
}

#[test]
fn a_frame_that_fails_keeps_the_count_of_its_parts() {
    let mut farm = farm(Settings { attempts: 1, ..trusting() }, 1);
    leave(&mut farm, 1, 7, 10);
    farm.step(inputs::joined(2, inputs::join(2, 1)));
    let lease = farm.lease(2).expect("the rest");
    let failure = tessera_protocol::node::Failure::Device("it is hot".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(2), lease, failure });
    assert!(matches!(farm.frame(), Some(FrameState::Failed(_))));
    assert_eq!(counted(&farm), (10, 10));
    farm.audit();
    farm.restart(true);
}
