//! The sending half of a transfer: the next bytes of a blob are read while the last ones are sent.

use super::{BlobError, BlobRead, file_error};
use crate::close::CloseCode;
use crate::endpoint::socket::fit_send_window;
use crate::stream::frame::{FrameSender, within};
use crate::timing::Timing;
use bytes::Bytes;
use quinn::Connection;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Semaphore, SemaphorePermit};

/// Bytes that are read from a blob and handed to QUIC at once.
const STEP_BYTES: usize = 256 << 10;
/// The same for a transfer that gets no place among those with large steps.
const SMALL_STEP_BYTES: usize = 64 << 10;
/// Transfers of this process with large steps at a time, so that many peers that read nothing hold
/// little memory. Each step is in memory twice: one is read while one is sent.
static LARGE_STEPS: Semaphore = Semaphore::const_new(64);
/// Answer times in which a peer must accept some bytes. A receiver asks for more only when it has
/// read an eighth of its window, 1 MiB, so this is a line of 26 KiB per second.
const PATIENCE: u32 = 4;

/// Sends a range of a blob's bytes. If the blob has become shorter, the stream is reset.
/// `progress` gets the position after the bytes that were handed over. Returns the blob.
pub(super) async fn send(
    blob: Box<dyn BlobRead>,
    path: &Path,
    range: Range<u64>,
    (connection, sender): (&Connection, &mut FrameSender),
    timing: &Timing,
    buffers: &Buffers,
    progress: &mut (dyn FnMut(u64) + Send),
) -> Result<Box<dyn BlobRead>, BlobError> {
    let read = |blob, range| {
        let buffers = buffers.clone();
        tokio::task::spawn_blocking(move || read_step(buffers, blob, range))
    };
    if range.is_empty() {
        return Ok(blob);
    }
    let (mut at, mut reading) = (range.start, read(blob, range.clone()));
    loop {
        let step = reading.await.map_err(io::Error::other).and_then(|step| step);
        let (mut bytes, blob) = step.map_err(file_error(path))?;
        if bytes.is_empty() {
            sender.reset(CloseCode::Failed);
            let problem = "the file has become shorter";
            return Err(file_error(path)(io::Error::new(io::ErrorKind::UnexpectedEof, problem)));
        }
        let next = at + bytes.len() as u64;
        fit_send_window(connection);
        // The next step is read while this one is sent; after the last one the blob is idle.
        let rest = if next < range.end { Ok(read(blob, next..range.end)) } else { Err(blob) };
        while !bytes.is_empty() {
            // A peer that reads nothing must not keep this stream open without end, but a slow
            // line is allowed.
            within(timing.answer * PATIENCE, sender.send_some(&mut bytes)).await?;
            at = next - bytes.len() as u64;
            progress(at);
        }
        match rest {
            Ok(read) => reading = read,
            Err(blob) => return Ok(blob),
        }
    }
}

/// Sends all bytes of a reader on a stream that was opened for them, after what its kind says
/// first. `path` is named in errors. If the reader fails, the stream is reset.
pub async fn send_all(
    bytes: Box<dyn BlobRead>,
    path: &Path,
    ends: (&Connection, &mut FrameSender),
    timing: &Timing,
) -> Result<(), BlobError> {
    let (connection, sender) = ends;
    let (range, buffers) = (0..bytes.length(), Buffers::new());
    let mut progress = |_| {};
    let sent =
        send(bytes, path, range, (connection, sender), timing, &buffers, &mut progress).await;
    if let Err(BlobError::File { .. }) = &sent {
        sender.reset(CloseCode::Failed);
    }
    sent.map(drop)
}

/// Bytes of a blob, and the blob.
type Step = (Bytes, Box<dyn BlobRead>);

/// Reads the first bytes of a range; none at the end of the blob.
fn read_step(buffers: Buffers, mut blob: Box<dyn BlobRead>, range: Range<u64>) -> io::Result<Step> {
    let mut buffer = buffers.take();
    let wanted = (range.end - range.start).min(buffer.len() as u64) as usize;
    let count = blob.read_at(range.start, &mut buffer[..wanted])?;
    Ok((Bytes::from_owner(Lent { buffer, buffers }).slice(..count), blob))
}

/// Buffers of a transfer that QUIC has no more use for. A new buffer for each step would be cleared
/// first, and its pages be given by the system one by one.
#[derive(Clone)]
pub(super) struct Buffers(Arc<Free>);

struct Free {
    buffers: Mutex<Vec<Vec<u8>>>,
    /// The place of a transfer with large steps.
    large: Option<SemaphorePermit<'static>>,
}

impl Buffers {
    pub(super) fn new() -> Self {
        let large = LARGE_STEPS.try_acquire().ok();
        Self(Arc::new(Free { buffers: Mutex::default(), large }))
    }

    fn take(&self) -> Vec<u8> {
        let free = self.0.buffers.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let bytes = if self.0.large.is_some() { STEP_BYTES } else { SMALL_STEP_BYTES };
        free.unwrap_or_else(|| vec![0; bytes])
    }
}

/// A buffer in use. Returns to the others when its bytes have arrived at the peer.
struct Lent {
    buffer: Vec<u8>,
    buffers: Buffers,
}

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.buffer
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        self.buffers.0.buffers.lock().unwrap_or_else(PoisonError::into_inner).push(buffer);
    }
}
