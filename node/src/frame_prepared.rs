//! What a node tells the program around it of each prepared frame.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tessera_protocol::{FrameNumber, JobId};

/// Bytes of a frame's scene that were sent to devices, to all of a node together. It counts on
/// while devices take the frame. What a device holds of another frame is not sent. Clones count as
/// one.
#[derive(Clone, Debug, Default)]
pub struct SentBytes(Arc<AtomicU64>);

impl SentBytes {
    pub(crate) fn add(&self, bytes: u64) {
        self.0.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns the bytes until now.
    pub fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns whether both are the count of one frame.
    pub fn is_of_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A frame that a node has prepared.
#[derive(Clone, Debug)]
pub struct FramePrepared {
    /// Job of the frame.
    pub job: JobId,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Time from the request to the process that reads the scene to the frame that devices can
    /// render. Hardly any where the frame shares the scene of one before.
    pub took: Duration,
    /// What devices are sent of it; None if the job is a compute job. Frames that show the same
    /// have one count.
    pub sent: Option<SentBytes>,
}
