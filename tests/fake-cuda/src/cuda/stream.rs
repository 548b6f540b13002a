//! Streams.

use super::{STREAM_NON_BLOCKING, current, stream};
use crate::driver::queue::Operation;
use crate::driver::{Stream, driver};
use crate::ffi::{Out, export};
use crate::status::Status;
use std::sync::Arc;

fn create(handle: Out<u64>, flags: u32, priority: i32) -> Result<(), Status> {
    let context = current()?;
    if flags & !STREAM_NON_BLOCKING != 0 {
        return Err(Status::INVALID_VALUE);
    }
    let lane = context.queue.open(flags & STREAM_NON_BLOCKING == 0);
    let created = Arc::new(Stream { context, lane, flags, priority: priority.clamp(-5, 0) });
    Ok(handle.put(driver().streams.insert(created))?)
}

export! { Status;
    fn cuStreamCreate(handle: Out<u64>, flags: u32) {
        create(handle, flags, 0)
    }

    fn cuStreamCreateWithPriority(handle: Out<u64>, flags: u32, priority: i32) {
        create(handle, flags, priority)
    }

    fn cuStreamDestroy_v2(handle: u64) {
        // What it holds is still done; its lane goes with the context.
        stream(handle)?;
        driver().streams.remove(handle).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    fn cuStreamSynchronize(handle: u64) {
        let stream = stream(handle)?;
        stream.context.finish(Some(stream.lane))
    }

    fn cuStreamQuery(handle: u64) {
        let stream = stream(handle)?;
        let is_idle = stream.context.queue.is_idle(Some(stream.lane));
        if is_idle { Ok(()) } else { Err(Status::NOT_READY) }
    }

    fn cuStreamWaitEvent(handle: u64, event: u64, _flags: u32) {
        let stream = stream(handle)?;
        let event = driver().events.get(event).ok_or(Status::INVALID_HANDLE)?;
        let mark = event.mark();
        stream.context.queue.push(stream.lane, Operation::Wait { event, mark });
        Ok(())
    }

    fn cuStreamGetFlags(handle: u64, flags: Out<u32>) {
        Ok(flags.put(stream(handle)?.flags)?)
    }

    fn cuStreamGetPriority(handle: u64, priority: Out<i32>) {
        Ok(priority.put(stream(handle)?.priority)?)
    }

    fn cuStreamIsCapturing(handle: u64, status: Out<u32>) {
        stream(handle)?;
        Ok(status.put(0)?)
    }

    fn cuStreamBeginCapture_v2(_handle: u64, _mode: u32) {
        Err(Status::NOT_SUPPORTED)
    }

    fn cuStreamEndCapture(_handle: u64, _graph: Out<u64>) {
        Err(Status::NOT_SUPPORTED)
    }

    fn cuStreamAttachMemAsync(_handle: u64, _address: u64, _bytes: usize, _flags: u32) {
        Err(Status::NOT_SUPPORTED)
    }

    fn cuLaunchHostFunc(handle: u64, function: usize, data: usize) {
        let stream = stream(handle)?;
        stream.context.queue.push(stream.lane, Operation::Call { function, data });
        Ok(())
    }
}
