//! Frames whose checks are due for a look at whether a node makes them. Each frame has one timer.

use std::collections::BTreeSet;
use tessera_protocol::ids::{FrameNumber, JobId};

/// Frames with a planned look.
#[derive(Debug, Default)]
pub(crate) struct Looks(BTreeSet<(JobId, FrameNumber)>);

impl Looks {
    /// Plans a look at a frame; false if one is planned already.
    pub(crate) fn plan(&mut self, job: JobId, frame: FrameNumber) -> bool {
        self.0.insert((job, frame))
    }

    /// Removes the planned look at a frame, because it begins.
    pub(crate) fn begin(&mut self, job: JobId, frame: FrameNumber) {
        self.0.remove(&(job, frame));
    }

    pub(crate) fn is_planned(&self, job: JobId, frame: FrameNumber) -> bool {
        self.0.contains(&(job, frame))
    }
}
