//! What the farm tells people and programs about itself.

use crate::device::{DeviceInfo, DeviceTelemetry};
use crate::ids::{BlobHash, Fingerprint, FrameNumber, JobId, NodeId};
use crate::job::{JobSpec, described};
use serde::{Deserialize, Serialize};

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted; no unit of it has been leased yet.
    Queued,
    /// Some unit has been leased.
    Running,
    /// Every frame is finished.
    Done,
    /// Ended with dead units; the other frames are finished.
    Failed,
    /// Ended by a user.
    Cancelled,
    /// A user wants nothing more of it to be done until it is resumed.
    Paused,
}

impl JobState {
    /// No more happens to it.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// Why nothing of a job that goes on is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// A user has paused it.
    Paused,
    /// The coordinator's disk is full, or a frame cannot be written for another reason.
    Disk,
    /// The coordinator has just started, and gives nodes time to come back.
    Start,
    /// No node is connected.
    Nodes,
    /// No node of its pool is.
    Pool,
    /// No node has a device of the kind that it needs.
    Device,
    /// No node has such a device and NVRTC to compile its kernel.
    Compiler,
    /// No node has the fingerprint of its first results.
    Fingerprint,
    /// All nodes that could are quarantined, draining or unfit.
    OutOfWork,
    /// No device has the memory.
    Memory,
    /// Its results wait to be rendered again by another node.
    Check,
    /// Its units have failed, and are tried again later.
    Backoff,
    /// The frame that the next one reads is being made.
    Feed,
    /// Others are served first.
    Turn,
    /// Its units lack what is not theirs (a file, room on a node's disk), and are tried again.
    Shortage,
}

/// A job in a listing. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Its id.
    pub job: JobId,
    /// Its name.
    pub name: String,
    /// Who submitted it.
    pub owner: String,
    /// Its state.
    pub state: JobState,
    /// Its priority, 0 to 100.
    pub priority: u8,
    /// When it was accepted.
    pub submitted_at: u64,
    /// When it ended.
    pub ended_at: Option<u64>,
    /// Frames in all.
    pub frames: u32,
    /// Frames finished.
    pub frames_done: u32,
    /// Frames that cannot finish.
    pub frames_failed: u32,
    /// Units in all.
    pub units: u64,
    /// Units committed.
    pub units_committed: u64,
    /// Units leased now.
    pub units_leased: u64,
    /// Samples per pixel × pixels committed: camera samples.
    pub samples_committed: u64,
    /// Those of them that nodes handed in as parts of units when they had to leave.
    pub samples_kept: u64,
    /// Why it waits, or failed: one line; empty where there is nothing to say.
    pub note: String,
    /// Why it waits, in a word; None where it does not.
    pub waits: Option<Waits>,
    /// Only nodes of this pool may work on it; None: any node.
    pub pool: Option<String>,
}

/// One job, whole.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The line of the listing.
    pub summary: JobSummary,
    /// What was asked for.
    #[serde(with = "described")]
    pub spec: JobSpec,
    /// The fingerprint its results have, once there is one.
    pub fingerprint: Option<Fingerprint>,
    /// Attempts that failed, newest last, at most 64.
    pub failures: Vec<FailureNote>,
    /// Units that two nodes worked on at once.
    pub copies: CopyCount,
}

/// Units of a job that were leased to an idle node beside the one that had them, and what came of
/// that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyCount {
    /// Units with two leases now.
    pub running: u64,
    /// Units whose copy was first, so that the lease before it was stopped.
    pub won: u64,
    /// Units whose copy was stopped, because the lease before it was first.
    pub lost: u64,
    /// How long the leases that were stopped had been held, milliseconds: what copies cost.
    pub wasted_millis: u64,
}

/// One failed attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    /// Seconds since the Unix epoch.
    pub at: u64,
    /// The unit, as text.
    pub unit: String,
    /// The node's name.
    pub node: String,
    /// What went wrong.
    pub reason: String,
}

/// State of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameState {
    /// Units are open.
    Open {
        /// Units committed.
        committed: u32,
        /// Units in all; of a frame that is sampled in rounds, of the rounds so far.
        units: u32,
        /// Where the frame is sampled in rounds: how far it is.
        round: Option<RoundStatus>,
    },
    /// All units are in; the file is being made.
    Resolving,
    /// Finished: its files.
    Done(Vec<FrameFile>),
    /// It has dead units.
    Failed(String),
}

/// How far a frame is that is sampled in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundStatus {
    /// The round that is rendered or measured, from 1.
    pub round: u32,
    /// Rounds at most.
    pub rounds: u32,
    /// Tiles that it is rendered for.
    pub tiles_open: u32,
    /// Tiles of the frame.
    pub tiles: u32,
    /// Samples per pixel after it, of those tiles.
    pub samples: u32,
}

/// A finished frame in one format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFile {
    /// File name extension: `exr` or `png`.
    pub format: String,
    /// The blob.
    pub hash: BlobHash,
    /// Its bytes.
    pub length: u64,
    /// SHA-256 of the resolved 32-bit float RGB pixels, row by row, little endian.
    pub pixels_sha256: [u8; 32],
}

/// A frame of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameStatus {
    /// Its number.
    pub frame: FrameNumber,
    /// Its state.
    pub state: FrameState,
    /// Of a frame that was sampled for a time, and has all samples that it gets: how many a pixel
    /// has, at most where the job asks for a noise. The same job with so many as its `spp`, and no
    /// time, makes the same picture.
    pub samples: Option<u32>,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Connected and taking work.
    Ready,
    /// Gets no new work, finishes what it has.
    Draining,
    /// Not connected, within its grace: its leases are kept.
    Away,
    /// Not connected; its leases have returned.
    Lost,
    /// Connected, but no work for it: failures, no device that may have work, or a foreign
    /// fingerprint.
    Unfit,
}

/// A node in a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSummary {
    /// Its id.
    pub node: NodeId,
    /// Its name.
    pub name: String,
    /// State.
    pub state: NodeState,
    /// Devices.
    pub devices: Vec<DeviceInfo>,
    /// How they were at its last heartbeat; those that said nothing are missing.
    pub telemetry: Vec<DeviceTelemetry>,
    /// Units leased to it now.
    pub units_leased: u32,
    /// Units it has committed since it joined.
    pub units_committed: u64,
    /// Camera samples it has committed per second over the last minute.
    pub samples_per_second: f64,
    /// Seconds since it was last heard.
    pub silent_secs: u64,
    /// Its build.
    pub build: String,
    /// Why it gets no work; empty where it does.
    pub note: String,
    /// The pool that it is of.
    pub pool: Option<String>,
}
