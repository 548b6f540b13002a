//! Temperature, power, clocks, why they are held back, ECC.

use super::{Failure, whole};
use crate::driver::driver;
use crate::ffi::{Out, export};
use std::sync::atomic::Ordering::SeqCst;

/// ECC errors so far: corrected and uncorrected, with those that faults have made.
fn ecc(handle: usize, kind: u32) -> Result<u64, Failure> {
    let (target, device) = whole(handle)?;
    match kind {
        0 => Ok(device.ecc[0]),
        1 => Ok(device.ecc[1] + driver().shared.targets[target].uncorrected.load(SeqCst)),
        _ => Err(Failure::INVALID_ARGUMENT),
    }
}

/// Clocks by `nvmlClockType_t`: graphics, multiprocessors, memory, video.
fn clock(handle: usize, kind: u32) -> Result<u32, Failure> {
    let (_, device) = whole(handle)?;
    match kind {
        0 | 1 | 3 => Ok(device.clocks[0]),
        2 => Ok(device.clocks[1]),
        _ => Err(Failure::INVALID_ARGUMENT),
    }
}

export! { Failure;
    fn nvmlDeviceGetTemperature(handle: usize, _sensor: u32, degrees: Out<u32>) {
        Ok(degrees.put(whole(handle)?.1.temperature)?)
    }

    fn nvmlDeviceGetTemperatureThreshold(handle: usize, kind: u32, degrees: Out<u32>) {
        whole(handle)?;
        // Shutdown, slowdown, memory, GPU.
        let known = [95, 92, 95, 90].get(kind as usize).copied();
        Ok(degrees.put(known.ok_or(Failure::NOT_SUPPORTED)?)?)
    }

    fn nvmlDeviceGetPowerUsage(handle: usize, milliwatts: Out<u32>) {
        Ok(milliwatts.put(whole(handle)?.1.power)?)
    }

    fn nvmlDeviceGetPowerManagementLimit(handle: usize, milliwatts: Out<u32>) {
        whole(handle)?;
        Ok(milliwatts.put(140_000)?)
    }

    fn nvmlDeviceGetEnforcedPowerLimit(handle: usize, milliwatts: Out<u32>) {
        whole(handle)?;
        Ok(milliwatts.put(140_000)?)
    }

    fn nvmlDeviceGetTotalEnergyConsumption(handle: usize, millijoules: Out<u64>) {
        whole(handle)?;
        Ok(millijoules.put(0)?)
    }

    fn nvmlDeviceGetFanSpeed(handle: usize, _percent: Out<u32>) {
        whole(handle)?;
        Err(Failure::NOT_SUPPORTED)
    }

    fn nvmlDeviceGetPerformanceState(handle: usize, state: Out<u32>) {
        whole(handle)?;
        Ok(state.put(0)?)
    }

    fn nvmlDeviceGetClockInfo(handle: usize, kind: u32, megahertz: Out<u32>) {
        Ok(megahertz.put(clock(handle, kind)?)?)
    }

    fn nvmlDeviceGetMaxClockInfo(handle: usize, kind: u32, megahertz: Out<u32>) {
        Ok(megahertz.put(clock(handle, kind)?)?)
    }

    fn nvmlDeviceGetClock(handle: usize, kind: u32, _which: u32, megahertz: Out<u32>) {
        Ok(megahertz.put(clock(handle, kind)?)?)
    }

    fn nvmlDeviceGetCurrentClocksThrottleReasons(handle: usize, reasons: Out<u64>) {
        Ok(reasons.put(whole(handle)?.1.throttle_reasons)?)
    }

    fn nvmlDeviceGetCurrentClocksEventReasons(handle: usize, reasons: Out<u64>) {
        Ok(reasons.put(whole(handle)?.1.throttle_reasons)?)
    }

    fn nvmlDeviceGetSupportedClocksThrottleReasons(handle: usize, reasons: Out<u64>) {
        whole(handle)?;
        Ok(reasons.put(0x1ff)?)
    }

    fn nvmlDeviceGetEccMode(handle: usize, current: Out<u32>, pending: Out<u32>) {
        whole(handle)?;
        current.put(1)?;
        Ok(pending.put(1)?)
    }

    fn nvmlDeviceGetTotalEccErrors(handle: usize, kind: u32, _counter: u32, count: Out<u64>) {
        Ok(count.put(ecc(handle, kind)?)?)
    }

    fn nvmlDeviceGetMemoryErrorCounter(handle: usize, kind: u32, _counter: u32, place: u32,
    count: Out<u64>) {
        // All of them are counted in the device's memory (2).
        let errors = ecc(handle, kind)?;
        Ok(count.put(if place == 2 { errors } else { 0 })?)
    }

    fn nvmlDeviceGetRemappedRows(handle: usize, corrected: Out<u32>, uncorrected: Out<u32>,
    is_pending: Out<u32>, has_failed: Out<u32>) {
        whole(handle)?;
        for place in [corrected, uncorrected, is_pending, has_failed] {
            place.put(0)?;
        }
        Ok(())
    }
}
