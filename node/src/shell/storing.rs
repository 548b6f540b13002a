//! Puts results into the farm's store, one object for those of a frame that are ready together.
//! What cannot be put there is sent to the coordinator, and the store is not tried again for a
//! while.

use bytes::Bytes;
use quinn::Connection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_finishing::{is_piece, piece_of};
use tessera_protocol::film::FilmHead;
use tessera_protocol::node::ResultHeader;
use tessera_protocol::stored::{StoreOffer, StoreReceipt, StoreReply, StoredResult, StoredShape};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{ChunkValues, FrameNumber, JobId};
use tessera_transport::FrameError;
use tessera_transport::blob::put_object;
use tessera_transport::error::chain;
use tessera_transport::frame::open_both;

/// Longest wait for the coordinator's answer to an offer.
const ANSWER: Duration = Duration::from_secs(10);
/// Time for the word that an object is stored to arrive.
const DELIVERED: Duration = Duration::from_secs(60);
/// How long results are sent to the coordinator after the store could not be reached.
const PAUSE: Duration = Duration::from_secs(60);

type Ready = (ResultHeader, Bytes);

/// Whether results go to the store.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// Number of the session whose coordinator has such a store; 0 if none has.
    session: AtomicU64,
    /// Until when the store is not tried.
    paused: Mutex<Option<Instant>>,
}

impl Elsewhere {
    /// Begins with the results of a session.
    pub(super) fn begin(&self, session: u64) {
        self.session.store(session, Ordering::Relaxed);
    }

    fn is_tried(&self, session: u64) -> bool {
        let paused = *self.paused.lock().unwrap_or_else(PoisonError::into_inner);
        self.session.load(Ordering::Relaxed) == session
            && paused.is_none_or(|until| until <= Instant::now())
    }

    fn pause(&self) {
        let secs = PAUSE.as_secs();
        tracing::info!("results go through the coordinator for the next {secs} s");
        let until = Instant::now() + PAUSE;
        *self.paused.lock().unwrap_or_else(PoisonError::into_inner) = Some(until);
    }

    /// Stores results, if the session has a store. Returns those that must be sent.
    pub(super) async fn store(
        &self,
        session: u64,
        connection: &Connection,
        results: Vec<Ready>,
    ) -> Vec<Ready> {
        let mut left = Vec::new();
        for of_frame in by_frame(results) {
            if self.is_tried(session) {
                match store(connection, &of_frame).await {
                    Ok(true) => continue,
                    Ok(false) => self.pause(),
                    // The connection will tell what is wrong.
                    Err(error) => tracing::debug!(error = chain(&error), "results not offered"),
                }
            }
            left.extend(of_frame);
        }
        left
    }
}

/// Parts results by their frames.
fn by_frame(results: Vec<Ready>) -> Vec<Vec<Ready>> {
    let mut frames: Vec<((JobId, FrameNumber), Vec<Ready>)> = Vec::new();
    for result in results {
        let unit = result.0.lease.unit;
        match frames.iter_mut().find(|(frame, _)| *frame == (unit.job, unit.frame)) {
            Some((_, of_frame)) => of_frame.push(result),
            None => frames.push(((unit.job, unit.frame), vec![result])),
        }
    }
    frames.into_iter().map(|(_, results)| results).collect()
}

/// Stores results of one frame. False if the store cannot be reached.
async fn store(connection: &Connection, results: &[Ready]) -> Result<bool, FrameError> {
    let described = results
        .iter()
        .map(|(header, bytes)| Some(StoredResult { header: *header, shape: shape_of(bytes)? }));
    let Some(described) = described.collect::<Option<Vec<_>>>() else { return Ok(false) };
    let offer = StoreOffer { results: described };
    let (mut sender, mut receiver) = open_both(connection, StreamKind::StoreResults).await?;
    sender.send(&offer).await?;
    let url = match receiver.expect(ANSWER).await? {
        StoreReply::Put { url } => url,
        StoreReply::SendThem => return Ok(false),
        StoreReply::NotWanted => return Ok(true),
    };
    let pieces: Vec<Bytes> = results.iter().map(|(_, bytes)| bytes.clone()).collect();
    let bytes = pieces.iter().map(|piece| piece.len() as u64).sum();
    if !put_object(&url, pieces).await {
        // Without a receipt the offer is void.
        sender.finish();
        tracing::info!("the farm's store cannot be reached");
        return Ok(false);
    }
    sender.send(&StoreReceipt { bytes }).await?;
    sender.finish_and_deliver(DELIVERED).await?;
    Ok(true)
}

/// Says what the bytes of a result are. None if they are nothing that a node makes.
fn shape_of(bytes: &[u8]) -> Option<StoredShape> {
    if ChunkValues::is_chunk(bytes) {
        return Some(StoredShape::Chunk(ChunkValues::from_bytes(bytes).ok()?.shape()));
    }
    if is_piece(bytes) {
        return Some(StoredShape::Finished(piece_of(bytes).ok()?));
    }
    let FilmHead { width, height, channels, samples, .. } = FilmHead::of(bytes).ok()?;
    Some(StoredShape::Film { width, height, channels, samples })
}
