//! Start, end, versions, errors, and finding devices.

use super::{Failure, USERS, handle_of, pci_bus_id, ready};
use crate::driver::driver;
use crate::ffi::{Out, Text, export};
use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering::SeqCst;

fn find(handle: Out<usize>, is_it: impl Fn(usize) -> bool) -> Result<(), Failure> {
    ready()?;
    let found =
        (0..driver().targets.len()).find(|target| is_it(*target)).ok_or(Failure::NOT_FOUND)?;
    if driver().is_lost(found) {
        return Err(Failure::GPU_IS_LOST);
    }
    Ok(handle.put(handle_of(found))?)
}

fn start() -> Result<(), Failure> {
    driver();
    USERS.fetch_add(1, SeqCst);
    Ok(())
}

/// What an error means, as NVML says it.
fn text_of(code: u32) -> &'static CStr {
    match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        10 => c"Timeout",
        15 => c"GPU is lost",
        _ => c"Unknown Error",
    }
}

/// `nvmlErrorString` answers with the text itself.
#[unsafe(no_mangle)]
extern "C" fn nvmlErrorString(code: u32) -> *const c_char {
    text_of(code).as_ptr()
}

export! { Failure;
    fn nvmlInit_v2() {
        start()
    }

    fn nvmlInitWithFlags(_flags: u32) {
        start()
    }

    fn nvmlShutdown() {
        ready()?;
        USERS.fetch_sub(1, SeqCst);
        Ok(())
    }

    fn nvmlSystemGetDriverVersion(text: Out<c_char>, room: u32) {
        ready()?;
        Ok(text.put_text(room as usize, &driver().config.driver_name)?)
    }

    fn nvmlSystemGetNVMLVersion(text: Out<c_char>, room: u32) {
        ready()?;
        let version = format!("12.{}", driver().config.driver_name);
        Ok(text.put_text(room as usize, &version)?)
    }

    fn nvmlSystemGetCudaDriverVersion(version: Out<i32>) {
        Ok(version.put(driver().config.driver)?)
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<i32>) {
        Ok(version.put(driver().config.driver)?)
    }

    fn nvmlDeviceGetCount_v2(count: Out<u32>) {
        ready()?;
        Ok(count.put(driver().config.devices.len() as u32)?)
    }

    fn nvmlDeviceGetHandleByIndex_v2(index: u32, handle: Out<usize>) {
        ready()?;
        if index as usize >= driver().config.devices.len() {
            return Err(Failure::INVALID_ARGUMENT);
        }
        find(handle, |target| target == index as usize)
    }

    fn nvmlDeviceGetHandleByUUID(uuid: Text, handle: Out<usize>) {
        let asked = uuid.read()?;
        find(handle, |target| driver().targets[target].identity() == asked)
    }

    fn nvmlDeviceGetHandleByPciBusId_v2(bus_id: Text, handle: Out<usize>) {
        let asked = bus_id.read()?.to_uppercase();
        // Domains of four and of eight digits name the same.
        let tail = asked.trim_start_matches('0');
        find(handle,
            |target| {
                let id = pci_bus_id(driver().targets[target].device);
                !tail.is_empty() && id.ends_with(tail)
            })
    }

    fn nvmlDeviceGetHandleBySerial(serial: Text, handle: Out<usize>) {
        let asked = serial.read()?;
        find(handle, |target| super::device::serial(target) == asked)
    }
}
