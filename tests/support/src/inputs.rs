//! The plainest job, node and result that the core takes. Tests change what they are about, by
//! `..plain::render()`; the simulator's small farms use it too.

use tessera_core::{Arrived, Caller, FilmShape, Input, RequestId, ResultShape, SessionId};
use tessera_protocol::FrameSet;
use tessera_protocol::client::Response;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::ids::{
    BlobHash, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch,
};
use tessera_protocol::job::{AssetFile, FilterSpec, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::{Heartbeat, Join, Progress};
use tessera_protocol::selection::{JobChange, JobSelection};
use uuid::Uuid;

/// Edge of a tile, pixels.
pub const TILE: u32 = 8;

/// A frame of one tile and one sample.
pub fn render() -> RenderSpec {
    RenderSpec {
        scene: "a.gltf".to_owned(),
        files: vec![AssetFile { path: "a.gltf".to_owned(), hash: BlobHash([1; 32]), length: 1 }],
        width: TILE,
        height: TILE,
        frames: FrameSet::one(FrameNumber(1)),
        spp: 1,
        filter: FilterSpec::Box,
        tile: TILE,
        unit_samples: 1,
        ..RenderSpec::default()
    }
}

/// A job that renders this, and says nothing of memory.
pub fn job(render: RenderSpec) -> JobSpec {
    JobSpec::new("a", JobKind::Render(render))
}

/// Somebody submits it.
pub fn submit(job: JobId, spec: JobSpec) -> Input {
    let caller = Caller { name: "ada".to_owned(), id: 294, admin: false };
    Input::Submit { request: RequestId(1), job, spec: Box::new(spec), caller }
}

/// Somebody changes one job.
pub fn change(change: JobChange, job: JobId, caller: Caller) -> Input {
    let selection = Box::new(JobSelection::of_job(job).into());
    Input::ChangeJobs { request: RequestId(1), change, selection, dry_run: false, caller }
}

/// A cancel without a reason.
pub fn cancel() -> JobChange {
    JobChange::Cancel { reason: String::new() }
}

/// The answer to a change of one job, in terms of that job: it is done, or why not. Any other
/// answer stays as it is.
pub fn of_one_job(answer: Response) -> Response {
    let Response::Changed(changed) = answer else { return answer };
    match (changed.jobs.as_slice(), changed.unchanged, changed.refusals.as_slice()) {
        ([_], 0, []) | ([], 1, []) => Response::Done,
        ([], 0, [refusal]) => Response::Error(refusal.why.clone()),
        _ => Response::Changed(changed),
    }
}

/// The node of a number.
pub fn node(number: u64) -> NodeId {
    NodeId(Uuid::from_u128(number.into()))
}

/// A processor that works, with 1 GiB.
pub fn device() -> DeviceInfo {
    DeviceInfo {
        slot: "cpu".to_owned(),
        kind: DeviceKind::Cpu,
        name: "plain".to_owned(),
        parallelism: 1,
        memory_bytes: 1 << 30,
        cuda: None,
        state: DeviceState::Ready,
    }
}

/// A node's first words: one device, room for so many units, nothing in hand.
pub fn join(number: u64, capacity: u32) -> Join {
    let empty = Join::new(node(number), format!("n{number}"), ProcessEpoch(1));
    Join { devices: vec![device()], capacity, ..empty }
}

/// They reach the core, in the session of the node's number.
pub fn joined(number: u64, join: Join) -> Input {
    Input::NodeJoined {
        session: SessionId(number),
        join: Box::new(join),
        fingerprint: Fingerprint([1; 32]),
        build: "test".to_owned(),
    }
}

/// A sign of life of a node that does nothing, with this progress of its units.
pub fn beat(progress: Vec<Progress>) -> Heartbeat {
    Heartbeat {
        sequence: 1,
        leases: Vec::new(),
        outbox: 0,
        working: 0,
        busy: Some(1.0),
        devices: Vec::new(),
        progress,
    }
}

/// A film of one whole tile and one sample, of this hash, after a microsecond.
pub fn result(lease: Lease, hash: u8) -> Arrived {
    film(lease, hash, (0, 1))
}

/// A film of one whole tile with so many samples from a first one, of this hash, after a
/// microsecond.
pub fn film(lease: Lease, hash: u8, (first, samples): (u32, u32)) -> Arrived {
    let shape = FilmShape { width: TILE, height: TILE, channels: 3, first, samples };
    Arrived {
        lease,
        hash: BlobHash([hash; 32]),
        shape: ResultShape::Film(shape),
        device: 0,
        device_micros: 1,
        waited_micros: 0,
        device_bytes: 0,
    }
}
