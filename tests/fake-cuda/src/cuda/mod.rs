//! The `cu*` entry points: C at the border, `driver` behind it. Decides nothing.

mod context;
mod copy;
mod device;
mod error;
mod event;
mod launch;
mod memory;
mod module;
mod pool;
mod stream;

use crate::driver::context::Context;
use crate::driver::queue::LEGACY;
use crate::driver::{Stream, driver};
use crate::ffi::BadPointer;
use crate::status::Status;
use std::cell::Cell;
use std::sync::Arc;

impl From<BadPointer> for Status {
    fn from(_: BadPointer) -> Status {
        Status::INVALID_VALUE
    }
}

/// `CUstream_flags`: a stream that does not order itself with the legacy one.
const STREAM_NON_BLOCKING: u32 = 1;
/// `CU_STREAM_LEGACY` and `CU_STREAM_PER_THREAD`: handles that are streams of every context.
const STREAM_LEGACY: u64 = 1;
const STREAM_PER_THREAD: u64 = 2;

/// Contexts that a thread may push, beside the current one.
const STACK_MAX: usize = 16;

thread_local! {
    /// Handles of the thread's contexts; the last is the current one. Without a destructor, so that
    /// a thread can end.
    static STACK: Cell<([u64; STACK_MAX], usize)> = const { Cell::new(([0; STACK_MAX], 0)) };
}

/// The handle of the thread's current context; 0 for none.
fn current_handle() -> u64 {
    let (stack, depth) = STACK.get();
    depth.checked_sub(1).map_or(0, |top| stack[top])
}

/// Makes a context the current one in place of the present one.
fn replace_current(handle: u64) {
    let (mut stack, depth) = STACK.get();
    stack[depth.max(1) - 1] = handle;
    STACK.set((stack, depth.max(1)));
}

/// Puts a context on top.
fn push_current(handle: u64) -> Result<(), Status> {
    let (mut stack, depth) = STACK.get();
    *stack.get_mut(depth).ok_or(Status::INVALID_VALUE)? = handle;
    STACK.set((stack, depth + 1));
    Ok(())
}

/// Takes the current context away.
fn pop_current() -> Result<u64, Status> {
    let (stack, depth) = STACK.get();
    let top = depth.checked_sub(1).ok_or(Status::INVALID_CONTEXT)?;
    STACK.set((stack, top));
    Ok(stack[top])
}

/// The thread's current context; an error if there is none, or what it died of.
fn current() -> Result<Arc<Context>, Status> {
    driver().ready()?;
    let context = driver().contexts.get(current_handle()).ok_or(Status::INVALID_CONTEXT)?;
    context.alive()?;
    Ok(context)
}

/// The context and lane of a stream's handle.
fn stream(handle: u64) -> Result<Arc<Stream>, Status> {
    driver().ready()?;
    if matches!(handle, 0 | STREAM_LEGACY | STREAM_PER_THREAD) {
        // The per-thread stream is taken for the legacy one: more in order than it would be.
        return Ok(Arc::new(Stream { context: current()?, lane: LEGACY, flags: 0, priority: 0 }));
    }
    let stream = driver().streams.get(handle).ok_or(Status::INVALID_HANDLE)?;
    stream.context.alive()?;
    Ok(stream)
}
