//! A node's results: read within a memory budget, checked, and passed to the driver.

use super::shared::Shared;
use super::trouble::Trouble;
use crate::driver::Event;
use bytes::Bytes;
use std::sync::Arc;
use tessera_core::{Arrived, FilmShape, Input, ResultShape, SessionId};
use tessera_protocol::film::TileSums;
use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::node::ResultHeader;
use tessera_protocol::{BlobHash, ChunkValues};
use tessera_transport::frame::within;
use tessera_transport::{FrameReceiver, Timing};

/// Bytes that are read from a stream at once.
const STEP_BYTES: usize = 256 << 10;

/// Results of at most this size in bytes are checked where they arrive. That takes some
/// microseconds, as long as passing them to another thread.
const CHECKED_HERE_MAX: usize = 4 << 10;

/// Returns the KiB of the budget that a result of `length` bytes takes.
fn kib(length: u32) -> u32 {
    length.div_ceil(1 << 10).max(1)
}

/// Reads one result stream.
pub(super) async fn take(
    shared: &Arc<Shared>,
    session: SessionId,
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
    // Flow control makes the peer wait here while other results are being made durable.
    let permit = shared.result_memory.clone().acquire_many_owned(kib(header.length)).await;
    let permit = permit.map_err(|_| Trouble::Stopping)?;
    let bytes = read(&mut receiver, header.length as usize, timing).await?;
    let checked = match bytes.len() <= CHECKED_HERE_MAX {
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

/// Reads exactly `length` bytes, and then the stream's end.
async fn read(
    receiver: &mut FrameReceiver,
    length: usize,
    timing: Timing,
) -> Result<Bytes, Trouble> {
    let mut bytes = Vec::with_capacity(length.min(STEP_BYTES));
    loop {
        let wanted = (length - bytes.len()).clamp(1, STEP_BYTES);
        match within(timing.answer, receiver.receive_raw(wanted)).await? {
            Some(chunk) if bytes.len() + chunk.len() <= length => bytes.extend_from_slice(&chunk),
            Some(_) => {
                return Err(Trouble::Protocol("a result is longer than it announced".into()));
            }
            None if bytes.len() == length => return Ok(bytes.into()),
            None => return Err(tessera_transport::FrameError::Cut.into()),
        }
    }
}

/// Checks that the bytes are complete and have their hash. Returns the shape of the film or chunk.
/// Everything is decoded, because results in a spool must not fail later.
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
    let film = TileSums::from_bytes(&bytes).map_err(|error| error.to_string())?;
    let shape = FilmShape {
        width: u32::from(film.width),
        height: u32::from(film.height),
        channels: film.channels,
        first: header.first_sample,
        samples: film.samples,
    };
    Ok((ResultShape::Film(shape), bytes))
}
