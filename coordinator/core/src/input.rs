//! What reaches the core. The shell has authenticated the peer and bounded every length; everything
//! else is checked here.

use crate::owner::Owner;
use crate::selection::Selection;
use crate::state::rounds::TileSet;
use crate::sweep::Sweep;
use crate::time::Moment;
use tessera_protocol::compute::ChunkShape;
use tessera_protocol::cost::CostRules;
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex};
use tessera_protocol::job::{JobEdit, JobSpec};
use tessera_protocol::node::{Failure, Heartbeat, Join, Piece};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::FrameFile;

/// One connection of a node. Made by the shell, which never uses an id twice within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A client's request that waits for an [`crate::Action::Reply`]. Made by the shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Client that makes a request. The shell has authenticated it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name in the certificate. It becomes the owner of submitted jobs.
    pub name: String,
    /// Number of the identity. Rights to a job go by it, not by the name.
    pub id: u64,
    /// Whether the caller may also change jobs of other owners.
    pub admin: bool,
}

/// Everything that can happen to the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A client submits a job. Replied: `Accepted`, or an error. The same job, spec and owner again
    /// are accepted again.
    Submit {
        /// Request to reply to.
        request: RequestId,
        /// Id that the client chose for the job.
        job: JobId,
        /// Checked spec ([`tessera_protocol::RawJobSpec::check`]). Its blobs are stored and synced.
        spec: Box<JobSpec>,
        /// Client that submits the job and becomes its owner.
        caller: Caller,
    },
    /// A client cancels, pauses, resumes, retries or forgets one job or many. Replied: `Changed`,
    /// or an error. For a retry the shell has made sure that the jobs' files are present.
    ChangeJobs {
        /// Request to reply to.
        request: RequestId,
        /// What to do.
        change: JobChange,
        /// Which jobs.
        selection: Box<Selection>,
        /// True only tells what would be done.
        dry_run: bool,
        /// Client that asks; must own the jobs, or be an admin.
        caller: Caller,
    },
    /// Somebody deletes all jobs of an owner. Replied: `Swept`, or an error. The shell has checked
    /// the caller's role.
    Sweep {
        /// Request to reply to.
        request: RequestId,
        /// Owner of the jobs.
        owner: Owner,
        /// What to do with them.
        sweep: Sweep,
        /// Client that asks; must be the owner or an admin.
        caller: Caller,
    },
    /// Deletes the jobs that ended before a given time. The shell sends it regularly.
    ForgetEnded {
        /// Jobs that ended earlier than this are deleted.
        before: Moment,
    },
    /// An admin sets what device time costs and what may be spent. Replied: `Done`, or an error.
    /// The shell has checked the caller's role.
    SetCostRules {
        /// Request to reply to.
        request: RequestId,
        /// The rules.
        rules: Box<CostRules>,
        /// Name of the admin.
        by: String,
    },
    /// An admin publishes a template, or takes it away. Replied: `Done`, or an error. The shell has
    /// checked the caller's role.
    SetPreset {
        /// Request to reply to.
        request: RequestId,
        /// Name of the preset, and its text; None takes it away.
        preset: (String, Option<String>),
        /// Name of the admin.
        by: String,
    },
    /// An operator drains a node, or ends its draining; also an absent one. Replied: `Nodes` with
    /// the node, or an error. The shell has checked the caller's role.
    Drain {
        /// Request to reply to.
        request: RequestId,
        /// Id or name of the node.
        node: String,
        /// True to drain, false to end the draining.
        drain: bool,
        /// Whether a drained node is to leave as well. An absent one is not told when it returns.
        leave: bool,
        /// Name of the operator.
        by: String,
    },
    /// First message of a node's session. The shell has checked that the node's id is the one in
    /// its certificate.
    NodeJoined {
        /// New session of the node.
        session: SessionId,
        /// The node's description of itself.
        join: Box<Join>,
        /// Fingerprint of the node's build, from its hello.
        fingerprint: Fingerprint,
        /// Version of the node's build for people, from its hello.
        build: String,
    },
    /// A connection is gone: it ended, was silent for too long, or was closed by the core.
    SessionLost {
        /// Session that is gone.
        session: SessionId,
    },
    /// A node changes the number of units that it wants to hold.
    Capacity {
        /// Session of the node.
        session: SessionId,
        /// Most units that the node holds, running ones included.
        units: u32,
    },
    /// A node has prepared a scene, or dropped one.
    SceneHeld {
        /// Session of the node.
        session: SessionId,
        /// Hash of the scene.
        scene: BlobHash,
        /// True if the scene is held, false if it was dropped.
        held: bool,
    },
    /// A node's regular sign of life. It renews the leases that it lists.
    Heartbeat {
        /// Session of the node.
        session: SessionId,
        /// Leases, load and telemetry of the node.
        heartbeat: Heartbeat,
    },
    /// A complete result has arrived, and its bytes match its hash. Answered by exactly one
    /// `KeepResult` or `DropResult`.
    ResultArrived {
        /// Session of the node that made the result.
        session: SessionId,
        /// Description of the result; the shell keeps its bytes.
        result: Arrived,
    },
    /// The bytes of a result do not match its hash, or are no valid result. Counts as a failed
    /// attempt; the node is told `Unwanted`.
    ResultDamaged {
        /// Session of the node that sent the result.
        session: SessionId,
        /// Lease that the result answers.
        lease: Lease,
        /// Description of the damage, for people.
        reason: String,
    },
    /// A node reports that an attempt failed.
    UnitFailed {
        /// Session of the node.
        session: SessionId,
        /// Lease of the failed attempt.
        lease: Lease,
        /// Class and description of the failure.
        failure: Failure,
    },
    /// A node gives back leases that it has not started.
    Returned {
        /// Session of the node.
        session: SessionId,
        /// Leases that are given back.
        leases: Vec<Lease>,
    },
    /// A node reports changed states of its devices. A list of another length than that of the join
    /// is ignored.
    DevicesChanged {
        /// Session of the node.
        session: SessionId,
        /// All devices of the node, in the order of the join.
        devices: Vec<DeviceInfo>,
    },
    /// A node takes no new work, and leaves when it has finished its units.
    NodeDraining {
        /// Session of the node.
        session: SessionId,
    },
    /// Answers `ResolveFrame`: the files of a frame are stored and synced.
    FrameResolved {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// One file for each format of the spec, in the order of the spec.
        files: Vec<FrameFile>,
        /// Exposure that was metered in the frame, in stops; None in every other frame.
        exposure: Option<f32>,
    },
    /// Answers `MeasureFrame`: the noise of a frame's newest round is known.
    RoundMeasured {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Round that was measured, from 1.
        round: u32,
        /// Tiles that need another round. Tiles that have ended are ignored.
        noisy: TileSet,
    },
    /// Answers `ResolveFrame` or `MeasureFrame` if it could not be done.
    FrameResolveFailed {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Whether to try again, and the reason.
        failure: ResolveFailure,
    },
    /// Time has passed (see [`crate::Core::next_wakeup`]).
    Tick,
    /// A node has ended its session itself, because it leaves. Otherwise like `SessionLost`: its
    /// leases are kept for the grace.
    NodeLeft {
        /// Session that is over.
        session: SessionId,
        /// Why the node leaves, in its own words.
        why: String,
    },
    /// An operator takes an absent node off the list. Replied: `Nodes` with the node, or an error.
    /// The shell has checked the caller's role.
    RemoveNode {
        /// Request to reply to.
        request: RequestId,
        /// Id or name of the node.
        node: String,
        /// Name of the operator.
        by: String,
    },
    /// The identity of a node is void. It is taken off the list, and its leases end. Replied:
    /// `Done`, also if the node is not known.
    RetireNode {
        /// Request to reply to.
        request: RequestId,
        /// Node whose identity is void.
        node: NodeId,
        /// Why, for people.
        why: String,
    },
    /// A client changes a job that has not ended. Replied: `Done` (also if nothing is different),
    /// or an error.
    EditJob {
        /// Request to reply to.
        request: RequestId,
        /// Job to change.
        job: JobId,
        /// Checked change ([`JobEdit::check`]).
        edit: Box<JobEdit>,
        /// Client that asks; must be the owner or an admin.
        caller: Caller,
    },
    /// What a node has put into a store elsewhere is not what it said, or not there. `ResultsLost`
    /// says which results these are. It costs the node as a failed attempt does.
    StoredWrong {
        /// Node that made the results.
        node: NodeId,
        /// Job that they are of.
        job: JobId,
    },
    /// Bytes of committed results are damaged or missing. Of units that are not committed, parts
    /// are void.
    ResultsLost {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Units whose results cannot be read.
        units: Vec<UnitIndex>,
        /// What is wrong with them, for people.
        reason: String,
    },
}

/// Description of a result that has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Lease that the result answers.
    pub lease: Lease,
    /// BLAKE3 hash of the bytes; the shell has checked it.
    pub hash: BlobHash,
    /// Shape of the result according to its header.
    pub shape: ResultShape,
    /// Index of the device in the node's list.
    pub device: u8,
    /// Device time in microseconds, as reported by the node.
    pub device_micros: u64,
    /// For how many microseconds a device had nothing to do because what the unit needs was still
    /// being prepared, as reported by the node. It is counted for people, and decides nothing.
    pub waited_micros: u64,
    /// Least device memory that the unit needed, in bytes, as reported by the node; 0 if unknown.
    pub device_bytes: u64,
}

/// Shape of a unit's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultShape {
    /// Film of a render job.
    Film(FilmShape),
    /// Values or partial results of a compute job.
    Chunk(ChunkShape),
    /// A piece of a finished frame.
    Finished(Piece),
}

impl ResultShape {
    /// Samples per pixel of a film, or number of indices of a chunk; 0 for a finished piece.
    pub fn size(&self) -> u32 {
        match self {
            Self::Film(film) => film.samples,
            Self::Chunk(chunk) => chunk.count,
            Self::Finished(_) => 0,
        }
    }

    /// First sample index of a film; 0 otherwise.
    pub fn first(&self) -> u32 {
        match self {
            Self::Film(film) => film.first,
            Self::Chunk(_) | Self::Finished(_) => 0,
        }
    }
}

/// Shape of a unit's film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmShape {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Number of channels of all layers together.
    pub channels: u8,
    /// Index of the first sample.
    pub first: u32,
    /// Number of samples per pixel.
    pub samples: u32,
}

/// Reason why a frame could not be resolved or measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveFailure {
    /// Temporary, for example a full disk. The shell is asked again without end, after growing
    /// waits, and the job's note has this reason.
    Retry(String),
    /// Permanent: the frame fails with this reason.
    Fatal(String),
    /// The bytes of these units' results are damaged or missing, for the given reason. They are
    /// made again.
    Lost(Vec<UnitIndex>, String),
    /// The pieces that nodes made do not go together, for the given reason. The coordinator
    /// finishes the frame by itself.
    Unjoined(String),
}
