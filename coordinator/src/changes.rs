//! Notices of the driver for readers, sent when a change is durable: that something changed, and
//! which frames have finished. Any number of readers subscribe, and none of them can block the
//! driver.

use tessera_protocol::{FrameNumber, JobId};
use tokio::sync::{broadcast, watch};

/// Finished frames that are kept for a slow subscriber. One that loses some reads the job again.
const FINISHED_WAITING_MAX: usize = 4096;

/// The driver's side. Publishing never waits. A slow subscriber may lose single notices, but always
/// learns that there was a change.
#[derive(Debug)]
pub(crate) struct Publisher {
    revision: watch::Sender<u64>,
    finished: broadcast::Sender<(JobId, FrameNumber)>,
}

impl Publisher {
    /// Creates a publisher, and the handle to subscribe to it.
    pub(crate) fn new() -> (Self, Changes) {
        let (revision, seen) = watch::channel(0);
        let finished = broadcast::Sender::new(FINISHED_WAITING_MAX);
        let changes = Changes { revision: seen, finished: finished.downgrade() };
        (Self { revision, finished }, changes)
    }

    /// Publishes that a frame has finished.
    pub(crate) fn frame_finished(&self, job: JobId, frame: FrameNumber) {
        // It is no error if there is no subscriber.
        drop(self.finished.send((job, frame)));
    }

    /// Publishes that something which readers see may have changed.
    pub(crate) fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }
}

/// Handle for subscribers. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Changes {
    revision: watch::Receiver<u64>,
    finished: broadcast::WeakSender<(JobId, FrameNumber)>,
}

impl Changes {
    /// Waits until something may have changed since the last call. Several changes count as one.
    /// Returns false when the coordinator stops. Cancel-safe.
    pub async fn changed(&mut self) -> bool {
        let changed = self.revision.changed().await.is_ok();
        self.revision.mark_unchanged();
        changed
    }

    /// Ignores the changes so far. The next [`Self::changed`] waits for a later one.
    pub fn mark_seen(&mut self) {
        self.revision.mark_unchanged();
    }

    /// Returns a receiver of the frames of all jobs that finish from now on.
    pub fn finished_frames(&self) -> broadcast::Receiver<(JobId, FrameNumber)> {
        match self.finished.upgrade() {
            Some(sender) => sender.subscribe(),
            // The coordinator is stopping: return a closed channel.
            None => broadcast::channel(1).1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slow_subscriber_never_holds_the_publisher_up() {
        let (publisher, mut changes) = Publisher::new();
        let mut frames = changes.finished_frames();
        for number in 0..2 * FINISHED_WAITING_MAX as u32 {
            publisher.frame_finished(JobId::new(), FrameNumber(number));
            publisher.changed();
        }
        assert!(changes.changed().await, "all changes in a row are one");
        assert!(matches!(frames.recv().await, Err(broadcast::error::RecvError::Lagged(_))));
        drop(publisher);
        assert!(!changes.changed().await, "the end is told");
    }
}
