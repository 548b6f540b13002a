//! Nodes and their devices. Labels are names of nodes and their devices, which are as many as there
//! are machines.

use super::page::{Labels, Page, by};
use std::collections::BTreeSet;
use std::fmt;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry};
use tessera_protocol::status::{NodeState, NodeSummary};

/// Nodes that are connected. Of two with one name the second is left out: no row comes twice.
fn connected(nodes: &[NodeSummary]) -> Vec<&NodeSummary> {
    let mut names = BTreeSet::new();
    let here = nodes.iter().filter(|node| !node.state.is_absent());
    here.filter(|node| names.insert(node.name.as_str())).collect()
}

/// Writes how many nodes there are, and what each connected one does.
pub(super) fn nodes(page: &mut Page<'_, '_>, nodes: &[NodeSummary]) -> fmt::Result {
    let of = |state| nodes.iter().filter(|node| node.state == state).count() as u64;
    let states = NodeState::ALL.map(|state| (state.name(), of(state)));
    page.gauges(
        ("tessera_nodes", "Nodes of the present and the past by state."),
        by("state", states),
    )?;
    let here = connected(nodes);
    let each = |value: fn(&NodeSummary) -> Option<f64>| {
        let rows = here
            .iter()
            .filter_map(move |node| Some((vec![("node", node.name.as_str())], value(node)?)));
        rows.collect::<Vec<_>>()
    };
    page.gauges(
        ("tessera_node_units_leased", "Units that are leased to a node."),
        each(|node| Some(f64::from(node.units_leased))),
    )?;
    page.gauges(
        (
            "tessera_node_busy_ratio",
            "Share of the last minute's time with work in which a node's devices worked.",
        ),
        each(|node| node.busy.map(f64::from)),
    )?;
    page.gauges(
        (
            "tessera_node_samples_per_second",
            "Camera samples per second that a node committed in the last minute.",
        ),
        each(|node| Some(node.samples_per_second)),
    )
}

/// A device with its state at the last heartbeat.
struct Seen<'a> {
    node: &'a str,
    device: &'a DeviceInfo,
    telemetry: Option<&'a DeviceTelemetry>,
}

impl<'a> Seen<'a> {
    fn labels(&self) -> Labels<'a> {
        vec![("node", self.node), ("device", &self.device.slot), ("kind", kind(self.device.kind))]
    }
}

fn kind(kind: DeviceKind) -> &'static str {
    match kind {
        DeviceKind::Cpu => "cpu",
        DeviceKind::Cuda => "cuda",
    }
}

fn state(state: &DeviceState) -> &'static str {
    match state {
        DeviceState::Ready => "ready",
        DeviceState::Testing => "testing",
        DeviceState::Quarantined { .. } => "quarantined",
    }
}

/// Devices of the connected nodes, each slot of a node once.
fn seen(nodes: &[NodeSummary]) -> Vec<Seen<'_>> {
    let devices = connected(nodes).into_iter().flat_map(|node| {
        let mut slots = BTreeSet::new();
        let places = node.devices.iter().zip(0..=u8::MAX);
        places.filter(move |(device, _)| slots.insert(device.slot.as_str())).map(
            |(device, place)| {
                let telemetry = node.telemetry.iter().find(|telemetry| telemetry.device == place);
                Seen { node: node.name.as_str(), device, telemetry }
            },
        )
    });
    devices.collect()
}

/// What is written of each device that says it: name, meaning and value.
type OfDevice = (&'static str, &'static str, fn(&DeviceInfo, &DeviceTelemetry) -> Option<f64>);

const OF_DEVICE: [OfDevice; 9] = [
    (
        "tessera_device_busy_ratio",
        "Share of the time since the last heartbeat in which a device worked.",
        |_, now| Some(f64::from(now.busy)),
    ),
    (
        "tessera_device_samples_per_second",
        "Camera samples per second of device time, over the last units.",
        |_, now| Some(now.samples_per_second),
    ),
    ("tessera_device_memory_bytes", "Memory of a device.", |device, _| {
        Some(device.memory_bytes as f64).filter(|bytes| *bytes > 0.0)
    }),
    ("tessera_device_memory_free_bytes", "Free memory of a device, for any process.", |_, now| {
        now.memory_free.map(|bytes| bytes as f64)
    }),
    (
        "tessera_device_memory_held_bytes",
        "Memory that the node holds on a device and would give up for another unit.",
        |_, now| now.memory_held.map(|bytes| bytes as f64),
    ),
    ("tessera_device_temperature_celsius", "Temperature of a device.", |_, now| {
        now.temperature.map(f64::from)
    }),
    ("tessera_device_power_watts", "Power that a device draws.", |_, now| {
        now.power_milliwatts.map(|milliwatts| f64::from(milliwatts) / 1e3)
    }),
    (
        "tessera_device_last_xid",
        "Code of the last error event of NVIDIA's driver since the node started.",
        |_, now| now.xid.map(|xid| f64::from(xid.code)),
    ),
    (
        "tessera_device_last_xid_age_seconds",
        "Time since the last error event of NVIDIA's driver.",
        |_, now| now.xid.map(|xid| xid.secs_ago as f64),
    ),
];

/// Writes how many devices the connected nodes have, and the state of each.
pub(super) fn devices(page: &mut Page<'_, '_>, nodes: &[NodeSummary]) -> fmt::Result {
    let seen = seen(nodes);
    let mut counts = Vec::new();
    for wanted in [DeviceKind::Cpu, DeviceKind::Cuda].map(kind) {
        for standing in ["ready", "testing", "quarantined"] {
            let is = |seen: &&Seen<'_>| {
                (kind(seen.device.kind), state(&seen.device.state)) == (wanted, standing)
            };
            let count = seen.iter().filter(is).count() as f64;
            counts.push((vec![("kind", wanted), ("state", standing)], count));
        }
    }
    page.gauges(("tessera_devices", "Devices of connected nodes by kind and state."), counts)?;
    for (name, help, value) in OF_DEVICE {
        let rows = seen
            .iter()
            .filter_map(|seen| Some((seen.labels(), value(seen.device, seen.telemetry?)?)));
        page.gauges((name, help), rows)?;
    }
    let errors = seen.iter().flat_map(|seen| {
        let now = seen.telemetry;
        let counts = [
            ("yes", now.and_then(|now| now.ecc_corrected)),
            ("no", now.and_then(|now| now.ecc_uncorrected)),
        ];
        counts.into_iter().filter_map(|(corrected, count)| {
            let mut labels = seen.labels();
            labels.push(("corrected", corrected));
            Some((labels, count? as f64))
        })
    });
    page.counters(
        ("tessera_device_ecc_errors", "Memory errors since a device's driver was loaded."),
        errors,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(name: &str, state: NodeState) -> NodeSummary {
        let device = |slot: &str| DeviceInfo {
            slot: slot.to_owned(),
            kind: DeviceKind::Cuda,
            name: String::new(),
            parallelism: 1,
            memory_bytes: 8 << 30,
            cuda: None,
            state: DeviceState::Ready,
        };
        NodeSummary {
            node: tessera_protocol::NodeId(uuid::Uuid::nil()),
            name: name.to_owned(),
            identity: 0,
            state,
            devices: vec![device("cuda:0"), device("cuda:1"), device("cuda:0")],
            telemetry: vec![DeviceTelemetry { device: 1, busy: 0.5, ..DeviceTelemetry::default() }],
            units_leased: 0,
            units_committed: 0,
            samples_per_second: 0.0,
            silent_secs: 0,
            build: String::new(),
            note: String::new(),
            pool: None,
            since: 0,
            drained: false,
            busy: None,
        }
    }

    #[test]
    fn no_device_has_two_rows() {
        let nodes = [
            node("a", NodeState::Ready),
            node("a", NodeState::Draining),
            node("b", NodeState::Lost),
            node("c", NodeState::Unfit),
        ];
        let seen = seen(&nodes);
        let rows: Vec<_> = seen
            .iter()
            .map(|seen| (seen.node, seen.device.slot.as_str(), seen.telemetry.is_some()))
            .collect();
        let both = |name| [(name, "cuda:0", false), (name, "cuda:1", true)];
        assert_eq!(rows, [both("a"), both("c")].concat());
    }
}
