//! Takes results from devices into the outbox, and from there to the coordinator.

use super::event::Event;
use super::live::LiveOrder;
use super::spans::Spans;
use super::storing::Elsewhere;
use crate::device::UnitOutput;
use crate::disk::is_full;
use crate::outbox::{Outbox, OutboxError};
use bytes::Bytes;
use quinn::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tessera_protocol::node::{Failure, ResultHeader, ResultHeaders};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{BlobHash, Lease};
use tessera_transport::FrameError;
use tessera_transport::error::chain;
use tessera_transport::frame::open_one_way;
use tokio::sync::{Semaphore, mpsc};

/// Results that are written to disk at a time. Most of the time is waiting for the disk, and
/// several writes share one flush.
const STORES_MAX: usize = 4;
/// Streams of results that are sent to the coordinator at a time.
const OFFERS_MAX: usize = 8;
/// Most KiB of results that are sent at a time, or one stream. A coordinator takes that many of any
/// node; results beyond it would wait there, and hold up those before them on the same connection.
const OFFERED_KIB_MAX: u32 = 64 << 10;
/// Wait before the next try if the disk or the outbox is full.
const FULL_WAIT: Duration = Duration::from_secs(1);
/// Time after which a full disk is reported. The node then gets no more units, so that others can
/// render them.
const FULL_TOLD: Duration = Duration::from_secs(4);
/// Time after which an undelivered result is sent again. It is far above what any usable line needs
/// for 68 MiB.
const OFFER_SECS_MAX: Duration = Duration::from_secs(600);

/// What a node knows of an attempt beside the output of its device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attempt {
    pub(super) lease: Lease,
    /// Position of the device.
    pub(super) device: u8,
    /// First sample of a film.
    pub(super) first_sample: u32,
    /// For how long a device had nothing to do because what the unit needs was not prepared.
    pub(super) waited: Duration,
}

/// Stores and sends results in tasks of its own, and reports by events.
#[derive(Clone, Debug)]
pub(super) struct Results {
    outbox: Arc<Outbox>,
    events: mpsc::UnboundedSender<Event>,
    stores: Arc<Semaphore>,
    offers: Arc<Semaphore>,
    /// KiB that may still be sent.
    offered: Arc<Semaphore>,
    /// Whether results go to a store that the node reaches by itself.
    elsewhere: Arc<Elsewhere>,
    spans: Spans,
}

impl Results {
    pub(super) fn new(
        outbox: Arc<Outbox>,
        events: mpsc::UnboundedSender<Event>,
        spans: Spans,
    ) -> Self {
        let permits = |count| Arc::new(Semaphore::new(count));
        Self {
            outbox,
            events,
            stores: permits(STORES_MAX),
            offers: permits(OFFERS_MAX),
            offered: permits(OFFERED_KIB_MAX as usize),
            elsewhere: Arc::default(),
            spans,
        }
    }

    /// Encodes and stores the output of an attempt. [`Event::Stored`] follows. It waits if the disk
    /// is full, and reports this after a while with [`Event::NoRoom`]. A live tile is made beside
    /// that.
    pub(super) fn store(&self, attempt: Attempt, output: UnitOutput, live: Option<LiveOrder>) {
        let (this, lease) = (self.clone(), attempt.lease);
        tokio::spawn(async move {
            let since = SystemTime::now();
            // The semaphore is never closed.
            let _permit = this.stores.acquire().await;
            let encoding = tokio::task::spawn_blocking(move || {
                let mut output = output;
                (encode(attempt, &mut output), output.sums)
            });
            let result = match encoding.await {
                Ok((encoded, sums)) => {
                    if let Some(live) = live {
                        live.make(sums);
                    }
                    let bytes = u64::from(encoded.0.length);
                    let kept = this.keep(lease, Arc::new(encoded)).await;
                    let problem = kept.as_ref().err().map(|failure| failure.reason());
                    this.spans.of_result(("store", lease), since, (bytes, problem));
                    kept
                }
                Err(error) => Err(Failure::Asset(format!("encoding a result failed: {error}"))),
            };
            let _ = this.events.send(Event::Stored { lease, result });
        });
    }

    async fn keep(
        &self,
        lease: Lease,
        encoded: Arc<(ResultHeader, Vec<u8>)>,
    ) -> Result<(), Failure> {
        let (mut waited, mut told, since) = (false, false, Instant::now());
        loop {
            let (outbox, encoded) = (self.outbox.clone(), encoded.clone());
            let stored =
                tokio::task::spawn_blocking(move || outbox.store(&encoded.0, &encoded.1)).await;
            let error = match stored {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(error)) => error,
                Err(error) => {
                    return Err(Failure::Asset(format!("keeping a result failed: {error}")));
                }
            };
            let wait = match &error {
                OutboxError::Full { .. } => true,
                OutboxError::Disk { source, .. } => is_full(source),
                OutboxError::Version { .. } | OutboxError::Damaged { .. } => false,
            };
            if !wait {
                return Err(Failure::Asset(chain(&error)));
            }
            if !std::mem::replace(&mut waited, true) {
                tracing::warn!(error = chain(&error), "no room for a result; waiting for room");
            }
            // An outbox at its limit waits for the coordinator. Another node could not do better.
            let disk = matches!(error, OutboxError::Disk { .. });
            if disk && since.elapsed() >= FULL_TOLD && !std::mem::replace(&mut told, true) {
                let _ = self.events.send(Event::NoRoom { lease, problem: chain(&error) });
            }
            tokio::time::sleep(FULL_WAIT).await;
        }
    }

    /// Puts the results of a session into the farm's store, from now on.
    pub(super) fn store_elsewhere(&self, session: u64) {
        self.elsewhere.begin(session);
    }

    /// Returns the number of bytes of a stored result.
    pub(super) fn bytes_of(&self, lease: Lease) -> u64 {
        self.outbox.bytes_of(lease)
    }

    /// Sends results over a session, on one stream. An event follows only for those that fail.
    pub(super) fn send_together(&self, session: u64, connection: Connection, leases: Vec<Lease>) {
        let this = self.clone();
        tokio::spawn(async move {
            let _permit = this.offers.acquire().await;
            let Some(results) = this.read(leases).await else { return };
            let bytes: u64 = results.iter().map(|(header, _)| u64::from(header.length)).sum();
            let kib = u32::try_from(bytes.div_ceil(1 << 10)).unwrap_or(OFFERED_KIB_MAX);
            let _room = this.offered.acquire_many(kib.min(OFFERED_KIB_MAX)).await;
            let since = SystemTime::now();
            let (headers, bytes): (Vec<_>, Vec<_>) =
                this.elsewhere.store(session, &connection, results).await.into_iter().unzip();
            if headers.is_empty() {
                return;
            }
            let sent = send(&connection, headers.clone(), bytes).await;
            let problem = sent.as_ref().err().map(|error| chain(error));
            for ResultHeader { lease, length, .. } in headers {
                let about = (length.into(), problem.as_deref());
                this.spans.of_result(("send", lease), since, about);
                if let Some(error) = &problem {
                    tracing::debug!(%lease, error, "result not taken");
                    let _ = this.events.send(Event::NotOffered { session, lease });
                }
            }
        });
    }

    /// Reads results of the outbox, in order. An event follows for those that cannot be read. None
    /// if none is left.
    async fn read(&self, leases: Vec<Lease>) -> Option<Vec<(ResultHeader, Bytes)>> {
        let outbox = self.outbox.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let read = leases.into_iter().map(|lease| (lease, outbox.read(lease)));
            read.collect::<Vec<_>>()
        });
        let mut results = Vec::new();
        for (lease, read) in reading.await.ok()? {
            match read {
                Ok(result) => results.push(result),
                // The result was acknowledged and removed since the offer, so nothing is lost.
                Err(_) if !self.outbox.holds(lease) => {}
                Err(error) => {
                    let _ = self.events.send(Event::ResultLost { lease, problem: chain(&error) });
                }
            }
        }
        Some(results).filter(|results| !results.is_empty())
    }
}

fn encode(attempt: Attempt, output: &mut UnitOutput) -> (ResultHeader, Vec<u8>) {
    let bytes = match (output.piece.take(), &output.chunk) {
        (Some(piece), _) => piece,
        (None, Some(chunk)) => chunk.to_bytes(),
        (None, None) => output.sums.to_bytes(),
    };
    let Attempt { lease, device, first_sample, waited } = attempt;
    let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let header = ResultHeader {
        lease,
        hash: BlobHash::of(&bytes),
        // A tile's edge is bounded, and so is a piece. They are far below 4 GiB.
        length: bytes.len() as u32,
        device,
        device_micros: micros(output.device_time),
        waited_micros: micros(waited),
        device_bytes: output.device_bytes,
        rays: output.rays,
        first_sample,
    };
    (header, bytes)
}

async fn send(
    connection: &Connection,
    headers: Vec<ResultHeader>,
    results: Vec<Bytes>,
) -> Result<(), FrameError> {
    let mut stream = open_one_way(connection, StreamKind::Result).await?;
    stream.send(&ResultHeaders { headers }).await?;
    for bytes in results {
        stream.send_bytes(bytes).await?;
    }
    stream.finish_and_deliver(OFFER_SECS_MAX).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::compute::ChunkValues;
    use tessera_protocol::{Epoch, FrameNumber, JobId, TileSums, UnitIndex, UnitKey};

    #[test]
    fn the_result_header_holds_the_devices_figures() {
        let unit = UnitKey {
            job: JobId(uuid::Uuid::from_u128(5)),
            frame: FrameNumber(3),
            unit: UnitIndex(1),
        };
        let lease = Lease { unit, epoch: Epoch(9) };
        let values = ChunkValues { count: 2, width: 4, bytes: vec![7; 8] };
        let chunk = UnitOutput::of_chunk(values, Duration::from_micros(11), 123_456);
        let tile =
            UnitOutput { sums: TileSums::empty(2, 2, 0), chunk: None, rays: 5, ..chunk.clone() };
        let piece = UnitOutput {
            device_bytes: 123_456,
            ..UnitOutput::of_piece(vec![3; 9], chunk.device_time)
        };
        for (mut output, rays) in [(chunk, 0), (tile, 5), (piece, 0)] {
            let waited = Duration::from_millis(3);
            let (header, bytes) =
                encode(Attempt { lease, device: 1, first_sample: 7, waited }, &mut output);
            assert_eq!((header.first_sample, header.waited_micros), (7, 3000));
            assert_eq!(
                (header.device, header.device_micros, header.device_bytes),
                (1, 11, 123_456)
            );
            assert_eq!((header.rays, header.length as usize), (rays, bytes.len()));
            assert_eq!(header.hash, BlobHash::of(&bytes));
        }
    }
}
