//! A node's results: read within a memory budget, checked, and passed to the driver.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::Event;
use crate::result_memory::ResultPermit;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_core::{Arrived, FilmShape, Input, ResultShape, SessionId};
use tessera_finishing::{is_piece, piece_of};
use tessera_protocol::film::FilmHead;
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::node::ResultHeader;
use tessera_protocol::{BlobHash, ChunkValues, NodeId};
use tessera_transport::frame::within;
use tessera_transport::{FrameReceiver, Timing};

/// Bytes that are read from a stream at once.
const STEP_BYTES: usize = 256 << 10;

/// Results of at most so many bytes, also decompressed, are checked where they arrive. That takes a
/// fifth of a millisecond at most, and passing them to another thread takes the better part of it.
const CHECKED_HERE_MAX: usize = 512 << 10;
/// The same of chunks as they arrive. They may be a hundred times as long decompressed.
const CHUNK_CHECKED_HERE_MAX: usize = 4 << 10;

/// Time of a result's arrival before its rate counts.
const RATE_GRACE: Duration = Duration::from_secs(30);
/// Least bytes per second of the result that has the last of the memory, for which all others wait.
const LAST_RATE: u64 = 1 << 20;
/// Time of its arrival before that rate counts.
const LAST_GRACE: Duration = Duration::from_secs(5);

/// How fast a result arrives, not counting the time in which it waits for memory.
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

/// Reads one result stream.
pub(super) async fn take(
    shared: &Arc<Shared>,
    (session, node, name): (SessionId, NodeId, &str),
    mut receiver: FrameReceiver,
    timing: Timing,
) -> Result<(), Trouble> {
    let header: ResultHeader = receiver.expect(timing.answer).await?;
    if header.length as usize > RESULT_BYTES_MAX {
        let text = format!(
            "a result of {} bytes is longer than the limit of {RESULT_BYTES_MAX}",
            header.length
        );
        return Err(Trouble::Protocol(text));
    }
    // Flow control makes the peer wait here while other results of it are being made durable.
    let length = header.length as usize;
    let permit = shared.result_memory.admit((node, name), length).await;
    let mut permit = permit.map_err(|_| Trouble::Stopping)?;
    let bytes = read(&mut receiver, length, &mut permit, (timing, shared.result_rate)).await?;
    permit.arrived();
    let checked = match is_small(&bytes) {
        true => check(&header, bytes),
        false => {
            let checked = tokio::task::spawn_blocking(move || check(&header, bytes)).await;
            checked.map_err(|_| Trouble::Stopping)?
        }
    };
    let event = match checked {
        Ok((shape, bytes)) => {
            let arrived = Arrived {
                lease: header.lease,
                hash: header.hash,
                shape,
                device: header.device,
                device_micros: header.device_micros,
                waited_micros: header.waited_micros,
                device_bytes: header.device_bytes,
            };
            Event::Result { session, arrived, bytes, permit }
        }
        Err(reason) => {
            tracing::warn!(lease = %header.lease, reason, "result is damaged");
            Event::Input(Box::new(Input::ResultDamaged { session, lease: header.lease, reason }))
        }
    };
    shared.events.send(event).await.map_err(|_| Trouble::Stopping)
}

/// Reads exactly `length` bytes, and then the stream's end. Takes memory for them as they arrive.
/// They must arrive at the least rate, not counting the time in which they wait for memory.
async fn read(
    receiver: &mut FrameReceiver,
    length: usize,
    permit: &mut ResultPermit,
    (timing, rate): (Timing, u64),
) -> Result<Bytes, Trouble> {
    let mut bytes = Vec::with_capacity(length.min(STEP_BYTES));
    let (mut usual, mut last) = (Pace::new(RATE_GRACE, rate), None);
    loop {
        let wanted = (length - bytes.len()).clamp(1, STEP_BYTES);
        let asked = Instant::now();
        let chunk = within(timing.answer, receiver.receive_raw(wanted)).await?;
        let (took, count) = (asked.elapsed(), chunk.as_ref().map_or(0, |chunk| chunk.len()));
        usual.add(took, count)?;
        if permit.is_last() {
            last.get_or_insert(Pace::new(LAST_GRACE, LAST_RATE)).add(took, count)?;
        }
        match chunk {
            Some(chunk) if bytes.len() + chunk.len() <= length => {
                permit.take(chunk.len()).await.map_err(|_| Trouble::Stopping)?;
                bytes.extend_from_slice(&chunk);
            }
            Some(_) => {
                return Err(Trouble::Protocol("a result is longer than it announced".into()));
            }
            None if bytes.len() == length => return Ok(bytes.into()),
            None => return Err(tessera_transport::FrameError::Cut.into()),
        }
    }
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
