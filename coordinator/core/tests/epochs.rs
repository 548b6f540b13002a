//! An epoch belongs to one unit, also after a restart that forgot to which, and whatever a node says.

use std::time::Duration;
use tessera_core::{
    Action, Arrived, Caller, Core, FilmShape, Input, Moment, Record, RequestId, ResultShape, SessionId,
    Settings, Step,
};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::frames::FrameSet;
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch};
use tessera_protocol::job::{
    AssetFile, CameraSpec, EnvironmentSpec, FilterSpec, FormatSpec, JobKind, JobSpec, RenderSpec, ToneMapSpec,
};
use tessera_protocol::node::{CoordinatorToNode, Join};
use uuid::Uuid;

const NOW: Moment = Moment(1_000_000);
/// Every unit is one tile of this edge.
const TILE: u32 = 8;

fn spec() -> Box<JobSpec> {
    let render = RenderSpec {
        scene: "a.gltf".to_owned(),
        files: vec![AssetFile { path: "a.gltf".to_owned(), hash: BlobHash([1; 32]), length: 1 }],
        environment: EnvironmentSpec::None,
        environment_intensity: 1.0,
        environment_rotation_degrees: 0.0,
        camera: CameraSpec::Default,
        lens: None,
        width: 4 * TILE,
        height: TILE,
        frames: FrameSet::one(FrameNumber(1)),
        fps: 24.0,
        spp: 1,
        depth: 8,
        seed: 0,
        filter: FilterSpec::Box,
        tile: TILE,
        unit_samples: 1,
        aovs: Vec::new(),
        formats: vec![FormatSpec::Exr],
        exposure: 0.0,
        tone_map: ToneMapSpec::Standard,
    };
    Box::new(JobSpec { name: "a".to_owned(), priority: 50, kind: JobKind::Render(render), device_bytes: 0 })
}

fn join(number: u128, capacity: u32, running: Vec<Lease>) -> Input {
    let device = DeviceInfo {
        slot: "cpu".to_owned(),
        kind: DeviceKind::Cpu,
        name: "test".to_owned(),
        parallelism: 1,
        memory_bytes: 1 << 30,
        cuda: None,
        state: DeviceState::Ready,
    };
    let join = Join {
        node: NodeId(Uuid::from_u128(number)),
        name: format!("n{number}"),
        process: ProcessEpoch(1),
        devices: vec![device],
        capacity,
        running,
        finished: Vec::new(),
        nvrtc: None,
        scenes: Vec::new(),
    };
    let (fingerprint, build) = (Fingerprint([1; 32]), "test".to_owned());
    Input::NodeJoined { session: SessionId(number as u64), join: Box::new(join), fingerprint, build }
}

fn result(number: u64, lease: Lease) -> Input {
    let shape = ResultShape::Film(FilmShape { width: TILE, height: TILE, channels: 3, samples: 1 });
    let result =
        Arrived { lease, hash: BlobHash([2; 32]), shape, device: 0, device_micros: 1, device_bytes: 0 };
    Input::ResultArrived { session: SessionId(number), result }
}

fn step(core: &mut Core, input: Input) -> Step {
    core.handle(input, NOW);
    let step = core.take_step();
    core.verify().expect("the core stands by its invariants");
    step
}

fn sent(step: &Step) -> Vec<&CoordinatorToNode> {
    let messages = step.actions.iter().filter_map(|action| match action {
        Action::Send { message, .. } => Some(message),
        _ => None,
    });
    messages.collect()
}

/// A coordinator that has given two units to node 1 and started again; the records, and the two leases.
fn restarted() -> (Core, Vec<Record>, [Lease; 2]) {
    let settings = Settings { settle: Duration::ZERO, ..Settings::default() };
    let mut core = Core::new(settings.clone(), NOW);
    let caller = Caller { name: "ada".to_owned(), admin: false };
    let job = JobId(Uuid::from_u128(9));
    let mut records =
        step(&mut core, Input::Submit { request: RequestId(1), job, spec: spec(), caller }).records;
    let given = step(&mut core, join(1, 2, Vec::new()));
    records.extend(given.records.clone());
    let work = sent(&given).into_iter().find_map(|message| match message {
        CoordinatorToNode::Work(work) => Some([work[0].lease(), work[1].lease()]),
        _ => None,
    });
    let core = Core::replay(settings, [], records.clone(), NOW).expect("a journal of its own");
    (core, records, work.expect("a node that joins gets work"))
}

#[test]
fn a_lease_that_was_taken_back_is_not_displaced_by_a_lie_about_its_epoch() {
    let (mut core, _, [first, second]) = restarted();
    step(&mut core, join(1, 0, vec![first]));
    let lie = Lease { epoch: first.epoch, ..second };
    let answer = step(&mut core, join(2, 0, vec![lie]));
    assert_eq!(sent(&answer), [&CoordinatorToNode::Revoke { leases: vec![lie] }]);
    let node = NodeId(Uuid::from_u128(1));
    assert_eq!(core.leases().collect::<Vec<_>>(), [(first, node)]);
}

#[test]
fn an_epoch_commits_one_unit() {
    let (mut core, mut records, [first, second]) = restarted();
    step(&mut core, join(1, 0, Vec::new()));
    step(&mut core, join(2, 0, Vec::new()));
    records.extend(step(&mut core, result(1, first)).records);
    let lie = Lease { epoch: first.epoch, ..second };
    let answer = step(&mut core, result(2, lie));
    assert_eq!(sent(&answer), [&CoordinatorToNode::Unwanted { lease: lie }]);
    records.extend(answer.records);
    records.extend(step(&mut core, result(1, second)).records);
    let report = Core::audit([], records);
    assert_eq!((report.units_committed, report.problems), (2, Vec::new()));
}
