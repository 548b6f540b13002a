//! Durable facts, their versions and their bytes. Replay is in `farm.rs`; where they are stored is
//! the shell's.

mod error;
pub(crate) mod versioned;

use serde::{Deserialize, Serialize};
use tessera_protocol::CodecError;
use tessera_protocol::ids::{
    BlobHash, Epoch, Fingerprint, FrameNumber, JobId, Lease, NodeId, UnitIndex,
};
use tessera_protocol::job::{JobSpec, described};
use tessera_protocol::status::{FrameFile, JobState};

use crate::state::rounds::TileSet;
use crate::time::Moment;
pub use error::JournalError;
use versioned::Format;

/// One durable fact.
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
        /// Its id.
        job: JobId,
        /// What is asked for.
        #[serde(with = "described")]
        spec: Box<JobSpec>,
        /// Who asked.
        owner: String,
        /// When.
        at: Moment,
    },
    /// The first result of a job came from this fingerprint: no other may take part.
    JobPinned {
        /// The job.
        job: JobId,
        /// The fingerprint.
        fingerprint: Fingerprint,
    },
    /// Results of one frame were accepted, each unit for the first and only time.
    UnitsCommitted {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The units.
        commits: Vec<Commit>,
    },
    /// Leases of one node ended without a result, in a way that counts.
    AttemptsEnded {
        /// When.
        at: Moment,
        /// The node.
        node: NodeId,
        /// Its name.
        name: String,
        /// The leases.
        attempts: Vec<EndedAttempt>,
    },
    /// The files of a frame are made.
    FrameFinished {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// One for each format.
        files: Vec<FrameFile>,
    },
    /// A frame cannot be made.
    FrameFailed {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// Why.
        reason: String,
    },
    /// A job ended. Its state is a final one.
    JobEnded {
        /// The job.
        job: JobId,
        /// How.
        state: JobState,
        /// When.
        at: Moment,
        /// Why, where there is something to say.
        note: String,
    },
    /// An operator took a node out of work, or put it back.
    NodeDrained {
        /// The node.
        node: NodeId,
        /// Out, or back.
        drained: bool,
    },
    /// A job that had ended is known no more.
    JobForgotten {
        /// The job.
        job: JobId,
    },
    /// A committed unit was rendered again. Where its node and this one say the same, or more nodes
    /// say so than say anything else, the check is over; otherwise it goes on.
    UnitChecked {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The result.
        redone: Redone,
    },
    /// A check ends without having been made: no node could make it.
    CheckWaived {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The unit.
        unit: UnitIndex,
    },
    /// Committed units of an unfinished frame are open again: their node gave wrong results. Where
    /// the frame is sampled in rounds, its rounds goes back to the first round of any of them;
    /// those of later rounds are all among them.
    UnitsTakenBack {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The units.
        units: Vec<UnitIndex>,
        /// Results of leases below it are not wanted any more.
        below: Epoch,
    },
    /// A node gave a wrong result, or may have.
    NodeSuspected {
        /// The node.
        node: NodeId,
        /// Its name.
        name: String,
        /// When.
        at: Moment,
        /// What it did.
        reason: String,
        /// It did: no work for it while another node lives. Otherwise nobody can tell which of
        /// several did.
        guilty: bool,
    },
    /// An operator trusts a node again.
    NodeReleased {
        /// The node.
        node: NodeId,
    },
    /// Nothing of a job is leased from now on.
    JobPaused {
        /// The job.
        job: JobId,
        /// Who wants that.
        by: String,
        /// When.
        at: Moment,
    },
    /// A job that was paused goes on.
    JobResumed {
        /// The job.
        job: JobId,
    },
    /// A unit had two leases, and the result of one of them was taken: the other was stopped.
    CopyStopped {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The unit.
        unit: UnitIndex,
        /// The lease that was stopped.
        epoch: Epoch,
        /// Whose it was.
        node: NodeId,
        /// The lease whose result was taken. The one with the greater epoch is the copy.
        winner: Epoch,
        /// How long the other was held, milliseconds.
        millis: u64,
    },
    /// All failed frames of a job are open again, with nothing committed and no attempt made; and
    /// the job, if it had ended. Finished frames stay.
    JobRetried {
        /// The job.
        job: JobId,
        /// Results of leases below it are not wanted any more, unless the lease is held.
        below: Epoch,
        /// Who wants that.
        by: String,
        /// When.
        at: Moment,
    },
    /// A node that left handed in the first of the samples that it was to render of an open unit.
    /// They are committed; the rest is still open.
    PartCommitted {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// Whose, and by which lease.
        commit: Commit,
        /// Their first, counted from the unit's first: as many as the unit's parts before have.
        first: u32,
        /// How many, fewer than are missing.
        samples: u32,
    },
    /// Parts of open units are not wanted any more: one of their nodes gave wrong results.
    PartsDropped {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The units.
        units: Vec<UnitIndex>,
        /// Results of leases below it are not wanted any more.
        below: Epoch,
    },
    /// A round of a frame has been rendered, and measured where the job asks for a noise. The next
    /// is for the tiles that are too noisy, or for all; where it is for none, the frame has all
    /// that it needs, or all that its time allows.
    RoundMeasured {
        /// The job.
        job: JobId,
        /// The frame.
        frame: FrameNumber,
        /// The round, from 1.
        round: u32,
        /// The tiles that go on.
        going: TileSet,
        /// The farm's time that the frame has had, milliseconds; 0 where that is not counted.
        spent_millis: u64,
    },
}

/// One accepted result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commit {
    /// The unit of the frame.
    pub unit: UnitIndex,
    /// The lease it answers.
    pub epoch: Epoch,
    /// Who made it.
    pub node: NodeId,
    /// Its bytes in the spool.
    pub hash: BlobHash,
    /// Another node renders it again before its frame is resolved.
    pub check: bool,
}

/// A result that is compared with a committed one, and not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redone {
    /// The unit of the frame.
    pub unit: UnitIndex,
    /// The lease it answers.
    pub epoch: Epoch,
    /// Who made it.
    pub node: NodeId,
    /// Its bytes.
    pub hash: BlobHash,
}

/// One lease that ended without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAttempt {
    /// The lease.
    pub lease: Lease,
    /// How it ended.
    pub ending: Ending,
}

/// How a lease ends without a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// The node said so, or its result was no good. Its result is not accepted any more.
    Failed(String),
    /// Not renewed in time, or held too long. A late result is accepted while no other lease is
    /// given.
    Expired,
    /// Lost with its node's session or process. A late result is accepted while no other lease is
    /// given.
    Lost,
    /// It took longer than it may, or did not get on. Its result is not accepted any more.
    TimedOut(String),
}

impl Ending {
    /// It counts as an attempt that failed, and its result is not accepted any more; otherwise as a
    /// loss.
    pub fn has_failed(&self) -> bool {
        matches!(self, Self::Failed(_) | Self::TimedOut(_))
    }
}

/// Versions of a record and of a snapshot's part: this enum is the changelog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum RecordVersion {
    /// First version.
    V1 = 1,
}

/// The version that is written.
pub const RECORD_VERSION: u8 = RecordVersion::V1 as u8;

/// Versions of a record.
const FORMAT: Format<Record> = Format { what: "record", version: RECORD_VERSION, older: &[] };

impl Record {
    /// Version byte and encoding. Fails only for a spec that cannot have crossed the wire.
    pub fn to_bytes(&self) -> Result<Vec<u8>, CodecError> {
        FORMAT.to_bytes(self)
    }

    /// The record that bytes hold.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, JournalError> {
        FORMAT.read(bytes)
    }
}
