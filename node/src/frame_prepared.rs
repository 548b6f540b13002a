//! What a node tells the program around it of each prepared frame.

use std::time::Duration;
use tessera_protocol::{FrameNumber, JobId};

/// A frame that a node has prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramePrepared {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Time from the request to the process that reads the scene to the frame that devices can
    /// render. Hardly any where the frame shares the scene of one before.
    pub took: Duration,
}
