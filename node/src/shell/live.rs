//! Live tiles: what is watched, and the means of what was rendered of it on their way to the
//! coordinator. Nothing waits for them: where too many wait, further ones are dropped.

use crate::live_mean::live_mean;
use quinn::Connection;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::live::{LiveTile, WATCHED_MAX, Watched};
use tessera_protocol::node::{CoordinatorToNode, SampleRange, TileRect};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Lease, TileSums};
use tessera_transport::FrameError;
use tessera_transport::frame::open_one_way;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinSet;

/// Live tiles that wait to be sent: 8 of 24 KiB.
pub(super) const WAITING_MAX: usize = 8;
/// Live tiles that are sent at a time. Later ones would be old when they arrive.
const SENT_AT_ONCE_MAX: usize = 4;
/// Live tiles that are made at a time.
const MADE_AT_ONCE_MAX: usize = 2;
/// Time after which a live tile is given up.
const SENT_WITHIN: Duration = Duration::from_secs(10);

/// What the coordinator says is watched.
#[derive(Debug)]
pub(super) struct Live {
    watched: Vec<Watched>,
    making: Arc<Semaphore>,
}

/// A live tile that is to be made of a unit's sums.
#[derive(Debug)]
pub(super) struct LiveOrder {
    lease: Lease,
    tile: TileRect,
    first: u32,
    queue: mpsc::Sender<LiveTile>,
    _making: OwnedSemaphorePermit,
}

impl Live {
    /// Nothing is watched.
    pub(super) fn new() -> Self {
        Self { watched: Vec::new(), making: Arc::new(Semaphore::new(MADE_AT_ONCE_MAX)) }
    }

    /// Notes what is watched from now on.
    pub(super) fn note(&mut self, message: &CoordinatorToNode) {
        if let CoordinatorToNode::Watched { watched } = message {
            self.watched = watched[..watched.len().min(WATCHED_MAX)].to_vec();
        }
    }

    /// Forgets what is watched: each session is told anew.
    pub(super) fn clear(&mut self) {
        self.watched.clear();
    }

    /// Returns the order for a unit's live tile; None if nobody watches it, or if others wait.
    pub(super) fn order(
        &self,
        queue: Option<&mpsc::Sender<LiveTile>>,
        lease: Lease,
        (tile, samples): (TileRect, SampleRange),
    ) -> Option<LiveOrder> {
        let of = |watched: &Watched| watched.has(lease.unit.job, lease.unit.frame);
        if !self.watched.iter().any(of) {
            return None;
        }
        let queue = queue?.clone();
        let making = self.making.clone().try_acquire_owned().ok().filter(|_| queue.capacity() > 0);
        Some(LiveOrder { lease, tile, first: samples.first, queue, _making: making? })
    }
}

impl LiveOrder {
    /// Makes the live tile on a thread for blocking work.
    pub(super) fn make(self, sums: TileSums) {
        tokio::task::spawn_blocking(move || {
            let Some(values) = live_mean(&sums, &self.tile) else { return };
            let samples = SampleRange { first: self.first, count: sums.samples };
            let made = LiveTile { lease: self.lease, tile: self.tile, samples, values };
            // The queue is full, or the session is gone: nobody misses it for long.
            let _ = self.queue.try_send(made);
        });
    }
}

/// Sends live tiles until the session ends.
pub(super) async fn write_live(connection: Connection, mut tiles: mpsc::Receiver<LiveTile>) {
    let mut sending = JoinSet::new();
    while let Some(tile) = tiles.recv().await {
        while sending.len() >= SENT_AT_ONCE_MAX {
            sending.join_next().await;
        }
        while sending.try_join_next().is_some() {}
        let connection = connection.clone();
        sending.spawn(async move {
            if let Err(error) = send(&connection, &tile).await {
                tracing::debug!(lease = %tile.lease, %error, "a live tile was not sent");
            }
        });
    }
}

async fn send(connection: &Connection, tile: &LiveTile) -> Result<(), FrameError> {
    let mut stream = open_one_way(connection, StreamKind::LiveTile).await?;
    // Results and everything else go first.
    stream.set_priority(-1);
    stream.send(tile).await?;
    stream.finish_and_deliver(SENT_WITHIN).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};

    fn lease(job: JobId, frame: u32) -> Lease {
        let unit = UnitKey { job, frame: FrameNumber(frame), unit: UnitIndex(0) };
        Lease { unit, epoch: Epoch(1) }
    }

    #[test]
    fn only_the_first_256_of_what_is_watched_count() {
        let mut live = Live::new();
        let watched: Vec<Watched> =
            (0..1000).map(|_| Watched { job: JobId::new(), frame: None }).collect();
        live.note(&CoordinatorToNode::Watched { watched });
        assert_eq!(live.watched.len(), WATCHED_MAX);
        live.note(&CoordinatorToNode::Leave);
        assert_eq!(live.watched.len(), WATCHED_MAX);
        live.clear();
        assert!(live.watched.is_empty());
    }

    #[tokio::test]
    async fn a_tile_is_made_for_watchers_alone_and_into_no_full_queue() {
        let job = JobId::new();
        let (tile, samples) =
            (TileRect { x: 0, y: 0, width: 1, height: 1 }, SampleRange { first: 8, count: 4 });
        let mut live = Live::new();
        live.note(&CoordinatorToNode::Watched {
            watched: vec![Watched { job, frame: Some(FrameNumber(1)) }],
        });
        let (queue, mut made) = mpsc::channel(1);
        let order = |lease| live.order(Some(&queue), lease, (tile, samples));
        assert!(order(lease(job, 2)).is_none() && order(lease(JobId::new(), 1)).is_none());
        assert!(live.order(None, lease(job, 1), (tile, samples)).is_none(), "there is no session");
        let orders: Vec<_> = (0..3).filter_map(|_| order(lease(job, 1))).collect();
        assert_eq!(orders.len(), MADE_AT_ONCE_MAX);
        let sums = TileSums { samples: 2, ..TileSums::empty(1, 1, 3) };
        orders.into_iter().for_each(|order| order.make(sums.clone()));
        let first = made.recv().await.expect("one was made");
        assert_eq!(first.samples, SampleRange { first: samples.first, count: 2 });
        assert_eq!(first.check(), Ok(()));
        // A second one may have been made meanwhile.
        let _ = queue.try_send(first);
        assert!(order(lease(job, 1)).is_none(), "the queue is full");
    }
}
