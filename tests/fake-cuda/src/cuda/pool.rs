//! Memory pools: one of each device, whose settings are accepted and change nothing.

use crate::driver::driver;
use crate::ffi::{Out, export};
use crate::status::Status;

fn pool(handle: Out<u64>, device: i32) -> Result<(), Status> {
    let target = driver().target(device)?;
    Ok(handle.put(0x6_0000_0000 + target as u64 * 16)?)
}

export! { Status;
    fn cuDeviceGetDefaultMemPool(handle: Out<u64>, device: i32) {
        pool(handle, device)
    }

    fn cuDeviceGetMemPool(handle: Out<u64>, device: i32) {
        pool(handle, device)
    }

    fn cuDeviceSetMemPool(device: i32, _pool: u64) {
        driver().target(device).map(|_| ())
    }

    fn cuMemPoolSetAttribute(_pool: u64, _attribute: u32, _value: Out<u64>) {
        driver().ready()
    }

    fn cuMemPoolGetAttribute(_pool: u64, _attribute: u32, value: Out<u64>) {
        driver().ready()?;
        Ok(value.put(0)?)
    }

    fn cuMemPoolTrimTo(_pool: u64, _bytes: usize) {
        driver().ready()
    }
}
