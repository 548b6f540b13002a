//! Memory and load.

use super::{Failure, found, whole};
use crate::driver::driver;
use crate::ffi::{Out, export};

/// `nvmlMemory_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Memory {
    total: u64,
    free: u64,
    used: u64,
}

/// `nvmlMemory_v2_t`.
#[repr(C)]
#[derive(Clone, Copy)]
struct MemoryV2 {
    version: u32,
    total: u64,
    reserved: u64,
    free: u64,
    used: u64,
}

/// `nvmlUtilization_t`, percent.
#[repr(C)]
#[derive(Clone, Copy)]
struct Utilization {
    gpu: u32,
    memory: u32,
}

/// Total and used bytes: a device with slices is as full as they are.
fn memory(handle: usize) -> Result<(u64, u64), Failure> {
    let (target, described) = found(handle)?;
    let mut used = driver().shared.used(target);
    if described.slice.is_none() {
        let slices = driver().targets.iter().enumerate();
        let slices =
            slices.filter(|(_, other)| other.slice.is_some() && other.device == described.device);
        used += slices.map(|(slice, _)| driver().shared.used(slice)).sum::<u64>();
    }
    Ok((described.memory, used.min(described.memory)))
}

export! { Failure;
    fn nvmlDeviceGetMemoryInfo(handle: usize, memory_info: Out<Memory>) {
        let (total, used) = memory(handle)?;
        Ok(memory_info.put(Memory { total, free: total - used, used })?)
    }

    fn nvmlDeviceGetMemoryInfo_v2(handle: usize, memory_info: Out<MemoryV2>) {
        let (total, used) = memory(handle)?;
        let version = memory_info.get_at(0)?.version;
        if version != size_of::<MemoryV2>() as u32 | 2 << 24 {
            return Err(Failure::INVALID_ARGUMENT);
        }
        Ok(memory_info.put(MemoryV2 { version, total, reserved: 0, free: total - used, used })?)
    }

    fn nvmlDeviceGetBAR1MemoryInfo(handle: usize, memory_info: Out<Memory>) {
        whole(handle)?;
        let total = 256 << 20;
        Ok(memory_info.put(Memory { total, free: total, used: 0 })?)
    }

    fn nvmlDeviceGetUtilizationRates(handle: usize, rates: Out<Utilization>) {
        let (target, _) = whole(handle)?;
        let gpu = if driver().shared.targets[target].is_running() { 100 } else { 0 };
        Ok(rates.put(Utilization { gpu, memory: gpu / 4 })?)
    }
}
