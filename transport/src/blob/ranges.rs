//! Blobs in ranges, each on a stream of its own, for lines with a long round trip.
//!
//! One stream has at most its window in flight, which is 40 MB per second at 200 ms. A range fits
//! into a window, so several streams can have all of theirs in flight, while the receiving side
//! reads one after the other: what is ahead waits in the windows of QUIC. So bytes are written and
//! hashed in order, a part file is always the beginning of its blob, and an interrupted transfer
//! continues from any byte.

use super::fill::Filling;
use super::{BlobError, BlobSink};
use crate::close::CloseCode;
use crate::endpoint::socket::STREAM_WINDOW_BYTES;
use crate::stream::frame::{FrameError, FrameReceiver, within};
use crate::timing::Timing;
use quinn::Connection;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tessera_protocol::stream::{BlobRange, BlobRanges};
use tokio::sync::{Notify, Semaphore, SemaphorePermit};

/// Bytes of a range.
pub(super) const RANGE_BYTES: u64 = STREAM_WINDOW_BYTES as u64;
/// Most streams of one blob at a time. Together they fill the connection's window.
const STREAMS_MAX: u128 = 4;
/// Most ranges that the downloads of one connection have asked for ahead of those that they read.
/// With one that is read they fill the connection's window.
const AHEAD_MAX: usize = 3;
/// Streams of an upload that wait for their turn. Windows allow about four with all of their bytes.
const WAITING_MAX: usize = 16;
/// Ranges after which the order of their priorities begins again, so that no other blob waits for
/// long.
const PRIORITIES: u64 = 16;

/// Returns how many streams of a blob are needed to fill a line.
pub(super) fn streams_for(connection: &Connection, timing: &Timing) -> usize {
    streams(connection.rtt().as_nanos(), timing.stream_round_trip.as_nanos())
}

fn streams(round_trip: u128, of_one_stream: u128) -> usize {
    round_trip.div_ceil(of_one_stream.max(1)).clamp(1, STREAMS_MAX) as usize
}

/// Returns the priority of a range of an upload that begins at `offset`, among the blobs of a
/// connection: of two ranges of a blob the first one is needed first.
pub(super) fn priority(offset: u64) -> i32 {
    super::PRIORITY - (offset / RANGE_BYTES % PRIORITIES) as i32
}

/// Ranges that the downloads of one connection have asked for ahead of those that they read. All
/// downloads at once share them: a range ahead holds a stream and a part of the connection's
/// window, for which the others would wait until it is read, and that may be after theirs.
#[derive(Debug)]
pub struct Ahead(Semaphore);

impl Default for Ahead {
    /// Returns that no range is asked for yet.
    fn default() -> Self {
        Self(Semaphore::new(AHEAD_MAX))
    }
}

impl Ahead {
    /// Takes room for one more range; None while others have all of it.
    pub(super) fn take(&self) -> Option<SemaphorePermit<'_>> {
        self.0.try_acquire().ok()
    }
}

/// The later streams of the uploads of one connection, until they are read.
#[derive(Debug, Default)]
pub struct RangeStreams {
    /// By the numbers of open uploads, and the positions of the streams' first bytes.
    uploads: Mutex<BTreeMap<u32, BTreeMap<u64, FrameReceiver>>>,
    arrived: Notify,
}

/// An open upload, whose streams are taken. Dropping this value stops those that were not read.
pub(super) struct OpenUpload<'a> {
    streams: &'a RangeStreams,
    ranges: BlobRanges,
}

impl RangeStreams {
    fn uploads(&self) -> MutexGuard<'_, BTreeMap<u32, BTreeMap<u64, FrameReceiver>>> {
        self.uploads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens an upload. None if the number is in use, or if a range has no bytes.
    pub(super) fn open(&self, ranges: BlobRanges) -> Option<OpenUpload<'_>> {
        let mut uploads = self.uploads();
        if ranges.bytes == 0 || uploads.contains_key(&ranges.upload) {
            return None;
        }
        uploads.insert(ranges.upload, BTreeMap::new());
        Some(OpenUpload { streams: self, ranges })
    }

    /// Takes an accepted stream of [`tessera_protocol::stream::StreamKind::BlobRange`] for the
    /// upload that it names. It is stopped if that has ended, or has too many.
    pub async fn arrive(
        &self,
        mut receiver: FrameReceiver,
        timing: &Timing,
    ) -> Result<(), BlobError> {
        let BlobRange { upload, offset } = receiver.expect(timing.answer).await?;
        let mut uploads = self.uploads();
        match uploads.get_mut(&upload) {
            Some(waiting) if waiting.len() < WAITING_MAX => {
                waiting.insert(offset, receiver);
            }
            _ => receiver.stop(CloseCode::Failed),
        }
        drop(uploads);
        self.arrived.notify_waiters();
        Ok(())
    }
}

impl OpenUpload<'_> {
    /// Returns the end of the range that begins at `offset`.
    pub(super) fn end(&self, offset: u64, length: u64) -> u64 {
        offset.saturating_add(self.ranges.bytes).min(length)
    }

    /// Fills a sink from the streams that follow one another, until it has `length` bytes.
    pub(super) async fn fill<S: BlobSink + 'static>(
        &self,
        sink: &Filling<S>,
        (length, path): (u64, &Path),
        timing: &Timing,
    ) -> Result<(), BlobError> {
        loop {
            let offset = sink.held();
            if offset >= length {
                return Ok(());
            }
            let mut stream = within(timing.answer, self.next(offset)).await?;
            let end = self.end(offset, length);
            sink.fill(&mut stream, (end, path), timing, &mut |_| {}).await?;
        }
    }

    async fn next(&self, offset: u64) -> Result<FrameReceiver, FrameError> {
        loop {
            let arrived = self.streams.arrived.notified();
            tokio::pin!(arrived);
            // From here on a stream that arrives is noticed.
            arrived.as_mut().enable();
            if let Some(stream) = self.take(offset) {
                return Ok(stream);
            }
            arrived.await;
        }
    }

    fn take(&self, offset: u64) -> Option<FrameReceiver> {
        self.streams.uploads().get_mut(&self.ranges.upload)?.remove(&offset)
    }
}

impl Drop for OpenUpload<'_> {
    fn drop(&mut self) {
        let waiting = self.streams.uploads().remove(&self.ranges.upload);
        for mut stream in waiting.into_iter().flat_map(BTreeMap::into_values) {
            stream.stop(CloseCode::Failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_round_trips_take_up_to_four_streams() {
        let millis = |count: u128| count * 1_000_000;
        let of = |round_trip| streams(millis(round_trip), millis(50));
        assert_eq!([0, 1, 50, 51, 100, 160, 200, 900].map(of), [1, 1, 1, 2, 2, 4, 4, 4]);
        assert_eq!(streams(1000, 0), 4);
    }

    #[test]
    fn earlier_ranges_go_first_and_none_waits_for_ever() {
        let at = |range: u64| priority(range * RANGE_BYTES);
        assert!(at(0) > at(1) && at(1) > at(2) && at(14) > at(15));
        assert_eq!((at(0), at(16), at(15)), (-1, -1, -16));
    }
}
