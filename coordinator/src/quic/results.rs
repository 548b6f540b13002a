//! A node's results: read within a memory budget, checked, and passed to the driver.

use super::arrived::describe;
use super::shared::Shared;
use super::store_here::store_here;
use super::trouble::Trouble;
use crate::driver::{Event, Taken};
use crate::result_memory::ResultPermit;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_core::{FilmShape, ResultShape, SessionId};
use tessera_finishing::{is_piece, piece_of};
use tessera_protocol::film::FilmHead;
use tessera_protocol::limits::RESULT_HEADERS_MAX;
use tessera_protocol::node::{ResultHeader, ResultHeaders};
use tessera_protocol::{BlobHash, ChunkValues, NodeId};
use tessera_transport::frame::within;
use tessera_transport::{FrameError, FrameReceiver, Timing};

/// Most bytes that are reserved for a result before they arrive.
const STEP_BYTES: usize = 256 << 10;
/// Times as much memory as has arrived of a result that is reserved for the rest: a long one is
/// copied twice at most as it grows, and what does not arrive takes no page.
const GROWTH: usize = 16;
/// Pieces that are taken from QUIC at once.
const PIECES: usize = 32;

/// Results of at most so many bytes, also decompressed, are checked where they arrive. That takes a
/// fifth of a millisecond at most, and passing them to another thread takes the better part of it.
const CHECKED_HERE_MAX: usize = 512 << 10;
/// The same of chunks as they arrive. They may be a hundred times as long decompressed.
const CHUNK_CHECKED_HERE_MAX: usize = 4 << 10;

/// Time of the results' arrival before their rate counts.
const RATE_GRACE: Duration = Duration::from_secs(30);
/// Least bytes per second of the results that have the last of the memory, for which all others
/// wait.
const LAST_RATE: u64 = 1 << 20;
/// Time of their arrival before that rate counts.
const LAST_GRACE: Duration = Duration::from_secs(5);

/// How fast results arrive, not counting the time in which they wait for memory.
struct Pace {
    grace: Duration,
    /// Least bytes per second after the grace.
    rate: u64,
    took: Duration,
    bytes: usize,
}

impl Pace {
    fn new(grace: Duration, rate: u64) -> Self {
        Self { grace, rate, took: Duration::ZERO, bytes: 0 }
    }

    /// Counts bytes that took a time. An error says that they come too slowly.
    fn add(&mut self, took: Duration, bytes: usize) -> Result<(), Trouble> {
        self.took += took;
        self.bytes += bytes;
        let due = self.took.saturating_sub(self.grace).as_secs_f64() * self.rate as f64;
        if due <= self.bytes as f64 {
            return Ok(());
        }
        Err(Trouble::Protocol(format!(
            "a result arrives at fewer than {} KiB per second, and holds memory that others need; \
             who runs the coordinator can allow a slower one (--result-rate)",
            self.rate >> 10
        )))
    }
}

/// Reads one stream of results. Those that came whole before the stream broke count.
pub(super) async fn take(
    shared: &Arc<Shared>,
    (session, node, name): (SessionId, NodeId, &str),
    receiver: FrameReceiver,
    timing: Timing,
) -> Result<(), Trouble> {
    let mut receiver = receiver.limited(RESULT_HEADERS_MAX);
    let announced: ResultHeaders = receiver.expect(timing.answer).await?;
    let bytes = announced.bytes().map_err(Trouble::Protocol)?;
    // Flow control makes the peer wait here while other results of it are being made durable.
    let permit = shared.result_memory.admit((node, name), bytes).await;
    let permit = permit.map_err(|_| Trouble::Stopping)?;
    let mut arriving = Arriving::new(receiver, (permit, bytes), (timing, shared.result_rate));
    let mut results = Vec::with_capacity(announced.headers.len());
    let ended = arriving.take_all(&announced.headers, &mut results).await;
    arriving.permit.arrived();
    if !results.is_empty() {
        let results = store_here(shared, node, results).await;
        let event = Event::Results { session, results, permit: arriving.permit };
        shared.events.send(event).await.map_err(|_| Trouble::Stopping)?;
    }
    ended
}

/// The results of a stream, as they arrive.
struct Arriving {
    receiver: FrameReceiver,
    permit: ResultPermit,
    timing: Timing,
    /// Pieces from QUIC. Those from `next` on are not used yet.
    pieces: [Bytes; PIECES],
    next: usize,
    /// Announced bytes that have not arrived.
    left: usize,
    usual: Pace,
    /// The pace of what has the last of the memory.
    last: Option<Pace>,
}

impl Arriving {
    fn new(
        receiver: FrameReceiver,
        (permit, left): (ResultPermit, usize),
        (timing, rate): (Timing, u64),
    ) -> Self {
        let usual = Pace::new(RATE_GRACE, rate);
        let pieces = [const { Bytes::new() }; PIECES];
        Self { receiver, permit, timing, pieces, next: PIECES, left, usual, last: None }
    }

    /// Reads and checks the announced results, and then the stream's end.
    async fn take_all(
        &mut self,
        headers: &[ResultHeader],
        results: &mut Vec<Taken>,
    ) -> Result<(), Trouble> {
        for header in headers {
            let bytes = self.read(header.length as usize).await?;
            results.push(checked(*header, bytes).await?);
        }
        match self.next_piece().await? {
            None => Ok(()),
            Some(_) => Err(Trouble::Protocol("results are longer than they announced".into())),
        }
    }

    /// Reads the bytes of one result.
    async fn read(&mut self, length: usize) -> Result<Bytes, Trouble> {
        let mut bytes = Vec::with_capacity(length.min(STEP_BYTES));
        while bytes.len() < length {
            let piece = self.next_piece().await?.ok_or(FrameError::Cut)?;
            let part = piece.split_to(piece.len().min(length - bytes.len()));
            if bytes.capacity() - bytes.len() < part.len() {
                let wanted = length.min(GROWTH * (bytes.len() + part.len()));
                bytes.reserve_exact(wanted - bytes.len());
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes.into())
    }

    /// Returns the piece whose bytes are next; None at the end of the stream.
    async fn next_piece(&mut self) -> Result<Option<&mut Bytes>, Trouble> {
        loop {
            let next = self.pieces.get(self.next).map(Bytes::is_empty);
            match next {
                Some(false) => return Ok(self.pieces.get_mut(self.next)),
                Some(true) if self.next + 1 < PIECES => self.next += 1,
                _ if self.fetch().await? => self.next = 0,
                _ => return Ok(None),
            }
        }
    }

    /// Takes what has arrived, and memory for it; waits for it, if nothing has. Returns whether
    /// there was anything before the end of the stream. It must arrive at the least rate, not
    /// counting the time in which it waits for memory.
    async fn fetch(&mut self) -> Result<bool, Trouble> {
        self.pieces.fill(Bytes::new());
        let asked = Instant::now();
        let pieces = self.receiver.receive_pieces(&mut self.pieces);
        let count = within(self.timing.answer, pieces).await?;
        let bytes = self.pieces.iter().map(Bytes::len).sum();
        let took = asked.elapsed();
        self.usual.add(took, bytes)?;
        if self.permit.is_last() {
            self.last.get_or_insert(Pace::new(LAST_GRACE, LAST_RATE)).add(took, bytes)?;
        }
        let left = self.left.checked_sub(bytes);
        self.left =
            left.ok_or_else(|| Trouble::Protocol("results are longer than they announced".into()))?;
        if bytes > 0 {
            self.permit.take(bytes).await.map_err(|_| Trouble::Stopping)?;
        }
        Ok(count.is_some())
    }
}

/// Checks a result, small ones here and others on a thread for that.
async fn checked(header: ResultHeader, bytes: Bytes) -> Result<Taken, Trouble> {
    let checked = match is_small(&bytes) {
        true => check(&header, bytes),
        false => {
            let checked = tokio::task::spawn_blocking(move || check(&header, bytes)).await;
            checked.map_err(|_| Trouble::Stopping)?
        }
    };
    Ok(match checked {
        Ok((shape, bytes)) => Taken::Whole(describe(&header, shape), bytes),
        Err(reason) => {
            tracing::warn!(lease = %header.lease, reason, "result is damaged");
            Taken::Damaged(header.lease, reason)
        }
    })
}

/// Whether a result is checked soon: by the bytes that it takes decompressed.
fn is_small(bytes: &[u8]) -> bool {
    let most = match ChunkValues::is_chunk(bytes) {
        true => CHUNK_CHECKED_HERE_MAX,
        false => CHECKED_HERE_MAX,
    };
    let sums = FilmHead::of(bytes).map_or(0, |head| head.sums_bytes());
    bytes.len().max(sums) <= most
}

/// Checks that the bytes are complete and have their hash. Returns the shape of the film or chunk.
/// All of it is decompressed, because results in a spool must not fail later.
fn check(header: &ResultHeader, bytes: Bytes) -> Result<(ResultShape, Bytes), String> {
    let found = BlobHash::of(&bytes);
    if found != header.hash {
        return Err(format!("its bytes have the hash {found}, not {}", header.hash));
    }
    if ChunkValues::is_chunk(&bytes) {
        if header.first_sample != 0 {
            return Err(format!(
                "a chunk has no samples, and its header names {}",
                header.first_sample
            ));
        }
        let chunk = ChunkValues::from_bytes(&bytes).map_err(|error| error.to_string())?;
        return Ok((ResultShape::Chunk(chunk.shape()), bytes));
    }
    if is_piece(&bytes) {
        if header.first_sample != 0 {
            let first = header.first_sample;
            return Err(format!("a finished piece has no samples, and its header names {first}"));
        }
        let piece = piece_of(&bytes).map_err(|error| error.to_string())?;
        return Ok((ResultShape::Finished(piece), bytes));
    }
    let film = FilmHead::checked(&bytes).map_err(|error| error.to_string())?;
    let shape = FilmShape {
        width: u32::from(film.width),
        height: u32::from(film.height),
        channels: film.channels,
        first: header.first_sample,
        samples: film.samples,
    };
    Ok((ResultShape::Film(shape), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    // promise: P8
    #[test]
    fn results_that_trickle_are_given_up() {
        let secs = Duration::from_secs;
        let mut pace = Pace::new(secs(30), 32 << 10);
        for _ in 0..15 {
            pace.add(secs(2), 1).expect("it is within its grace");
        }
        let text = pace.add(secs(2), 1).unwrap_err().to_string();
        assert!(text.contains("32 KiB per second") && text.contains("--result-rate"), "{text}");
        let mut pace = Pace::new(secs(30), 32 << 10);
        for _ in 0..1000 {
            pace.add(secs(2), 64 << 10).expect("it is as fast as it must be");
        }
        assert!(pace.add(secs(60), 0).is_err());
    }
}
