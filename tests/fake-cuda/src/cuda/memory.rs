//! Device memory and pinned memory: had, given back, asked about.

use super::{current, stream};
use crate::driver::queue::Operation;
use crate::driver::{driver, host};
use crate::ffi::{Out, export};
use crate::status::Status;

fn pinned(pointer: Out<usize>, bytes: usize) -> Result<(), Status> {
    current()?;
    if bytes == 0 {
        return Err(Status::INVALID_VALUE);
    }
    Ok(pointer.put(host::allocate(bytes).ok_or(Status::OUT_OF_MEMORY)?)?)
}

fn allocate_in_order(address: Out<u64>, bytes: usize, handle: u64) -> Result<(), Status> {
    let stream = stream(handle)?;
    // Had at once, given back in the stream's order: a program cannot tell, but for memory that is
    // not there yet.
    let allocated = if bytes == 0 { 0 } else { stream.context.allocate(bytes as u64)? };
    Ok(address.put(allocated)?)
}

export! { Status;
    fn cuMemAlloc_v2(address: Out<u64>, bytes: usize) {
        let context = current()?;
        if bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        Ok(address.put(context.allocate(bytes as u64)?)?)
    }

    fn cuMemAllocAsync(address: Out<u64>, bytes: usize, handle: u64) {
        allocate_in_order(address, bytes, handle)
    }

    fn cuMemAllocFromPoolAsync(address: Out<u64>, bytes: usize, _pool: u64, handle: u64) {
        allocate_in_order(address, bytes, handle)
    }

    fn cuMemAllocManaged(_address: Out<u64>, _bytes: usize, _flags: u32) {
        Err(Status::NOT_SUPPORTED)
    }

    fn cuMemFree_v2(address: u64) {
        let context = current()?;
        if address == 0 {
            return Ok(());
        }
        // CUDA waits for the device here, whether or not the memory is in use.
        context.finish(None)?;
        context.free_now(address)
    }

    fn cuMemFreeAsync(address: u64, handle: u64) {
        let stream = stream(handle)?;
        if address == 0 {
            return Ok(());
        }
        let (start, _) = stream.context.range(address)?;
        if start != address {
            return Err(Status::INVALID_VALUE);
        }
        stream.context.queue.push(stream.lane, Operation::Free { address });
        Ok(())
    }

    fn cuMemGetInfo_v2(free: Out<usize>, total: Out<usize>) {
        let target = current()?.target;
        let memory = driver().targets[target].memory;
        free.put(memory.saturating_sub(driver().shared.used(target)) as usize)?;
        Ok(total.put(memory as usize)?)
    }

    fn cuMemGetAddressRange_v2(base: Out<u64>, bytes: Out<usize>, address: u64) {
        let (start, length) = current()?.range(address).map_err(|_| Status::NOT_FOUND)?;
        base.put_if_any(start);
        bytes.put_if_any(length as usize);
        Ok(())
    }

    fn cuMemHostAlloc(pointer: Out<usize>, bytes: usize, _flags: u32) {
        pinned(pointer, bytes)
    }

    fn cuMemAllocHost_v2(pointer: Out<usize>, bytes: usize) {
        pinned(pointer, bytes)
    }

    fn cuMemFreeHost(pointer: usize) {
        // As with device memory: whoever still copies is waited for, unless the context is dead.
        if let Ok(context) = current() {
            context.queue.wait_for(None, || context.alive().is_err());
        }
        if host::free(pointer) { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    fn cuMemHostRegister_v2(pointer: usize, bytes: usize, _flags: u32) {
        current()?;
        if pointer == 0 || bytes == 0 {
            return Err(Status::INVALID_VALUE);
        }
        host::register(pointer, bytes);
        Ok(())
    }

    fn cuMemHostUnregister(pointer: usize) {
        let context = current()?;
        context.queue.wait_for(None, || context.alive().is_err());
        if host::unregister(pointer) { Ok(()) } else { Err(Status::INVALID_VALUE) }
    }

    fn cuMemHostGetFlags(flags: Out<u32>, pointer: usize) {
        current()?;
        if !host::is_pinned(pointer, 1) {
            return Err(Status::INVALID_VALUE);
        }
        Ok(flags.put(0)?)
    }

    fn cuMemHostGetDevicePointer_v2(_address: Out<u64>, _pointer: usize, _flags: u32) {
        // The interpreter cannot read the program's own memory.
        Err(Status::NOT_SUPPORTED)
    }
}
