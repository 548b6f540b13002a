//! What the driver publishes for readers, after it is durable: that something changed, and which
//! frames have finished. Any number of doors subscribe; none of them can hold the driver up.

use tessera_protocol::{FrameNumber, JobId};
use tokio::sync::{broadcast, watch};

/// Finished frames kept for a slow subscriber; one that falls behind looks at the job again.
const FINISHED_WAITING_MAX: usize = 4096;

/// The driver's side. Publishing never waits: a slow subscriber loses single changes, not the
/// knowledge that there were some.
#[derive(Debug)]
pub(crate) struct Publisher {
    revision: watch::Sender<u64>,
    finished: broadcast::Sender<(JobId, FrameNumber)>,
}

impl Publisher {
    /// A publisher, and where to subscribe to it.
    pub(crate) fn new() -> (Self, Changes) {
        let (revision, seen) = watch::channel(0);
        let finished = broadcast::Sender::new(FINISHED_WAITING_MAX);
        let changes = Changes { revision: seen, finished: finished.downgrade() };
        (Self { revision, finished }, changes)
    }

    /// A frame has finished.
    pub(crate) fn frame_finished(&self, job: JobId, frame: FrameNumber) {
        // Without a subscriber there is nobody to tell.
        drop(self.finished.send((job, frame)));
    }

    /// Something that readers see may have changed.
    pub(crate) fn changed(&self) {
        self.revision.send_modify(|revision| *revision += 1);
    }
}

/// Where readers subscribe. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Changes {
    revision: watch::Receiver<u64>,
    finished: broadcast::WeakSender<(JobId, FrameNumber)>,
}

impl Changes {
    /// Waits until something may have changed since the last call; false once the coordinator
    /// stops. Many changes in a row are one. Cancel-safe.
    pub async fn changed(&mut self) -> bool {
        let changed = self.revision.changed().await.is_ok();
        self.revision.mark_unchanged();
        changed
    }

    /// Forgets the changes so far: the next [`Self::changed`] waits for a later one.
    pub fn mark_seen(&mut self) {
        self.revision.mark_unchanged();
    }

    /// Frames of all jobs as they finish, from now on.
    pub fn finished_frames(&self) -> broadcast::Receiver<(JobId, FrameNumber)> {
        match self.finished.upgrade() {
            Some(sender) => sender.subscribe(),
            // The coordinator stops: a channel that is closed.
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
