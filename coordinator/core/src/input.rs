//! What reaches the core. The shell has authenticated the peer and bounded every length; everything
//! else is checked here.

use crate::state::rounds::TileSet;
use crate::time::Moment;
use tessera_protocol::compute::ChunkShape;
use tessera_protocol::device::DeviceInfo;
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId, Lease};
use tessera_protocol::job::JobSpec;
use tessera_protocol::node::{Failure, Heartbeat, Join};
use tessera_protocol::status::FrameFile;

/// One connection of a node. The shell makes it and never uses one twice within a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub u64);

/// A client's request that waits for an [`crate::Action::Reply`]. The shell makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// Who asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Name in the certificate; owns the jobs it submits.
    pub name: String,
    /// May touch what others own.
    pub admin: bool,
}

/// Everything that can happen to the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A client submits a job. Replied: `Accepted`, or an error. The same job, spec and owner again
    /// are accepted again.
    Submit {
        /// To reply to.
        request: RequestId,
        /// The client's id for it.
        job: JobId,
        /// Checked ([`tessera_protocol::RawJobSpec::check`]); its blobs are here and synced.
        spec: Box<JobSpec>,
        /// Who asks.
        caller: Caller,
    },
    /// A client cancels a job. Replied: `Done` (again for a job that is cancelled), or an error.
    Cancel {
        /// To reply to.
        request: RequestId,
        /// Which job.
        job: JobId,
        /// Who asks.
        caller: Caller,
    },
    /// A client pauses a job, or lets it go on. Replied: `Done` (again where it is so already), or
    /// an error.
    Pause {
        /// To reply to.
        request: RequestId,
        /// Which job.
        job: JobId,
        /// Pause, or go on.
        pause: bool,
        /// Who asks.
        caller: Caller,
    },
    /// A client wants the failed frames of a job rendered again; the shell has found the job's
    /// files. Replied: `Done`, or an error.
    Retry {
        /// To reply to.
        request: RequestId,
        /// Which job.
        job: JobId,
        /// Who asks.
        caller: Caller,
    },
    /// A client wants a job forgotten that has ended, with its frames. Replied: `Done`, or an
    /// error.
    Forget {
        /// To reply to.
        request: RequestId,
        /// Which job.
        job: JobId,
        /// Who asks.
        caller: Caller,
    },
    /// Jobs that ended before this moment are to be forgotten.
    ForgetEnded {
        /// The moment.
        before: Moment,
    },
    /// An operator drains a node or ends that. Replied: `Done`, or an error. The shell has checked
    /// the role.
    Drain {
        /// To reply to.
        request: RequestId,
        /// Id or name of the node.
        node: String,
        /// Drain, or end the draining.
        drain: bool,
    },
    /// A node's first message of a session. The shell has checked that the id is the certificate's.
    NodeJoined {
        /// Its session, new.
        session: SessionId,
        /// What it says of itself.
        join: Box<Join>,
        /// From its hello.
        fingerprint: Fingerprint,
        /// From its hello.
        build: String,
    },
    /// A connection is gone: by its end, by silence, or because the core closed it.
    SessionLost {
        /// Which.
        session: SessionId,
    },
    /// A node wants to hold another number of units.
    Capacity {
        /// Its session.
        session: SessionId,
        /// Units held or running at most.
        units: u32,
    },
    /// A node holds a prepared scene, or no longer.
    SceneHeld {
        /// Its session.
        session: SessionId,
        /// The scene.
        scene: BlobHash,
        /// Held or dropped.
        held: bool,
    },
    /// A node lives.
    Heartbeat {
        /// Its session.
        session: SessionId,
        /// What it says.
        heartbeat: Heartbeat,
    },
    /// A result is here, whole, and its bytes have its hash. Answered by exactly one `KeepResult`
    /// or `DropResult`.
    ResultArrived {
        /// The node's session.
        session: SessionId,
        /// The result.
        result: Arrived,
    },
    /// A result's bytes do not have its hash, or are no film. Counts as a failed attempt; the node
    /// is told `Unwanted`.
    ResultDamaged {
        /// The node's session.
        session: SessionId,
        /// Which lease.
        lease: Lease,
        /// What is wrong.
        reason: String,
    },
    /// An attempt failed.
    UnitFailed {
        /// The node's session.
        session: SessionId,
        /// Which lease.
        lease: Lease,
        /// Why.
        failure: Failure,
    },
    /// Leases not started are given back.
    Returned {
        /// The node's session.
        session: SessionId,
        /// Which.
        leases: Vec<Lease>,
    },
    /// A node's devices say something else of themselves. A list of another length than the join's
    /// is ignored.
    DevicesChanged {
        /// Its session.
        session: SessionId,
        /// All of them.
        devices: Vec<DeviceInfo>,
    },
    /// A node takes no new work and leaves when it is done.
    NodeDraining {
        /// Its session.
        session: SessionId,
    },
    /// The files of a frame are in the blob store, synced.
    FrameResolved {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// One for each format of the spec, in its order.
        files: Vec<FrameFile>,
    },
    /// The newest round of a frame has been measured.
    RoundMeasured {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The round.
        round: u32,
        /// Tiles that need another round. Such as have ended do not count.
        noisy: TileSet,
    },
    /// A frame could not be made, or a round of it could not be measured.
    FrameResolveFailed {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// Why.
        failure: ResolveFailure,
    },
    /// Time has passed (see [`crate::Core::next_wakeup`]).
    Tick,
}

/// A result as it arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrived {
    /// Which lease it answers.
    pub lease: Lease,
    /// BLAKE3 of its bytes, checked.
    pub hash: BlobHash,
    /// What its header says.
    pub shape: ResultShape,
    /// Position of the device among the node's.
    pub device: u8,
    /// Device time in microseconds, as the node says.
    pub device_micros: u64,
    /// Bytes that it needed on the device at least, as the node says; 0 where it was not measured.
    pub device_bytes: u64,
}

/// Shape of a unit's result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultShape {
    /// A film, of a render job.
    Film(FilmShape),
    /// Values or partials, of a compute job.
    Chunk(ChunkShape),
}

impl ResultShape {
    /// Samples per pixel, or indices.
    pub fn size(&self) -> u32 {
        match self {
            Self::Film(film) => film.samples,
            Self::Chunk(chunk) => chunk.count,
        }
    }

    /// First sample index; 0 of a chunk.
    pub fn first(&self) -> u32 {
        match self {
            Self::Film(film) => film.first,
            Self::Chunk(_) => 0,
        }
    }
}

/// Shape of a unit's film.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FilmShape {
    /// Pixels across.
    pub width: u32,
    /// Pixels down.
    pub height: u32,
    /// Channels.
    pub channels: u8,
    /// First sample index.
    pub first: u32,
    /// Samples per pixel.
    pub samples: u32,
}

/// Why a frame could not be made, or measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveFailure {
    /// Nothing is lost (the disk is full, say): tried again, for ever, with a growing wait. The
    /// job's note says so.
    Retry(String),
    /// It will never work: the frame fails with this reason.
    Fatal(String),
}
