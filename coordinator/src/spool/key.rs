//! The name of a spool.

use tessera_protocol::{FrameNumber, JobId};

/// Names a spool: a frame of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolKey {
    /// Job that the frame belongs to.
    pub job: JobId,
    /// The frame of the job.
    pub frame: FrameNumber,
}

impl std::fmt::Display for SpoolKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.job, self.frame)
    }
}
