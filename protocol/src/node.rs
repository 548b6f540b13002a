//! Messages between a node and the coordinator. Positional: a change of any field is a new protocol
//! version.

use crate::device::{DeviceInfo, DeviceTelemetry};
use crate::ids::{BlobHash, Epoch, FrameNumber, JobId, Lease, NodeId, ProcessEpoch, UnitIndex};
use crate::job::RawJobSpec;
use serde::{Deserialize, Serialize};

/// A rectangle of a frame, half-open pixel bounds; row 0 is the top of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TileRect {
    /// Left edge.
    pub x: u32,
    /// Top edge.
    pub y: u32,
    /// Pixels across, >= 1.
    pub width: u32,
    /// Pixels down, >= 1.
    pub height: u32,
}

/// A contiguous range of sample indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRange {
    /// First sample index.
    pub first: u32,
    /// How many, >= 1.
    pub count: u32,
}

/// A node to the coordinator, on the control stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodeToCoordinator {
    /// The first message of a session.
    Join(Join),
    /// The queue depth this node wants from now on: leases beyond it are not sent.
    Capacity {
        /// Units held or running at most.
        units: u32,
    },
    /// A scene is prepared (or no longer): a node that holds a job's scene is preferred.
    Scene {
        /// Hash of the job's scene (see [`crate::job::JobKind::data_hash`]).
        scene: BlobHash,
        /// Held or dropped.
        held: bool,
    },
    /// An attempt failed.
    Failed {
        /// Which lease.
        lease: Lease,
        /// Why.
        failure: Failure,
    },
    /// Leases that were not started and are given back; no attempt is counted.
    Returned {
        /// Which.
        leases: Vec<Lease>,
    },
    /// The node takes no new work and leaves when its results are acknowledged.
    Draining,
    /// What the devices say of themselves has changed (a state, say): all of them, in the order of
    /// the [`Join`].
    Devices(Vec<DeviceInfo>),
}

/// How a node introduces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Must be the id in its certificate.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// The pool that it says it is of. What its certificate says counts for more.
    pub pool: Option<String>,
    /// This run of its process.
    pub process: ProcessEpoch,
    /// Its devices.
    pub devices: Vec<DeviceInfo>,
    /// Units it wants to hold.
    pub capacity: u32,
    /// Leases that it still works on (after a reconnect of the same process).
    pub running: Vec<Lease>,
    /// Finished results in its outbox, not acknowledged yet; they will be sent again.
    pub finished: Vec<Lease>,
    /// Scenes it holds prepared.
    pub scenes: Vec<BlobHash>,
    /// Version of the NVRTC with which it compiles kernels that come as CUDA C++; None: it cannot.
    pub nvrtc: Option<(u32, u32)>,
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The scene cannot be prepared: the same everywhere, so the job fails.
    Scene(String),
    /// The node's build does not know an option of the job, which the text names. Costs no attempt,
    /// and the node gets no more of this job: another build may know it.
    Unable(String),
    /// Something that is not of the unit is lacking: a file cannot be had, the node's disk or
    /// memory is full. The unit waits for it, and no attempt is counted, for as long as the
    /// coordinator's settings say.
    Asset(String),
    /// The device failed.
    Device(String),
    /// Not enough memory on a device, with the smallest plan too. Costs no attempt: a device with
    /// more memory gets the unit.
    OutOfMemory(MemoryShortage),
    /// The worker process of the device ended while it had the unit.
    Worker(String),
    /// The device worked on the unit longer than the watchdog allows.
    TimedOut(String),
    /// A compute job's program cannot be used (it does not compile, or lacks a variable): the same
    /// everywhere, so the job fails.
    Program(String),
    /// A compute job's kernel failed on a device that is in order: a fault of the job, and none of
    /// the node.
    Kernel(String),
}

/// What a device lacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryShortage {
    /// Position among the node's devices.
    pub device: u8,
    /// Bytes that the unit needs at least; 0 where the node cannot tell.
    pub needed: u64,
    /// Bytes that the device could have given it: those free, and those that the node would have
    /// given up.
    pub available: u64,
    /// In words, for people.
    pub reason: String,
}

impl Failure {
    /// The text of the failure.
    pub fn reason(&self) -> &str {
        match self {
            Self::Scene(text) | Self::Asset(text) | Self::Device(text) => text,
            Self::Unable(text)
            | Self::Worker(text)
            | Self::TimedOut(text)
            | Self::Program(text)
            | Self::Kernel(text) => text,
            Self::OutOfMemory(shortage) => &shortage.reason,
        }
    }
}

/// The coordinator to a node, on the control stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CoordinatorToNode {
    /// A job whose units will follow: sent once a session, before the first lease of the job.
    Job {
        /// Its id.
        job: JobId,
        /// What to do, as [`RawJobSpec`] of the kind only.
        spec: Box<RawJobSpec>,
    },
    /// Work.
    Work(Vec<Assignment>),
    /// The result of this lease is durable: the node may forget it.
    Committed {
        /// Which.
        lease: Lease,
    },
    /// The result of this lease is not wanted (its epoch is stale, or the job has ended): the node
    /// may forget it.
    Unwanted {
        /// Which.
        lease: Lease,
    },
    /// Stop working on these leases, if not finished.
    Revoke {
        /// Which.
        leases: Vec<Lease>,
    },
    /// Forget this job: all its leases, and its scene where no other job uses it.
    Forget {
        /// Which.
        job: JobId,
    },
    /// Take no new work, finish, and leave.
    Drain,
    /// The session is refused; the node tries again only after it has been changed.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}

/// One unit of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// The job.
    pub job: JobId,
    /// The frame.
    pub frame: FrameNumber,
    /// The unit.
    pub unit: UnitIndex,
    /// The lease's epoch.
    pub epoch: Epoch,
    /// What of the frame.
    pub task: Task,
}

/// What a unit is, by the kind of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// Of a render job.
    Tile {
        /// Pixels.
        tile: TileRect,
        /// Samples.
        samples: SampleRange,
    },
    /// Of a compute job.
    Chunk {
        /// First index of the domain.
        first: u64,
        /// How many, >= 1.
        count: u32,
        /// The result of the frame before, as a `.npy` file, where the job feeds it to this frame.
        feed: Option<BlobHash>,
    },
}

impl Assignment {
    /// The lease as both sides name it.
    pub fn lease(&self) -> Lease {
        let unit = crate::ids::UnitKey { job: self.job, frame: self.frame, unit: self.unit };
        Lease { unit, epoch: self.epoch }
    }
}

/// Announces a result; its bytes ([`crate::film::TileSums::to_bytes`] or
/// [`crate::compute::ChunkValues::to_bytes`]) follow on the same stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// Which lease it answers.
    pub lease: Lease,
    /// BLAKE3 of the bytes.
    pub hash: BlobHash,
    /// How many bytes, at most [`crate::limits::RESULT_BYTES_MAX`].
    pub length: u32,
    /// Position of the device among the node's, of the process that made it.
    pub device: u8,
    /// Device time, microseconds.
    pub device_micros: u64,
    /// Bytes that the unit needed on the device at least: its scene, and the workspace of the
    /// smallest plan. 0: not measured.
    pub device_bytes: u64,
    /// Rays cast (closest and any hit).
    pub rays: u64,
    /// First sample index of a film, which says itself how many it has; 0 of a chunk. A node that
    /// leaves may hand in fewer samples than the lease asked for, from its first one on: that is a
    /// part, and the rest of the unit goes to another node.
    pub first_sample: u32,
}

/// Proof of life and load, sent every few seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Counts up within a session.
    pub sequence: u64,
    /// Leases running or held.
    pub leases: Vec<Lease>,
    /// Results waiting in the outbox.
    pub outbox: u32,
    /// Load of the devices, 0 to 1: busy share since the last heartbeat.
    pub busy: f32,
    /// The devices, each once at most.
    pub devices: Vec<DeviceTelemetry>,
    /// How far units are that devices work on. Devices that cannot tell say nothing of theirs.
    pub progress: Vec<Progress>,
}

/// How far a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Its lease.
    pub lease: Lease,
    /// Position of the device that works on it.
    pub device: u8,
    /// Camera samples or indices done; what counts is that it grows.
    pub done: u64,
}
