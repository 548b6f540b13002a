//! Downloads of blobs: the fetching end and the serving end.

use super::part::Part;
use super::{BlobError, BlobStore, PRIORITY, STEP_BYTES, blocking, file_error};
use crate::files::rename_synced;
use crate::frame::{FrameReceiver, FrameSender, open_both, within};
use crate::timing::Timing;
use quinn::Connection;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_protocol::BlobHash;
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::stream::{BlobReply, BlobRequest, StreamKind};
use tokio::io::{AsyncReadExt, AsyncSeekExt};

/// Bytes that a peer must take within the time for an answer: 16 KiB in 10 s is the slowest line
/// that is served.
const SEND_BYTES: usize = 16 << 10;

/// Fetches a blob of at most `length_max` bytes into the file `target`, and returns its length.
/// Bytes are gathered in `target` + `.part`, where an interrupted fetch is continued by the next;
/// the file gets its name only when it is whole, checked and synced. `progress` hears bytes held
/// and bytes in all.
pub async fn get(
    connection: &Connection,
    hash: BlobHash,
    length_max: u64,
    target: &Path,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let mut part = Part::open(&part_path(target), length_max).await?;
    let resumed = part.held() > 0;
    let mut result = fetch(connection, hash, length_max, &mut part, timing, progress).await;
    if resumed && matches!(result, Err(BlobError::Corrupt { .. })) {
        // What was left of a former fetch may have been at fault (its disk, or another blob's
        // bytes): once more, from nothing.
        part = Part::open(&part_path(target), length_max).await?;
        result = fetch(connection, hash, length_max, &mut part, timing, progress).await;
    }
    let length = result?;
    let (from, to) = (part.path().to_owned(), target.to_owned());
    blocking(move || rename_synced(&from, &to))
        .await
        .and_then(|result| result)
        .map_err(file_error(target))?;
    part.forget();
    Ok(length)
}

fn part_path(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".part");
    name.into()
}

async fn fetch(
    connection: &Connection,
    hash: BlobHash,
    length_max: u64,
    part: &mut Part,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobGet).await?;
    sender.send(&BlobRequest { hash, offset: part.held() }).await?;
    sender.finish();
    let (offset, length) = match receiver.expect(timing.answer).await? {
        BlobReply::From { offset, length } => (offset, length),
        BlobReply::Absent => return Err(BlobError::Absent(hash)),
        BlobReply::Refused(reason) => return Err(BlobError::Refused { hash, reason }),
        BlobReply::Held => {
            return Err(BlobError::Protocol {
                hash,
                problem: "a get was answered as if it were a put",
            });
        }
    };
    if length > length_max {
        return Err(BlobError::TooLong { hash, length, limit: length_max });
    }
    if offset == 0 && part.held() > 0 {
        part.restart().await?;
    }
    if offset != part.held() || offset > length {
        return Err(BlobError::Protocol {
            hash,
            problem: "the answer begins at another byte than was asked for",
        });
    }
    progress(offset, length);
    part.fill(&mut receiver, length, timing, progress).await?;
    part.check(hash).await?;
    Ok(length)
}

/// Answers an accepted [`StreamKind::BlobGet`] stream, whose peer the caller has found to be
/// allowed. Returns the bytes sent.
pub async fn serve_get<S: BlobStore>(
    store: &Arc<S>,
    sender: &mut FrameSender,
    receiver: &mut FrameReceiver,
    timing: &Timing,
) -> Result<u64, BlobError> {
    let BlobRequest { hash, offset } = receiver.expect(timing.answer).await?;
    sender.set_priority(PRIORITY);
    let (mut file, path, length) = match open_held(store, hash).await {
        Ok(Some(held)) => held,
        Ok(None) => {
            sender.send(&BlobReply::Absent).await?;
            sender.finish();
            return Ok(0);
        }
        Err(error) => {
            let reason = crate::close::cut(&error.to_string(), REASON_MAX).to_owned();
            sender.send(&BlobReply::Refused(reason)).await?;
            sender.finish();
            return Err(error);
        }
    };
    // A part that is longer than the blob is another blob's: from the start.
    let offset = if offset > length { 0 } else { offset };
    sender.send(&BlobReply::From { offset, length }).await?;
    file.seek(SeekFrom::Start(offset)).await.map_err(file_error(&path))?;
    send_file(&mut file, &path, offset..length, sender, timing, &mut |_, _| {}).await?;
    sender.finish();
    Ok(length - offset)
}

async fn open_held<S: BlobStore>(
    store: &Arc<S>,
    hash: BlobHash,
) -> Result<Option<(tokio::fs::File, PathBuf, u64)>, BlobError> {
    let shared = store.clone();
    let found = blocking(move || shared.find(hash)).await.and_then(|result| result);
    let Some(path) = found.map_err(file_error(Path::new(&hash.to_string())))? else {
        return Ok(None);
    };
    let file = tokio::fs::File::open(&path).await.map_err(file_error(&path))?;
    let length = file.metadata().await.map_err(file_error(&path))?.len();
    Ok(Some((file, path, length)))
}

/// Sends the bytes of a range of a file that stands at the range's start. A file that has become
/// shorter resets the stream.
pub(super) async fn send_file(
    file: &mut tokio::fs::File,
    path: &Path,
    range: std::ops::Range<u64>,
    sender: &mut FrameSender,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(), BlobError> {
    let mut buffer = vec![0; STEP_BYTES];
    let mut at = range.start;
    while at < range.end {
        let wanted = (range.end - at).min(STEP_BYTES as u64) as usize;
        let count = file.read(&mut buffer[..wanted]).await.map_err(file_error(path))?;
        if count == 0 {
            sender.reset(crate::close::CloseCode::Failed);
            let source =
                io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter");
            return Err(file_error(path)(source));
        }
        for bytes in buffer[..count].chunks(SEND_BYTES) {
            // A peer that takes nothing must not hold this stream for ever; one with a slow line
            // may.
            within(timing.answer, sender.send_raw(bytes)).await?;
        }
        at += count as u64;
        progress(at, range.end);
    }
    Ok(())
}
