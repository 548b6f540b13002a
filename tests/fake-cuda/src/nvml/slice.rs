//! MIG: whether a device is cut, and its slices.

use super::{Failure, found, handle_of, whole};
use crate::driver::driver;
use crate::ffi::{Out, export};

/// The targets that are slices of a device, in order.
fn slices(device: usize) -> impl Iterator<Item = usize> {
    let targets = driver().targets.iter().enumerate();
    targets
        .filter(move |(_, other)| other.slice.is_some() && other.device == device)
        .map(|(slice, _)| slice)
}

fn number_of(handle: usize) -> Result<u32, Failure> {
    found(handle)?.1.slice.map(|slice| slice as u32).ok_or(Failure::NOT_SUPPORTED)
}

export! { Failure;
    fn nvmlDeviceGetMigMode(handle: usize, current: Out<u32>, pending: Out<u32>) {
        let (_, device) = whole(handle)?;
        // Cards before Ampere cannot be cut.
        if device.capability[0] < 8 {
            return Err(Failure::NOT_SUPPORTED);
        }
        let is_cut = u32::from(!device.slices.is_empty());
        current.put(is_cut)?;
        Ok(pending.put(is_cut)?)
    }

    fn nvmlDeviceGetMaxMigDeviceCount(handle: usize, count: Out<u32>) {
        Ok(count.put(slices(whole(handle)?.0).count() as u32)?)
    }

    fn nvmlDeviceGetMigDeviceHandleByIndex(handle: usize, index: u32, slice: Out<usize>) {
        let found = slices(whole(handle)?.0).nth(index as usize).ok_or(Failure::NOT_FOUND)?;
        Ok(slice.put(handle_of(found))?)
    }

    fn nvmlDeviceGetDeviceHandleFromMigDeviceHandle(handle: usize, device: Out<usize>) {
        number_of(handle)?;
        Ok(device.put(handle_of(found(handle)?.1.device))?)
    }

    fn nvmlDeviceIsMigDeviceHandle(handle: usize, is_slice: Out<u32>) {
        Ok(is_slice.put(u32::from(found(handle)?.1.slice.is_some()))?)
    }

    fn nvmlDeviceGetGpuInstanceId(handle: usize, number: Out<u32>) {
        Ok(number.put(number_of(handle)? + 1)?)
    }

    fn nvmlDeviceGetComputeInstanceId(handle: usize, number: Out<u32>) {
        number_of(handle)?;
        Ok(number.put(0)?)
    }
}
