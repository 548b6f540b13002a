//! Contexts and which of them a thread uses.

use super::{current, current_handle, pop_current, push_current, replace_current};
use crate::driver::driver;
use crate::ffi::{Out, export};
use crate::status::Status;

fn create(handle: Out<u64>, device: i32) -> Result<(), Status> {
    let target = driver().target(device)?;
    let created = driver().new_context(target)?;
    push_current(created)?;
    Ok(handle.put(created)?)
}

export! { Status;
    fn cuCtxCreate_v2(handle: Out<u64>, _flags: u32, device: i32) {
        create(handle, device)
    }

    fn cuCtxCreate_v3(handle: Out<u64>, _affinities: Out<u8>, count: i32, _flags: u32,
    device: i32) {
        if count != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        create(handle, device)
    }

    fn cuCtxDestroy_v2(handle: u64) {
        driver().contexts.get(handle).ok_or(Status::INVALID_CONTEXT)?.alive()?;
        if current_handle() == handle {
            pop_current()?;
        }
        driver().end_context(handle)
    }

    fn cuCtxSetCurrent(handle: u64) {
        driver().ready()?;
        if handle != 0 && driver().contexts.get(handle).is_none() {
            return Err(Status::INVALID_CONTEXT);
        }
        replace_current(handle);
        Ok(())
    }

    fn cuCtxGetCurrent(handle: Out<u64>) {
        driver().ready()?;
        Ok(handle.put(current_handle())?)
    }

    fn cuCtxPushCurrent_v2(handle: u64) {
        driver().contexts.get(handle).ok_or(Status::INVALID_CONTEXT)?;
        push_current(handle)
    }

    fn cuCtxPopCurrent_v2(handle: Out<u64>) {
        let popped = pop_current()?;
        handle.put_if_any(popped);
        Ok(())
    }

    fn cuCtxGetDevice(device: Out<i32>) {
        let target = current()?.target;
        Ok(device.put(driver().ordinal(target))?)
    }

    fn cuCtxSynchronize() {
        current()?.finish(None)
    }

    fn cuCtxGetFlags(flags: Out<u32>) {
        current()?;
        Ok(flags.put(0)?)
    }

    fn cuCtxSetFlags(_flags: u32) {
        current().map(|_| ())
    }

    fn cuCtxGetApiVersion(handle: u64, version: Out<u32>) {
        driver().contexts.get(handle).ok_or(Status::INVALID_CONTEXT)?;
        Ok(version.put(3020)?)
    }

    fn cuCtxGetLimit(value: Out<usize>, limit: u32) {
        current()?;
        // Stack of a thread, printf's buffer, the kernel heap.
        let known = [1024, 1 << 20, 8 << 20].get(limit as usize).copied();
        Ok(value.put(known.ok_or(Status::NOT_SUPPORTED)?)?)
    }

    fn cuCtxSetLimit(limit: u32, _value: usize) {
        current()?;
        if limit > 2 { Err(Status::NOT_SUPPORTED) } else { Ok(()) }
    }

    fn cuCtxGetCacheConfig(config: Out<u32>) {
        current()?;
        Ok(config.put(0)?)
    }

    fn cuCtxSetCacheConfig(_config: u32) {
        current().map(|_| ())
    }

    fn cuCtxGetStreamPriorityRange(least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.put_if_any(0);
        greatest.put_if_any(-5);
        Ok(())
    }
}
