//! Names what is prepared before units start: a frame, or what one finishing unit reads.

use tessera_protocol::node::{Assignment, Task};
use tessera_protocol::{FrameNumber, JobId, Lease};

/// Something that is prepared for units, once for all that share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FrameKey {
    /// A frame of a job, for its tiles or chunks.
    Frame(JobId, FrameNumber),
    /// What a finishing unit reads. A node may read it under this lease only.
    Piece(Lease),
}

impl FrameKey {
    /// Returns what a unit needs.
    pub(crate) fn of(assignment: &Assignment) -> Self {
        match assignment.task {
            Task::Tile { .. } | Task::Chunk { .. } => Self::Frame(assignment.job, assignment.frame),
            Task::Finish(_) => Self::Piece(assignment.lease()),
        }
    }

    /// Returns the job.
    pub(crate) fn job(&self) -> JobId {
        match self {
            Self::Frame(job, _) => *job,
            Self::Piece(lease) => lease.unit.job,
        }
    }

    /// Returns the frame.
    pub(crate) fn frame(&self) -> FrameNumber {
        match self {
            Self::Frame(_, frame) => *frame,
            Self::Piece(lease) => lease.unit.frame,
        }
    }

    /// Returns whether this is for a finishing unit.
    pub(crate) fn is_piece(&self) -> bool {
        matches!(self, Self::Piece(_))
    }
}
