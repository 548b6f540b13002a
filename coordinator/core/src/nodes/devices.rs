//! Devices of nodes as the nodes describe them, within limits, and which of them may have work.
//! Chooses no unit.

use crate::text::cut;
use std::collections::BTreeMap;
use tessera_protocol::device::{DeviceInfo, DeviceState, DeviceTelemetry};
use tessera_protocol::limits::{DEVICES_MAX, NAME_MAX, REASON_MAX, THROTTLES_MAX};

/// Devices as a node lists them, with every text cut to its limit.
pub(crate) fn listed(devices: &[DeviceInfo]) -> Vec<DeviceInfo> {
    devices.iter().take(DEVICES_MAX).map(bounded).collect()
}

fn bounded(device: &DeviceInfo) -> DeviceInfo {
    let mut device = device.clone();
    device.slot = cut(&device.slot, NAME_MAX);
    device.name = cut(&device.name, NAME_MAX);
    if let Some(cuda) = &mut device.cuda {
        for text in
            [&mut cuda.uuid, &mut cuda.driver, &mut cuda.pcie].into_iter().chain(&mut cuda.mig)
        {
            *text = cut(text, NAME_MAX);
        }
    }
    if let DeviceState::Quarantined { reason, remedy } = &mut device.state {
        (*reason, *remedy) = (cut(reason, REASON_MAX), cut(remedy, REASON_MAX));
    }
    device
}

/// Telemetry of devices that exist, each once, in their order.
pub(crate) fn telemetry(told: &[DeviceTelemetry], devices: usize) -> Vec<DeviceTelemetry> {
    let known = told.iter().filter(|one| usize::from(one.device) < devices);
    let by_device: BTreeMap<u8, DeviceTelemetry> = known
        .take(DEVICES_MAX)
        .map(|one| {
            let throttles =
                one.throttles.iter().take(THROTTLES_MAX).map(|name| cut(name, NAME_MAX)).collect();
            (one.device, DeviceTelemetry { throttles, ..one.clone() })
        })
        .collect();
    by_device.into_values().collect()
}

/// Whether the device may have work.
pub(crate) fn is_ready(device: &DeviceInfo) -> bool {
    device.state == DeviceState::Ready
}

/// Why no device of a node may have work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unusable {
    /// It has none.
    NoDevice,
    /// All are being tested.
    Testing(String),
    /// Some are quarantined, for these reasons.
    Quarantined(String),
}

impl Unusable {
    /// Returns it for people.
    pub(crate) fn said(&self) -> &str {
        match self {
            Self::NoDevice => "it has no device",
            Self::Testing(said) | Self::Quarantined(said) => said,
        }
    }
}

/// Returns why no device of a node may have work; None if some device may.
pub(crate) fn none_usable(devices: &[DeviceInfo]) -> Option<Unusable> {
    if devices.iter().any(is_ready) {
        return None;
    }
    let (mut said, mut quarantined) = (Vec::new(), false);
    for device in devices {
        said.push(match &device.state {
            DeviceState::Quarantined { reason, remedy } => {
                quarantined = true;
                format!("{} is quarantined: {reason}; {remedy}", device.slot)
            }
            _ => format!("{} is being tested", device.slot),
        });
    }
    let text = cut(&said.join("; "), REASON_MAX);
    Some(match (said.is_empty(), quarantined) {
        (true, _) => Unusable::NoDevice,
        (false, true) => Unusable::Quarantined(text),
        (false, false) => Unusable::Testing(text),
    })
}
