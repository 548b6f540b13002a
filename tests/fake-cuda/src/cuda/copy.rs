//! Copies and fills. Pinned memory is read and written when the stream gets there; other memory as
//! the driver API documents it ("API synchronization behavior"): an upload is staged at the call, a
//! download is done when the call returns.

use super::{current, stream};
use crate::driver::queue::{LEGACY, Operation, Source};
use crate::driver::{Stream, host};
use crate::ffi::{HostBytes, export};
use crate::status::Status;
use std::sync::Arc;

/// The stream that calls without one use.
fn default_stream() -> Result<Arc<Stream>, Status> {
    Ok(Arc::new(Stream { context: current()?, lane: LEGACY, flags: 0, priority: 0 }))
}

fn upload(to: u64, from: usize, bytes: usize, stream: &Stream) -> Result<(), Status> {
    stream.context.holds(to, bytes as u64)?;
    if from == 0 && bytes > 0 {
        return Err(Status::INVALID_VALUE);
    }
    let memory = HostBytes { address: from, length: bytes };
    let from = if host::is_pinned(from, bytes) {
        Source::Pinned(memory)
    } else {
        Source::Staged(memory.read())
    };
    stream.context.queue.push(stream.lane, Operation::Upload { to, from });
    Ok(())
}

fn download(to: usize, from: u64, bytes: usize, stream: &Stream) -> Result<(), Status> {
    stream.context.holds(from, bytes as u64)?;
    if to == 0 && bytes > 0 {
        return Err(Status::INVALID_VALUE);
    }
    let memory = HostBytes { address: to, length: bytes };
    stream.context.queue.push(stream.lane, Operation::Download { from, to: memory });
    if host::is_pinned(to, bytes) { Ok(()) } else { stream.context.finish(Some(stream.lane)) }
}

fn copy(to: u64, from: u64, bytes: usize, stream: &Stream) -> Result<(), Status> {
    let bytes = bytes as u64;
    stream.context.holds(to, bytes)?;
    stream.context.holds(from, bytes)?;
    stream.context.queue.push(stream.lane, Operation::Copy { from, to, bytes });
    Ok(())
}

fn fill(at: u64, pattern: &[u8], count: usize, stream: &Stream) -> Result<(), Status> {
    let bytes = pattern.len().checked_mul(count).ok_or(Status::INVALID_VALUE)?;
    stream.context.holds(at, bytes as u64)?;
    if !at.is_multiple_of(pattern.len() as u64) {
        return Err(Status::INVALID_VALUE);
    }
    let pattern = pattern.to_vec();
    stream.context.queue.push(stream.lane, Operation::Fill { at, pattern, count });
    Ok(())
}

/// Does something on the default stream, and waits for it.
fn at_once(work: impl FnOnce(&Stream) -> Result<(), Status>) -> Result<(), Status> {
    let stream = default_stream()?;
    work(&stream)?;
    stream.context.finish(Some(LEGACY))
}

export! { Status;
    fn cuMemcpyHtoD_v2(to: u64, from: usize, bytes: usize) {
        at_once(|stream| upload(to, from, bytes, stream))
    }

    fn cuMemcpyHtoDAsync_v2(to: u64, from: usize, bytes: usize, handle: u64) {
        upload(to, from, bytes, &*stream(handle)?)
    }

    fn cuMemcpyDtoH_v2(to: usize, from: u64, bytes: usize) {
        at_once(|stream| download(to, from, bytes, stream))
    }

    fn cuMemcpyDtoHAsync_v2(to: usize, from: u64, bytes: usize, handle: u64) {
        download(to, from, bytes, &*stream(handle)?)
    }

    fn cuMemcpyDtoD_v2(to: u64, from: u64, bytes: usize) {
        at_once(|stream| copy(to, from, bytes, stream))
    }

    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, handle: u64) {
        copy(to, from, bytes, &*stream(handle)?)
    }

    fn cuMemcpyPeerAsync(_to: u64, _to_context: u64, _from: u64, _from_context: u64, _bytes: usize,
    _stream: u64) {
        Err(Status::NOT_SUPPORTED)
    }

    fn cuMemsetD8_v2(at: u64, value: u8, count: usize) {
        at_once(|stream| fill(at, &[value], count, stream))
    }

    fn cuMemsetD8Async(at: u64, value: u8, count: usize, handle: u64) {
        fill(at, &[value], count, &*stream(handle)?)
    }

    fn cuMemsetD16_v2(at: u64, value: u16, count: usize) {
        at_once(|stream| fill(at, &value.to_le_bytes(), count, stream))
    }

    fn cuMemsetD16Async(at: u64, value: u16, count: usize, handle: u64) {
        fill(at, &value.to_le_bytes(), count, &*stream(handle)?)
    }

    fn cuMemsetD32_v2(at: u64, value: u32, count: usize) {
        at_once(|stream| fill(at, &value.to_le_bytes(), count, stream))
    }

    fn cuMemsetD32Async(at: u64, value: u32, count: usize, handle: u64) {
        fill(at, &value.to_le_bytes(), count, &*stream(handle)?)
    }
}
