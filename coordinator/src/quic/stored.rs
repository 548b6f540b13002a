//! Results that nodes put into a store elsewhere: an address for an object, and then word that it is
//! there. The bytes of those who cannot reach the store are put there from here.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::{Event, Taken};
use crate::spool::{AddressFor, ResultObject, ResultStore, SpoolKey};
use crate::sync::lock;
use bytes::Bytes;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_core::{Arrived, FilmShape, ResultShape, SessionId};
use tessera_protocol::limits::STORE_OFFER_MAX;
use tessera_protocol::stored::{
    StoreOffer, StoreReceipt, StoreReply, StoredResult, StoredShape, name_of,
};
use tessera_protocol::{Lease, NodeId};
use tessera_transport::{FrameReceiver, FrameSender, Timing};

/// Longest time in which a node puts an object at its address: an object of 64 MiB over 1 Mbit/s,
/// and as long as an address holds.
const PUT_WITHIN: Duration = Duration::from_secs(600);
/// How long the store is not tried after it failed.
const RESTS_FOR: Duration = Duration::from_secs(10);

/// Serves one offer. Without a store, or if the node cannot reach it, the node sends the bytes.
pub(super) async fn take(
    shared: &Arc<Shared>,
    (session, node, name): (SessionId, NodeId, &str),
    (sender, receiver): (&mut FrameSender, FrameReceiver),
    (here, timing): (bool, Timing),
) -> Result<(), Trouble> {
    let mut receiver = receiver.limited(STORE_OFFER_MAX);
    let offer: StoreOffer = receiver.expect(timing.answer).await?;
    let bytes = offer.bytes().map_err(Trouble::Protocol)?;
    let object = ResultObject { node, name: offer.name(), length: bytes as u32 };
    let Some(url) = address(shared, (&offer, object), here).await? else {
        sender.send(&StoreReply::SendThem).await?;
        sender.finish();
        return Ok(());
    };
    sender.send(&StoreReply::Put { url }).await?;
    sender.finish();
    // A node that could not put it ends the stream, and sends the bytes.
    let received = tokio::time::timeout(PUT_WITHIN, receiver.receive::<StoreReceipt>()).await;
    let Some(receipt) = received.ok().transpose()?.flatten() else { return Ok(()) };
    if receipt.bytes != bytes {
        return Err(Trouble::Protocol(format!("{} bytes stored of {bytes}", receipt.bytes)));
    }
    // What is stored needs no memory, but its node has its turn as with any other.
    let permit = shared.result_memory.admit((node, name), 0).await;
    let permit = permit.map_err(|_| Trouble::Stopping)?;
    let mut offset = 0;
    let results = offer.results.iter().map(|result| {
        let taken = Taken::Stored(arrived(result), result.header.length, (object, offset));
        offset += result.header.length;
        taken
    });
    let event = Event::Results { session, results: results.collect(), permit };
    shared.events.send(event).await.map_err(|_| Trouble::Stopping)
}

/// Returns where a node puts an object; None if it cannot.
async fn address(
    shared: &Shared,
    (offer, object): (&StoreOffer, ResultObject),
    here: bool,
) -> Result<Option<String>, Trouble> {
    let Some(elsewhere) = shared.spools.elsewhere() else { return Ok(None) };
    let Some(key) = offer.results.first().map(|result| frame_of(result.header.lease)) else {
        return Ok(None);
    };
    let signing = tokio::task::spawn_blocking(move || {
        elsewhere.address(key, object, (AddressFor::Writing, here))
    });
    signing.await.map_err(|_| Trouble::Stopping)
}

fn frame_of(lease: Lease) -> SpoolKey {
    SpoolKey { job: lease.unit.job, frame: lease.unit.frame }
}

/// Describes a result for the core, as its node does.
fn arrived(result: &StoredResult) -> Arrived {
    let shape = match result.shape {
        StoredShape::Film { width, height, channels, samples } => ResultShape::Film(FilmShape {
            width: width.into(),
            height: height.into(),
            channels,
            first: result.header.first_sample,
            samples,
        }),
        StoredShape::Chunk(shape) => ResultShape::Chunk(shape),
        StoredShape::Finished(piece) => ResultShape::Finished(piece),
    };
    super::results::arrived(&result.header, shape)
}

/// Puts results into the store whose bytes have come here, as an object for each frame. While the
/// store does not take them, they go to the disk.
pub(super) async fn store_here(shared: &Shared, node: NodeId, taken: Vec<Taken>) -> Vec<Taken> {
    let Some(elsewhere) = shared.spools.elsewhere() else { return taken };
    let mut stored = Vec::with_capacity(taken.len());
    for (key, results) in by_frame(taken, &mut stored) {
        let about =
            |(arrived, bytes): &(Arrived, Bytes)| (arrived.lease, arrived.hash, bytes.len() as u32);
        let length = results.iter().map(|(_, bytes)| bytes.len() as u32).sum();
        let object = ResultObject { node, name: name_of(results.iter().map(about)), length };
        let bytes: Vec<Bytes> = results.iter().map(|(_, bytes)| bytes.clone()).collect();
        if !put(shared, &elsewhere, (key, object), bytes).await {
            stored.extend(results.into_iter().map(|(arrived, bytes)| Taken::Whole(arrived, bytes)));
            continue;
        }
        let mut offset = 0;
        for (arrived, bytes) in results {
            let length = bytes.len() as u32;
            stored.push(Taken::Stored(arrived, length, (object, offset)));
            offset += length;
        }
    }
    stored
}

type OfFrame = (SpoolKey, Vec<(Arrived, Bytes)>);

/// Parts whole results by their frames. The others go to `rest`.
fn by_frame(taken: Vec<Taken>, rest: &mut Vec<Taken>) -> Vec<OfFrame> {
    let mut frames: Vec<OfFrame> = Vec::new();
    for one in taken {
        let Taken::Whole(arrived, bytes) = one else {
            rest.push(one);
            continue;
        };
        let key = frame_of(arrived.lease);
        match frames.iter_mut().find(|(other, _)| *other == key) {
            Some((_, results)) => results.push((arrived, bytes)),
            None => frames.push((key, vec![(arrived, bytes)])),
        }
    }
    frames
}

/// Puts an object, unless the store failed a moment ago. Returns whether it is there.
async fn put(
    shared: &Shared,
    elsewhere: &Arc<dyn ResultStore>,
    (key, object): (SpoolKey, ResultObject),
    bytes: Vec<Bytes>,
) -> bool {
    if shared.store_rests.is_resting() {
        return false;
    }
    let elsewhere = elsewhere.clone();
    let putting = tokio::task::spawn_blocking(move || elsewhere.put(key, object, bytes));
    match putting.await {
        Ok(Ok(())) => {
            shared.store_rests.end();
            true
        }
        Ok(Err(error)) => {
            if shared.store_rests.begin() {
                tracing::warn!(
                    error = &error as &dyn std::error::Error,
                    "the store of files does not take results; they go to the disk of this \
                     coordinator"
                );
            }
            false
        }
        // The coordinator stops.
        Err(_) => false,
    }
}

/// Whether the store is left alone for a while, because it did not take a result.
#[derive(Debug, Default)]
pub(crate) struct Rest {
    until: Mutex<Option<Instant>>,
}

impl Rest {
    /// Begins a rest. Returns whether it is the first one since the store took something.
    fn begin(&self) -> bool {
        lock(&self.until).replace(Instant::now() + RESTS_FOR).is_none()
    }

    fn end(&self) {
        *lock(&self.until) = None;
    }

    fn is_resting(&self) -> bool {
        lock(&self.until).is_some_and(|until| Instant::now() < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once() {
        let rest = Rest::default();
        assert!(!rest.is_resting());
        assert!(rest.begin() && rest.is_resting());
        assert!(!rest.begin());
        rest.end();
        assert!(!rest.is_resting() && rest.begin());
    }
}
