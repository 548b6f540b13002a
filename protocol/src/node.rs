//! Messages between a node and the coordinator. Their encoding is positional, so a change of any
//! field needs a new protocol version.

use crate::device::{DeviceInfo, DeviceTelemetry};
use crate::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, ProcessEpoch, UnitIndex,
};
use crate::job::RawJobSpec;
use crate::limits::{RESULT_BYTES_MAX, RESULTS_MAX};
use crate::live::Watched;
pub use crate::node_limit::{LimitReached, NodeLimit};
pub use crate::rounds::SampleRange;
pub use crate::tile::TileRect;
use serde::{Deserialize, Serialize};

/// A message of a node, on the control stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum NodeToCoordinator {
    /// Begins a session; the first message of a node.
    Join(Join),
    /// Sets the most units that the coordinator gives to the node from now on.
    Capacity {
        /// Most units that the node holds or works on.
        units: u32,
    },
    /// A scene is prepared, or no longer. The coordinator prefers nodes that have the job's scene.
    Scene {
        /// Hash of the job's scene (see [`crate::job::JobKind::data_hash`]).
        scene: BlobHash,
        /// True if the node has the scene prepared; false if it dropped the scene.
        held: bool,
    },
    /// Reports that an attempt failed.
    Failed {
        /// Lease of the attempt.
        lease: Lease,
        /// Cause of the failure.
        failure: Failure,
    },
    /// Gives leases back that were not started. No attempt is counted.
    Returned {
        /// Leases to give back.
        leases: Vec<Lease>,
    },
    /// The node takes no new work. It leaves when all its results are acknowledged.
    Draining,
    /// Properties or states of devices have changed. Holds all devices, in the order of the
    /// [`Join`].
    Devices(Vec<DeviceInfo>),
    /// What the kernel of a compute job printed, and what a compiler said of it, for the job's
    /// owner. It decides nothing.
    KernelText {
        /// Lease of the unit that printed.
        lease: Lease,
        /// Text, at most [`crate::limits::UNIT_TEXT_BYTES_MAX`] bytes; more is cut.
        text: String,
    },
}

/// A node's description of itself at the beginning of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Join {
    /// Id of the node. It must be the id in the node's certificate.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Pool that the node claims. The pool in its certificate counts for more.
    pub pool: Option<String>,
    /// Names this run of the node's process.
    pub process: ProcessEpoch,
    /// Devices of the node.
    pub devices: Vec<DeviceInfo>,
    /// Most units that the node wants to hold.
    pub capacity: u32,
    /// Leases that the node still works on, after a reconnect of the same process.
    pub running: Vec<Lease>,
    /// Leases with a finished result in the outbox that is not acknowledged yet. These results will
    /// be sent again.
    pub finished: Vec<Lease>,
    /// Scenes that the node has prepared.
    pub scenes: Vec<BlobHash>,
    /// Version of NVRTC, with which the node compiles CUDA C++ kernels; None if it has none.
    pub nvrtc: Option<(u32, u32)>,
    /// What the kernel cannot confine of workers and importers, for the operator; None if nothing.
    pub unconfined: Option<String>,
    /// What the node finishes frames with; None if it takes no units of [`Task::Finish`].
    pub finishing: Option<Fingerprint>,
}

impl Join {
    /// Creates the description of a node that has no devices, wants no units and holds nothing.
    pub fn new(node: NodeId, name: impl Into<String>, process: ProcessEpoch) -> Self {
        Self {
            node,
            name: name.into(),
            pool: None,
            process,
            devices: Vec::new(),
            capacity: 0,
            running: Vec::new(),
            finished: Vec::new(),
            scenes: Vec::new(),
            nvrtc: None,
            unconfined: None,
            finishing: None,
        }
    }
}

/// Why an attempt failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Failure {
    /// The scene cannot be prepared, by a fault of its own as far as the node can tell. The job
    /// fails once a second node says so.
    Scene(String),
    /// The node cannot do the job, and another one may: its build does not know an option, or its
    /// driver or device does not take the kernel's PTX. The text says which. No attempt is counted,
    /// and the node gets no more units of this job.
    Unable(String),
    /// Something outside the unit is missing: a file cannot be fetched, or an output cannot be
    /// kept. The unit waits for it without a counted attempt, as long as the coordinator's settings
    /// allow.
    Asset(String),
    /// The device failed, for the given reason.
    Device(String),
    /// The device does not have enough memory, not even for the smallest plan. No attempt is
    /// counted; a device with more memory gets the unit.
    OutOfMemory(MemoryShortage),
    /// The worker process of the device ended while it had the unit.
    Worker(String),
    /// The device worked on the unit for longer than the watchdog allows.
    TimedOut(String),
    /// The program of a compute job cannot be used, by a fault of its own as far as the node can
    /// tell: for example, it does not compile, or lacks a variable. The job fails once a second
    /// node says so.
    Program(String),
    /// The kernel of a compute job failed on a healthy device, or a finishing unit cannot be made
    /// of what it reads. The job is at fault, not the node.
    Kernel(String),
    /// The job's data exceeds a limit of this node. No attempt is counted, and the node is passed
    /// over for this job; another one may have more.
    Limit(LimitReached),
}

/// Memory that a device lacked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryShortage {
    /// Position of the device among the node's devices.
    pub device: u8,
    /// Fewest bytes that the unit needs; 0 if the node cannot tell.
    pub needed: u64,
    /// Bytes that the device could have given: the free ones, and those that the node would have
    /// given up.
    pub available: u64,
    /// Description of the shortage, for people.
    pub reason: String,
}

impl Failure {
    /// Returns the text of the failure.
    pub fn reason(&self) -> &str {
        match self {
            Self::Scene(text) | Self::Asset(text) | Self::Device(text) => text,
            Self::Unable(text)
            | Self::Worker(text)
            | Self::TimedOut(text)
            | Self::Program(text)
            | Self::Kernel(text) => text,
            Self::OutOfMemory(shortage) => &shortage.reason,
            Self::Limit(reached) => &reached.reason,
        }
    }
}

/// A message of the coordinator to a node, on the control stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum CoordinatorToNode {
    /// Describes a job whose units will follow. It is sent once per session, before the first lease
    /// of the job.
    Job {
        /// Id of the job.
        job: JobId,
        /// Spec of the job. Only its kind is set; all other fields have their defaults.
        spec: Box<RawJobSpec>,
    },
    /// Leases units to the node.
    Work(Vec<Assignment>),
    /// The result of the lease is durable. The node can forget it.
    Committed {
        /// Lease of the result.
        lease: Lease,
    },
    /// The result of the lease is not wanted, because its epoch is stale or the job has ended. The
    /// node can forget it.
    Unwanted {
        /// Lease of the result.
        lease: Lease,
    },
    /// Takes unfinished leases back. The node stops working on them.
    Revoke {
        /// Leases to stop and drop.
        leases: Vec<Lease>,
    },
    /// Makes the node forget a job: all its leases, and its scene if no other job uses it.
    Forget {
        /// Job whose state the node can drop.
        job: JobId,
    },
    /// Makes the node finish its work, take no new work, and leave.
    Leave,
    /// Refuses the session. The node must be changed before it tries again.
    Refused {
        /// Reason, and what to do.
        reason: String,
    },
    /// Tells the node's operator something, by the node's log. The session goes on.
    Notice {
        /// What happened, and what to do.
        text: String,
    },
    /// Names the owner of a compute job. It is sent before the job's description: what a kernel
    /// leaves on a device is not for the jobs of another owner.
    Owner {
        /// Id of the job.
        job: JobId,
        /// Number of the owner's identity.
        owner: u64,
    },
    /// An operator has drained the node, or given it work again. The node stays connected. If it is
    /// drained, it hands back the units that it has not begun.
    Drained {
        /// Whether the node gets no new work.
        drained: bool,
    },
    /// Asks for leases back because another job goes first. The node returns those of them that it
    /// has not begun with [`NodeToCoordinator::Returned`], and works on with the others.
    GiveBack {
        /// Leases to return.
        leases: Vec<Lease>,
    },
    /// Names all that is watched now, instead of what was named before. With each result of these
    /// frames the node also sends its [`crate::live::LiveTile`], if nothing waits for that.
    Watched {
        /// Frames and jobs, at most [`crate::live::WATCHED_MAX`].
        watched: Vec<Watched>,
    },
    /// Results are kept in a store that nodes may reach by themselves: the node asks for an address
    /// ([`crate::stream::StreamKind::StoreResults`]), and sends their bytes only where that does
    /// not work. Sent at the beginning of a session.
    StoreResults,
    /// Asks the node to put the files of a finished frame together, or to compare them with what
    /// another node has put ([`crate::stream::StreamKind::FrameFiles`]). Not sent to one without
    /// [`Join::finishing`].
    MakeFiles {
        /// Number of the order, which the node asks for.
        order: u64,
    },
}

/// A unit that is leased to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Job of the unit.
    pub job: JobId,
    /// Frame of the unit.
    pub frame: FrameNumber,
    /// Number of the unit within the frame.
    pub unit: UnitIndex,
    /// Epoch of the lease.
    pub epoch: Epoch,
    /// Work to do for the unit.
    pub task: Task,
}

/// Work of a unit, by the kind of its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Task {
    /// A tile of a render job.
    Tile {
        /// Rectangle of pixels to render.
        tile: TileRect,
        /// Samples to render for each pixel.
        samples: SampleRange,
    },
    /// A chunk of a compute job.
    Chunk {
        /// First index of the domain.
        first: u64,
        /// Number of indices, >= 1.
        count: u32,
        /// Result of the previous frame as a `.npy` file, if the job feeds it to this frame.
        feed: Option<BlobHash>,
    },
    /// A part of the files of a render job's frame, whose samples are all committed.
    Finish(Finish),
}

/// What a finishing unit makes. Its inputs are read under its lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finish {
    /// What is made of which rows.
    pub piece: Piece,
    /// Exposure in stops, as the bits of an `f32`. The description of the job may be older than the
    /// exposure that was metered.
    pub exposure_bits: u32,
}

/// A piece of a finished frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Piece {
    /// Rows of a frame that has further bands: finished pixels, and what files have for each band.
    Band {
        /// First row of the frame's files.
        first: u32,
        /// Number of rows.
        rows: u32,
    },
    /// All rows of a frame that is one band, and its files.
    Frame {
        /// Number of rows of the frame's files.
        rows: u32,
    },
    /// What the files have for the whole frame, made from its bands.
    Assembly,
}

impl Assignment {
    /// Returns the lease of this assignment.
    pub fn lease(&self) -> Lease {
        let unit = crate::ids::UnitKey { job: self.job, frame: self.frame, unit: self.unit };
        Lease { unit, epoch: self.epoch }
    }
}

/// Announces the results of a stream. The bytes of each follow, in the order of the headers. What a
/// node has at the same time goes together, and shares packets, a step and a sync.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeaders {
    /// Headers, at least one and at most [`RESULTS_MAX`]. Their results have together at most
    /// [`RESULT_BYTES_MAX`] bytes.
    pub headers: Vec<ResultHeader>,
}

impl ResultHeaders {
    /// Announces a single result.
    pub fn one(header: ResultHeader) -> Self {
        Self { headers: vec![header] }
    }

    /// Returns the number of bytes that follow. An error says which limit is exceeded.
    pub fn bytes(&self) -> Result<usize, String> {
        let count = self.headers.len();
        if count == 0 || count > RESULTS_MAX {
            return Err(format!("a stream announces {count} results, not 1 to {RESULTS_MAX}"));
        }
        // Far below 2^64: each length is below 2^32.
        let bytes: u64 = self.headers.iter().map(|header| u64::from(header.length)).sum();
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= RESULT_BYTES_MAX => Ok(bytes),
            _ => Err(format!(
                "results of {bytes} bytes on one stream are longer than the limit of \
                 {RESULT_BYTES_MAX}"
            )),
        }
    }
}

/// Announces a result. Its bytes are [`crate::film::TileSums::to_bytes`] or
/// [`crate::compute::ChunkValues::to_bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResultHeader {
    /// Lease that the result answers.
    pub lease: Lease,
    /// BLAKE3 of the bytes.
    pub hash: BlobHash,
    /// Number of bytes, at most [`crate::limits::RESULT_BYTES_MAX`].
    pub length: u32,
    /// Position of the device that made the result, in the list of the process that made it.
    pub device: u8,
    /// Device time in microseconds.
    pub device_micros: u64,
    /// For how many microseconds a device had nothing to do because what this unit needs was still
    /// being prepared. It is for people only.
    pub waited_micros: u64,
    /// Fewest bytes that the unit needs on the device: its scene, and the workspace of the smallest
    /// plan. 0 if it was not measured.
    pub device_bytes: u64,
    /// Number of rays cast, closest hit and any hit.
    pub rays: u64,
    /// First sample index of a film; 0 for a chunk. The film itself says how many samples it has. A
    /// node that leaves may hand in fewer samples than its lease asked for, beginning with the
    /// first one. That is a part, and another node gets the rest of the unit.
    pub first_sample: u32,
}

/// Shows that a node is alive, and its load. It is sent every few seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Number of the heartbeat within the session.
    pub sequence: u64,
    /// Leases that the node works on or holds.
    pub leases: Vec<Lease>,
    /// Number of results in the outbox.
    pub outbox: u32,
    /// Number of units and frames that the node works on: units that a device has begun or whose
    /// output is being stored, and frames that are being fetched or prepared. 0 with leases means
    /// that it does nothing about them.
    pub working: u32,
    /// Share of the time with work, of the last minute, in which the devices worked, 0 to 1; None
    /// if there was no work. Time with work is that in which the node held units that were not
    /// done, with the gaps of at most a second between them.
    pub busy: Option<f32>,
    /// State of the devices, each at most once.
    pub devices: Vec<DeviceTelemetry>,
    /// Progress of the units that devices work on. Devices that cannot tell report nothing.
    pub progress: Vec<Progress>,
}

/// Progress of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Progress {
    /// Lease of the unit.
    pub lease: Lease,
    /// Position of the device that works on the unit.
    pub device: u8,
    /// Camera samples or indices that are done. A growing number shows that the device works.
    pub done: u64,
}
