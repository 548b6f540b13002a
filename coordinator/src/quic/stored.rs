//! Results that nodes put into a store elsewhere: an address for an object, and then word that it
//! is there.

use super::arrived::{describe, frame_of};
use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::{Event, Taken};
use crate::spool::{AddressFor, ResultObject};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tessera_core::{Arrived, FilmShape, ResultShape, SessionId};
use tessera_protocol::limits::STORE_OFFER_MAX;
use tessera_protocol::stored::{StoreOffer, StoreReceipt, StoreReply, StoredResult, StoredShape};
use tessera_protocol::{Epoch, NodeId};
use tessera_transport::{FrameReceiver, FrameSender, Timing};
use tokio::sync::oneshot;

/// Longest time in which a node puts an object at its address: an object of 64 MiB over 1 Mbit/s,
/// and as long as an address holds.
const PUT_WITHIN: Duration = Duration::from_secs(600);

/// Addresses that a node gets for one lease. More are of no use: a put that broke is offered again.
const GIVEN_MAX: u8 = 8;
/// Leases that are remembered. One that is forgotten is counted anew.
const LEASES_MAX: usize = 1 << 14;

/// The leases for which a session's node got addresses, and how often: each is room in the store.
#[derive(Debug, Default)]
pub(super) struct Given(Mutex<BTreeMap<Epoch, u8>>);

impl Given {
    /// Counts an address for an offer. False if there were enough for all of its leases.
    fn count(&self, offer: &StoreOffer) -> bool {
        let mut given = lock(&self.0);
        if given.len() >= LEASES_MAX {
            given.clear();
        }
        let mut may = false;
        for result in &offer.results {
            let count = given.entry(result.header.lease.epoch).or_default();
            may |= *count < GIVEN_MAX;
            *count = count.saturating_add(1);
        }
        may
    }
}

/// Serves one offer. Without a store, or if the node cannot reach it, the node sends the bytes.
pub(super) async fn take(
    shared: &Arc<Shared>,
    (session, node, name): (SessionId, NodeId, &str),
    (sender, receiver): (&mut FrameSender, FrameReceiver),
    (given, here, timing): (&Given, bool, Timing),
) -> Result<(), Trouble> {
    let mut receiver = receiver.limited(STORE_OFFER_MAX);
    let offer: StoreOffer = receiver.expect(timing.answer).await?;
    let bytes = offer.bytes().map_err(Trouble::Protocol)?;
    let object = ResultObject { node, name: offer.name(), length: bytes as u32 };
    if !is_wanted(shared, session, &offer).await? {
        sender.send(&StoreReply::NotWanted).await?;
        sender.finish();
        return Ok(());
    }
    let url = match given.count(&offer) {
        true => address(shared, (&offer, object), here).await?,
        false => None,
    };
    let Some(url) = url else {
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
    hand_on(shared, (session, node, name), (&offer, object)).await
}

/// Whether any of the results would be taken. If none would, the core has told the node so of each.
async fn is_wanted(
    shared: &Shared,
    session: SessionId,
    offer: &StoreOffer,
) -> Result<bool, Trouble> {
    let results = offer.results.iter().map(arrived).collect();
    let (reply, answer) = oneshot::channel();
    let asked = Event::Offered { session, results, reply };
    shared.events.send(asked).await.map_err(|_| Trouble::Stopping)?;
    answer.await.map_err(|_| Trouble::Stopping)
}

/// Gives the results of an object to the driver.
async fn hand_on(
    shared: &Shared,
    (session, node, name): (SessionId, NodeId, &str),
    (offer, object): (&StoreOffer, ResultObject),
) -> Result<(), Trouble> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::node::{Piece, ResultHeader};
    use tessera_protocol::{BlobHash, FrameNumber, JobId, Lease, UnitIndex, UnitKey};

    // promise: P8
    #[test]
    fn a_lease_gets_few_addresses() {
        let result = |epoch| {
            let job = JobId(uuid::Uuid::from_u128(5));
            let unit = UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(1) };
            let header = ResultHeader {
                lease: Lease { unit, epoch: Epoch(epoch) },
                hash: BlobHash([1; 32]),
                length: 5,
                device: 0,
                device_micros: 0,
                waited_micros: 0,
                device_bytes: 0,
                rays: 0,
                first_sample: 0,
            };
            StoredResult { header, shape: StoredShape::Finished(Piece::Assembly) }
        };
        let given = Given::default();
        let one = StoreOffer { results: vec![result(1)] };
        assert_eq!((0..20).filter(|_| given.count(&one)).count(), usize::from(GIVEN_MAX));
        let two = StoreOffer { results: vec![result(1), result(2)] };
        assert!(given.count(&two), "the other lease has none yet");
    }
}
