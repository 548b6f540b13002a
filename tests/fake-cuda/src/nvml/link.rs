//! PCI Express: where a device sits and how wide its road is.

use super::{Failure, found, pci_bus_id, whole};
use crate::ffi::{Out, export};
use std::ffi::c_char;

/// `nvmlPciInfo_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PciInfo {
    bus_id_legacy: [c_char; 16],
    domain: u32,
    bus: u32,
    device: u32,
    pci_device_id: u32,
    pci_subsystem_id: u32,
    bus_id: [c_char; 32],
}

fn text<const N: usize>(text: &str) -> [c_char; N] {
    let mut room = [0; N];
    for (place, byte) in room.iter_mut().take(N - 1).zip(text.bytes()) {
        *place = byte as c_char;
    }
    room
}

export! { Failure;
    fn nvmlDeviceGetPciInfo_v3(handle: usize, info: Out<PciInfo>) {
        let device = found(handle)?.1.device;
        let bus_id = pci_bus_id(device);
        Ok(info.put(PciInfo {
            bus_id_legacy: text(&bus_id[4..]),
            domain: 0,
            bus: device as u32 + 1,
            device: 0,
            pci_device_id: 0x24b0_10de,
            pci_subsystem_id: 0x14ad_10de,
            bus_id: text(&bus_id),
        })?)
    }

    fn nvmlDeviceGetCurrPcieLinkGeneration(handle: usize, generation: Out<u32>) {
        whole(handle)?;
        Ok(generation.put(4)?)
    }

    fn nvmlDeviceGetMaxPcieLinkGeneration(handle: usize, generation: Out<u32>) {
        whole(handle)?;
        Ok(generation.put(4)?)
    }

    fn nvmlDeviceGetCurrPcieLinkWidth(handle: usize, lanes: Out<u32>) {
        whole(handle)?;
        Ok(lanes.put(16)?)
    }

    fn nvmlDeviceGetMaxPcieLinkWidth(handle: usize, lanes: Out<u32>) {
        whole(handle)?;
        Ok(lanes.put(16)?)
    }

    fn nvmlDeviceGetPcieThroughput(handle: usize, _counter: u32, kibibytes: Out<u32>) {
        whole(handle)?;
        Ok(kibibytes.put(0)?)
    }

    fn nvmlDeviceGetPcieReplayCounter(handle: usize, count: Out<u32>) {
        whole(handle)?;
        Ok(count.put(0)?)
    }
}
