//! Tests of what is prepared ahead: events in, actions out. Prepared frames are plain numbers here.

use super::ahead::Ahead;
use super::*;
use crate::job::tests::{assignment, spec};
use tessera_protocol::node::{CoordinatorToNode as Down, NodeToCoordinator as Up};
use tessera_protocol::{FrameNumber, FrameSet, JobKind, RenderSpec};

const HOLD: Duration = Duration::from_millis(500);
const UNIT: Duration = Duration::from_secs(9);

/// Returns a connected agent that knows two films.
pub(super) fn agent(devices: usize) -> Agent<u32> {
    let mut agent = Agent::new(devices, HOLD, Vec::new());
    agent.on_connected();
    for id in [1, 2] {
        let spec = RenderSpec { frames: "1-9".parse::<FrameSet>().unwrap(), ..spec(b"") };
        let spec = Box::new((&JobKind::Render(spec)).into());
        agent.on_message(Down::Job { job: frame(id, 1).job(), spec });
    }
    agent
}

pub(super) fn frame(job: u128, number: u32) -> FrameKey {
    FrameKey::Frame(JobId(uuid::Uuid::from_u128(job)), FrameNumber(number))
}

/// Returns a unit of a frame.
pub(super) fn unit(job: u128, number: u32, unit: u32) -> Assignment {
    Assignment { frame: FrameNumber(number), ..assignment(job, unit) }
}

pub(super) fn work(agent: &mut Agent<u32>, units: &[Assignment]) {
    agent.on_message(Down::Work(units.to_vec()));
}

pub(super) fn actions(agent: &mut Agent<u32>) -> Vec<Action<u32>> {
    std::iter::from_fn(|| agent.poll_action()).collect()
}

/// Returns the frames whose preparation began, and whether each must fit beside others.
fn prepared(actions: &[Action<u32>]) -> Vec<(u32, bool)> {
    let frame = |action: &Action<u32>| match action {
        Action::Prepare { frame, beside, .. } => Some((frame.frame().0, *beside)),
        _ => None,
    };
    actions.iter().filter_map(frame).collect()
}

pub(super) fn started(actions: &[Action<u32>]) -> Vec<(u32, u32)> {
    let unit = |action: &Action<u32>| match action {
        Action::Start { assignment, .. } => Some((assignment.frame.0, assignment.unit.0)),
        _ => None,
    };
    actions.iter().filter_map(unit).collect()
}

/// Returns an agent whose device works on frame 1, while frame 2 is being prepared, and what it
/// said for the latter.
fn between_two_frames() -> (Agent<u32>, Vec<Action<u32>>) {
    let mut agent = agent(1);
    work(&mut agent, &[unit(1, 1, 0), unit(1, 1, 1)]);
    agent.on_frame(frame(1, 1), Ok(1));
    actions(&mut agent);
    work(&mut agent, &[unit(1, 2, 0), unit(1, 2, 1), unit(1, 3, 0), unit(2, 1, 0)]);
    let told = actions(&mut agent);
    (agent, told)
}

#[test]
fn the_next_frame_is_prepared_while_the_present_one_renders() {
    let (mut agent, told) = between_two_frames();
    assert_eq!((prepared(&told), started(&told)), (vec![(2, true)], vec![]));
    agent.on_frame(frame(1, 2), Ok(2));
    assert_eq!(actions(&mut agent), [], "one frame ahead is enough");
    // The device has the next frame at once when the present one has room, and another is prepared.
    assert!(agent.on_rendered(0, unit(1, 1, 0).lease(), Rendered::Done(UNIT)));
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![(3, true)], vec![(2, 0)]));
    assert!(agent.on_rendered(0, unit(1, 1, 1).lease(), Rendered::Done(UNIT)));
    assert_eq!(started(&actions(&mut agent)), [(2, 1)], "its result is not even stored");
    // The frame after that is of another job.
    agent.on_frame(frame(1, 3), Ok(3));
    assert!(agent.on_rendered(0, unit(1, 2, 0).lease(), Rendered::Done(UNIT)));
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![(1, true)], vec![(3, 0)]));
}

#[test]
fn an_idle_device_waits_for_one_frame_and_another_is_ahead() {
    let mut agent = agent(1);
    work(&mut agent, &[unit(1, 1, 0), unit(1, 2, 0), unit(1, 3, 0), unit(1, 4, 0)]);
    assert_eq!(prepared(&actions(&mut agent)), [(1, false), (2, true)]);
    // The second is done first: it starts, and nothing else is idle.
    agent.on_frame(frame(1, 2), Ok(2));
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![], vec![(2, 0)]));
    agent.on_frame(frame(1, 1), Ok(1));
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![(3, true)], vec![(1, 0)]));
}

#[test]
fn a_preparation_stops_when_its_units_are_taken_back() {
    for message in [
        Down::GiveBack { leases: vec![unit(1, 2, 0).lease(), unit(1, 2, 1).lease()] },
        Down::Revoke { leases: vec![unit(1, 2, 0).lease(), unit(1, 2, 1).lease()] },
    ] {
        let (mut agent, _) = between_two_frames();
        agent.on_message(message);
        let told = actions(&mut agent);
        assert!(told.contains(&Action::Abandon(frame(1, 2))), "{told:?}");
        let failed = |action: &Action<u32>| matches!(action, Action::Send(Up::Failed { .. }));
        assert!(!told.iter().any(failed), "{told:?}");
        assert_eq!(prepared(&told), [(3, true)], "its place is free for the next frame");
    }
    let (mut agent, _) = between_two_frames();
    agent.on_message(Down::Forget { job: frame(1, 2).job() });
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Abandon(frame(1, 2))), "{told:?}");
    let (mut agent, _) = between_two_frames();
    agent.drain();
    assert!(actions(&mut agent).contains(&Action::Abandon(frame(1, 2))));
}

#[test]
fn a_frame_that_does_not_fit_is_prepared_after_the_present_one() {
    let (mut agent, _) = between_two_frames();
    agent.on_postponed(frame(1, 2));
    // It is not tried again and again, and no other frame goes first.
    work(&mut agent, &[unit(1, 3, 1)]);
    assert!(agent.on_rendered(0, unit(1, 1, 0).lease(), Rendered::Done(UNIT)));
    assert_eq!(actions(&mut agent), []);
    assert!(agent.on_rendered(0, unit(1, 1, 1).lease(), Rendered::Done(UNIT)));
    let told = actions(&mut agent);
    assert_eq!(prepared(&told), [(2, false), (3, true)], "nothing else is in memory for the first");
    // Where both fit beside nothing, the second waits for the first, and is not lost.
    agent.on_postponed(frame(1, 3));
    agent.on_frame(frame(1, 2), Ok(2));
    assert_eq!(started(&actions(&mut agent)), [(2, 0), (2, 1)]);
    for index in [0, 1] {
        assert!(agent.on_rendered(0, unit(1, 2, index).lease(), Rendered::Done(UNIT)));
    }
    assert_eq!(prepared(&actions(&mut agent))[0], (3, false));
}

#[test]
fn frames_that_wait_for_memory_do_not_wait_for_each_other() {
    // Two devices, one of them idle: two frames are being prepared beside the first.
    let mut agent = agent(2);
    work(&mut agent, &[unit(1, 1, 0)]);
    agent.on_frame(frame(1, 1), Ok(1));
    work(&mut agent, &[unit(1, 2, 0), unit(1, 3, 0)]);
    // The first is done before it is known that neither fits beside it.
    assert!(agent.on_rendered(0, unit(1, 1, 0).lease(), Rendered::Done(UNIT)));
    actions(&mut agent);
    agent.on_postponed(frame(1, 2));
    assert_eq!(prepared(&actions(&mut agent)), [], "the third may still fit");
    agent.on_postponed(frame(1, 3));
    assert_eq!(prepared(&actions(&mut agent)), [(2, false)]);
    agent.on_frame(frame(1, 2), Ok(2));
    assert_eq!(prepared(&actions(&mut agent)), [], "it waits until the second is done");
    assert!(agent.on_rendered(0, unit(1, 2, 0).lease(), Rendered::Done(UNIT)));
    assert_eq!(prepared(&actions(&mut agent)), [(3, false)]);
}

#[test]
fn a_failure_ahead_fails_the_units_of_that_frame_alone() {
    let (mut agent, _) = between_two_frames();
    let failure = Failure::Scene("no camera".into());
    agent.on_frame(frame(1, 2), Err(failure.clone()));
    let told = actions(&mut agent);
    let failed = |index| {
        let (lease, failure) = (unit(1, 2, index).lease(), failure.clone());
        Action::Send(Up::Failed { lease, failure })
    };
    assert_eq!(told[..2], [failed(0), failed(1)]);
    assert_eq!(prepared(&told), [(3, true)]);
    let held = [unit(1, 1, 0), unit(1, 1, 1), unit(1, 3, 0), unit(2, 1, 0)].map(|of| of.lease());
    assert_eq!(agent.held(), held);
}

#[test]
fn a_frame_stays_prepared_while_a_device_works_on_it() {
    let mut agent = agent(1);
    work(&mut agent, &[unit(1, 1, 0)]);
    agent.on_frame(frame(1, 1), Ok(1));
    actions(&mut agent);
    work(&mut agent, &[unit(1, 1, 1)]);
    let told = actions(&mut agent);
    assert_eq!((prepared(&told), started(&told)), (vec![], vec![(1, 1)]));
}

#[test]
fn an_idle_device_beside_a_busy_one_gets_its_own_frame() {
    let mut agent = agent(2);
    work(&mut agent, &[unit(1, 1, 0)]);
    agent.on_frame(frame(1, 1), Ok(1));
    actions(&mut agent);
    // The second device is idle: it waits for frame 2, and frame 3 is ahead.
    work(&mut agent, &[unit(1, 2, 0), unit(1, 3, 0), unit(1, 4, 0)]);
    assert_eq!(prepared(&actions(&mut agent)), [(2, true), (3, true)]);
}

#[test]
fn as_much_work_is_held_as_a_preparation_takes() {
    let spans = [0, 300, 400, 401, 4000, 8000, 60_000].map(|millis| {
        let mut agent = agent(1);
        agent.on_prepared_in(frame(1, 1), Duration::from_millis(millis));
        agent.ahead.span().as_millis()
    });
    assert_eq!(spans, [500, 500, 500, 501, 5000, 10_000, 10_000]);
    assert_eq!(Ahead::new(HOLD).span(), HOLD);
    // A film in which nothing moves is prepared once: the first time is soon forgotten.
    let mut agent = agent(1);
    agent.on_prepared_in(frame(1, 1), Duration::from_secs(2));
    (0..8).for_each(|_| agent.on_prepared_in(frame(1, 1), Duration::ZERO));
    assert_eq!(agent.ahead.span(), HOLD);
}

#[test]
fn a_long_preparation_raises_the_capacity() {
    let mut agent = agent(1);
    work(&mut agent, &[unit(1, 1, 0)]);
    agent.on_frame(frame(1, 1), Ok(1));
    agent.on_rendered(0, unit(1, 1, 0).lease(), Rendered::Done(Duration::from_millis(200)));
    actions(&mut agent);
    assert_eq!(agent.capacity(), 4);
    agent.on_prepared_in(frame(1, 1), Duration::from_secs(3));
    // 3.75 s of units of 0.2 s, and the one that runs: 20, rounded up.
    assert_eq!(agent.capacity(), 24);
    assert_eq!(actions(&mut agent), [Action::Send(Up::Capacity { units: 24 })]);
    // They wait here, where they can be given back: the device has as many as before.
    work(&mut agent, &(1..12).map(|index| unit(1, 1, index)).collect::<Vec<_>>());
    agent.on_frame(frame(1, 1), Ok(1));
    assert_eq!(started(&actions(&mut agent)).len(), 4);
}
