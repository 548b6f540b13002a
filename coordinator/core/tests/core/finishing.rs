//! Frames that nodes finish: when that begins, what waits for what, and what becomes of it when
//! nodes go, fail or lie.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{
    Arrived, Caller, FilmShape, Input, Record, ResolveFailure, ResultShape, SessionId, Settings,
    UnitState,
};
use tessera_protocol::Fingerprint;
use tessera_protocol::client::Response;
use tessera_protocol::ids::{BlobHash, FrameNumber, Lease, UnitIndex, UnitKey};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::{Failure, Join, Piece, Task};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameState, NodeState};
use tessera_support::inputs::{self, node};

const FRAME: FrameNumber = FrameNumber(1);

fn settings() -> Settings {
    let settle = Duration::ZERO;
    Settings { attempts: 2, settle, ..Settings::default().without_checks() }
}

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

/// A frame of one unit, which is one band.
fn one_band() -> RenderSpec {
    RenderSpec { width: 96, height: 48, tile: 128, ..inputs::render() }
}

/// A frame of 16 units and two bands: units 16 and 17, and the assembly, unit 18.
fn two_bands() -> RenderSpec {
    RenderSpec { width: 8192, height: 300, tile: 512, ..inputs::render() }
}

fn join(farm: &mut SmallFarm, number: u64, finishes: bool) {
    let finishing = finishes.then_some(Fingerprint([1; 32]));
    let join = Join { finishing, ..inputs::join(number, 1) };
    farm.step(inputs::joined(number, join));
}

/// A farm of so many nodes that finish frames, with a job that renders this.
fn farm(settings: Settings, nodes: u64, render: RenderSpec) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 0);
    (1..=nodes).for_each(|number| join(&mut farm, number, true));
    while !farm.is_resolving() {
        (1..=nodes).for_each(|number| work(&mut farm, number, 7));
    }
    farm.finish();
    farm.submit_render(2, render);
    farm
}

/// A result of a lease, of this hash.
fn result(farm: &SmallFarm, lease: Lease, hash: u8) -> Arrived {
    let shape = match farm.given[&lease] {
        Task::Tile { tile, samples } => ResultShape::Film(FilmShape {
            width: tile.width,
            height: tile.height,
            channels: 3,
            first: samples.first,
            samples: samples.count,
        }),
        Task::Finish(finish) => ResultShape::Finished(finish.piece),
        Task::Chunk { .. } => panic!("a chunk of a render job"),
    };
    Arrived { shape, hash: BlobHash([hash; 32]), ..inputs::result(lease, hash) }
}

/// A node ends what it holds, if anything, with a result of this hash.
fn work(farm: &mut SmallFarm, number: u64, hash: u8) {
    let Some(lease) = farm.lease(number) else { return };
    let result = result(farm, lease, hash);
    farm.step(Input::ResultArrived { session: SessionId(number), result });
}

fn piece(farm: &SmallFarm, number: u64) -> Option<Piece> {
    match farm.given[&farm.lease(number)?] {
        Task::Finish(finish) => Some(finish.piece),
        _ => None,
    }
}

fn count(farm: &SmallFarm, is: impl Fn(&Record) -> bool) -> usize {
    farm.records.iter().filter(|record| is(record)).count()
}

fn begun(farm: &SmallFarm) -> usize {
    count(farm, |record| matches!(record, Record::FinishingBegun { .. }))
}

fn closed(farm: &SmallFarm) -> usize {
    count(farm, |record| matches!(record, Record::FinishingClosed { .. }))
}

fn lost(farm: &SmallFarm, units: &[u32]) -> Input {
    let units = units.iter().copied().map(UnitIndex).collect();
    Input::ResultsLost { job: farm.job, frame: FRAME, units, reason: "other hash".to_owned() }
}

#[test]
fn a_node_finishes_a_frame_of_one_band() {
    let mut farm = farm(settings(), 1, one_band());
    assert_eq!((farm.leased(1), piece(&farm, 1)), (vec![0], None));
    work(&mut farm, 1, 7);
    assert_eq!((begun(&farm), farm.is_resolving()), (1, false));
    assert_eq!((farm.leased(1), piece(&farm, 1)), (vec![1], Some(Piece::Frame { rows: 48 })));
    assert_eq!(farm.frame(), Some(FrameState::Finishing { done: 0, pieces: 1 }));
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!((summary.units, summary.units_committed), (1, 1), "samples are counted");
    work(&mut farm, 1, 7);
    assert!(farm.is_resolving() && farm.core.is_finished_by_nodes(farm.job, FRAME));
    farm.finish();
    assert!(matches!(farm.frame(), Some(FrameState::Done(_))));
    assert_eq!(farm.audit(), 2);
}

#[test]
fn the_assembly_waits_for_every_band() {
    let mut farm = farm(settings(), 2, two_bands());
    for _ in 0..8 {
        (1..=2).for_each(|number| work(&mut farm, number, 7));
    }
    let band = |first, rows| Some(Piece::Band { first, rows });
    assert_eq!([1, 2].map(|number| piece(&farm, number)), [band(0, 288), band(288, 12)]);
    work(&mut farm, 1, 7);
    assert_eq!(farm.leased(1), [0; 0], "the other band is not there");
    work(&mut farm, 2, 7);
    let assembling = [1, 2].into_iter().find(|number| piece(&farm, *number).is_some());
    let assembling = assembling.expect("one of them assembles");
    assert_eq!(piece(&farm, assembling), Some(Piece::Assembly));
    assert!(!farm.is_resolving());
    work(&mut farm, assembling, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.audit(), 17);
}

#[test]
fn the_coordinator_finishes_where_no_node_can() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    work(&mut farm, 1, 7);
    farm.submit_render(2, one_band());
    work(&mut farm, 1, 7);
    assert!(farm.is_resolving() && begun(&farm) == 0);
    assert!(!farm.core.is_finished_by_nodes(farm.job, FRAME));
    // One that comes later changes nothing.
    join(&mut farm, 2, true);
    assert_eq!((farm.leased(2), begun(&farm)), (vec![], 0));
    farm.audit();
}

#[test]
fn pieces_go_only_to_nodes_that_finish_frames() {
    let render = RenderSpec { frames: "1-3".parse().expect("frames"), ..one_band() };
    let mut farm = farm(settings(), 1, render);
    join(&mut farm, 2, false);
    work(&mut farm, 2, 7);
    work(&mut farm, 1, 7);
    // The older frame's piece goes before fresh units, to the node that takes it.
    assert!(piece(&farm, 1).is_some() && piece(&farm, 2).is_none());
    assert_eq!(farm.lease(1).expect("it works").unit.frame, FRAME);
    for _ in 0..4 {
        work(&mut farm, 2, 7);
        assert_eq!(piece(&farm, 2), None);
    }
    farm.audit();
}

#[test]
fn a_frame_is_finished_though_every_node_is_gone() {
    let mut farm = farm(settings(), 1, one_band());
    work(&mut farm, 1, 7);
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(Duration::from_secs(2));
    assert_eq!((closed(&farm), farm.is_resolving()), (0, false), "it may come back");
    farm.later(Duration::from_secs(20));
    assert_eq!((closed(&farm), farm.is_resolving()), (1, true));
    let detail = farm.core.job(farm.job).expect("a job");
    assert!(detail.failures.iter().any(|note| note.reason.contains("no node is here")));
    // A result of its lease is not wanted any more.
    join(&mut farm, 1, true);
    assert_eq!(farm.leased(1), [0; 0]);
    farm.finish();
    farm.audit();
}

#[test]
fn a_piece_that_fails_everywhere_is_left_to_the_coordinator() {
    let mut farm = farm(settings(), 2, one_band());
    (1..=2).for_each(|number| work(&mut farm, number, 7));
    for _ in 0..4 {
        for number in 1..=2 {
            if farm.lease(number).is_some() {
                farm.fail(number, Failure::Device("it broke".to_owned()));
            }
        }
        farm.later(Duration::from_secs(70));
    }
    assert_eq!((closed(&farm), farm.is_resolving()), (1, true));
    assert_eq!(farm.frame(), Some(FrameState::Resolving), "the frame has not failed");
    farm.finish();
    farm.audit();
}

#[test]
fn lost_bytes_are_rendered_and_finished_again() {
    for from_snapshot in [false, true] {
        let mut farm = farm(settings(), 1, one_band());
        work(&mut farm, 1, 7);
        let old = farm.lease(1).expect("it finishes the frame");
        let late = result(&farm, old, 9);
        farm.step(lost(&farm, &[0, 5]));
        assert_eq!(farm.leased(1), [0], "the tile again");
        work(&mut farm, 1, 7);
        assert_eq!(farm.leased(1), [1]);
        // What was made of the lost bytes is refused, also after a restart.
        farm.restart(from_snapshot);
        join(&mut farm, 1, true);
        farm.step(Input::ResultArrived { session: SessionId(1), result: late });
        assert!(!farm.is_resolving());
        work(&mut farm, 1, 7);
        assert!(farm.is_resolving());
        // The resolver finds the piece damaged.
        let failure = ResolveFailure::Lost(vec![UnitIndex(1)], "torn".to_owned());
        farm.step(Input::FrameResolveFailed { job: farm.job, frame: FRAME, failure });
        assert_eq!((farm.leased(1), farm.orders_of(farm.job)), (vec![1], 1));
        work(&mut farm, 1, 7);
        assert_eq!(farm.orders_of(farm.job), 2);
        farm.finish();
        let notes = farm.core.job(farm.job).expect("a job").failures;
        assert!(notes.iter().any(|note| note.reason == "torn" && note.unit == "f0001/u00001"));
        assert_eq!(farm.audit(), 2);
    }
}

#[test]
fn a_lost_band_takes_the_assembly_with_it() {
    let mut farm = farm(settings(), 1, two_bands());
    (0..19).for_each(|_| work(&mut farm, 1, 7));
    assert!(farm.is_resolving());
    farm.step(lost(&farm, &[17]));
    let state = |unit| {
        let unit = UnitKey { job: farm.job, frame: FRAME, unit: UnitIndex(unit) };
        farm.core.state_of(unit).expect("a unit")
    };
    assert_eq!([state(15), state(16)], [UnitState::Committed; 2]);
    assert_eq!(state(17), UnitState::Leased { node: node(1), copy: None });
    assert_eq!(state(18), UnitState::NotDue);
    (0..2).for_each(|_| work(&mut farm, 1, 7));
    farm.finish();
    // The answer to the first order is outdated.
    assert_eq!(farm.orders_of(farm.job), 2);
    farm.finish();
    assert!(matches!(farm.frame(), Some(FrameState::Done(_))));
    farm.audit();
}

// promise: P7
#[test]
fn a_liar_in_a_band_is_found_and_its_band_made_again() {
    let mut farm = farm(all(), 3, one_band());
    let all_work = |farm: &mut SmallFarm, lie: bool| {
        for number in 1..=3 {
            let hash = if lie && number == 1 && piece(farm, 1).is_some() { 9 } else { 7 };
            work(farm, number, hash);
        }
    };
    (0..12).for_each(|_| all_work(&mut farm, true));
    farm.later(Duration::from_secs(21));
    (0..12).for_each(|_| all_work(&mut farm, true));
    assert!(farm.is_resolving());
    let guilty = farm.row(1).state == NodeState::Unfit;
    let first = farm.records.iter().any(|record| {
        matches!(record, Record::UnitsCommitted { commits, .. }
            if commits.iter().any(|of| of.unit.0 == 1 && of.node == node(1)))
    });
    assert!(guilty || !first, "a lie that was committed is found");
    farm.finish();
    farm.audit();
}

#[test]
fn a_node_that_contradicts_itself_is_out_and_the_other_goes_on() {
    let mut farm = farm(all(), 2, one_band());
    let mut hash = 10;
    for _ in 0..40 {
        for number in 1..=2 {
            hash += 1;
            let hash = if piece(&farm, number).is_some() { hash } else { 7 };
            work(&mut farm, number, hash);
        }
        if farm.is_resolving() {
            break;
        }
        farm.later(Duration::from_secs(21));
    }
    assert!(farm.is_resolving());
    assert_eq!(farm.row(1).state, NodeState::Unfit);
    assert_eq!(farm.frame(), Some(FrameState::Finishing { done: 1, pieces: 1 }));
    farm.audit();
}

#[test]
fn finishing_goes_on_after_a_restart() {
    for from_snapshot in [false, true] {
        let mut farm = farm(settings(), 1, two_bands());
        (0..17).for_each(|_| work(&mut farm, 1, 7));
        assert_eq!(farm.leased(1), [17]);
        farm.restart(from_snapshot);
        assert_eq!(closed(&farm), 0);
        join(&mut farm, 1, true);
        assert_eq!(farm.leased(1), [17]);
        (0..2).for_each(|_| work(&mut farm, 1, 7));
        assert!(farm.is_resolving());
        farm.audit();

        // Once more, and nobody comes back.
        farm.finish();
        farm.submit_render(3, one_band());
        work(&mut farm, 1, 7);
        farm.restart(from_snapshot);
        (0..6).for_each(|_| farm.later(Duration::from_secs(10)));
        assert_eq!((closed(&farm), farm.is_resolving()), (1, true));
        farm.audit();
    }
}

#[test]
fn a_paused_job_is_finished_when_it_goes_on() {
    let mut farm = farm(settings(), 1, one_band());
    work(&mut farm, 1, 7);
    let (job, caller) = (farm.job, Caller { name: "ada".to_owned(), id: 294, admin: false });
    assert_eq!(farm.change(JobChange::Pause, job, caller.clone()), Response::Done);
    assert_eq!(farm.leased(1), [0; 0]);
    farm.later(Duration::from_secs(100));
    assert_eq!((closed(&farm), farm.is_resolving()), (0, false));
    assert_eq!(farm.change(JobChange::Resume, job, caller), Response::Done);
    assert_eq!(farm.leased(1), [1]);
    work(&mut farm, 1, 7);
    assert!(farm.is_resolving());
    farm.audit();
}

#[test]
fn pieces_that_do_not_go_together_are_left_to_the_coordinator() {
    let mut farm = farm(settings(), 1, one_band());
    work(&mut farm, 1, 7);
    work(&mut farm, 1, 7);
    assert_eq!((farm.orders_of(farm.job), closed(&farm)), (1, 0));
    let unjoined = |farm: &SmallFarm| {
        let failure = ResolveFailure::Unjoined("a block is missing".to_owned());
        Input::FrameResolveFailed { job: farm.job, frame: FRAME, failure }
    };
    farm.step(unjoined(&farm));
    assert_eq!((farm.orders_of(farm.job), closed(&farm)), (2, 1));
    assert!(!farm.core.is_finished_by_nodes(farm.job, FRAME));
    assert_eq!(farm.frame(), Some(FrameState::Resolving));
    // It makes no sense of a frame that nodes have not finished, and is tried again.
    farm.step(unjoined(&farm));
    assert_eq!(farm.frame(), Some(FrameState::Resolving));
    farm.later(Duration::from_secs(700));
    assert_eq!((farm.orders_of(farm.job), closed(&farm)), (3, 1));
    farm.finish();
    farm.audit();
}

#[test]
fn a_node_holds_two_finishing_units_at_most() {
    let six_bands = RenderSpec { width: 8192, height: 1500, tile: 512, ..inputs::render() };
    let mut farm = farm(settings(), 2, six_bands);
    for number in 1..=2 {
        farm.step(Input::Capacity { session: SessionId(number), units: 400 });
    }
    for number in [1, 2].into_iter().cycle() {
        if begun(&farm) > 0 {
            break;
        }
        work(&mut farm, number, 7);
    }
    // Until their speed is known, units may be withheld for some seconds.
    (0..6).for_each(|_| farm.later(Duration::from_secs(1)));
    assert_eq!([1, 2].map(|number| farm.leased(number).len()), [2, 2], "of six bands");
    assert_eq!(farm.frame(), Some(FrameState::Finishing { done: 0, pieces: 7 }));
}
