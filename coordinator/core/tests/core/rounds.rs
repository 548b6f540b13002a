//! Frames that are sampled in rounds until their noise is low enough: which units are leased when,
//! what a measurement decides, and what becomes of it when the units that it was made of turn out
//! to be a liar's.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Input, Record, SessionId, Settings};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{Failure, Task};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameState, JobState, RoundStatus};
use tessera_support::inputs::{self, TILE};

/// Tiles of the frame. A tile has passes of 16, 16, 32 and 36 samples, so that unit 4 t + p is its
/// pass p.
const TILES: u32 = 3;
/// Pixels of a tile.
const PIXELS: u64 = (TILE * TILE) as u64;

pub(crate) fn trusting() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default() }.without_checks()
}

/// So many nodes with room for one unit, and the job.
fn farm(settings: Settings, nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 1);
    farm.work(1, 1);
    farm.finish();
    let render = RenderSpec {
        width: TILES * TILE,
        spp: 100,
        unit_samples: 0,
        noise: Some(0.1),
        ..inputs::render()
    };
    farm.submit_render(2, render);
    (2..=nodes).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm
}

/// A node renders what it holds; gives the unit.
pub(crate) fn render(farm: &mut SmallFarm, number: u64, hash: u8) -> Option<u32> {
    let lease = farm.lease(number)?;
    let Some(Task::Tile { samples, .. }) = farm.given.get(&lease).copied() else {
        panic!("no tile")
    };
    let result = inputs::film(lease, hash, (samples.first, samples.count));
    farm.step(Input::ResultArrived { session: SessionId(number), result });
    Some(lease.unit.unit.0)
}

/// Nodes render, honestly, until there is nothing more to lease; gives the units in their order.
pub(crate) fn render_all(farm: &mut SmallFarm, nodes: std::ops::RangeInclusive<u64>) -> Vec<u32> {
    let mut units = Vec::new();
    loop {
        let before = units.len();
        nodes.clone().for_each(|number| units.extend(render(farm, number, 7)));
        if units.len() == before {
            return units;
        }
    }
}

pub(crate) fn round(farm: &SmallFarm) -> Option<(u32, u32)> {
    match farm.frame()? {
        FrameState::Open { round: Some(RoundStatus { round, tiles_open, .. }), .. } => {
            Some((round, tiles_open))
        }
        _ => None,
    }
}

#[test]
fn a_round_is_rendered_for_the_tiles_that_were_too_noisy() {
    let mut farm = farm(trusting(), 1);
    assert_eq!(round(&farm), Some((1, 3)));
    assert_eq!(render_all(&mut farm, 1..=1), [0, 1, 4, 5, 8, 9]);
    assert_eq!((farm.orders_to_measure(), farm.is_resolving()), (1, false));
    farm.measured(&[1, 2]);
    assert_eq!(round(&farm), Some((2, 2)));
    assert_eq!(render_all(&mut farm, 1..=1), [6, 10]);
    assert_eq!(farm.orders_to_measure(), 2);
    // A tile that has ended does not count.
    farm.measured(&[0, 2]);
    assert_eq!((round(&farm), render_all(&mut farm, 1..=1)), (Some((3, 1)), vec![11]));
    // Nothing comes after the last round, so nothing is measured.
    assert_eq!((farm.orders_to_measure(), farm.is_resolving()), (2, true));
    let summary = farm.core.job_summary(farm.job).expect("the job");
    assert_eq!((summary.units, summary.units_committed), (9, 9));
    assert_eq!(summary.samples_committed, PIXELS * (32 + 64 + 100));
    farm.finish();
    assert_eq!(
        (farm.frame().is_some_and(|frame| matches!(frame, FrameState::Done(_))), farm.audit()),
        (true, 10)
    );
    let summary = farm.core.job_summary(farm.job).expect("the job");
    assert_eq!(
        (summary.state, summary.samples_committed),
        (JobState::Done, PIXELS * (32 + 64 + 100))
    );
    for from_snapshot in [false, true] {
        farm.restart(from_snapshot);
        assert_eq!(farm.core.job_summary(farm.job).map(|summary| summary.units_committed), Some(9));
    }
}

#[test]
fn a_frame_is_complete_when_no_tile_is_too_noisy() {
    let mut farm = farm(trusting(), 1);
    render_all(&mut farm, 1..=1);
    farm.measured(&[]);
    assert!(farm.is_resolving() && farm.lease(1).is_none());
    let rounds =
        farm.core.frame_rounds(farm.job, tessera_protocol::FrameNumber(1)).expect("a rounds");
    assert_eq!((0..TILES).map(|tile| rounds.samples(tile)).collect::<Vec<_>>(), [32; 3]);
    farm.finish();
    assert_eq!(farm.audit(), 7);
}

// promise: P5
#[test]
fn a_restart_at_any_moment_keeps_the_same_rounds() {
    for from_snapshot in [false, true] {
        let mut farm = farm(trusting(), 1);
        let restart = |farm: &mut SmallFarm| {
            farm.restart(from_snapshot);
            farm.later(Duration::from_secs(60));
            farm.step(inputs::joined(1, inputs::join(1, 1)));
        };
        render(&mut farm, 1, 7);
        restart(&mut farm);
        assert_eq!(render_all(&mut farm, 1..=1), [1, 4, 5, 8, 9]);
        restart(&mut farm);
        assert_eq!(farm.orders_to_measure(), 2, "it is asked for again");
        farm.measured(&[0, 1]);
        restart(&mut farm);
        assert_eq!((round(&farm), render(&mut farm, 1, 7)), (Some((2, 2)), Some(2)));
        restart(&mut farm);
        assert_eq!(render_all(&mut farm, 1..=1), [6]);
        farm.measured(&[]);
        restart(&mut farm);
        assert!(farm.is_resolving());
        farm.finish();
        assert_eq!(farm.audit(), 9);
    }
}

#[test]
fn a_round_is_measured_when_its_checks_are_over() {
    let mut farm = farm(checking(), 2);
    let mut done = Vec::new();
    while farm.orders_to_measure() == 0 {
        (1..=2).for_each(|number| done.extend(render(&mut farm, number, 7)));
        assert!(done.len() <= 12);
    }
    assert!(done.len() > 6, "some units twice: {done:?}");
    farm.measured(&[2]);
    assert_eq!(round(&farm), Some((2, 1)));
    assert_eq!(farm.audit(), 7);
}

/// Everything is checked that another node can check.
pub(crate) fn checking() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

/// Units of the newest job that were taken back.
pub(crate) fn taken_back(farm: &SmallFarm) -> Vec<u32> {
    let taken = farm.records.iter().filter_map(|record| match record {
        Record::UnitsTakenBack { job, units, .. } if *job == farm.job => Some(units),
        _ => None,
    });
    taken.flatten().map(|unit| unit.0).collect()
}

// promise: P5
#[test]
fn a_liars_measurements_and_all_later_rounds_are_void() {
    // Node 1 lies, and renders the first round by itself, so that no node checks it.
    let mut farm = farm(checking(), 1);
    while render(&mut farm, 1, 9).is_some() {}
    farm.measured(&[0, 1, 2]);
    (2..=3).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    let second =
        [2, 3].map(|number| render(&mut farm, number, 7).expect("a unit of the second round"));
    assert_eq!((taken_back(&farm), round(&farm)), (vec![], Some((2, 3))));
    // Now other nodes check what it does.
    while farm.core.nodes(farm.now).iter().all(|row| row.note.is_empty()) {
        render(&mut farm, 1, 9);
        for number in 2..=3 {
            render(&mut farm, number, 7);
        }
    }
    let taken = taken_back(&farm);
    assert!([0, 1, 4, 5, 8, 9].iter().all(|unit| taken.contains(unit)), "{taken:?}");
    assert!(second.iter().all(|unit| taken.contains(unit)), "rendered because of lies: {taken:?}");
    assert_eq!(round(&farm), Some((1, 3)));
    let lease = farm.lease(2).expect("a unit of the first round");
    assert!([0, 1, 4, 5, 8, 9].contains(&lease.unit.unit.0));
    farm.restart(true);
    farm.later(Duration::from_secs(60));
    (2..=3).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    render_all(&mut farm, 2..=3);
    // The truth needs fewer tiles.
    farm.measured(&[1]);
    assert_eq!(round(&farm), Some((2, 1)));
    render_all(&mut farm, 2..=3);
    farm.measured(&[]);
    assert!(farm.is_resolving());
    let summary = farm.core.job_summary(farm.job).expect("the job");
    assert_eq!(summary.samples_committed, PIXELS * (32 + 64 + 32));
    farm.finish();
    assert_eq!(farm.audit(), 8);
}

#[test]
fn a_liar_that_is_found_after_the_last_round_voids_that_round() {
    let mut farm = farm(checking(), 1);
    while render(&mut farm, 1, 9).is_some() {}
    farm.measured(&[]);
    assert!(farm.is_resolving());
    let first = farm.job;
    // It is found out at another job, while the first frame is being made.
    (2..=3).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm.submit(3);
    for _ in 0..8 {
        for (number, hash) in [(1, 9), (2, 7), (3, 7)] {
            render(&mut farm, number, hash);
        }
    }
    farm.job = first;
    assert_eq!(taken_back(&farm), [0, 1, 4, 5, 8, 9]);
    assert_eq!(farm.orders_of(first), 1);
    // The first files are of lies; the round is measured once its order is out of the way.
    farm.finish();
    assert!(!matches!(farm.frame(), Some(FrameState::Done(_))));
    assert_eq!(farm.orders_to_measure(), 2);
    farm.measured(&[2]);
    render_all(&mut farm, 2..=3);
    assert_eq!(round(&farm), Some((2, 1)));
    farm.measured(&[]);
    farm.finish();
    assert!(matches!(farm.frame(), Some(FrameState::Done(_))));
    assert_eq!(farm.audit(), 9);
}

#[test]
fn an_order_to_measure_is_void_if_units_are_taken_back() {
    let mut farm = farm(checking(), 2);
    render_all(&mut farm, 1..=2);
    assert_eq!(farm.orders_to_measure(), 1);
    // A job that ends in between voids the order as well, and after a retry the frame is another.
    let (job, caller) =
        (farm.job, tessera_core::Caller { name: "ada".to_owned(), id: 294, admin: true });
    farm.cancel(job, caller.clone());
    farm.change(JobChange::Retry, job, caller);
    farm.measured(&[0, 1, 2]);
    assert_eq!(round(&farm), Some((1, 3)), "what was measured is of before");
    render_all(&mut farm, 1..=2);
    assert_eq!(farm.orders_to_measure(), 2);
    farm.measured(&[]);
    assert!(farm.is_resolving());
    assert_eq!(farm.audit(), 7);
}

#[test]
fn a_frame_that_failed_begins_with_its_first_round_again() {
    let mut farm = farm(Settings { attempts: 1, ..trusting() }, 1);
    render_all(&mut farm, 1..=1);
    farm.measured(&[0]);
    let lease = farm.lease(1).expect("a unit of the second round");
    let failure = Failure::Device("it broke".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert!(matches!(farm.frame(), Some(FrameState::Failed(_))));
    let (job, caller) =
        (farm.job, tessera_core::Caller { name: "ada".to_owned(), id: 294, admin: false });
    farm.change(JobChange::Retry, job, caller);
    assert_eq!(round(&farm), Some((1, 3)));
    assert_eq!(render_all(&mut farm, 1..=1), [0, 1, 4, 5, 8, 9]);
    farm.measured(&[]);
    farm.finish();
    assert_eq!(farm.audit(), 7);
    for from_snapshot in [false, true] {
        farm.restart(from_snapshot);
    }
}

#[test]
fn samples_of_a_node_that_leaves_in_a_later_round_count() {
    let mut farm = farm(trusting(), 2);
    render_all(&mut farm, 1..=2);
    farm.measured(&[1]);
    let (number, lease) = (1..=2)
        .find_map(|number| Some((number, farm.lease(number)?)))
        .expect("somebody has the unit");
    let result = inputs::film(lease, 7, (32, 10));
    farm.step(Input::NodeDraining { session: SessionId(number) });
    farm.step(Input::ResultArrived { session: SessionId(number), result });
    let other = 3 - number;
    let lease = farm.lease(other).expect("the rest");
    let Some(Task::Tile { samples, .. }) = farm.given.get(&lease).copied() else {
        panic!("no tile")
    };
    assert_eq!((samples.first, samples.count), (42, 22));
    farm.restart(true);
    farm.later(Duration::from_secs(60));
    farm.step(inputs::joined(other, inputs::join(other, 1)));
    assert_eq!(render_all(&mut farm, other..=other), [6]);
    farm.measured(&[]);
    assert!(farm.is_resolving());
    assert_eq!(farm.audit(), 8);
}
