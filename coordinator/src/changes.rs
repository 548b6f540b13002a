//! Notices of the driver for readers, sent when a change is durable: that something changed, which
//! frames have finished, and, while somebody follows the farm, what has changed. Any number of
//! readers subscribe, and none of them can block the driver.

use std::sync::Arc;
use tessera_protocol::status::{FrameStatus, JobSummary, NodeSummary};
use tessera_protocol::{FrameNumber, JobId, NodeId};
use tokio::sync::{broadcast, watch};

/// Finished frames that are kept for a slow subscriber. One that loses some reads the job again.
const FINISHED_WAITING_MAX: usize = 4096;

/// Batches of news that are kept for a slow follower. One that loses some reads the lists again.
const NEWS_WAITING_MAX: usize = 64;

/// What has changed since the last batch.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct News {
    /// Sequence of the journal's newest record that is in it.
    pub sequence: u64,
    /// Jobs that have changed, as they are now.
    pub jobs: Vec<JobSummary>,
    /// Jobs that were forgotten.
    pub jobs_gone: Vec<JobId>,
    /// Frames that have changed, as they are now.
    pub frames: Vec<(JobId, FrameStatus)>,
    /// Jobs of which more frames have changed than are listed.
    pub more_frames: Vec<JobId>,
    /// Nodes that have changed, as they are now.
    pub nodes: Vec<NodeSummary>,
    /// Nodes that are no longer listed.
    pub nodes_gone: Vec<NodeId>,
}

impl News {
    /// Returns whether nothing has changed.
    pub fn is_empty(&self) -> bool {
        *self == Self { sequence: self.sequence, ..Self::default() }
    }
}

/// The driver's side. Publishing never waits. A slow subscriber may lose single notices, but always
/// learns that there was a change.
#[derive(Debug)]
pub(crate) struct Publisher {
    revision: watch::Sender<u64>,
    finished: broadcast::Sender<(JobId, FrameNumber)>,
    news: broadcast::Sender<Arc<News>>,
}

impl Publisher {
    /// Creates a publisher, and the handle to subscribe to it.
    pub(crate) fn new() -> (Self, Changes) {
        let (revision, seen) = watch::channel(0);
        let finished = broadcast::Sender::new(FINISHED_WAITING_MAX);
        let news = broadcast::Sender::new(NEWS_WAITING_MAX);
        let (weak_finished, weak_news) = (finished.downgrade(), news.downgrade());
        let changes = Changes { revision: seen, finished: weak_finished, news: weak_news };
        (Self { revision, finished, news }, changes)
    }

    /// Publishes that a frame has finished.
    pub(crate) fn frame_finished(&self, job: JobId, frame: FrameNumber) {
        // It is no error if there is no subscriber.
        drop(self.finished.send((job, frame)));
    }

    /// Returns whether somebody follows the farm.
    pub(crate) fn is_followed(&self) -> bool {
        self.news.receiver_count() > 0
    }

    /// Returns the way to publish news, for when they are durable.
    pub(crate) fn news(&self) -> broadcast::Sender<Arc<News>> {
        self.news.clone()
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
    news: broadcast::WeakSender<Arc<News>>,
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

    /// Follows the farm: returns a receiver of what changes from now on. The driver collects that
    /// only while there is a receiver.
    pub fn follow(&self) -> broadcast::Receiver<Arc<News>> {
        match self.news.upgrade() {
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
