//! Devices, their attributes, and their primary contexts.

use crate::driver::driver;
use crate::ffi::{Out, Text, export};
use crate::nvml::pci_bus_id;
use crate::status::Status;
use std::ffi::c_char;

/// `cuDeviceGetAttribute` by cuda.h's `CUdevice_attribute`; 0 for what this device does not have.
fn attribute(attribute: u32, target: usize) -> i32 {
    let (driver, device) = (driver(), driver().device_of(target));
    match attribute {
        1 => 1024,         // threads of a block
        2 | 3 => 1024,     // of a block, x and y
        4 => 64,           // of a block, z
        5 => i32::MAX,     // blocks of a grid, x
        6 | 7 => 65_535,   // of a grid, y and z
        8 => 48 << 10,     // shared memory of a block
        9 => 64 << 10,     // constant memory
        10 => 32,          // threads of a warp
        11 => i32::MAX,    // pitch
        12 | 82 => 65_536, // registers of a block, of a multiprocessor
        13 => device.clocks[0].cast_signed() * 1000,
        14 => 512, // alignment of textures
        16 => driver.targets[target].multiprocessors,
        17 => 0, // run-time limit on kernels
        20 => 0, // compute mode: default
        31 => 1, // concurrent kernels
        32 => 1, // ECC is on
        33 => driver.targets[target].device.cast_signed() as i32 + 1, // PCI bus
        34 | 50 => 0, // PCI device, PCI domain
        36 => device.clocks[1].cast_signed() * 1000,
        37 => 256,                                 // width of the memory bus, bits
        38 => 4 << 20,                             // L2 cache
        39 => device.threads_per_multiprocessor(), // threads of a multiprocessor
        40 => 2,                                   // asynchronous copy engines
        41 => 1,                                   // unified addresses
        75 => device.capability[0],
        76 => device.capability[1],
        78 => 1,         // stream priorities
        81 => 100 << 10, // shared memory of a multiprocessor
        97 => 99 << 10,  // shared memory of a block after opting in
        106 => 16,       // blocks of a multiprocessor
        111 => 1 << 10,  // shared memory that a block reserves
        115 => 1,        // memory pools
        _ => 0,
    }
}

export! { Status;
    fn cuDeviceGetCount(count: Out<i32>) {
        driver().ready()?;
        Ok(count.put(driver().visible.len() as i32)?)
    }

    fn cuDeviceGet(device: Out<i32>, ordinal: i32) {
        driver().target(ordinal)?;
        Ok(device.put(ordinal)?)
    }

    fn cuDeviceGetName(name: Out<c_char>, room: i32, device: i32) {
        let target = driver().target(device)?;
        let room = usize::try_from(room).map_err(|_| Status::INVALID_VALUE)?;
        Ok(name.put_text(room, &driver().targets[target].name)?)
    }

    fn cuDeviceGetUuid(uuid: Out<[u8; 16]>, device: i32) {
        // The first version gives the identity of the whole device, also for a slice.
        let target = driver().target(device)?;
        Ok(uuid.put(driver().targets[driver().targets[target].device].uuid)?)
    }

    fn cuDeviceGetUuid_v2(uuid: Out<[u8; 16]>, device: i32) {
        let target = driver().target(device)?;
        Ok(uuid.put(driver().targets[target].uuid)?)
    }

    fn cuDeviceTotalMem_v2(bytes: Out<usize>, device: i32) {
        let target = driver().target(device)?;
        Ok(bytes.put(driver().targets[target].memory as usize)?)
    }

    fn cuDeviceGetAttribute(value: Out<i32>, which: u32, device: i32) {
        let target = driver().target(device)?;
        Ok(value.put(attribute(which, target))?)
    }

    fn cuDeviceComputeCapability(major: Out<i32>, minor: Out<i32>, device: i32) {
        let target = driver().target(device)?;
        let capability = driver().device_of(target).capability;
        major.put(capability[0])?;
        Ok(minor.put(capability[1])?)
    }

    fn cuDeviceGetPCIBusId(text: Out<c_char>, room: i32, device: i32) {
        let target = driver().target(device)?;
        let room = usize::try_from(room).map_err(|_| Status::INVALID_VALUE)?;
        // CUDA writes a domain of four digits, NVML one of eight.
        Ok(text.put_text(room, &pci_bus_id(driver().targets[target].device)[4..])?)
    }

    fn cuDeviceGetByPCIBusId(device: Out<i32>, text: Text) {
        let asked = text.read()?;
        let found = driver().visible.iter().position(|target| {
            pci_bus_id(driver().targets[*target].device).ends_with(asked.trim_start_matches('0'))
        });
        Ok(device.put(found.ok_or(Status::INVALID_DEVICE)? as i32)?)
    }

    fn cuDeviceCanAccessPeer(can: Out<i32>, device: i32, peer: i32) {
        driver().target(device)?;
        driver().target(peer)?;
        Ok(can.put(0)?)
    }

    fn cuDevicePrimaryCtxRetain(context: Out<u64>, device: i32) {
        let target = driver().target(device)?;
        Ok(context.put(driver().retain_primary(target)?)?)
    }

    fn cuDevicePrimaryCtxRelease_v2(device: i32) {
        driver().release_primary(driver().target(device)?, false)
    }

    fn cuDevicePrimaryCtxReset_v2(device: i32) {
        driver().release_primary(driver().target(device)?, true)
    }

    fn cuDevicePrimaryCtxGetState(device: i32, flags: Out<u32>, is_active: Out<i32>) {
        let target = driver().target(device)?;
        flags.put(0)?;
        Ok(is_active.put(i32::from(driver().has_primary(target)))?)
    }

    fn cuDevicePrimaryCtxSetFlags_v2(device: i32, _flags: u32) {
        driver().target(device).map(|_| ())
    }
}
