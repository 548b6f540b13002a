//! Events.

use super::{current, stream};
use crate::driver::driver;
use crate::driver::event::Event;
use crate::driver::queue::Operation;
use crate::ffi::{Out, export};
use crate::status::Status;
use std::sync::Arc;

fn event(handle: u64) -> Result<Arc<Event>, Status> {
    driver().ready()?;
    let event = driver().events.get(handle).ok_or(Status::INVALID_HANDLE)?;
    event.context.alive()?;
    Ok(event)
}

fn record(handle: u64, on: u64) -> Result<(), Status> {
    let (event, stream) = (event(handle)?, stream(on)?);
    if !Arc::ptr_eq(&event.context, &stream.context) {
        return Err(Status::INVALID_HANDLE);
    }
    let mark = event.record();
    stream.context.queue.push(stream.lane, Operation::Record { event, mark });
    Ok(())
}

fn elapsed(millis: Out<f32>, start: u64, end: u64) -> Result<(), Status> {
    let (start, end) = (event(start)?, event(end)?);
    Ok(millis.put(start.millis_until(&end)?)?)
}

export! { Status;
    fn cuEventCreate(handle: Out<u64>, flags: u32) {
        let created = Arc::new(Event::new(current()?, flags));
        Ok(handle.put(driver().events.insert(created))?)
    }

    fn cuEventDestroy_v2(handle: u64) {
        event(handle)?;
        driver().events.remove(handle).map(|_| ()).ok_or(Status::INVALID_HANDLE)
    }

    fn cuEventRecord(handle: u64, on: u64) {
        record(handle, on)
    }

    fn cuEventRecordWithFlags(handle: u64, on: u64, _flags: u32) {
        record(handle, on)
    }

    fn cuEventQuery(handle: u64) {
        let event = event(handle)?;
        if event.has_passed(event.mark()) { Ok(()) } else { Err(Status::NOT_READY) }
    }

    fn cuEventSynchronize(handle: u64) {
        let event = event(handle)?;
        event.context.queue.wait_for_event(&event, event.mark(), || event.context.alive().is_err());
        event.context.alive()
    }

    fn cuEventElapsedTime(millis: Out<f32>, start: u64, end: u64) {
        elapsed(millis, start, end)
    }

    fn cuEventElapsedTime_v2(millis: Out<f32>, start: u64, end: u64) {
        elapsed(millis, start, end)
    }
}
