//! Tests of finishing units: events in, actions out. Prepared frames are plain numbers here.

use super::*;
use crate::job::tests::{assignment, spec};
use tessera_protocol::device::DeviceKind;
use tessera_protocol::node::{CoordinatorToNode as Down, Finish, NodeToCoordinator as Up, Piece};
use tessera_protocol::{FrameNumber, FrameSet, RenderSpec, UnitIndex};

const HOLD: Duration = Duration::from_millis(500);
const UNIT: Duration = Duration::from_secs(9);
/// Tiles of a frame.
const TILES: u32 = 1040;

/// Returns a connected agent that knows a film of frames with three bands each.
fn agent(devices: usize) -> Agent<u32> {
    let mut agent = Agent::new(devices, HOLD, Vec::new());
    agent.on_connected();
    let frames = "1-9".parse::<FrameSet>().unwrap();
    let spec = RenderSpec { frames, width: 1280, height: 200, ..spec(b"") };
    let spec = Box::new((&JobKind::Render(spec)).into());
    agent.on_message(Down::Job { job: tile(1, 0).job, spec });
    agent
}

fn tile(frame: u32, unit: u32) -> Assignment {
    Assignment { frame: FrameNumber(frame), ..assignment(1, unit) }
}

fn band(frame: u32, band: u32) -> Assignment {
    let rows = if band == 2 { 8 } else { 96 };
    let task =
        Task::Finish(Finish { piece: Piece::Band { first: band * 96, rows }, exposure_bits: 0 });
    Assignment { unit: UnitIndex(TILES + band), task, ..tile(frame, TILES + band) }
}

fn scene(frame: u32) -> FrameKey {
    FrameKey::of(&tile(frame, 0))
}

fn inputs(frame: u32, index: u32) -> FrameKey {
    FrameKey::Piece(band(frame, index).lease())
}

fn work(agent: &mut Agent<u32>, units: &[Assignment]) -> Vec<Action<u32>> {
    agent.on_message(Down::Work(units.to_vec()));
    actions(agent)
}

fn actions(agent: &mut Agent<u32>) -> Vec<Action<u32>> {
    std::iter::from_fn(|| agent.poll_action()).collect()
}

/// Returns what is prepared.
fn prepared(actions: &[Action<u32>]) -> Vec<FrameKey> {
    let frame = |action: &Action<u32>| match action {
        Action::Prepare { frame, .. } => Some(*frame),
        _ => None,
    };
    actions.iter().filter_map(frame).collect()
}

/// Returns what is started: the devices, the units, and their frames' handles.
fn started(actions: &[Action<u32>]) -> Vec<(usize, Lease, u32)> {
    let unit = |action: &Action<u32>| match action {
        Action::Start { device, assignment, frame, .. } => {
            Some((*device, assignment.lease(), *frame))
        }
        _ => None,
    };
    actions.iter().filter_map(unit).collect()
}

/// Returns an agent whose device works on two tiles of frame 2.
fn rendering() -> Agent<u32> {
    let mut agent = agent(1);
    work(&mut agent, &[tile(2, 0), tile(2, 1)]);
    agent.on_frame(scene(2), Ok(2));
    actions(&mut agent);
    agent
}

#[test]
fn a_piece_is_prepared_and_made_beside_tiles() {
    let mut agent = rendering();
    let told = work(&mut agent, &[tile(3, 0), band(1, 0), tile(2, 2)]);
    let Some(Action::Prepare { task, beside, .. }) = told
        .iter()
        .find(|action| matches!(action, Action::Prepare { frame, .. } if frame.is_piece()))
    else {
        panic!("{told:?}");
    };
    assert_eq!((*task, *beside), (band(1, 0).task, true));
    // The next frame is prepared at the same time, and the piece starts although the device has as
    // many tiles as it takes.
    assert_eq!(prepared(&told), [scene(3), inputs(1, 0)]);
    agent.on_frame(inputs(1, 0), Ok(10));
    assert_eq!(started(&actions(&mut agent)), [(0, band(1, 0).lease(), 10)]);
    assert!(agent.on_rendered(0, tile(2, 0).lease(), Rendered::Done(UNIT)));
    assert_eq!(started(&actions(&mut agent)), [(0, tile(2, 2).lease(), 2)]);
    assert!(agent.on_rendered(0, band(1, 0).lease(), Rendered::Done(UNIT)));
    agent.on_stored(band(1, 0).lease());
    assert!(actions(&mut agent).contains(&Action::Offer(band(1, 0).lease())));
}

#[test]
fn pieces_of_a_frame_are_prepared_on_their_own() {
    let mut agent = rendering();
    // One may be made at once, and one is ahead; tiles of their frame do not matter.
    let told = work(&mut agent, &[band(1, 0), band(1, 1), band(1, 2), tile(1, 5)]);
    assert_eq!(prepared(&told), [inputs(1, 0), inputs(1, 1), scene(1)]);
    agent.on_frame(inputs(1, 1), Ok(11));
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![], vec![(0, band(1, 1).lease(), 11)]));
    // The second waits until the first is made, and has its own inputs.
    agent.on_frame(inputs(1, 0), Ok(10));
    assert_eq!(actions(&mut agent), []);
    assert!(agent.on_rendered(0, band(1, 1).lease(), Rendered::Done(UNIT)));
    let told = actions(&mut agent);
    assert_eq!(started(&told), [(0, band(1, 0).lease(), 10)]);
    assert_eq!(prepared(&told), [inputs(1, 2)]);
}

#[test]
fn a_piece_and_a_tile_of_one_frame_both_run() {
    let mut agent = agent(1);
    let told = work(&mut agent, &[tile(1, 0), band(1, 0)]);
    assert_eq!(prepared(&told), [scene(1), inputs(1, 0)]);
    agent.on_frame(scene(1), Ok(1));
    agent.on_frame(inputs(1, 0), Ok(10));
    let told = started(&actions(&mut agent));
    assert_eq!(told, [(0, tile(1, 0).lease(), 1), (0, band(1, 0).lease(), 10)]);
}

#[test]
fn a_failed_fetch_fails_its_unit_alone() {
    let mut agent = rendering();
    work(&mut agent, &[band(1, 0), band(1, 1), tile(1, 0)]);
    let failure = Failure::Asset("gone".into());
    agent.on_frame(inputs(1, 0), Err(failure.clone()));
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Send(Up::Failed { lease: band(1, 0).lease(), failure })));
    let failed = |action: &&Action<u32>| matches!(action, Action::Send(Up::Failed { .. }));
    assert_eq!(told.iter().filter(failed).count(), 1);
    assert_eq!(agent.held().len(), 4);
}

#[test]
fn a_revoked_piece_is_not_fetched_any_more() {
    let mut agent = rendering();
    work(&mut agent, &[band(1, 0), band(1, 1)]);
    // The coordinator leases it again before it takes the former lease back.
    let again = Assignment { epoch: tessera_protocol::Epoch(9_000), ..band(1, 0) };
    work(&mut agent, &[again]);
    agent.on_message(Down::Revoke { leases: vec![band(1, 0).lease()] });
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Abandon(inputs(1, 0))), "{told:?}");
    assert_eq!(prepared(&told), [FrameKey::Piece(again.lease())]);
    // What is begun is cancelled, and the next one follows at once.
    agent.on_frame(inputs(1, 1), Ok(11));
    agent.on_frame(FrameKey::Piece(again.lease()), Ok(12));
    actions(&mut agent);
    agent.on_message(Down::Revoke { leases: vec![band(1, 1).lease()] });
    assert!(actions(&mut agent).contains(&Action::Cancel(band(1, 1).lease())));
    assert!(!agent.on_rendered(0, band(1, 1).lease(), Rendered::Cancelled));
    assert_eq!(started(&actions(&mut agent)), [(0, again.lease(), 12)]);
}

#[test]
fn pieces_say_nothing_of_a_devices_pace() {
    let mut agent = rendering();
    for index in 0..2 {
        let tenth = Duration::from_millis(100);
        agent.on_rendered(0, tile(2, index).lease(), Rendered::Done(tenth));
    }
    let depth = agent.capacity();
    assert_eq!(depth, 6);
    work(&mut agent, &[band(1, 0)]);
    agent.on_prepared_in(inputs(1, 0), Duration::from_secs(60));
    agent.on_frame(inputs(1, 0), Ok(10));
    actions(&mut agent);
    agent.on_rendered(0, band(1, 0).lease(), Rendered::Done(Duration::from_secs(60)));
    assert_eq!((agent.capacity(), agent.devices[0].given), (depth, 0));
}

#[test]
fn pieces_do_not_take_the_places_of_tiles() {
    let mut agent = rendering();
    assert_eq!(agent.capacity(), 2);
    let told = work(&mut agent, &[band(1, 0)]);
    assert!(told.contains(&Action::Send(Up::Capacity { units: 3 })), "{told:?}");
    let told = work(&mut agent, &[band(1, 1), band(1, 2)]);
    assert!(told.contains(&Action::Send(Up::Capacity { units: 4 })), "{told:?}");
    agent.on_message(Down::Revoke { leases: [0, 1, 2].map(|of| band(1, of).lease()).into() });
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Send(Up::Capacity { units: 2 })), "{told:?}");
}

#[test]
fn a_cpu_makes_pieces_before_a_gpu_counts_for_them() {
    let info = |kind| DeviceInfo {
        slot: "d".into(),
        kind,
        name: "d".into(),
        parallelism: 1,
        memory_bytes: 0,
        cuda: None,
        state: tessera_protocol::device::DeviceState::Ready,
    };
    for (kinds, expected) in
        [([DeviceKind::Cuda, DeviceKind::Cpu], 1), ([DeviceKind::Cuda, DeviceKind::Cuda], 0)]
    {
        let mut agent = agent(2);
        for (index, kind) in kinds.into_iter().enumerate() {
            agent.set_info(index, info(kind));
        }
        work(&mut agent, &[band(1, 0)]);
        agent.on_frame(inputs(1, 0), Ok(10));
        assert_eq!(started(&actions(&mut agent)), [(expected, band(1, 0).lease(), 10)]);
    }
}

#[test]
fn a_piece_that_does_not_fit_is_prepared_later() {
    let mut agent = rendering();
    work(&mut agent, &[band(1, 0)]);
    agent.on_postponed(inputs(1, 0));
    assert_eq!(prepared(&actions(&mut agent)), []);
    for index in 0..2 {
        agent.on_rendered(0, tile(2, index).lease(), Rendered::Done(UNIT));
    }
    let told = actions(&mut agent);
    let alone = |action: &Action<u32>| matches!(action, Action::Prepare { beside: false, .. });
    assert!(prepared(&told) == [inputs(1, 0)] && told.iter().any(alone), "{told:?}");
}

#[test]
fn a_node_that_hands_in_cuts_a_piece_and_keeps_its_result() {
    let mut agent = rendering();
    work(&mut agent, &[band(1, 0), band(1, 1)]);
    agent.on_frame(inputs(1, 0), Ok(10));
    actions(&mut agent);
    agent.hand_in();
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Cut(band(1, 0).lease())), "{told:?}");
    let returned = Action::Send(Up::Returned { leases: vec![band(1, 1).lease()] });
    assert!(told.contains(&returned) && told.contains(&Action::Abandon(inputs(1, 1))), "{told:?}");
    assert!(agent.on_rendered(0, band(1, 0).lease(), Rendered::Done(UNIT)));
}

#[test]
fn no_device_waits_for_what_finishing_reads() {
    let (mut agent, start) = (agent(1), Instant::now());
    agent.pass_time(start);
    work(&mut agent, &[band(1, 0)]);
    agent.pass_time(start + UNIT);
    agent.on_frame(inputs(1, 0), Ok(1));
    assert_eq!(started(&actions(&mut agent)), [(0, band(1, 0).lease(), 1)]);
    assert_eq!(agent.waited(band(1, 0).lease()), Duration::ZERO);
}
