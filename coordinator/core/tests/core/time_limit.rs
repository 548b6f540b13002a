//! Frames that are sampled for a time: how many rounds fit into it, what of the time is theirs, and
//! what is left of it after a restart or a lie.

use crate::rounds::{checking, render, render_all, round, taken_back, trusting};
use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Record, Settings};
use tessera_protocol::FrameNumber;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::FrameState;
use tessera_support::inputs::{self, TILE};

/// Tiles of the frame, of at most 256 samples: passes of 16, 16, 32, 64 and 128, so that unit 5 t +
/// p is its pass p.
const TILES: u32 = 3;

fn spec(secs: u32) -> RenderSpec {
    RenderSpec {
        width: TILES * TILE,
        spp: 256,
        unit_samples: 0,
        time_secs: Some(secs),
        ..inputs::render()
    }
}

/// So many nodes with room for one unit, and a job of so much time.
fn farm(settings: Settings, nodes: u64, render: RenderSpec) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 1);
    farm.work(1, 1);
    farm.finish();
    farm.submit_render(2, render);
    (2..=nodes).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm
}

/// One node renders what there is, each unit in so much time, until another round begins or there
/// is nothing more.
fn render_round(farm: &mut SmallFarm, number: u64, each: Duration) -> u32 {
    let (before, mut units) = (round(farm), 0);
    while round(farm) == before && farm.lease(number).is_some() {
        farm.later(each);
        units += u32::from(render(farm, number, 7).is_some());
    }
    units
}

/// Milliseconds that the newest job's frame had had at the end of each round, and whether another
/// came.
fn ends(farm: &SmallFarm) -> Vec<(u32, u64, bool)> {
    let ends = farm.records.iter().filter_map(|record| match record {
        Record::RoundMeasured { job, round, going, spent_millis, .. } if *job == farm.job => {
            Some((*round, *spent_millis, (0..TILES).any(|tile| going.contains(tile))))
        }
        _ => None,
    });
    ends.collect()
}

fn samples(farm: &SmallFarm) -> Option<u32> {
    farm.core.frames(farm.job, 0)?.first()?.samples
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn rounds_follow_each_other_while_the_next_one_fits() {
    let mut farm = farm(trusting(), 1, spec(30));
    assert_eq!((render_round(&mut farm, 1, SECOND), round(&farm)), (6, Some((2, 3))));
    assert_eq!((render_round(&mut farm, 1, 2 * SECOND), round(&farm)), (3, Some((3, 3))));
    assert_eq!(samples(&farm), None, "it is not known yet");
    // 24 seconds are over then, and the last round would take as many again.
    render_round(&mut farm, 1, 4 * SECOND);
    assert!(farm.is_resolving() && farm.lease(1).is_none() && farm.orders_to_measure() == 0);
    assert_eq!(ends(&farm), [(1, 6000, true), (2, 12_000, true), (3, 24_000, false)]);
    assert_eq!(samples(&farm), Some(128));
    farm.finish();
    let summary = farm.core.job_summary(farm.job).expect("the job");
    assert_eq!(summary.samples_committed, u64::from(TILES * TILE * TILE * 128));
    for from_snapshot in [false, true] {
        farm.restart(from_snapshot);
        assert!(matches!(farm.frame(), Some(FrameState::Done(_))));
        assert_eq!(samples(&farm), Some(128));
    }
    assert_eq!(farm.audit(), 13);
}

#[test]
fn a_time_limit_allows_the_first_round_and_ends_at_the_last() {
    let mut slow = farm(trusting(), 1, spec(1));
    render_round(&mut slow, 1, 5 * SECOND);
    assert_eq!((ends(&slow), samples(&slow)), (vec![(1, 30_000, false)], Some(32)));
    let mut fast = farm(trusting(), 1, spec(3600));
    while render_round(&mut fast, 1, SECOND) > 0 {}
    assert!(fast.is_resolving());
    assert_eq!(
        (ends(&fast).len(), samples(&fast)),
        (3, Some(256)),
        "after the last round nothing is decided"
    );
}

#[test]
fn frames_that_are_rendered_side_by_side_share_the_time() {
    // Two frames of one tile on two nodes, a second each step.
    let render =
        RenderSpec { width: TILE, frames: "1-2".parse().expect("two frames"), ..spec(100) };
    let mut farm = farm(trusting(), 2, render);
    let mut step = || {
        farm.later(SECOND);
        for number in 1..=2 {
            crate::rounds::render(&mut farm, number, 7);
        }
        let ends = farm.records.iter().filter_map(|record| match record {
            Record::RoundMeasured { job, frame, round, spent_millis, .. } if *job == farm.job => {
                Some((frame.0, *round, *spent_millis))
            }
            _ => None,
        });
        // By frame, whichever is heard of first.
        let mut ends: Vec<_> = ends.collect();
        ends.sort_unstable();
        ends
    };
    // Both nodes render the first frame, which has all of the time.
    assert_eq!(step(), [(1, 1, 1000)]);
    // Its second round is one unit, and the other node has one of the second frame.
    assert_eq!(step(), [(1, 1, 1000), (1, 2, 1500)]);
    assert_eq!(step(), [(1, 1, 1000), (1, 2, 1500), (1, 3, 2000), (2, 1, 1000)]);
}

#[test]
fn time_without_leases_is_not_charged_to_a_frame() {
    let mut farm = farm(trusting(), 1, spec(30));
    (0..3).for_each(|_| {
        farm.later(SECOND);
        render(&mut farm, 1, 7);
    });
    let (job, caller) =
        (farm.job, tessera_core::Caller { name: "ada".to_owned(), id: 294, admin: true });
    farm.change(JobChange::Pause, job, caller.clone());
    farm.later(1000 * SECOND);
    farm.change(JobChange::Resume, job, caller);
    farm.step(inputs::joined(1, inputs::join(1, 1)));
    render_round(&mut farm, 1, SECOND);
    assert_eq!(ends(&farm), [(1, 6000, true)]);
}

#[test]
fn a_restart_keeps_the_time_of_finished_rounds_only() {
    for from_snapshot in [false, true] {
        let mut farm = farm(trusting(), 1, spec(30));
        render_round(&mut farm, 1, SECOND);
        farm.later(2 * SECOND);
        render(&mut farm, 1, 7);
        farm.restart(from_snapshot);
        farm.later(60 * SECOND);
        farm.step(inputs::joined(1, inputs::join(1, 1)));
        render_round(&mut farm, 1, 2 * SECOND);
        assert_eq!(ends(&farm), [(1, 6000, true), (2, 10_000, true)]);
        render_round(&mut farm, 1, 4 * SECOND);
        farm.restart(from_snapshot);
        assert!(farm.is_resolving());
        assert_eq!((ends(&farm)[2], samples(&farm)), ((3, 22_000, false), Some(128)));
        farm.finish();
        assert_eq!(farm.audit(), 13);
    }
}

#[test]
fn with_a_noise_a_round_costs_what_its_tiles_do() {
    let noisy = RenderSpec { noise: Some(0.1), ..spec(11) };
    let mut farm = farm(trusting(), 1, noisy);
    render_round(&mut farm, 1, SECOND);
    assert_eq!((farm.orders_to_measure(), ends(&farm)), (1, vec![]));
    // Six seconds are over. All tiles would take six more; two take four.
    farm.measured(&[0, 2]);
    assert_eq!((ends(&farm), round(&farm)), (vec![(1, 6000, true)], Some((2, 2))));
    render_round(&mut farm, 1, 2 * SECOND);
    farm.measured(&[0]);
    // Ten are over, for 160 samples of the three tiles; one tile would take another 64, four
    // seconds.
    assert_eq!(ends(&farm)[1], (2, 10_000, false));
    assert!(farm.is_resolving());
    let rounds = farm.core.frame_rounds(farm.job, FrameNumber(1)).expect("a rounds");
    assert_eq!([0, 1, 2].map(|tile| rounds.samples(tile)), [64, 32, 64]);
    assert_eq!(samples(&farm), Some(64));
    farm.finish();
    assert_eq!(farm.audit(), 9);
}

// promise: P5
#[test]
fn rounds_voided_by_a_liar_are_rendered_past_the_time_limit() {
    // Node 1 lies, and renders all rounds that there is time for alone, so that nobody checks it.
    let mut farm = farm(checking(), 1, spec(30));
    for (rounds, secs) in [(1, 1), (2, 2), (3, 4)] {
        while ends(&farm).len() < rounds {
            farm.later(SECOND * secs);
            render(&mut farm, 1, 9);
        }
    }
    assert_eq!(ends(&farm).last(), Some(&(3, 24_000, false)));
    assert!(farm.is_resolving());
    let first = farm.job;
    // It is found out at another job, while the frame is being made.
    (2..=3).for_each(|number| farm.step(inputs::joined(number, inputs::join(number, 1))));
    farm.submit(3);
    for _ in 0..8 {
        for (number, hash) in [(1, 9), (2, 7), (3, 7)] {
            render(&mut farm, number, hash);
        }
    }
    farm.job = first;
    assert_eq!(taken_back(&farm).len(), 12);
    farm.finish();
    farm.later(40 * SECOND);
    for number in 2..=3 {
        farm.step(inputs::joined(number, inputs::join(number, 1)));
    }
    render_all(&mut farm, 2..=3);
    let again: Vec<_> =
        ends(&farm)[3..].iter().map(|(round, _, goes_on)| (*round, *goes_on)).collect();
    assert_eq!(again, [(1, true), (2, true), (3, false)], "{:?}", ends(&farm));
    farm.finish();
    assert_eq!((samples(&farm), farm.audit()), (Some(128), 14));
}
