//! Frames that are sampled for a time: how many rounds fit into it, what of the time is theirs, and
//! what is left of it after a restart or a lie.

use crate::rounds::{checking, render, render_all, round, taken_back, trusting};
use crate::stand::Stand;
use std::time::Duration;
use tessera_core::{Record, Settings};
use tessera_protocol::FrameNumber;
use tessera_protocol::job::RenderSpec;
use tessera_protocol::status::FrameState;
use tessera_support::inputs::{self as plain, TILE};

/// Tiles of the frame, of at most 256 samples: passes of 16, 16, 32, 64 and 128, so that unit 5 t +
/// p is its pass p.
const TILES: u32 = 3;

fn spec(secs: u32) -> RenderSpec {
    RenderSpec {
        width: TILES * TILE,
        spp: 256,
        unit_samples: 0,
        time_secs: Some(secs),
        ..plain::render()
    }
}

/// So many nodes with room for one unit, and a job of so much time.
fn stand(settings: Settings, nodes: u64, render: RenderSpec) -> Stand {
    let mut stand = Stand::new(settings, 1, 1);
    stand.work(1, 1);
    stand.finish();
    stand.submit_render(2, render);
    (2..=nodes).for_each(|number| stand.step(plain::joined(number, plain::join(number, 1))));
    stand
}

/// One node renders what there is, each unit in so much time, until another round begins or there
/// is nothing more.
fn render_round(stand: &mut Stand, number: u64, each: Duration) -> u32 {
    let (before, mut units) = (round(stand), 0);
    while round(stand) == before && stand.lease(number).is_some() {
        stand.later(each);
        units += u32::from(render(stand, number, 7).is_some());
    }
    units
}

/// Milliseconds that the newest job's frame had had at the end of each round, and whether another
/// came.
fn ends(stand: &Stand) -> Vec<(u32, u64, bool)> {
    let ends = stand.records.iter().filter_map(|record| match record {
        Record::RoundMeasured { job, round, going, spent_millis, .. } if *job == stand.job => {
            Some((*round, *spent_millis, (0..TILES).any(|tile| going.contains(tile))))
        }
        _ => None,
    });
    ends.collect()
}

fn samples(stand: &Stand) -> Option<u32> {
    stand.core.frames(stand.job, 0)?.first()?.samples
}

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn rounds_follow_each_other_while_the_next_one_fits() {
    let mut stand = stand(trusting(), 1, spec(30));
    assert_eq!((render_round(&mut stand, 1, SECOND), round(&stand)), (6, Some((2, 3))));
    assert_eq!((render_round(&mut stand, 1, 2 * SECOND), round(&stand)), (3, Some((3, 3))));
    assert_eq!(samples(&stand), None, "nobody knows yet");
    // 24 seconds are over then, and the last round would take as many again.
    render_round(&mut stand, 1, 4 * SECOND);
    assert!(stand.is_resolving() && stand.lease(1).is_none() && stand.orders_to_measure() == 0);
    assert_eq!(ends(&stand), [(1, 6000, true), (2, 12_000, true), (3, 24_000, false)]);
    assert_eq!(samples(&stand), Some(128));
    stand.finish();
    let summary = stand.core.job_summary(stand.job).expect("the job");
    assert_eq!(summary.samples_committed, u64::from(TILES * TILE * TILE * 128));
    for from_snapshot in [false, true] {
        stand.restart(from_snapshot);
        assert!(matches!(stand.frame(), Some(FrameState::Done(_))));
        assert_eq!(samples(&stand), Some(128));
    }
    assert_eq!(stand.audit(), 13);
}

#[test]
fn a_frame_has_its_first_round_whatever_that_takes_and_no_more_than_its_last() {
    let mut slow = stand(trusting(), 1, spec(1));
    render_round(&mut slow, 1, 5 * SECOND);
    assert_eq!((ends(&slow), samples(&slow)), (vec![(1, 30_000, false)], Some(32)));
    let mut fast = stand(trusting(), 1, spec(3600));
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
    let mut stand = stand(trusting(), 2, render);
    let mut step = || {
        stand.later(SECOND);
        for number in 1..=2 {
            crate::rounds::render(&mut stand, number, 7);
        }
        let ends = stand.records.iter().filter_map(|record| match record {
            Record::RoundMeasured { job, frame, round, spent_millis, .. } if *job == stand.job => {
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
fn what_passes_while_nothing_is_leased_is_not_the_frames() {
    let mut stand = stand(trusting(), 1, spec(30));
    (0..3).for_each(|_| {
        stand.later(SECOND);
        render(&mut stand, 1, 7);
    });
    let (job, caller) = (stand.job, tessera_core::Caller { name: "ada".to_owned(), admin: true });
    let pause = |pause| tessera_core::Input::Pause {
        request: tessera_core::RequestId(5),
        job,
        pause,
        caller: caller.clone(),
    };
    stand.step(pause(true));
    stand.later(1000 * SECOND);
    stand.step(pause(false));
    stand.step(plain::joined(1, plain::join(1, 1)));
    render_round(&mut stand, 1, SECOND);
    assert_eq!(ends(&stand), [(1, 6000, true)]);
}

#[test]
fn a_restart_knows_what_was_spent_and_forgets_the_round_that_is_open() {
    for from_snapshot in [false, true] {
        let mut stand = stand(trusting(), 1, spec(30));
        render_round(&mut stand, 1, SECOND);
        stand.later(2 * SECOND);
        render(&mut stand, 1, 7);
        stand.restart(from_snapshot);
        stand.later(60 * SECOND);
        stand.step(plain::joined(1, plain::join(1, 1)));
        render_round(&mut stand, 1, 2 * SECOND);
        assert_eq!(ends(&stand), [(1, 6000, true), (2, 10_000, true)]);
        render_round(&mut stand, 1, 4 * SECOND);
        stand.restart(from_snapshot);
        assert!(stand.is_resolving());
        assert_eq!((ends(&stand)[2], samples(&stand)), ((3, 22_000, false), Some(128)));
        stand.finish();
        assert_eq!(stand.audit(), 13);
    }
}

#[test]
fn with_a_noise_a_round_costs_what_its_tiles_do() {
    let noisy = RenderSpec { noise: Some(0.1), ..spec(11) };
    let mut stand = stand(trusting(), 1, noisy);
    render_round(&mut stand, 1, SECOND);
    assert_eq!((stand.orders_to_measure(), ends(&stand)), (1, vec![]));
    // Six seconds are over. All tiles would take six more; two take four.
    stand.measured(&[0, 2]);
    assert_eq!((ends(&stand), round(&stand)), (vec![(1, 6000, true)], Some((2, 2))));
    render_round(&mut stand, 1, 2 * SECOND);
    stand.measured(&[0]);
    // Ten are over, for 160 samples of the three tiles; one tile would take another 64, four
    // seconds.
    assert_eq!(ends(&stand)[1], (2, 10_000, false));
    assert!(stand.is_resolving());
    let rounds = stand.core.frame_rounds(stand.job, FrameNumber(1)).expect("a rounds");
    assert_eq!([0, 1, 2].map(|tile| rounds.samples(tile)), [64, 32, 64]);
    assert_eq!(samples(&stand), Some(64));
    stand.finish();
    assert_eq!(stand.audit(), 9);
}

// promise: P5
#[test]
fn rounds_that_a_liar_voids_are_rendered_again_whatever_the_time() {
    // Node 1 lies, and renders all rounds that there is time for alone, so that nobody checks it.
    let mut stand = stand(checking(), 1, spec(30));
    for (rounds, secs) in [(1, 1), (2, 2), (3, 4)] {
        while ends(&stand).len() < rounds {
            stand.later(SECOND * secs);
            render(&mut stand, 1, 9);
        }
    }
    assert_eq!(ends(&stand).last(), Some(&(3, 24_000, false)));
    assert!(stand.is_resolving());
    let first = stand.job;
    // It is found out at another job, while the frame is being made.
    (2..=3).for_each(|number| stand.step(plain::joined(number, plain::join(number, 1))));
    stand.submit(3);
    for _ in 0..8 {
        for (number, hash) in [(1, 9), (2, 7), (3, 7)] {
            render(&mut stand, number, hash);
        }
    }
    stand.job = first;
    assert_eq!(taken_back(&stand).len(), 12);
    stand.finish();
    stand.later(40 * SECOND);
    for number in 2..=3 {
        stand.step(plain::joined(number, plain::join(number, 1)));
    }
    render_all(&mut stand, 2..=3);
    let again: Vec<_> =
        ends(&stand)[3..].iter().map(|(round, _, goes_on)| (*round, *goes_on)).collect();
    assert_eq!(again, [(1, true), (2, true), (3, false)], "{:?}", ends(&stand));
    stand.finish();
    assert_eq!((samples(&stand), stand.audit()), (Some(128), 14));
}
