//! Results that nodes put into a store elsewhere: an address for an object, and then word that it
//! is there.

use super::arrived::{describe, frame_of};
use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::{Event, Taken};
use crate::spool::{AddressFor, ResultObject};
use std::sync::Arc;
use std::time::Duration;
use tessera_core::{Arrived, FilmShape, ResultShape, SessionId};
use tessera_protocol::NodeId;
use tessera_protocol::limits::STORE_OFFER_MAX;
use tessera_protocol::stored::{StoreOffer, StoreReceipt, StoreReply, StoredResult, StoredShape};
use tessera_transport::{FrameReceiver, FrameSender, Timing};

/// Longest time in which a node puts an object at its address: an object of 64 MiB over 1 Mbit/s,
/// and as long as an address holds.
const PUT_WITHIN: Duration = Duration::from_secs(600);

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
    describe(&result.header, shape)
}
