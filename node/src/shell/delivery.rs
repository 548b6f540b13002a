//! Delivery of stored results over one session: which of them go together on a stream, and when.
//! Does not read or send them; see `results`.

use super::results::Results;
use quinn::Connection;
use std::time::Duration;
use tessera_protocol::Lease;
use tessera_protocol::limits::RESULTS_MAX;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

/// Least time from one stream of results to the next, while units wait for the node's devices:
/// results of short units share a stream. A result that comes alone is sent at once. It is a
/// twelfth of the work that a node holds ahead.
const PAUSE: Duration = Duration::from_millis(40);
/// Most bytes of results that go together. They are what a lost line costs again, and 10 s of a
/// line of 100 KB per second.
const TOGETHER_BYTES_MAX: u64 = 1 << 20;

/// A result that is to be sent.
#[derive(Clone, Copy, Debug)]
struct Offer {
    lease: Lease,
    bytes: u64,
    /// Whether it and those before it are sent at once.
    urgent: bool,
}

/// The results of one session on their way to its coordinator. Dropping it ends the delivery.
#[derive(Debug)]
pub(super) struct Delivery {
    results: Results,
    offers: mpsc::UnboundedSender<Offer>,
}

impl Delivery {
    /// Begins to deliver results over a session.
    pub(super) fn new(results: &Results, session: u64, connection: Connection) -> Self {
        let (offers, mut queue) = mpsc::unbounded_channel();
        let sending = results.clone();
        tokio::spawn(async move {
            let mut streams = Streams::default();
            while let Some(leases) = streams.next(&mut queue).await {
                sending.send_together(session, connection.clone(), leases);
            }
        });
        Self { results: results.clone(), offers }
    }

    /// Sends a result of the outbox. If it is urgent, it waits for no other one.
    pub(super) fn offer(&self, lease: Lease, urgent: bool) {
        let bytes = self.results.bytes_of(lease);
        // The task ends only after this sender.
        let _ = self.offers.send(Offer { lease, bytes, urgent });
    }
}

/// The results of one stream.
struct Together {
    leases: Vec<Lease>,
    bytes: u64,
    urgent: bool,
}

impl Together {
    fn new(first: Offer) -> Self {
        Self { leases: vec![first.lease], bytes: first.bytes, urgent: first.urgent }
    }

    /// Adds a result, unless there is no room for it.
    fn add(&mut self, offer: Offer) -> Result<(), Offer> {
        let bytes = self.bytes + offer.bytes;
        if self.leases.len() >= RESULTS_MAX || bytes > TOGETHER_BYTES_MAX {
            return Err(offer);
        }
        self.leases.push(offer.lease);
        self.bytes = bytes;
        self.urgent |= offer.urgent;
        Ok(())
    }
}

/// Decides what goes on the next stream.
#[derive(Debug, Default)]
struct Streams {
    /// Had no room on the last stream, and begins the next one.
    left: Option<Offer>,
    /// When the last stream was begun.
    begun: Option<Instant>,
}

impl Streams {
    /// Waits for the results of the next stream; None once there will be none.
    async fn next(&mut self, queue: &mut mpsc::UnboundedReceiver<Offer>) -> Option<Vec<Lease>> {
        // What had no room has waited already.
        let mut until = self.begun.map(|at| at + PAUSE);
        let first = match self.left.take() {
            Some(offer) => {
                until = None;
                offer
            }
            None => queue.recv().await?,
        };
        let mut together = Together::new(first);
        while let Some(offer) = another(queue, until.filter(|_| !together.urgent)).await {
            if let Err(offer) = together.add(offer) {
                self.left = Some(offer);
                break;
            }
        }
        self.begun = Some(Instant::now());
        Some(together.leases)
    }
}

/// Returns the next result that is there, or comes until a time.
async fn another(
    queue: &mut mpsc::UnboundedReceiver<Offer>,
    until: Option<Instant>,
) -> Option<Offer> {
    match until {
        Some(until) => timeout_at(until, queue.recv()).await.ok().flatten(),
        None => queue.try_recv().ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};

    fn offer(number: u32, bytes: u64, urgent: bool) -> Offer {
        let job = JobId(uuid::Uuid::from_u128(5));
        let unit = UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(number) };
        Offer { lease: Lease { unit, epoch: Epoch(1) }, bytes, urgent }
    }

    /// A queue of results, and the streams that are made of it.
    struct Line {
        sender: mpsc::UnboundedSender<Offer>,
        queue: mpsc::UnboundedReceiver<Offer>,
        streams: Streams,
    }

    impl Line {
        fn new() -> Self {
            let (sender, queue) = mpsc::unbounded_channel();
            Self { sender, queue, streams: Streams::default() }
        }

        /// Offers results. Returns how many the next stream has.
        async fn next(&mut self, offers: impl IntoIterator<Item = Offer>) -> usize {
            offers.into_iter().for_each(|offer| self.sender.send(offer).unwrap());
            self.streams.next(&mut self.queue).await.expect("a stream").len()
        }
    }

    #[tokio::test]
    async fn results_of_short_units_share_a_stream() {
        let mut line = Line::new();
        let start = Instant::now();
        assert_eq!(line.next([offer(0, 99, false)]).await, 1, "one alone goes at once");
        let some = (1..9).map(|number| offer(number, 99, false));
        assert_eq!(line.next(some).await, 8);
        assert!(start.elapsed() >= PAUSE, "{:?}", start.elapsed());
    }

    #[tokio::test]
    async fn results_that_come_slowly_go_at_once() {
        let mut line = Line::new();
        for number in 0..3 {
            assert_eq!(line.next([offer(number, 99, false)]).await, 1);
            tokio::time::sleep(PAUSE + Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn an_urgent_result_waits_for_none_and_takes_others_along() {
        let mut line = Line::new();
        assert_eq!(line.next([offer(0, 9, false)]).await, 1);
        assert_eq!(line.next([offer(1, 9, false), offer(2, 9, true)]).await, 2);
        assert_eq!(line.next([offer(3, 9, true)]).await, 1);
    }

    #[tokio::test]
    async fn streams_are_bounded_in_count_and_bytes() {
        let mut line = Line::new();
        let mut sent = line.next((0..200).map(|number| offer(number, 9, false))).await;
        while sent < 200 {
            let count = line.next([]).await;
            assert!(count <= RESULTS_MAX, "{count}");
            sent += count;
        }
        assert_eq!(sent, 200);
        // A result that is larger than the bound goes alone.
        let large = [9, TOGETHER_BYTES_MAX - 9, 1, 2 * TOGETHER_BYTES_MAX, 5];
        let mut line = Line::new();
        let offers = large.into_iter().zip(0..).map(|(bytes, number)| offer(number, bytes, false));
        let mut counts = vec![line.next(offers).await];
        for _ in 0..3 {
            counts.push(line.next([]).await);
        }
        assert_eq!(counts, [2, 1, 1, 1]);
    }
}
