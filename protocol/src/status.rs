//! State of jobs, frames and nodes, as commands and programs see it.

use crate::cost::{Amount, Spent, Stored};
use crate::device::{DeviceInfo, DeviceTelemetry};
use crate::ids::{BlobHash, Fingerprint, FrameNumber, JobId, NodeId};
use crate::job::{JobSpec, Until, described};
use serde::{Deserialize, Serialize};

/// State of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Accepted. No unit of the job has been leased yet.
    Queued,
    /// At least one unit has been leased.
    Running,
    /// Every frame is finished.
    Done,
    /// Ended with dead units; the other frames are finished.
    Failed,
    /// Ended by a user.
    Cancelled,
    /// Paused by a user. The job gets no work until it is resumed.
    Paused,
}

impl JobState {
    /// Every state.
    pub const ALL: [Self; 6] =
        [Self::Queued, Self::Running, Self::Paused, Self::Done, Self::Failed, Self::Cancelled];

    /// Returns the name, as people read and write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Paused => "paused",
        }
    }

    /// Returns whether the job has ended for good.
    pub fn is_final(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

/// Reason why nothing of an open job is being worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waits {
    /// A user has paused the job.
    Paused,
    /// The coordinator's disk is full, or a frame cannot be written for another reason.
    Disk,
    /// The coordinator has just started and waits for nodes to come back.
    Start,
    /// No node is connected.
    Nodes,
    /// No node of the job's pool is connected.
    Pool,
    /// No connected node has a device of the kind that the job needs.
    Device,
    /// No connected node has such a device and also NVRTC to compile the kernel.
    Compiler,
    /// No connected node has the fingerprint of the job's first results.
    Fingerprint,
    /// All suitable nodes are quarantined, draining or unfit.
    OutOfWork,
    /// No device has enough memory.
    Memory,
    /// Results of the job wait until another node has rendered them again.
    Check,
    /// Units of the job have failed and are tried again later.
    Backoff,
    /// The next frame reads the result of a frame that is not finished.
    Feed,
    /// Other jobs are served first.
    Turn,
    /// Units lack something outside the job (a file, space on a node's disk) and are tried again.
    Shortage,
    /// No connected node has a driver and a device that take the kernel's PTX.
    Driver,
    /// Every node that may have the job has reached a limit of its own, such as `--scene-memory`.
    Limits,
    /// Another job, or a frame of it, is not finished yet.
    After,
    /// What the owner may spend is spent.
    Budget,
    /// The job is not to begin yet.
    NotBefore,
}

impl Waits {
    /// Every reason.
    pub const ALL: [Self; 20] = [
        Self::Paused,
        Self::Disk,
        Self::Start,
        Self::Nodes,
        Self::Pool,
        Self::Device,
        Self::Compiler,
        Self::Fingerprint,
        Self::OutOfWork,
        Self::Memory,
        Self::Check,
        Self::Backoff,
        Self::Feed,
        Self::Turn,
        Self::Shortage,
        Self::Driver,
        Self::Limits,
        Self::After,
        Self::Budget,
        Self::NotBefore,
    ];

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Disk => "disk",
            Self::Start => "start",
            Self::Nodes => "nodes",
            Self::Pool => "pool",
            Self::Device => "device",
            Self::Compiler => "compiler",
            Self::Fingerprint => "fingerprint",
            Self::OutOfWork => "out_of_work",
            Self::Memory => "memory",
            Self::Check => "check",
            Self::Backoff => "backoff",
            Self::Feed => "feed",
            Self::Turn => "turn",
            Self::Shortage => "shortage",
            Self::Driver => "driver",
            Self::Limits => "limits",
            Self::After => "after",
            Self::Budget => "budget",
            Self::NotBefore => "not_before",
        }
    }

    /// Returns whether the job goes on only once somebody changes something: the farm, its nodes or
    /// the job. Other waits end by themselves, or are what a user wanted.
    pub fn is_stuck(self) -> bool {
        match self {
            Self::Disk
            | Self::Nodes
            | Self::Pool
            | Self::Device
            | Self::Compiler
            | Self::Fingerprint
            | Self::OutOfWork
            | Self::Memory
            | Self::Shortage
            | Self::Driver
            | Self::Limits
            | Self::Budget => true,
            Self::Paused
            | Self::Start
            | Self::Check
            | Self::Backoff
            | Self::Feed
            | Self::Turn
            | Self::After
            | Self::NotBefore => false,
        }
    }

    /// Returns the reason in a few words, for a column of a table.
    pub fn short(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Disk => "the disk is full, or a frame cannot be written",
            Self::Start => "the coordinator has just started",
            Self::Nodes => "no node is connected",
            Self::Pool => "no node of its pool is connected",
            Self::Device => "no node has a CUDA device",
            Self::Compiler => "no node has a CUDA device and NVRTC",
            Self::Driver => "no node has a driver and a device for its PTX",
            Self::Fingerprint => "no node has its fingerprint",
            Self::OutOfWork => "its nodes are out of work",
            Self::Memory => "no device has the memory",
            Self::Check => "waits for a check by another node",
            Self::Backoff => "its units have failed, and are tried again",
            Self::Feed => "the frame before is being made",
            Self::Turn => "other jobs are served first",
            Self::Shortage => "a node lacks a file, or room",
            Self::Limits => "no node has the memory, time or disk for it",
            Self::After => "waits for another job",
            Self::Budget => "its budget is used up",
            Self::NotBefore => "it begins later",
        }
    }
}

/// A job in a listing. Times are seconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobSummary {
    /// Id of the job.
    pub job: JobId,
    /// Name of the job.
    pub name: String,
    /// Name of the client that submitted the job.
    pub owner: String,
    /// Number of that client's identity. Rights to the job go by it.
    pub owner_id: u64,
    /// State of the job.
    pub state: JobState,
    /// Priority, 0 to 100.
    pub priority: u8,
    /// When the job was accepted.
    pub submitted_at: u64,
    /// When the job ended.
    pub ended_at: Option<u64>,
    /// Number of frames of the job.
    pub frames: u32,
    /// Number of finished frames.
    pub frames_done: u32,
    /// Number of frames that cannot finish.
    pub frames_failed: u32,
    /// Number of units of the job, as far as they are known.
    pub units: u64,
    /// Number of committed units.
    pub units_committed: u64,
    /// Number of units that are leased now.
    pub units_leased: u64,
    /// Committed camera samples: samples per pixel × pixels.
    pub samples_committed: u64,
    /// Committed camera samples that came as parts of units, from nodes that had to leave.
    pub samples_kept: u64,
    /// One line that says why the job waits or failed; empty if it does neither.
    pub note: String,
    /// Why the job waits; None if it does not.
    pub waits: Option<Waits>,
    /// Pool whose nodes can work on the job; None allows any node.
    pub pool: Option<String>,
    /// Seconds until the job should end; None if that is not known.
    pub left_secs: Option<u64>,
    /// Device time that was spent for the job, in milliseconds, with what was lost.
    pub device_millis: u64,
    /// What that time and the space of its finished frames cost, by the prices of when they were
    /// used.
    pub cost: Amount,
}

/// A job as messages name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobName {
    /// Id of the job.
    pub job: JobId,
    /// Name of the job.
    pub name: String,
    /// Name of the owner.
    pub owner: String,
    /// Number of the owner's identity.
    pub owner_id: u64,
    /// State of the job.
    pub state: JobState,
    /// When the job was accepted, in seconds since the Unix epoch.
    pub submitted_at: u64,
}

impl From<&JobSummary> for JobName {
    fn from(summary: &JobSummary) -> Self {
        let JobSummary { job, name, owner, owner_id, state, submitted_at, .. } = summary;
        let (name, owner) = (name.clone(), owner.clone());
        Self {
            job: *job,
            name,
            owner,
            owner_id: *owner_id,
            state: *state,
            submitted_at: *submitted_at,
        }
    }
}

/// Everything about one job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobDetail {
    /// The job's line in the listing.
    pub summary: JobSummary,
    /// Spec that was submitted.
    #[serde(with = "described")]
    pub spec: JobSpec,
    /// Fingerprint of the job's results; None before the first result.
    pub fingerprint: Option<Fingerprint>,
    /// Failed attempts, newest last, at most 64.
    pub failures: Vec<FailureNote>,
    /// Units that two nodes worked on at the same time.
    pub copies: CopyCount,
    /// For how long devices had nothing to do because a frame was still being prepared, in
    /// milliseconds: the sum over all devices, as their nodes tell with results.
    pub devices_waited_millis: u64,
    /// Jobs that this one waits for or has waited for, in the order of its spec.
    pub after: Vec<AfterStatus>,
    /// Jobs that wait for this one or have waited for it, by id, at most
    /// [`crate::limits::AWAITED_NAMED_MAX`].
    pub awaited_by: Vec<AfterStatus>,
    /// Number of all jobs that wait for this one or have waited for it.
    pub awaited_count: u64,
    /// Device time that was spent for the job, by product name.
    pub spent: Vec<Spent>,
    /// Space of the job's finished frames.
    pub stored: Stored,
    /// Expected device time of what is left to do, in milliseconds, by what its results took so
    /// far; None before the first result, and once the job has ended.
    pub left_millis: Option<u64>,
    /// Name of the currency of costs; empty where nothing has a price.
    pub currency: String,
}

/// One job that waits for another: how far the wait is, and the job at its other end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AfterStatus {
    /// Job at the other end.
    pub job: JobId,
    /// Name of that job; empty if it was forgotten.
    pub name: String,
    /// State of that job; None if it was forgotten.
    pub state: Option<JobState>,
    /// What is waited for.
    pub until: Until,
    /// Number of frames that are waited for: all of a job, or those of the job that waits frame by
    /// frame.
    pub frames: u32,
    /// Number of those that are finished.
    pub frames_done: u32,
    /// Whether the wait is over.
    pub over: bool,
}

/// Counts units that got a second lease (a copy), for an idle node beside the first node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopyCount {
    /// Units that have two leases now.
    pub running: u64,
    /// Units whose copy finished first. The other lease was stopped.
    pub won: u64,
    /// Units whose first lease finished first. The copy was stopped.
    pub lost: u64,
    /// Cost of copies: how long the stopped leases had been held, in milliseconds.
    pub wasted_millis: u64,
}

/// One failed attempt, for people.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailureNote {
    /// Time of the failure, in seconds since the Unix epoch.
    pub at: u64,
    /// Unit of the attempt, as text.
    pub unit: String,
    /// Name of the node.
    pub node: String,
    /// Reason of the failure.
    pub reason: String,
}

/// State of a frame.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FrameState {
    /// Some units are not committed yet.
    Open {
        /// Number of committed units.
        committed: u32,
        /// Number of units. For a frame that is sampled in rounds, units of the rounds so far.
        units: u32,
        /// Progress of the rounds; None if the frame is not sampled in rounds.
        round: Option<RoundStatus>,
    },
    /// All units are committed; the coordinator makes the files, or will.
    Resolving,
    /// Finished, with these files.
    Done(Vec<FrameFile>),
    /// The frame has dead units.
    Failed(String),
    /// All units are committed, and nodes finish the frame.
    Finishing {
        /// Number of finishing units that are committed.
        done: u32,
        /// Number of finishing units: of bands of rows, and of what runs through all of them.
        pieces: u32,
    },
}

/// Progress of a frame that is sampled in rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundStatus {
    /// Round that is being rendered or measured, counted from 1.
    pub round: u32,
    /// Most rounds that the frame can have.
    pub rounds: u32,
    /// Number of tiles that are rendered in this round.
    pub tiles_open: u32,
    /// Number of tiles of the frame.
    pub tiles: u32,
    /// Samples per pixel of those tiles after this round.
    pub samples: u32,
}

/// One file of a finished frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FrameFile {
    /// File name extension, such as `exr` or `png`. For a named output of a compute job, its name
    /// and the extension: `flux.npy`.
    pub format: String,
    /// Hash of the file's bytes.
    pub hash: BlobHash,
    /// Length of the file in bytes.
    pub length: u64,
    /// SHA-256 of the resolved 32-bit float RGB pixels, row by row, little endian.
    pub pixels_sha256: [u8; 32],
}

/// State of one frame of a job.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FrameStatus {
    /// Number of the frame.
    pub frame: FrameNumber,
    /// State of the frame.
    pub state: FrameState,
    /// Samples per pixel of a frame that was sampled for a time and gets no more samples. With a
    /// noise, it is the most that a pixel has. The same job without a time, and with this number as
    /// `spp`, makes the same picture.
    pub samples: Option<u32>,
}

/// State of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeState {
    /// Connected and taking work.
    Ready,
    /// Connected. Gets no new work and finishes the work that it has.
    Draining,
    /// Not connected, but within its grace. Its leases are kept.
    Away,
    /// Not connected, without having said that it leaves. Its leases have returned.
    Lost,
    /// Connected, but cannot get work: because of failures, of its devices, or of its fingerprint.
    Unfit,
    /// Connected and idle: an operator drained it, and it has finished its units.
    Drained,
    /// Not connected: it said that it leaves, and ended.
    Left,
    /// Taken off the list by an operator, or because its name has another holder.
    Removed,
}

impl NodeState {
    /// Every state.
    pub const ALL: [Self; 8] = [
        Self::Ready,
        Self::Draining,
        Self::Away,
        Self::Lost,
        Self::Unfit,
        Self::Drained,
        Self::Left,
        Self::Removed,
    ];

    /// Returns the name, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Draining => "draining",
            Self::Away => "away",
            Self::Lost => "lost",
            Self::Unfit => "unfit",
            Self::Drained => "drained",
            Self::Left => "left",
            Self::Removed => "removed",
        }
    }

    /// Returns whether a node in this state has no connection.
    pub fn is_absent(self) -> bool {
        matches!(self, Self::Away | Self::Lost | Self::Left | Self::Removed)
    }
}

/// A node in a listing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NodeSummary {
    /// Id of the node.
    pub node: NodeId,
    /// Name of the node.
    pub name: String,
    /// Number of the node's identity; 0 if it is not known.
    pub identity: u64,
    /// State of the node.
    pub state: NodeState,
    /// Devices of the node.
    pub devices: Vec<DeviceInfo>,
    /// State of the devices at the last heartbeat, without those that reported nothing.
    pub telemetry: Vec<DeviceTelemetry>,
    /// Number of units that are leased to the node now.
    pub units_leased: u32,
    /// Number of units that the node has committed since it joined.
    pub units_committed: u64,
    /// Committed camera samples per second, over the last minute.
    pub samples_per_second: f64,
    /// Seconds since the last message of the node.
    pub silent_secs: u64,
    /// Name and version of the node's build.
    pub build: String,
    /// Reason why the node gets no work; empty if it gets work.
    pub note: String,
    /// Pool of the node; None if it is in no pool.
    pub pool: Option<String>,
    /// When the node joined, or when it left, was lost or was removed, in seconds since the Unix
    /// epoch.
    pub since: u64,
    /// Whether an operator has drained the node.
    pub drained: bool,
    /// Share of the time with work, of the last minute, in which its devices worked, 0 to 1; None
    /// if it had no work. See [`crate::node::Heartbeat::busy`].
    pub busy: Option<f32>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_of_waits_and_nodes_are_those_of_json() {
        let in_json = |value: serde_json::Result<String>| value.map(|text| text.replace('"', ""));
        let waits: BTreeSet<&str> = Waits::ALL.into_iter().map(Waits::name).collect();
        assert_eq!(waits.len(), Waits::NotBefore as usize + 1, "one is missing, or comes twice");
        for waits in Waits::ALL {
            assert_eq!(in_json(serde_json::to_string(&waits)).ok().as_deref(), Some(waits.name()));
        }
        let states: BTreeSet<&str> = NodeState::ALL.into_iter().map(NodeState::name).collect();
        assert_eq!(states.len(), NodeState::Removed as usize + 1, "one is missing, or comes twice");
        for state in NodeState::ALL {
            assert_eq!(in_json(serde_json::to_string(&state)).ok().as_deref(), Some(state.name()));
        }
    }
}
