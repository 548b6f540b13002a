//! Downloads of blobs, on the fetching side and on the serving side.

use super::direct::Direct;
use super::fill::Filling;
use super::part::{Durability, PartFile};
use super::ranges::{Ahead, RANGE_BYTES, streams_for};
use super::send::{Buffers, send};
use super::{BlobError, BlobRead, BlobStore, PRIORITY, blocking, file_error};
use crate::close::cut;
use crate::files::rename_synced;
use crate::placing::place_new;
use crate::stream::frame::{FrameReceiver, FrameSender, open_both};
use crate::timing::Timing;
use quinn::Connection;
use std::collections::VecDeque;
use std::io::{self, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tessera_protocol::limits::{ADDRESS_MAX, REASON_MAX};
use tessera_protocol::stream::{BlobReply, BlobRequest, StreamKind};
use tessera_protocol::{BlobHash, FrameNumber, JobId};

/// Longest file name of common file systems in bytes.
const FILE_NAME_BYTES: usize = 255;
/// Shortest blob in bytes that is worth a connection to somewhere else.
const DIRECT_FROM: u64 = 64 << 10;
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
    let target = into.path;
    let open = (into.part(wanted.hash), Durability::Synced);
    let from = (connection, &Ahead::default());
    let fetched = fetch_part(from, (wanted, target), length_max, open, timing, progress).await;
    let (length, part) = fetched?;
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

/// Fetches a blob of exactly `length` bytes into the part file `path`, continues an interrupted
/// fetch, and gives the whole blob the name `to`, which is replaced. Its bytes are checked, but a
/// power cut may damage them: for caches, which check what they find. All such fetches of one
/// connection share one [`Ahead`].
pub async fn get_cached(
    from: (&Connection, &Ahead),
    wanted: Wanted,
    length: u64,
    (path, to): (&Path, &Path),
    timing: &Timing,
) -> Result<(), BlobError> {
    let open = (path.to_owned(), Durability::Unsynced);
    let (found, part) =
        fetch_part(from, (wanted, path), length, open, timing, &mut |_, _| {}).await?;
    if found != length {
        return Err(BlobError::Shorter { hash: wanted.hash, length: found, expected: length });
    }
    let name = to.to_owned();
    let renamed = part.with(move |part| {
        std::fs::rename(part.path(), name)?;
        part.forget();
        Ok(())
    });
    renamed.await.and_then(|result| result).map_err(file_error(to))
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

/// Fetches a blob into a part, and returns its length and the complete, checked part.
async fn fetch_part(
    from: (&Connection, &Ahead),
    wanted: (Wanted, &Path),
    length_max: u64,
    (path, durability): (PathBuf, Durability),
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<(u64, Filling<PartFile>), BlobError> {
    let hash = wanted.0.hash;
    let open = || async {
        let path = path.clone();
        let opened = blocking(move || PartFile::open_as(&path, hash, length_max, durability)).await;
        opened.and_then(|part| part).map(Filling::new).map_err(file_error(wanted.1))
    };
    let mut part = open().await?;
    let resumed = part.held() > 0;
    let mut result = fetch(from, wanted, length_max, &part, timing, progress).await;
    if resumed && matches!(result, Err(BlobError::Corrupt { .. })) {
        // The rest of a former fetch may be at fault (its disk, or another blob's bytes). Try once
        // more from the beginning.
        part = open().await?;
        result = fetch(from, wanted, length_max, &part, timing, progress).await;
    }
    result.map(|length| (length, part))
}

async fn fetch(
    (connection, ahead): (&Connection, &Ahead),
    (wanted, target): (Wanted, &Path),
    length_max: u64,
    part: &Filling<PartFile>,
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<u64, BlobError> {
    let hash = wanted.hash;
    let streams = streams_for(connection, timing);
    let range = if streams > 1 { RANGE_BYTES } else { u64::MAX };
    let short = |length| match length > length_max {
        true => Err(BlobError::TooLong { hash, length, limit: length_max }),
        false => Ok(()),
    };
    let mut first = ask(connection, wanted, part.held(), range, (true, 0)).await?;
    let (offset, length) = match answered(&mut first, hash, timing).await? {
        At::Here(offset, length) => (offset, length),
        At::Elsewhere(url, length) => {
            short(length)?;
            if fetch_there((&url, length), (part, target), timing, progress).await? {
                part.finish(hash, target).await?;
                return Ok(length);
            }
            first = ask(connection, wanted, part.held(), range, (false, 0)).await?;
            here(&mut first, hash, timing).await?
        }
    };
    short(length)?;
    if offset == 0 && part.held() > 0 {
        let restarted = part.with(PartFile::restart).await.and_then(|result| result);
        restarted.map_err(file_error(target))?;
    }
    if offset != part.held() || offset > length {
        return Err(elsewhere(hash));
    }
    progress(offset, length);
    let mut progress = |held| progress(held, length);
    let end = |at: u64| at.saturating_add(range).min(length);
    let (mut at, mut next, mut asked) = (offset, end(offset), VecDeque::new());
    let mut current = Some(first);
    while let Some(mut receiver) = current.take() {
        // Those that are asked for now arrive while this one is read.
        while asked.len() + 1 < streams && next < length {
            let Some(room) = ahead.take() else { break };
            // No more than the streams of a blob.
            let unread = asked.len() as u8 + 1;
            let receiver = ask(connection, wanted, next, range, (false, unread)).await?;
            asked.push_back((receiver, room));
            next = end(next);
        }
        at = end(at);
        part.fill(&mut receiver, (at, target), timing, &mut progress).await?;
        current = match asked.pop_front() {
            Some((receiver, _room)) => Some(receiver),
            None if at < length => {
                next = end(at);
                Some(ask(connection, wanted, at, range, (false, 0)).await?)
            }
            None => None,
        };
        if let Some(receiver) = &mut current
            && here(receiver, hash, timing).await? != (at, length)
        {
            return Err(elsewhere(hash));
        }
    }
    part.finish(hash, target).await?;
    Ok(length)
}

/// Gets the rest of a blob where it is. Returns whether that worked; what came until it did not is
/// kept.
async fn fetch_there(
    (url, length): (&str, u64),
    (part, target): (&Filling<PartFile>, &Path),
    timing: &Timing,
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<bool, BlobError> {
    if part.held() > length {
        let restarted = part.with(PartFile::restart).await.and_then(|result| result);
        restarted.map_err(file_error(target))?;
    }
    let Some(mut there) = Direct::open(url, part.held(), length).await else { return Ok(false) };
    progress(part.held(), length);
    let mut progress = |held| progress(held, length);
    match part.fill(&mut there, (length, target), timing, &mut progress).await {
        Ok(()) => Ok(true),
        Err(BlobError::Frame(_)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Asks for so many bytes of a blob from an offset on, or for all of them. With `direct` the answer
/// may be where it is; `ahead` is of [`BlobRequest`].
async fn ask(
    connection: &Connection,
    Wanted { hash, of }: Wanted,
    offset: u64,
    bytes: u64,
    (direct, ahead): (bool, u8),
) -> Result<FrameReceiver, BlobError> {
    let (mut sender, receiver) = open_both(connection, StreamKind::BlobGet).await?;
    let end = (bytes < u64::MAX).then(|| offset.saturating_add(bytes));
    sender.send(&BlobRequest { hash, offset, of, end, direct, ahead }).await?;
    sender.finish();
    Ok(receiver)
}

/// Where the bytes of a blob are.
enum At {
    /// They follow, from an offset on. With the length of the whole blob.
    Here(u64, u64),
    /// They can be got at an address. With the length of the whole blob.
    Elsewhere(String, u64),
}

/// Returns where the bytes are that were asked for.
async fn answered(
    receiver: &mut FrameReceiver,
    hash: BlobHash,
    timing: &Timing,
) -> Result<At, BlobError> {
    match receiver.expect(timing.answer).await? {
        BlobReply::From { offset, length } => Ok(At::Here(offset, length)),
        BlobReply::Elsewhere { url, length } => Ok(At::Elsewhere(url, length)),
        BlobReply::Absent => Err(BlobError::Absent(hash)),
        BlobReply::Refused(reason) => Err(BlobError::Refused { hash, reason }),
        BlobReply::Held => {
            let problem = "a get was answered as if it were a put";
            Err(BlobError::Protocol { hash, problem })
        }
    }
}

/// Returns the offset of the bytes that follow, and the length of the whole blob.
async fn here(
    receiver: &mut FrameReceiver,
    hash: BlobHash,
    timing: &Timing,
) -> Result<(u64, u64), BlobError> {
    match answered(receiver, hash, timing).await? {
        At::Here(offset, length) => Ok((offset, length)),
        At::Elsewhere(..) => {
            let problem = "the answer names another place, which was not asked for";
            Err(BlobError::Protocol { hash, problem })
        }
    }
}

fn elsewhere(hash: BlobHash) -> BlobError {
    let problem = "the answer begins at another byte than was asked for";
    BlobError::Protocol { hash, problem }
}

/// Answers an accepted [`StreamKind::BlobGet`] stream. The caller has checked that the peer is
/// allowed to read. Returns the number of bytes sent.
pub async fn serve_get<S: BlobStore>(
    store: &Arc<S>,
    connection: &Connection,
    (sender, receiver): (&mut FrameSender, &mut FrameReceiver),
    timing: &Timing,
) -> Result<u64, BlobError> {
    let request = receiver.expect(timing.answer).await?;
    answer_get(store, (connection, sender), request, timing).await
}

/// Answers a request for a blob that the peer is allowed to read. Returns the number of bytes sent.
pub async fn answer_get<S: BlobStore>(
    store: &Arc<S>,
    (connection, sender): (&Connection, &mut FrameSender),
    BlobRequest { hash, offset, end, direct, ahead, .. }: BlobRequest,
    timing: &Timing,
) -> Result<u64, BlobError> {
    if direct && let Some((url, length)) = there(store, connection, hash).await {
        sender.send(&BlobReply::Elsewhere { url, length }).await?;
        sender.finish();
        return Ok(0);
    }
    sender.set_priority(PRIORITY - i32::from(ahead));
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
    let wanted = end.map_or(u64::MAX, |end| end.saturating_sub(offset));
    // A part that is longer than the blob belongs to another blob, so begin from the start.
    let offset = if offset > length { 0 } else { offset };
    let range = offset..offset.saturating_add(wanted).min(length);
    sender.send(&BlobReply::From { offset, length }).await?;
    let (name, bytes) = (hash.to_string(), range.end - range.start);
    let buffers = Buffers::new();
    let sent =
        send(blob, Path::new(&name), range, (connection, sender), timing, &buffers, &mut |_| {})
            .await;
    match sent {
        Ok(_) => sender.finish(),
        // A stream that is only dropped ends as if it were whole.
        Err(error) => {
            sender.reset(error.code());
            return Err(error);
        }
    }
    Ok(bytes)
}

/// Returns where the peer can get a blob itself, if that is worth a connection.
async fn there<S: BlobStore>(
    store: &Arc<S>,
    connection: &Connection,
    hash: BlobHash,
) -> Option<(String, u64)> {
    let (shared, here) = (store.clone(), connection.remote_address().ip().is_loopback());
    let found = blocking(move || shared.elsewhere(hash, here)).await.ok()??;
    (found.1 >= DIRECT_FROM && found.0.len() <= ADDRESS_MAX).then_some(found)
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
        let mut count = 0;
        while count < buffer.len() {
            match self.read(&mut buffer[count..]) {
                Ok(0) => break,
                Ok(more) => count += more,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(count)
    }
}
