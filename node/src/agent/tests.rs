//! Tests of the agent: events in, actions out. Prepared frames are plain numbers here.

use super::*;
use crate::job::tests::{assignment, spec};
use tessera_protocol::node::{CoordinatorToNode as Down, NodeToCoordinator as Up, Task};
use tessera_protocol::{BlobHash, FrameNumber, JobKind, RawJobSpec};

const HOLD: Duration = Duration::from_millis(500);

fn agent() -> Agent<u32> {
    let mut agent = Agent::new(1, HOLD, Vec::new());
    agent.on_connected();
    agent
}

fn job(id: u128) -> JobId {
    JobId(uuid::Uuid::from_u128(id))
}

fn actions(agent: &mut Agent<u32>) -> Vec<Action<u32>> {
    std::iter::from_fn(|| agent.poll_action()).collect()
}

fn describe(agent: &mut Agent<u32>, id: u128) {
    agent.on_message(Down::Job {
        job: job(id),
        spec: Box::new((&JobKind::Render(spec(b""))).into()),
    });
}

fn work(agent: &mut Agent<u32>, units: &[u32]) {
    agent.on_message(Down::Work(units.iter().map(|unit| assignment(1, *unit)).collect()));
}

fn lease(unit: u32) -> Lease {
    assignment(1, unit).lease()
}

/// Returns an agent that has started units 0 and 1, with unit 2 waiting.
fn busy() -> Agent<u32> {
    let mut agent = agent();
    describe(&mut agent, 1);
    work(&mut agent, &[0, 1, 2]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    actions(&mut agent);
    agent
}

fn started(actions: &[Action<u32>]) -> Vec<u32> {
    let unit = |action: &Action<u32>| match action {
        Action::Start { assignment, .. } => Some(assignment.unit.0),
        _ => None,
    };
    actions.iter().filter_map(unit).collect()
}

#[test]
fn units_of_a_prepared_frame_start_in_order() {
    let mut agent = agent();
    describe(&mut agent, 1);
    work(&mut agent, &[0, 1, 2]);
    let first = actions(&mut agent);
    assert!(matches!(first.as_slice(), [Action::Prepare { .. }]), "{first:?}");
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(started(&actions(&mut agent)), [0, 1]);
    assert!(agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
    assert_eq!(started(&actions(&mut agent)), [2]);
}

#[test]
fn results_are_offered_once_stored_and_kept_until_acknowledged() {
    let mut agent = busy();
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9)));
    actions(&mut agent);
    agent.on_stored(lease(0));
    assert_eq!(actions(&mut agent), [Action::Offer(lease(0))]);
    agent.offer_again();
    assert_eq!(actions(&mut agent), []);
    assert_eq!((agent.finished(), agent.held()), (vec![lease(0)], vec![lease(1), lease(2)]));
    agent.on_message(Down::Committed { lease: lease(0) });
    assert_eq!(actions(&mut agent), [Action::Remove(lease(0))]);
    assert!(agent.finished().is_empty());
}

#[test]
fn a_reconnect_offers_the_outbox_again_and_work_continues() {
    let mut agent = busy();
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9)));
    agent.on_stored(lease(0));
    agent.on_disconnected();
    actions(&mut agent);
    agent.on_rendered(0, lease(1), Rendered::Done(Duration::from_secs(9)));
    agent.on_stored(lease(1));
    assert_eq!(actions(&mut agent), []);
    assert_eq!((agent.finished(), agent.held()), (vec![lease(0), lease(1)], vec![lease(2)]));
    agent.on_connected();
    assert_eq!(actions(&mut agent), [Action::Offer(lease(0)), Action::Offer(lease(1))]);
}

#[test]
fn results_of_an_earlier_process_are_offered() {
    let mut agent = Agent::<u32>::new(1, HOLD, vec![lease(5)]);
    assert_eq!(actions(&mut agent), []);
    agent.on_connected();
    assert_eq!(actions(&mut agent), [Action::Offer(lease(5))]);
    agent.on_message(Down::Unwanted { lease: lease(5) });
    assert_eq!(actions(&mut agent), [Action::Remove(lease(5))]);
}

#[test]
fn revoked_units_stop_and_their_output_is_dropped() {
    let mut agent = busy();
    agent.on_message(Down::Revoke { leases: vec![lease(0), lease(2), lease(9)] });
    assert_eq!(actions(&mut agent), [Action::Cancel(lease(0))]);
    assert!(!agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
    assert_eq!(agent.held(), [lease(1)]);
}

#[test]
fn a_unit_revoked_while_it_is_stored_leaves_nothing_behind() {
    let mut agent = busy();
    assert!(agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
    agent.on_message(Down::Revoke { leases: vec![lease(0)] });
    actions(&mut agent);
    agent.on_stored(lease(0));
    assert_eq!(actions(&mut agent), [Action::Remove(lease(0))]);
}

#[test]
fn a_forgotten_job_leaves_nothing_behind() {
    let mut agent = busy();
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9)));
    agent.on_stored(lease(0));
    actions(&mut agent);
    agent.on_message(Down::Forget { job: job(1) });
    let told = actions(&mut agent);
    assert!(
        told.contains(&Action::Cancel(lease(1))) && told.contains(&Action::Remove(lease(0))),
        "{told:?}"
    );
    assert!(agent.held().is_empty() && agent.finished().is_empty());
}

#[test]
fn a_failed_frame_fails_only_its_own_units() {
    let mut agent = agent();
    describe(&mut agent, 1);
    describe(&mut agent, 2);
    work(&mut agent, &[0, 1]);
    agent.on_message(Down::Work(vec![assignment(2, 0)]));
    actions(&mut agent);
    let failure = Failure::Scene("no camera".into());
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Err(failure.clone()));
    let failed = |unit| Action::Send(Up::Failed { lease: lease(unit), failure: failure.clone() });
    assert_eq!(actions(&mut agent), [failed(0), failed(1)]);
    assert_eq!(agent.held(), [assignment(2, 0).lease()]);
}

#[test]
fn a_job_with_an_unknown_option_is_returned_as_unable() {
    // CBOR of a render job named `a` with the value `hello` for an option `stamp`.
    let bytes: Vec<u8> = [&b"\xa2\x64name\x61a"[..], b"\x66render\xa1\x65stamp\x65hello"].concat();
    let spec: RawJobSpec =
        tessera_protocol::decode(&tessera_protocol::encode(&bytes).unwrap()).unwrap();
    let mut agent = agent();
    agent.on_message(Down::Job { job: job(1), spec: Box::new(spec) });
    work(&mut agent, &[0, 1]);
    let sent = actions(&mut agent);
    for unit in [0, 1] {
        let unable = |action: &Action<u32>| match action {
            Action::Send(Up::Failed { lease: of, failure: Failure::Unable(reason) }) => {
                *of == lease(unit) && reason.starts_with("stamp: this build does not know")
            }
            _ => false,
        };
        assert_eq!(sent.iter().filter(|action| unable(action)).count(), 1, "{sent:?}");
    }
    assert!(agent.held().is_empty());
}

#[test]
fn a_failure_without_a_session_is_reported_in_the_next() {
    let mut agent = busy();
    agent.on_disconnected();
    agent.on_rendered(0, lease(0), Rendered::Failed(Failure::Device("hot".into())));
    assert!(agent.held().contains(&lease(0)));
    actions(&mut agent);
    agent.on_connected();
    let told = Action::Send(Up::Failed { lease: lease(0), failure: Failure::Device("hot".into()) });
    assert_eq!(actions(&mut agent), [told]);
    assert!(!agent.held().contains(&lease(0)));
}

#[test]
fn draining_finishes_begun_units_and_returns_the_rest() {
    let mut agent = busy();
    agent.drain();
    assert_eq!(
        actions(&mut agent),
        [
            Action::Send(Up::Draining),
            Action::Withdraw(lease(0)),
            Action::Withdraw(lease(1)),
            Action::Send(Up::Returned { leases: vec![lease(2)] }),
        ]
    );
    agent.on_withdrawn(lease(1));
    assert_eq!(actions(&mut agent), [Action::Send(Up::Returned { leases: vec![lease(1)] })]);
    agent.on_rendered(0, lease(1), Rendered::Cancelled);
    work(&mut agent, &[3]);
    let returned = Action::Send(Up::Returned { leases: vec![lease(3)] });
    assert!(actions(&mut agent).contains(&returned));
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9)));
    agent.on_stored(lease(0));
    assert!(!actions(&mut agent).contains(&Action::Leave));
    agent.on_message(Down::Committed { lease: lease(0) });
    assert_eq!(actions(&mut agent), [Action::Remove(lease(0)), Action::Leave]);
}

#[test]
fn a_drained_node_hands_back_what_it_has_not_begun_and_stays() {
    let mut agent = busy();
    agent.on_message(Down::Drained { drained: true });
    assert_eq!(
        actions(&mut agent),
        [
            Action::Withdraw(lease(0)),
            Action::Withdraw(lease(1)),
            Action::Send(Up::Returned { leases: vec![lease(2)] }),
        ]
    );
    assert!(agent.is_drained() && !agent.is_draining());
    agent.on_withdrawn(lease(1));
    agent.on_rendered(0, lease(1), Rendered::Cancelled);
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9)));
    agent.on_stored(lease(0));
    agent.on_message(Down::Committed { lease: lease(0) });
    assert!(!actions(&mut agent).contains(&Action::Leave), "it is idle");
    agent.on_message(Down::Drained { drained: false });
    work(&mut agent, &[3]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(started(&actions(&mut agent)), [3]);
    // With --leave it goes.
    agent.on_message(Down::Leave);
    assert!(actions(&mut agent).contains(&Action::Send(Up::Draining)));
}

#[test]
fn units_wanted_back_are_returned_unless_they_have_begun() {
    let mut agent = busy();
    let wanted = [0, 1, 2, 9].map(lease).to_vec();
    agent.on_message(Down::GiveBack { leases: wanted });
    assert_eq!(
        actions(&mut agent),
        [
            Action::Withdraw(lease(0)),
            Action::Withdraw(lease(1)),
            Action::Send(Up::Returned { leases: vec![lease(2)] }),
        ]
    );
    // The device had begun the first one, and not the second.
    agent.on_withdrawn(lease(1));
    assert_eq!(actions(&mut agent), [Action::Send(Up::Returned { leases: vec![lease(1)] })]);
    agent.on_rendered(0, lease(1), Rendered::Cancelled);
    assert_eq!(agent.held(), [lease(0)]);
    // It takes other work meanwhile.
    work(&mut agent, &[3]);
    assert!(agent.held().contains(&lease(3)));
    assert!(agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
}

#[test]
fn handing_in_ends_units_early_and_waits_for_the_ack() {
    let mut agent = busy();
    agent.drain();
    agent.on_withdrawn(lease(1));
    agent.on_rendered(0, lease(1), Rendered::Cancelled);
    actions(&mut agent);
    agent.hand_in();
    assert_eq!(actions(&mut agent), [Action::Cut(lease(0))]);
    assert!(agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
    agent.on_stored(lease(0));
    assert_eq!(actions(&mut agent), [Action::Offer(lease(0))]);
    agent.on_message(Down::Committed { lease: lease(0) });
    assert_eq!(actions(&mut agent), [Action::Remove(lease(0)), Action::Leave]);

    // Without an earlier drain; and a device that cannot end a unit early may have nothing to hand
    // in.
    let mut agent = busy();
    agent.hand_in();
    let told = actions(&mut agent);
    assert!(
        told.contains(&Action::Send(Up::Draining)) && told.contains(&Action::Cut(lease(1))),
        "{told:?}"
    );
    agent.on_rendered(0, lease(1), Rendered::Cancelled);
    let returned = Action::Send(Up::Returned { leases: vec![lease(1)] });
    assert!(actions(&mut agent).contains(&returned));
}

#[test]
fn more_short_units_are_held_than_long_ones() {
    let mut agent = busy();
    agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_millis(50)));
    let told = actions(&mut agent);
    let capacity = told.iter().find_map(|action| match action {
        Action::Send(Up::Capacity { units }) => Some(*units),
        _ => None,
    });
    assert_eq!(capacity, Some(agent.capacity()));
    assert!(agent.capacity() >= 11, "{}", agent.capacity());
    assert_eq!(started(&told), [2]);
}

#[test]
fn units_of_unknown_jobs_fail_and_repeats_are_harmless() {
    let mut agent = agent();
    work(&mut agent, &[0]);
    let told = actions(&mut agent);
    assert!(matches!(told.as_slice(), [Action::Send(Up::Failed { .. })]), "{told:?}");
    let mut agent = busy();
    work(&mut agent, &[0, 2]);
    assert_eq!(actions(&mut agent), []);
    assert_eq!(agent.held(), [lease(0), lease(1), lease(2)]);
}

#[test]
fn giving_up_returns_every_unit_at_once() {
    let mut agent = busy();
    assert!(agent.on_rendered(0, lease(0), Rendered::Done(Duration::from_secs(9))));
    actions(&mut agent);
    agent.drain();
    actions(&mut agent);
    // After the second command, the units that the first left to finish are returned too.
    agent.give_up();
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Cancel(lease(1))), "{told:?}");
    let all = (0..3).map(lease).collect();
    assert!(told.contains(&Action::Send(Up::Returned { leases: all })), "{told:?}");
    assert_eq!(agent.held(), []);
    // The result of a device that finishes it all the same is not used.
    assert!(!agent.on_rendered(0, lease(1), Rendered::Done(Duration::from_secs(9))));
}

#[test]
fn two_devices_share_the_units() {
    let mut agent = Agent::<u32>::new(2, HOLD, Vec::new());
    agent.on_connected();
    describe(&mut agent, 1);
    work(&mut agent, &[0, 1, 2, 3, 4]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    let told = actions(&mut agent);
    let devices: Vec<usize> = told
        .iter()
        .filter_map(|action| match action {
            Action::Start { device, .. } => Some(*device),
            _ => None,
        })
        .collect();
    assert_eq!(devices, [0, 1, 0, 1]);
}

/// Returns an agent with two measured devices, the second ten times slower than the first, and no
/// units.
fn fast_and_slow() -> Agent<u32> {
    let mut agent = Agent::<u32>::new(2, HOLD, Vec::new());
    agent.on_connected();
    describe(&mut agent, 1);
    work(&mut agent, &[0, 1, 2, 3]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    for action in actions(&mut agent) {
        if let Action::Start { device, assignment, .. } = action {
            let time = Duration::from_millis([400, 4000][device]);
            agent.on_rendered(device, assignment.lease(), Rendered::Done(time));
        }
    }
    actions(&mut agent);
    agent
}

fn devices_of(actions: &[Action<u32>]) -> Vec<usize> {
    let device = |action: &Action<u32>| match action {
        Action::Start { device, .. } => Some(*device),
        _ => None,
    };
    actions.iter().filter_map(device).collect()
}

#[test]
fn a_slow_device_leaves_the_last_units_to_a_fast_one() {
    let mut agent = fast_and_slow();
    // There are as many units as requested, so more will follow.
    let capacity = agent.capacity();
    work(&mut agent, &(4..4 + capacity).collect::<Vec<u32>>());
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert!(devices_of(&actions(&mut agent)).contains(&1));

    let mut agent = fast_and_slow();
    // These two are the last ones. The fast device finishes both long before the slow one would
    // finish one.
    work(&mut agent, &[4, 5]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(devices_of(&actions(&mut agent)), [0, 0]);
}

#[test]
fn a_device_out_of_use_gets_and_requests_no_units() {
    let mut agent = Agent::<u32>::new(2, HOLD, Vec::new());
    agent.on_connected();
    describe(&mut agent, 1);
    agent.set_usable(0, false);
    assert_eq!(agent.capacity(), 2);
    work(&mut agent, &[0, 1]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(devices_of(&actions(&mut agent)), [1, 1]);
    work(&mut agent, &[2]);
    agent.set_usable(1, false);
    let told = actions(&mut agent);
    assert!(told.contains(&Action::Send(Up::Capacity { units: 0 })), "{told:?}");
    assert!(told.contains(&Action::Send(Up::Returned { leases: vec![lease(2)] })), "{told:?}");
    work(&mut agent, &[3]);
    assert_eq!(actions(&mut agent), [Action::Send(Up::Returned { leases: vec![lease(3)] })]);
    agent.set_usable(0, true);
    work(&mut agent, &[3]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(devices_of(&actions(&mut agent)), [0]);
}

#[test]
fn a_unit_moves_to_a_device_with_room_or_fails() {
    use tessera_protocol::node::MemoryShortage;
    let shortage = |device: u8| {
        let reason = "too small".to_owned();
        Failure::OutOfMemory(MemoryShortage { device, needed: 9, available: 5, reason })
    };
    let mut agent = Agent::<u32>::new(2, HOLD, Vec::new());
    agent.on_connected();
    describe(&mut agent, 1);
    work(&mut agent, &[0]);
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    let device = devices_of(&actions(&mut agent))[0];
    assert!(!agent.on_rendered(device, lease(0), Rendered::Failed(shortage(device as u8))));
    // Its frame is requested again if no other unit waits for it.
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    let told = actions(&mut agent);
    assert_eq!(devices_of(&told), [1 - device], "{told:?}");
    assert!(
        !told.iter().any(|action| matches!(action, Action::Send(Up::Failed { .. }))),
        "{told:?}"
    );
    agent.on_rendered(1 - device, lease(0), Rendered::Failed(shortage(1)));
    let told = actions(&mut agent);
    assert!(
        matches!(&told[0], Action::Send(Up::Failed { failure: Failure::OutOfMemory(_), .. })),
        "{told:?}"
    );
}

#[test]
fn a_kernel_is_for_the_devices_that_take_its_ptx() {
    use tessera_protocol::compute::{ComputeSpec, Domain, Program, PtxNeeds, PtxReach};
    use tessera_protocol::device::{CudaInfo, DeviceInfo, DeviceKind, DeviceState};
    let info = |compute_capability| DeviceInfo {
        slot: "cuda:0".into(),
        kind: DeviceKind::Cuda,
        name: "d".into(),
        parallelism: 1,
        memory_bytes: 0,
        cuda: Some(CudaInfo { compute_capability, ptx_version: (8, 7), ..CudaInfo::default() }),
        state: DeviceState::Ready,
    };
    let mut agent = Agent::<u32>::new(2, HOLD, Vec::new());
    agent.on_connected();
    agent.set_info(0, info((8, 6)));
    agent.set_info(1, info((9, 0)));
    let hash = BlobHash([3; 32]);
    let file = tessera_protocol::job::AssetFile { path: "a.ptx".into(), hash, length: 1 };
    let needs = PtxNeeds { version: (8, 0), capability: (9, 0), reach: PtxReach::Newer };
    let domain = Domain { width: 64, height: 1, depth: 1 };
    let compute = ComputeSpec { ptx: Some(needs), ..ComputeSpec::new(Program::Ptx(file), domain) };
    let kind = JobKind::Compute(compute);
    agent.on_message(Down::Job { job: job(1), spec: Box::new((&kind).into()) });
    let task = Task::Chunk { first: 0, count: 8, feed: None };
    let units = (0..2).map(|unit| Assignment { task, ..assignment(1, unit) });
    agent.on_message(Down::Work(units.collect()));
    agent.on_frame(FrameKey::Frame(job(1), FrameNumber(1)), Ok(7));
    assert_eq!(devices_of(&actions(&mut agent)), [1, 1]);
}
