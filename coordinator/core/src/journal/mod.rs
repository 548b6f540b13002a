//! Durable facts, their versions and their encoding. Replay is in `farm.rs`; the shell stores them.

mod error;
pub(crate) mod versioned;

use serde::{Deserialize, Serialize};
use tessera_protocol::CodecError;
use tessera_protocol::cost::{Amount, CostRules};
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex,
};
use tessera_protocol::job::{JobEdit, JobSpec, described};
use tessera_protocol::status::{FrameFile, JobState};

use crate::state::rounds::TileSet;
use crate::time::Moment;
pub use error::JournalError;
use versioned::Format;

/// One durable fact of the journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Record {
    /// Leases may use epochs below this one. Written before any of them is used, so that no epoch
    /// is used twice across restarts.
    EpochsReserved {
        /// First epoch that is not reserved.
        up_to: Epoch,
    },
    /// A job was accepted.
    JobAccepted {
        /// Id that the client chose.
        job: JobId,
        /// Spec as it was checked.
        #[serde(with = "described")]
        spec: Box<JobSpec>,
        /// Name of the client that submitted the job.
        owner: String,
        /// Number of that client's identity.
        owner_id: u64,
        /// Time of acceptance.
        at: Moment,
    },
    /// The first result of a job fixed the fingerprint of builds that may take part in it.
    JobPinned {
        /// Job that is fixed to one fingerprint.
        job: JobId,
        /// Fingerprint of the node that made the first result.
        fingerprint: Fingerprint,
    },
    /// Results of one frame were accepted, each unit for the first and only time.
    UnitsCommitted {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Accepted results, one for each unit.
        commits: Vec<Commit>,
    },
    /// Leases of one node ended without a result, and count as attempts or losses.
    AttemptsEnded {
        /// Time when the leases ended.
        at: Moment,
        /// Node that held the leases.
        node: NodeId,
        /// Name of the node, for people.
        name: String,
        /// Leases that ended, with their endings.
        attempts: Vec<EndedAttempt>,
    },
    /// The files of a frame are stored.
    FrameFinished {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// One file for each format of the spec, in the order of the spec.
        files: Vec<FrameFile>,
    },
    /// A frame has failed for good.
    FrameFailed {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Reason, for people.
        reason: String,
    },
    /// A job reached a final state.
    JobEnded {
        /// Job that ended.
        job: JobId,
        /// Final state: done, failed or cancelled.
        state: JobState,
        /// Time of the end.
        at: Moment,
        /// Reason for people; empty if there is nothing to say.
        note: String,
    },
    /// An operator drained a node, or ended its draining.
    NodeDrained {
        /// Node that is drained.
        node: NodeId,
        /// True to drain, false to end the draining.
        drained: bool,
        /// Whether a drained node is to leave as well.
        leave: bool,
        /// Name of the operator.
        by: String,
        /// Time of the request.
        at: Moment,
    },
    /// A job that had ended was deleted.
    JobForgotten {
        /// Job that was deleted.
        job: JobId,
    },
    /// A committed unit was rendered again. The check ends if both results agree, or if more nodes
    /// vote for one result than for any other; otherwise it continues.
    UnitChecked {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Result of the check.
        redone: Redone,
    },
    /// A check was dropped because no node could make it.
    CheckWaived {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Unit whose result stays unchecked.
        unit: UnitIndex,
    },
    /// Committed units of an unfinished frame are open again, because their node gave wrong
    /// results. A frame that is sampled in rounds returns to the first round of any of them; all
    /// units of later rounds are in the list.
    UnitsTakenBack {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Units that are open again.
        units: Vec<UnitIndex>,
        /// Results of leases below this epoch are refused from now on.
        below: Epoch,
    },
    /// A node gave a wrong result, or is one of several that may have done so.
    NodeSuspected {
        /// Node that is suspected.
        node: NodeId,
        /// Name of the node, for people.
        name: String,
        /// Time of the finding.
        at: Moment,
        /// Description of what the node did, for people.
        reason: String,
        /// True if the node is known to be wrong: it gets no work while another node is connected.
        /// False if it is not known which of several nodes is wrong.
        guilty: bool,
    },
    /// An operator trusts a suspected node again.
    NodeReleased {
        /// Node that is trusted again.
        node: NodeId,
    },
    /// A job was paused: none of its units is leased until it is resumed.
    JobPaused {
        /// Job that was paused.
        job: JobId,
        /// Name of the client that paused it.
        by: String,
        /// Time of the pause.
        at: Moment,
    },
    /// A paused job was resumed.
    JobResumed {
        /// Job that was resumed.
        job: JobId,
    },
    /// A unit had two leases, and the result of one of them was taken: the other was stopped.
    CopyStopped {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Unit that had two leases.
        unit: UnitIndex,
        /// Epoch of the lease that was stopped.
        epoch: Epoch,
        /// Node that held the stopped lease.
        node: NodeId,
        /// Epoch of the lease whose result was taken. The lease with the greater epoch is the copy.
        winner: Epoch,
        /// Time for which the stopped lease was held, in milliseconds.
        millis: u64,
    },
    /// All failed frames of a job are open again, without commits and attempts. A job that had
    /// ended is open again too. Finished frames stay.
    JobRetried {
        /// Job that is open again.
        job: JobId,
        /// Results of leases below this epoch are refused, unless the lease is still held.
        below: Epoch,
        /// Name of the client that asked for the retry.
        by: String,
        /// Time of the retry.
        at: Moment,
    },
    /// A leaving node handed in the first samples of an open unit. They are committed; the rest of
    /// the unit stays open.
    PartCommitted {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Node, lease and hash of the samples.
        commit: Commit,
        /// Index of the first sample within the unit: the sum of the samples of earlier parts.
        first: u32,
        /// Number of samples per pixel, less than the number that was missing.
        samples: u32,
    },
    /// Parts of open units are void, because one of their nodes gave wrong results.
    PartsDropped {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Units that are open from their first sample again.
        units: Vec<UnitIndex>,
        /// Results of leases below this epoch are refused from now on.
        below: Epoch,
    },
    /// A round of a frame is complete, and measured if the job asks for a noise. If no tile
    /// continues, the frame has reached its noise or used up its time.
    RoundMeasured {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Round that is complete, from 1.
        round: u32,
        /// Tiles that continue with the next round.
        going: TileSet,
        /// Share of the farm's time that the frame has used, in milliseconds; 0 if the job has no
        /// time limit.
        spent_millis: u64,
    },
    /// The exposure of a job's files was metered in its first frame, whose files are stored with
    /// this record's step.
    ExposureMetered {
        /// Job whose exposure is known from now on.
        job: JobId,
        /// Exposure in stops.
        stops: f32,
    },
    /// A node was wrong about a chunk of a user's kernel: it gets no more of this job while another
    /// node may have it. Nothing follows for other jobs.
    NodeBarred {
        /// Job whose kernel it is.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Chunk of which its result was wrong.
        unit: UnitIndex,
        /// Node that was wrong.
        node: NodeId,
        /// Name of the node, for people.
        name: String,
        /// Time of the finding.
        at: Moment,
        /// Description of what the node did, for people.
        reason: String,
    },
    /// A node joined that was not known to be there, or that has another name or pool now. Nothing
    /// is recorded of a node that comes back within its grace.
    NodeJoined {
        /// Node that joined.
        node: NodeId,
        /// Name of the node.
        name: String,
        /// Pool of the node.
        pool: Option<String>,
        /// Time of the join.
        at: Moment,
    },
    /// A node is gone.
    NodeGone {
        /// Node that is gone.
        node: NodeId,
        /// How it went.
        how: Gone,
        /// Time since which it is gone.
        at: Moment,
        /// Why, for people.
        why: String,
    },
    /// A node has the name of an older one, which is taken off the list: its machine was installed
    /// anew, or its name has another holder.
    NodeReplaced {
        /// Node that had the name before, and is gone.
        old: NodeId,
        /// Node that has the name now.
        new: NodeId,
        /// Time of the finding.
        at: Moment,
    },
    /// Nodes that have been gone for longest are not kept any longer.
    NodesForgotten {
        /// Nodes that are forgotten.
        nodes: Vec<NodeId>,
    },
    /// A user changed what a job that had not ended is called, or when and where it is worked on.
    JobChanged {
        /// Job that was changed.
        job: JobId,
        /// What is different from now on.
        change: JobEdit,
        /// Name of the client that changed it.
        by: String,
        /// Time of the change.
        at: Moment,
    },
    /// Nodes finish a frame whose samples are all committed and checked, by its finishing units.
    FinishingBegun {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
    },
    /// Nodes could not finish a frame: the coordinator does. What they made of it is void, and they
    /// do not try again.
    FinishingClosed {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Time of the decision.
        at: Moment,
        /// Reason, for people.
        reason: String,
    },
    /// Bytes of committed results are damaged or missing. Their units are open again, with those
    /// that depend on them, as after [`Record::UnitsTakenBack`]; no node is at fault.
    ResultsLost {
        /// Job that the frame belongs to.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
        /// Units that are open again.
        units: Vec<UnitIndex>,
        /// Results of leases below this epoch are refused from now on.
        below: Epoch,
        /// Time of the finding.
        at: Moment,
        /// What is wrong with the bytes, for people.
        reason: String,
    },
    /// A device had nothing to do because what a unit needs was still being prepared. The unit's
    /// result tells so. Nothing is recorded where no device waited.
    DeviceWaited {
        /// Job of the unit.
        job: JobId,
        /// Time for which the device waited, in milliseconds; no more than the unit's lease was
        /// held.
        millis: u64,
    },
    /// A job does not wait for another one any more: what it waited for has happened. This stays
    /// so, whatever becomes of the other job.
    WaitEnded {
        /// Job that waited.
        job: JobId,
        /// Job that it waited for.
        on: JobId,
    },
    /// Devices were busy with units of a job, whose leases ended in this step.
    TimeSpent {
        /// Job of the units.
        job: JobId,
        /// Time of the step.
        at: Moment,
        /// Device time, one for each product name and price.
        spent: Vec<Spending>,
    },
    /// An admin set what device time costs and what may be spent, from this time on.
    CostRulesSet {
        /// The rules, instead of those before.
        rules: Box<CostRules>,
        /// Name of the admin.
        by: String,
        /// Time of the change.
        at: Moment,
    },
    /// The space of finished frames since the record before, or since it has a price, was counted
    /// for their owners: as much as there is now, at the price of the rules.
    StorageCounted {
        /// Time of the count.
        at: Moment,
    },
    /// An admin published a template for all who submit, or took it away.
    PresetSet {
        /// Name of the preset.
        name: String,
        /// The template; None took it away.
        text: Option<String>,
        /// Name of the admin.
        by: String,
        /// Time of the change.
        at: Moment,
    },
}

/// Device time of one job in one step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    /// Product name of the devices.
    pub device: String,
    /// Price of an hour at that time, with the factor of the rules.
    pub an_hour: Amount,
    /// Device time in microseconds, with what was lost.
    pub micros: u64,
    /// Device time in microseconds of which no result was taken.
    pub lost_micros: u64,
}

/// How a node went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Gone {
    /// It said that it leaves, and ended.
    Left,
    /// Its connection was lost, and it did not come back within its grace.
    Lost,
    /// It was taken off the list.
    Removed,
}

/// One accepted result of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// Index of the unit within its frame.
    pub unit: UnitIndex,
    /// Epoch of the lease that the result answers.
    pub epoch: Epoch,
    /// Node that made the result.
    pub node: NodeId,
    /// BLAKE3 hash of the bytes in the spool.
    pub hash: BlobHash,
    /// Whether another node must render the unit again before the frame is resolved.
    pub check: bool,
}

/// A result that is compared with a committed one, and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redone {
    /// Index of the unit within its frame.
    pub unit: UnitIndex,
    /// Epoch of the lease that the result answers.
    pub epoch: Epoch,
    /// Node that made the result.
    pub node: NodeId,
    /// BLAKE3 hash of the bytes, which are not kept.
    pub hash: BlobHash,
}

/// One lease that ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAttempt {
    /// Lease that ended.
    pub lease: Lease,
    /// How the lease ended.
    pub ending: Ending,
}

/// How a lease ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The node reported a failure, or its result was invalid. Its result is refused from now on.
    Failed(String),
    /// Not renewed in time, or held too long. A late result is accepted until another lease is
    /// granted.
    Expired,
    /// Lost with its node's session or process. A late result is accepted until another lease is
    /// granted.
    Lost,
    /// The unit took too long or made no progress. Its result is refused from now on.
    TimedOut(String),
    /// The node cannot prepare the job. Its result is refused from now on.
    Unprepared(String),
    /// The job exceeds a limit of the node. Its result is refused from now on.
    Limited(String),
    /// The unit failed on the same node as the last time, while another may have it. Its result is
    /// refused from now on.
    Repeated(String),
    /// The node is connected, and began none of its units. A late result is accepted until another
    /// lease is granted.
    Idle(String),
}

impl Ending {
    /// Whether the node has failed, so that its result is refused; otherwise the lease was lost.
    pub fn has_failed(&self) -> bool {
        !matches!(self, Self::Expired | Self::Lost | Self::Idle(_))
    }
}

/// Versions of records and of the parts of a snapshot. This enum is the changelog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordVersion {
    /// First version.
    V1 = 1,
}

/// Version that this build writes.
pub const RECORD_VERSION: u8 = RecordVersion::V1 as u8;

/// Current version of records; there is no older one.
const FORMAT: Format<Record> = Format { what: "record", version: RECORD_VERSION, older: &[] };

impl Record {
    /// Returns the job whose frames, units or end it changes, if there is one.
    pub(crate) fn job(&self) -> Option<JobId> {
        match self {
            Self::JobAccepted { job, .. }
            | Self::JobPinned { job, .. }
            | Self::UnitsCommitted { job, .. }
            | Self::FrameFinished { job, .. }
            | Self::FrameFailed { job, .. }
            | Self::JobEnded { job, .. }
            | Self::JobForgotten { job }
            | Self::UnitChecked { job, .. }
            | Self::CheckWaived { job, .. }
            | Self::UnitsTakenBack { job, .. }
            | Self::JobPaused { job, .. }
            | Self::JobResumed { job }
            | Self::CopyStopped { job, .. }
            | Self::JobRetried { job, .. }
            | Self::PartCommitted { job, .. }
            | Self::PartsDropped { job, .. }
            | Self::RoundMeasured { job, .. }
            | Self::ExposureMetered { job, .. }
            | Self::NodeBarred { job, .. }
            | Self::JobChanged { job, .. }
            | Self::FinishingBegun { job, .. }
            | Self::FinishingClosed { job, .. }
            | Self::ResultsLost { job, .. }
            | Self::WaitEnded { job, .. }
            | Self::DeviceWaited { job, .. }
            | Self::TimeSpent { job, .. } => Some(*job),
            Self::EpochsReserved { .. }
            | Self::AttemptsEnded { .. }
            | Self::NodeDrained { .. }
            | Self::NodeSuspected { .. }
            | Self::NodeReleased { .. }
            | Self::NodeJoined { .. }
            | Self::NodeGone { .. }
            | Self::NodeReplaced { .. }
            | Self::NodesForgotten { .. }
            | Self::CostRulesSet { .. }
            | Self::StorageCounted { .. }
            | Self::PresetSet { .. } => None,
        }
    }

    /// Encodes the version byte and the record. Fails only for a spec that is too large for the
    /// wire.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        FORMAT.to_bytes(self)
    }

    /// Decodes a record of this version or of an older one.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        FORMAT.read(bytes)
    }
}
