//! The worker that watches devices: NVML's readings of every device at intervals, and Xid events at
//! once. It never opens CUDA, so a device that hangs does not affect it. A library that hangs ends
//! only this process.

use super::message::{FoundDevice, Order, Report};
use super::{Orders, Outlet, next};
use crate::device::reading::{DeviceReading, same_uuid};
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{Clock, EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, EventSet, Nvml};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use tessera_protocol::device::DeviceTelemetry;

/// Name of the library that drivers install. The other name comes only with development packages.
const LIBRARY: &str = "libnvidia-ml.so.1";
/// Longest single wait for an event.
const WAIT_MAX: Duration = Duration::from_secs(1);

fn open() -> Result<Nvml, NvmlError> {
    Nvml::builder().lib_path(OsStr::new(LIBRARY)).init()
}

/// Replaces every device that is divided into slices by its slices. Without NVML the list stays as
/// CUDA gives it.
pub(super) fn with_slices(found: Vec<FoundDevice>) -> Vec<FoundDevice> {
    let Ok(nvml) = open() else { return found };
    let slices: Vec<FoundDevice> = devices(&nvml).iter().flat_map(slices_of).collect();
    if slices.is_empty() {
        return found;
    }
    // CUDA shows a process at most one slice, so it lists none or the first one. It lists whole
    // devices only if there is no slice.
    let of_slice =
        |device: &FoundDevice| slices.iter().any(|slice| same_uuid(&slice.uuid, &device.uuid));
    let like = found.first().cloned().unwrap_or_default();
    let whole: Vec<FoundDevice> = found.into_iter().filter(|device| !of_slice(device)).collect();
    let cut = slices.into_iter().map(|slice| FoundDevice {
        // NVML does not report these values for a slice; opening the slice does.
        capability: if slice.capability == (0, 0) { like.capability } else { slice.capability },
        ..slice
    });
    whole.into_iter().chain(cut).collect()
}

fn slices_of(device: &Device<'_>) -> Vec<FoundDevice> {
    let parent = device.uuid().ok();
    let capability = capability(device).unwrap_or_default();
    let slice = |slice: Device<'_>| {
        Some(FoundDevice {
            ordinal: 0,
            uuid: slice.uuid().ok()?,
            name: slice.name().or_else(|_| device.name()).unwrap_or_default(),
            capability,
            memory_bytes: slice.memory_info().map_or(0, |memory| memory.total),
            multiprocessors: 0,
            mig_parent: parent.clone(),
            by_uuid: true,
        })
    };
    mig_devices(device).into_iter().filter_map(slice).collect()
}

fn mig_devices<'nvml>(device: &Device<'nvml>) -> Vec<Device<'nvml>> {
    let count = device.mig_device_count().unwrap_or(0);
    // The positions of slices may have gaps.
    (0..count).filter_map(|index| device.mig_device_by_index(index).ok()).collect()
}

fn devices(nvml: &Nvml) -> Vec<Device<'_>> {
    let count = nvml.device_count().unwrap_or(0);
    (0..count).filter_map(|index| nvml.device_by_index(index).ok()).collect()
}

fn capability(device: &Device<'_>) -> Option<(u32, u32)> {
    let capability = device.cuda_compute_capability().ok()?;
    Some((u32::try_from(capability.major).ok()?, u32::try_from(capability.minor).ok()?))
}

/// Sends reports until the node is gone.
pub(super) fn watch(period: Duration, mut orders: Orders, outlet: &Outlet) -> ExitCode {
    // No more orders follow. The end of the stream is the node's end.
    let listening = std::thread::Builder::new().spawn(move || {
        while let Some((Order::Watch { .. }, _)) = next(&mut orders) {}
        std::process::exit(0);
    });
    let nvml = match open() {
        Ok(nvml) if listening.is_ok() => nvml,
        // Without NVML there is nothing to watch, and devices work all the same.
        Ok(_) => return ExitCode::FAILURE,
        Err(error) => {
            eprintln!("NVML is not available: {error}");
            outlet.send(&Report::Readings(Vec::new()), &[]);
            return ExitCode::SUCCESS;
        }
    };
    let (events, uuids) = (register(&nvml), uuids(&nvml));
    let mut due = Instant::now();
    loop {
        if Instant::now() >= due {
            due = Instant::now() + period;
            outlet.send(&Report::Readings(sample(&nvml)), &[]);
        }
        let left = due.saturating_duration_since(Instant::now()).min(WAIT_MAX);
        match &events {
            Some(events) => wait(events, &uuids, left, outlet),
            None => std::thread::sleep(left),
        }
    }
}

/// Subscribes to the Xid events of every device that has them.
fn register(nvml: &Nvml) -> Option<EventSet<'_>> {
    let mut events = nvml.create_event_set().ok()?;
    for device in devices(nvml) {
        events = match device.register_events(EventTypes::CRITICAL_XID_ERROR, events) {
            Ok(events) => events,
            Err(error) => {
                eprintln!("no Xid events of a device: {error}");
                // The failed call consumed the set, so the caller subscribes again without this
                // device.
                return None;
            }
        };
    }
    Some(events)
}

/// Returns the devices by their handles, because a device that has fallen off the bus does not
/// report its UUID any more.
fn uuids(nvml: &Nvml) -> BTreeMap<usize, String> {
    let known =
        devices(nvml).into_iter().filter_map(|device| Some((handle(&device), device.uuid().ok()?)));
    known.collect()
}

fn handle(device: &Device<'_>) -> usize {
    // SAFETY: the address is only compared.
    unsafe { device.handle() }.addr()
}

fn wait(events: &EventSet<'_>, uuids: &BTreeMap<usize, String>, left: Duration, outlet: &Outlet) {
    match events.wait(u32::try_from(left.as_millis()).unwrap_or(u32::MAX).max(1)) {
        Ok(event) => {
            let uuid = uuids.get(&handle(&event.device)).cloned();
            if let (Some(uuid), Some(XidError::Value(code))) = (uuid, event.event_data) {
                outlet.send(&Report::Xid { uuid, code }, &[]);
            }
        }
        Err(NvmlError::Timeout) => {}
        // A lost device ends every wait at once.
        Err(_) => std::thread::sleep(left),
    }
}

fn sample(nvml: &Nvml) -> Vec<DeviceReading> {
    let driver = nvml.sys_driver_version().unwrap_or_default();
    let mut readings = Vec::new();
    for device in devices(nvml) {
        let Some(whole) = reading(&device, &driver) else { continue };
        let slices = mig_devices(&device);
        if slices.is_empty() {
            readings.push(whole);
            continue;
        }
        for slice in slices {
            let Ok(uuid) = slice.uuid() else { continue };
            let memory_free = slice.memory_info().ok().map(|memory| memory.free);
            readings.push(DeviceReading {
                mig_parent: Some(whole.uuid.clone()),
                uuid,
                name: slice.name().unwrap_or_else(|_| whole.name.clone()),
                telemetry: DeviceTelemetry { memory_free, ..whole.telemetry.clone() },
                ..whole.clone()
            });
        }
    }
    readings
}

fn reading(device: &Device<'_>, driver: &str) -> Option<DeviceReading> {
    let link = (device.current_pcie_link_gen(), device.current_pcie_link_width());
    let ecc = |kind| device.total_ecc_errors(kind, EccCounter::Volatile).ok();
    let telemetry = DeviceTelemetry {
        memory_free: device.memory_info().ok().map(|memory| memory.free),
        temperature: device.temperature(TemperatureSensor::Gpu).ok(),
        power_milliwatts: device.power_usage().ok(),
        clock_mhz: device.clock_info(Clock::SM).ok(),
        memory_clock_mhz: device.clock_info(Clock::Memory).ok(),
        throttles: device.current_throttle_reasons().map(reasons).unwrap_or_default(),
        ecc_corrected: ecc(MemoryError::Corrected),
        ecc_uncorrected: ecc(MemoryError::Uncorrected),
        ..DeviceTelemetry::default()
    };
    Some(DeviceReading {
        uuid: device.uuid().ok()?,
        name: device.name().unwrap_or_default(),
        driver: driver.to_owned(),
        pcie: device.pci_info().map(|pci| pci.bus_id).unwrap_or_default(),
        pcie_link: link.0.ok().zip(link.1.ok()),
        mig_parent: None,
        telemetry,
    })
}

/// Returns the reasons that a person can do something about.
fn reasons(bits: ThrottleReasons) -> Vec<String> {
    let named = [
        (ThrottleReasons::SW_POWER_CAP, "sw_power"),
        (ThrottleReasons::HW_SLOWDOWN, "hw_slowdown"),
        (ThrottleReasons::SW_THERMAL_SLOWDOWN, "sw_thermal"),
        (ThrottleReasons::HW_THERMAL_SLOWDOWN, "hw_thermal"),
        (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, "hw_power_brake"),
        (ThrottleReasons::SYNC_BOOST, "sync_boost"),
    ];
    named
        .iter()
        .filter(|(bit, _)| bits.contains(*bit))
        .map(|(_, name)| (*name).to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_reasons_that_matter_are_named() {
        let idle = ThrottleReasons::GPU_IDLE | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING;
        assert!(reasons(idle).is_empty());
        assert_eq!(reasons(idle | ThrottleReasons::SW_POWER_CAP), ["sw_power"]);
    }

    #[test]
    fn without_the_library_devices_stay_as_cuda_lists_them() {
        // If this machine has the library, its devices are listed instead, and there is nothing to
        // compare.
        if open().is_ok() {
            eprintln!("NOT RUN: this machine has NVML");
            return;
        }
        let found = vec![FoundDevice { name: "one".into(), ..FoundDevice::default() }];
        assert_eq!(with_slices(found.clone()), found);
    }
}
