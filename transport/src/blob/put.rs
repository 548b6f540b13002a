//! Uploads of blobs, on the sending side and on the receiving side.

use super::get::send;
use super::part::Filling;
use super::{BlobError, BlobSink, BlobStore, PRIORITY, blocking, file_error};
use crate::close::cut;
use crate::stream::frame::{FrameError, FrameReceiver, FrameSender, open_both};
use crate::timing::Timing;
use quinn::Connection;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tessera_protocol::BlobHash;
use tessera_protocol::limits::{BLOB_BYTES_MAX, REASON_MAX};
use tessera_protocol::stream::{BlobOffer, BlobReceipt, BlobReply, StreamKind};

/// Longest wait after the last byte. The receiving side may have to hash a long part, and to sync
/// gigabytes to a slow disk.
const RECEIPT_WITHIN: Duration = Duration::from_secs(300);

/// Sends the file `source`, whose bytes have this hash and length. Returns the number of bytes that
/// had to be sent: none if the blob was there, the rest if an interrupted upload left a part.
/// `progress` gets the bytes at the receiver and the total.
pub async fn put(
    connection: &Connection,
    (hash, length): (BlobHash, u64),
    source: &Path,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let path = source.to_owned();
    let opened = blocking(move || std::fs::File::open(path)).await.and_then(|result| result);
    let file = opened.map_err(file_error(source))?;
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobPut).await?;
    sender.set_priority(PRIORITY);
    sender.send(&BlobOffer { hash, length }).await?;
    // The receiving side may have to hash gigabytes of a part before it answers.
    let offset = match receiver.expect(RECEIPT_WITHIN).await? {
        BlobReply::From { offset, length: agreed } if agreed == length && offset <= length => {
            offset
        }
        BlobReply::From { .. } => {
            return Err(BlobError::Protocol {
                hash,
                problem: "the answer to a put is of another blob",
            });
        }
        BlobReply::Held => {
            progress(length, length);
            return Ok(0);
        }
        BlobReply::Refused(reason) => return Err(BlobError::Refused { hash, reason }),
        BlobReply::Absent => {
            return Err(BlobError::Protocol {
                hash,
                problem: "a put was answered as if it were a get",
            });
        }
    };
    progress(offset, length);
    let sent = send(Box::new(file), source, offset..length, &mut sender, timing, progress).await;
    match sent {
        // The receiving side stops us if it cannot continue. Its receipt then says why.
        Ok(()) | Err(BlobError::Frame(FrameError::Reset(_))) => sender.finish(),
        Err(error) => return Err(error),
    }
    match receiver.expect(RECEIPT_WITHIN).await? {
        BlobReceipt::Stored => Ok(length - offset),
        BlobReceipt::Refused(reason) => Err(BlobError::Refused { hash, reason }),
    }
}

/// Answers an accepted [`StreamKind::BlobPut`] stream. The caller has checked that the peer is
/// allowed to write. Returns the blob's hash and length once it is stored (or if it already was).
pub async fn serve_put<S: BlobStore>(
    store: &Arc<S>,
    sender: &mut FrameSender,
    receiver: &mut FrameReceiver,
    timing: &Timing,
) -> Result<(BlobHash, u64), BlobError> {
    let BlobOffer { hash, length } = receiver.expect(timing.answer).await?;
    let sink = match admit(store, hash, length).await {
        Ok(Some(sink)) => sink,
        Ok(None) => {
            sender.send(&BlobReply::Held).await?;
            sender.finish();
            return Ok((hash, length));
        }
        Err(error) => {
            sender.send(&BlobReply::Refused(words(&error))).await?;
            sender.finish();
            return Err(error);
        }
    };
    sender.send(&BlobReply::From { offset: sink.held(), length }).await?;
    let result = take(&sink, (hash, length), receiver, timing).await;
    let receipt = match &result {
        Ok(()) => BlobReceipt::Stored,
        Err(error) => {
            receiver.stop(crate::close::CloseCode::Failed);
            BlobReceipt::Refused(words(error))
        }
    };
    // Even if the client is gone, the blob stays stored, and an error is still reported.
    if sender.send(&receipt).await.is_ok() {
        sender.finish();
    }
    result.map(|()| (hash, length))
}

/// Returns the sink to fill; None if the blob already exists.
async fn admit<S: BlobStore>(
    store: &Arc<S>,
    hash: BlobHash,
    length: u64,
) -> Result<Option<Filling<Box<dyn BlobSink>>>, BlobError> {
    if length > BLOB_BYTES_MAX {
        return Err(BlobError::TooLong { hash, length, limit: BLOB_BYTES_MAX });
    }
    let name = hash.to_string();
    let shared = store.clone();
    let begun = blocking(move || match shared.open(hash) {
        Ok(Some(_)) => Ok(None),
        Ok(None) => Ok(Some(shared.begin(hash, length))),
        Err(error) => Err(error),
    });
    let begun = begun.await.and_then(|result| result).map_err(file_error(Path::new(&name)))?;
    match begun {
        None => Ok(None),
        Some(Ok(sink)) => Ok(Some(Filling::new(sink))),
        Some(Err(reason)) => Err(BlobError::Refused { hash, reason }),
    }
}

async fn take(
    sink: &Filling<Box<dyn BlobSink>>,
    (hash, length): (BlobHash, u64),
    receiver: &mut FrameReceiver,
    timing: &Timing,
) -> Result<(), BlobError> {
    let name = hash.to_string();
    sink.fill(receiver, (length, Path::new(&name)), timing, &mut |_, _| {}).await?;
    sink.finish(hash, Path::new(&name)).await
}

/// Describes an error for the other side: with its cause, but without paths of this side.
fn words(error: &BlobError) -> String {
    let text = match error {
        BlobError::File { source, .. } => format!("the receiving side's disk failed: {source}"),
        BlobError::Refused { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    cut(&text, REASON_MAX).to_owned()
}
