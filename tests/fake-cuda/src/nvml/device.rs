//! What a device is: name, identity, capability, numbers.

use super::{Failure, found, whole};
use crate::driver::driver;
use crate::ffi::{Out, export};
use std::ffi::c_char;

/// A board's serial number.
pub(super) fn serial(target: usize) -> String {
    format!("032{:010}", target + 1)
}

fn put_text(text: Out<c_char>, room: u32, value: &str) -> Result<(), Failure> {
    if value.len() >= room as usize {
        return Err(Failure::INSUFFICIENT_SIZE);
    }
    Ok(text.put_text(room as usize, value)?)
}

/// `nvmlDeviceArchitecture_t`.
fn architecture(capability: [i32; 2]) -> u32 {
    match capability {
        [7, 0] => 5,
        [7, _] => 6,
        [8, 9] => 8,
        [8, _] => 7,
        [9, _] => 9,
        [major, _] if major >= 10 => 10,
        _ => u32::MAX,
    }
}

export! { Failure;
    fn nvmlDeviceGetName(handle: usize, text: Out<c_char>, room: u32) {
        put_text(text, room, &found(handle)?.1.name)
    }

    fn nvmlDeviceGetUUID(handle: usize, text: Out<c_char>, room: u32) {
        put_text(text, room, &found(handle)?.1.identity())
    }

    fn nvmlDeviceGetSerial(handle: usize, text: Out<c_char>, room: u32) {
        put_text(text, room, &serial(whole(handle)?.0))
    }

    fn nvmlDeviceGetVbiosVersion(handle: usize, text: Out<c_char>, room: u32) {
        whole(handle)?;
        put_text(text, room, "94.02.71.00.01")
    }

    fn nvmlDeviceGetIndex(handle: usize, index: Out<u32>) {
        let (target, described) = found(handle)?;
        Ok(index.put(described.slice.unwrap_or(target) as u32)?)
    }

    fn nvmlDeviceGetMinorNumber(handle: usize, number: Out<u32>) {
        Ok(number.put(found(handle)?.1.device as u32)?)
    }

    fn nvmlDeviceGetBrand(handle: usize, brand: Out<u32>) {
        found(handle)?;
        Ok(brand.put(0)?)
    }

    fn nvmlDeviceGetArchitecture(handle: usize, value: Out<u32>) {
        let (target, _) = found(handle)?;
        Ok(value.put(architecture(driver().device_of(target).capability))?)
    }

    fn nvmlDeviceGetCudaComputeCapability(handle: usize, major: Out<i32>, minor: Out<i32>) {
        let (target, _) = found(handle)?;
        let capability = driver().device_of(target).capability;
        major.put(capability[0])?;
        Ok(minor.put(capability[1])?)
    }

    fn nvmlDeviceGetNumGpuCores(handle: usize, cores: Out<u32>) {
        Ok(cores.put(found(handle)?.1.multiprocessors.unsigned_abs() * 128)?)
    }

    fn nvmlDeviceGetComputeMode(handle: usize, mode: Out<u32>) {
        let (target, _) = found(handle)?;
        Ok(mode.put(if driver().device_of(target).exclusive { 3 } else { 0 })?)
    }

    fn nvmlDeviceGetPersistenceMode(handle: usize, mode: Out<u32>) {
        whole(handle)?;
        Ok(mode.put(1)?)
    }
}
