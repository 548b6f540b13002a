//! Uploads of blobs, on the sending side and on the receiving side.

use super::fill::Filling;
use super::ranges::{OpenUpload, RANGE_BYTES, RangeStreams, priority, streams_for};
use super::send::{Buffers, send};
use super::{BlobError, BlobRead, BlobSink, BlobStore, blocking, file_error};
use crate::close::{CloseCode, cut};
use crate::stream::frame::{FrameError, FrameReceiver, FrameSender, open_both};
use crate::timing::Timing;
use quinn::Connection;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;
use tessera_protocol::BlobHash;
use tessera_protocol::limits::{BLOB_BYTES_MAX, REASON_MAX};
use tessera_protocol::stream::{
    BlobOffer, BlobRange, BlobRanges, BlobReceipt, BlobReply, StreamKind,
};

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
    sender.set_priority(priority(0));
    let ranges = ranges_for(connection, length, timing);
    sender.send(&BlobOffer { hash, length, ranges }).await?;
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
        BlobReply::Absent | BlobReply::Elsewhere { .. } => {
            return Err(BlobError::Protocol {
                hash,
                problem: "a put was answered as if it were a get",
            });
        }
    };
    progress(offset, length);
    let mut progress = |at| progress(at, length);
    let blob = (Box::new(file) as Box<dyn BlobRead>, source);
    let mut sending = Sending { connection, ranges, timing, progress: &mut progress };
    match sending.send(blob, offset..length, &mut sender).await {
        // The receiving side stops us if it cannot continue. Its receipt then says why.
        Ok(()) | Err(BlobError::Frame(FrameError::Reset(_))) => sender.finish(),
        Err(error) => {
            sender.reset(error.code());
            return Err(error);
        }
    }
    match receiver.expect(RECEIPT_WITHIN).await? {
        BlobReceipt::Stored => Ok(length - offset),
        BlobReceipt::Refused(reason) => Err(BlobError::Refused { hash, reason }),
    }
}

/// Returns how an upload is spread over streams; None where one is enough.
fn ranges_for(connection: &Connection, length: u64, timing: &Timing) -> Option<BlobRanges> {
    /// Number of the next upload of this process.
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let several = length > RANGE_BYTES && streams_for(connection, timing) > 1;
    several.then(|| BlobRanges { upload: NEXT.fetch_add(1, Relaxed), bytes: RANGE_BYTES })
}

/// An upload whose bytes are sent.
struct Sending<'a> {
    connection: &'a Connection,
    ranges: Option<BlobRanges>,
    timing: &'a Timing,
    progress: &'a mut (dyn FnMut(u64) + Send),
}

impl Sending<'_> {
    /// Sends the bytes of a range of the file: all on the stream of the offer, or range by range.
    /// Each stream fits into its window, so the next one begins while the last one is under way.
    async fn send(
        &mut self,
        (mut blob, path): (Box<dyn BlobRead>, &Path),
        bytes: Range<u64>,
        first: &mut FrameSender,
    ) -> Result<(), BlobError> {
        let buffers = Buffers::new();
        let end = |at: u64| match self.ranges {
            Some(ranges) => bytes.end.min(at.saturating_add(ranges.bytes)),
            None => bytes.end,
        };
        let (timing, mut at) = (self.timing, end(bytes.start));
        let (range, ends) = (bytes.start..at, (self.connection, first));
        blob = send(blob, path, range, ends, timing, &buffers, self.progress).await?;
        let Some(BlobRanges { upload, .. }) = self.ranges else { return Ok(()) };
        while at < bytes.end {
            let (mut sender, _) = open_both(self.connection, StreamKind::BlobRange).await?;
            sender.set_priority(priority(at - bytes.start));
            sender.send(&BlobRange { upload, offset: at }).await?;
            let (range, ends) = (at..end(at), (self.connection, &mut sender));
            at = range.end;
            let sent = send(blob, path, range, ends, timing, &buffers, self.progress);
            match sent.await {
                Ok(given_back) => blob = given_back,
                Err(error) => {
                    sender.reset(error.code());
                    return Err(error);
                }
            }
            sender.finish();
        }
        Ok(())
    }
}

/// Answers an accepted [`StreamKind::BlobPut`] stream. The caller has checked that the peer is
/// allowed to write. Returns the blob's hash and length once it is stored (or if it already was).
pub async fn serve_put<S: BlobStore>(
    store: &Arc<S>,
    (sender, receiver): (&mut FrameSender, &mut FrameReceiver),
    streams: &RangeStreams,
    timing: &Timing,
) -> Result<(BlobHash, u64), BlobError> {
    let BlobOffer { hash, length, ranges } = receiver.expect(timing.answer).await?;
    let upload = match ranges.map(|ranges| streams.open(ranges)) {
        None => None,
        Some(Some(upload)) => Some(upload),
        Some(None) => {
            let reason = "another upload of this connection has its number".to_owned();
            sender.send(&BlobReply::Refused(reason.clone())).await?;
            sender.finish();
            return Err(BlobError::Refused { hash, reason });
        }
    };
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
    let result = take(&sink, (hash, length), (receiver, upload.as_ref()), timing).await;
    drop(upload);
    let receipt = match &result {
        Ok(()) => BlobReceipt::Stored,
        // No verdict about the blob: the sending side can go on over another stream.
        Err(BlobError::Frame(FrameError::Silent(_))) => {
            receiver.stop(CloseCode::Silent);
            sender.reset(CloseCode::Silent);
            return result.map(|()| (hash, length));
        }
        Err(error) => {
            receiver.stop(CloseCode::Failed);
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
    (receiver, upload): (&mut FrameReceiver, Option<&OpenUpload<'_>>),
    timing: &Timing,
) -> Result<(), BlobError> {
    let name = hash.to_string();
    let first = upload.map_or(length, |upload| upload.end(sink.held(), length));
    sink.fill(receiver, (first, Path::new(&name)), timing, &mut |_| {}).await?;
    if let Some(upload) = upload {
        upload.fill(sink, (length, Path::new(&name)), timing).await?;
    }
    sink.finish(hash, Path::new(&name)).await
}

/// Describes an error for the other side: with its cause, but without paths of this side.
fn words(error: &BlobError) -> String {
    let text = match error {
        BlobError::File { source, .. } => format!(
            "the receiving side cannot store it: {source}; what has arrived is kept: try again \
             later"
        ),
        BlobError::Refused { reason, .. } => reason.clone(),
        other => other.to_string(),
    };
    cut(&text, REASON_MAX).to_owned()
}
