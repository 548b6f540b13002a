//! Puts results into a store elsewhere whose bytes have come here, because their nodes cannot reach
//! it.

use super::arrived::frame_of;
use super::shared::Shared;
use crate::driver::Taken;
use crate::spool::{ResultObject, ResultStore, SpoolKey};
use bytes::Bytes;
use std::sync::Arc;
use tessera_core::Arrived;
use tessera_protocol::NodeId;
use tessera_protocol::stored::name_of;

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
