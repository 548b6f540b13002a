//! Downloads of blobs, on the fetching side and on the serving side.

use super::part::{Filling, PartFile};
use super::{BlobError, BlobRead, BlobStore, PRIORITY, STEP_BYTES, blocking, file_error};
use crate::close::cut;
use crate::files::rename_synced;
use crate::placing::place_new;
use crate::stream::frame::{FrameReceiver, FrameSender, open_both, within};
use crate::timing::Timing;
use quinn::Connection;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::stream::{BlobReply, BlobRequest, StreamKind};
use tessera_protocol::{BlobHash, FrameNumber, JobId};

/// Bytes that a peer must accept within the time for an answer. 16 KiB in 10 s is the slowest line
/// that is served.
const SEND_BYTES: usize = 16 << 10;

/// Longest file name of common file systems in bytes.
const FILE_NAME_BYTES: usize = 255;
/// Digits of a blob's hash in the name of its part.
const PART_HASH_DIGITS: usize = 8;

/// A blob to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// Its name.
    pub hash: BlobHash,
    /// Finished frame that has it as a file; see [`BlobRequest::of`].
    pub of: Option<(JobId, FrameNumber)>,
}

impl From<BlobHash> for Wanted {
    fn from(hash: BlobHash) -> Self {
        Self { hash, of: None }
    }
}

/// What becomes of a file that has the target's name already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// It stays, and the fetch fails with [`BlobError::Occupied`].
    Keep,
    /// It is replaced in one step.
    Replace,
}

/// Where a fetched blob goes.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// The file. Its folder exists.
    pub path: &'a Path,
    /// What becomes of a file that is there.
    pub existing: Existing,
}

impl<'a> Target<'a> {
    /// A file that does not exist yet.
    pub fn new(path: &'a Path) -> Self {
        Self { path, existing: Existing::Keep }
    }

    /// A file that may exist.
    pub fn replacing(path: &'a Path) -> Self {
        Self { path, existing: Existing::Replace }
    }

    /// Returns the file that collects the bytes of a blob until it is complete: beside the target,
    /// and named after the blob too, so that it is no other file's.
    pub fn part(&self, hash: BlobHash) -> PathBuf {
        let hash = hash.to_string();
        let suffix = format!(".{}.part", &hash[..PART_HASH_DIGITS]);
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(cut(&name, FILE_NAME_BYTES - suffix.len()).to_owned() + &suffix)
    }
}

/// Fetches a blob of at most `length_max` bytes into a file, and returns its length. Bytes are
/// collected in [`Target::part`], and the next fetch continues an interrupted one. The file gets
/// its name only when it is complete, checked and synced. `progress` gets the bytes so far and the
/// total.
pub async fn get(
    connection: &Connection,
    wanted: Wanted,
    length_max: u64,
    into: Target<'_>,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let (hash, target) = (wanted.hash, into.path);
    let mut part = open_part(&into, hash, length_max).await?;
    let resumed = part.held() > 0;
    let mut result = fetch(connection, (wanted, target), length_max, &part, timing, progress).await;
    if resumed && matches!(result, Err(BlobError::Corrupt { .. })) {
        // The rest of a former fetch may be at fault (its disk, or another blob's bytes). Try once
        // more from the beginning.
        part = open_part(&into, hash, length_max).await?;
        result = fetch(connection, (wanted, target), length_max, &part, timing, progress).await;
    }
    let length = result?;
    let (to, existing) = (target.to_owned(), into.existing);
    let placed = part.with(move |part| place(part, &to, existing)).await;
    match placed.and_then(|result| result) {
        Ok(()) => Ok(length),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Err(BlobError::Occupied { path: target.to_owned() })
        }
        Err(error) => Err(file_error(target)(error)),
    }
}

/// Gives a complete part its name.
fn place(part: &mut PartFile, to: &Path, existing: Existing) -> io::Result<()> {
    let placed = match existing {
        Existing::Replace => rename_synced(part.path(), to),
        Existing::Keep => place_new(part.path(), to),
    };
    match &placed {
        Ok(()) => part.forget(),
        // Nobody asks for these bytes again under this name.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => part.remove()?,
        // The part stays for the next fetch.
        Err(_) => {}
    }
    placed
}

async fn open_part(
    target: &Target<'_>,
    hash: BlobHash,
    length_max: u64,
) -> Result<Filling<PartFile>, BlobError> {
    let path = target.part(hash);
    let opened = blocking(move || PartFile::open(&path, hash, length_max)).await;
    opened.and_then(|part| part).map(Filling::new).map_err(file_error(target.path))
}

async fn fetch(
    connection: &Connection,
    (Wanted { hash, of }, target): (Wanted, &Path),
    length_max: u64,
    part: &Filling<PartFile>,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let (mut sender, mut receiver) = open_both(connection, StreamKind::BlobGet).await?;
    sender.send(&BlobRequest { hash, offset: part.held(), of }).await?;
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
        let restarted = part.with(PartFile::restart).await.and_then(|result| result);
        restarted.map_err(file_error(target))?;
    }
    if offset != part.held() || offset > length {
        return Err(BlobError::Protocol {
            hash,
            problem: "the answer begins at another byte than was asked for",
        });
    }
    progress(offset, length);
    part.fill(&mut receiver, (length, target), timing, progress).await?;
    part.finish(hash, target).await?;
    Ok(length)
}

/// Answers an accepted [`StreamKind::BlobGet`] stream. The caller has checked that the peer is
/// allowed to read. Returns the number of bytes sent.
pub async fn serve_get<S: BlobStore>(
    store: &Arc<S>,
    sender: &mut FrameSender,
    receiver: &mut FrameReceiver,
    timing: &Timing,
) -> Result<u64, BlobError> {
    let request = receiver.expect(timing.answer).await?;
    answer_get(store, sender, request, timing).await
}

/// Answers a request for a blob that the peer is allowed to read. Returns the number of bytes sent.
pub async fn answer_get<S: BlobStore>(
    store: &Arc<S>,
    sender: &mut FrameSender,
    BlobRequest { hash, offset, .. }: BlobRequest,
    timing: &Timing,
) -> Result<u64, BlobError> {
    sender.set_priority(PRIORITY);
    let blob = match open_held(store, hash).await {
        Ok(Some(held)) => held,
        Ok(None) => {
            sender.send(&BlobReply::Absent).await?;
            sender.finish();
            return Ok(0);
        }
        Err(error) => {
            let reason = cut(&error.to_string(), REASON_MAX).to_owned();
            sender.send(&BlobReply::Refused(reason)).await?;
            sender.finish();
            return Err(error);
        }
    };
    let length = blob.length();
    // A part that is longer than the blob belongs to another blob, so begin from the start.
    let offset = if offset > length { 0 } else { offset };
    sender.send(&BlobReply::From { offset, length }).await?;
    let name = hash.to_string();
    send(blob, Path::new(&name), offset..length, sender, timing, &mut |_, _| {}).await?;
    sender.finish();
    Ok(length - offset)
}

async fn open_held<S: BlobStore>(
    store: &Arc<S>,
    hash: BlobHash,
) -> Result<Option<Box<dyn BlobRead>>, BlobError> {
    let shared = store.clone();
    let opened = blocking(move || shared.open(hash)).await.and_then(|result| result);
    opened.map_err(file_error(Path::new(&hash.to_string())))
}

/// A file to be sent.
impl BlobRead for std::fs::File {
    fn length(&self) -> u64 {
        self.metadata().map_or(0, |metadata| metadata.len())
    }

    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        use std::io::{Read, Seek};
        self.seek(SeekFrom::Start(offset))?;
        self.read(buffer)
    }
}

/// Sends a range of a blob's bytes. If the blob has become shorter, the stream is reset.
pub(super) async fn send(
    mut blob: Box<dyn BlobRead>,
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
        let read = blocking(move || {
            let count = blob.read_at(at, &mut buffer[..wanted]);
            (count, blob, buffer)
        });
        let (count, given_back, bytes) = read.await.map_err(file_error(path))?;
        (blob, buffer) = (given_back, bytes);
        let count = count.map_err(file_error(path))?;
        if count == 0 {
            sender.reset(crate::close::CloseCode::Failed);
            let source =
                io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter");
            return Err(file_error(path)(source));
        }
        for bytes in buffer[..count].chunks(SEND_BYTES) {
            // A peer that reads nothing must not keep this stream open without end, but a slow line
            // is allowed.
            within(timing.answer, sender.send_raw(bytes)).await?;
        }
        at += count as u64;
        progress(at, range.end);
    }
    Ok(())
}
