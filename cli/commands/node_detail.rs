//! One node with everything that its devices say, as lines for people.

use crate::table::{bytes, count, counted, printable, span};
use std::fmt::Write as _;
use tessera_protocol::device::{CudaInfo, DeviceInfo, DeviceState, DeviceTelemetry};
use tessera_protocol::status::{NodeState, NodeSummary};
use tessera_transport::validity::now_secs;

/// The node and its devices, a fact a line.
pub(crate) fn describe(node: &NodeSummary) -> String {
    let mut text = String::new();
    line(&mut text, "", "node", &node.node.to_string());
    line(&mut text, "", "name", &named(node));
    line(&mut text, "", "state", state(node.state));
    line(&mut text, "", "note", &node.note);
    line(&mut text, "", "pool", node.pool.as_deref().unwrap_or_default());
    line(&mut text, "", "build", &node.build);
    let heard = if node.state.is_absent() { "gone" } else { "heard" };
    line(&mut text, "", heard, &ago(node));
    line(
        &mut text,
        "",
        "units",
        &format!("{} leased, {} committed", node.units_leased, node.units_committed),
    );
    line(&mut text, "", "rate", &rate(node.samples_per_second));
    if node.busy.is_some() {
        line(&mut text, "", "busy", &format!("{} of the time with work", busy(node)));
    }
    for (position, device) in node.devices.iter().enumerate() {
        describe_device(&mut text, device);
        let told = node.telemetry.iter().find(|told| usize::from(told.device) == position);
        if let Some(told) = told {
            describe_load(&mut text, told);
        }
    }
    text
}

/// The name of a node and the number of its identity.
pub(super) fn named(node: &NodeSummary) -> String {
    match node.identity {
        0 => node.name.clone(),
        number => format!("{} #{number}", node.name),
    }
}

/// A state as people read it.
pub(super) fn state(state: NodeState) -> &'static str {
    match state {
        NodeState::Ready => "ready",
        NodeState::Draining => "draining",
        NodeState::Away => "away",
        NodeState::Lost => "lost",
        NodeState::Unfit => "unfit",
        NodeState::Drained => "drained",
        NodeState::Left => "left",
        NodeState::Removed => "removed",
    }
}

/// How much of the time with work the devices of a node worked; `-` where there was no work.
pub(super) fn busy(node: &NodeSummary) -> String {
    node.busy.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// Since when a node is in its state, or when it was last heard of.
pub(super) fn ago(node: &NodeSummary) -> String {
    let secs = match node.state.is_absent() && node.state != NodeState::Away {
        true => now_secs().saturating_sub(node.since),
        false => node.silent_secs,
    };
    format!("{} ago", span(secs))
}

/// A fact, unless it is empty.
fn line(text: &mut String, indent: &str, name: &str, value: &str) {
    if !value.is_empty() {
        let width = 12 - indent.len();
        // Writing to a string does not fail.
        let _ = writeln!(text, "{indent}{name:<width$}{}", printable(value));
    }
}

fn rate(samples_per_second: f64) -> String {
    format!("{} samples/s", count(samples_per_second).trim_end())
}

fn describe_device(text: &mut String, device: &DeviceInfo) {
    line(text, "", "device", &format!("{}: {}", device.slot, device.name));
    let standing = match &device.state {
        DeviceState::Ready => "ready".to_owned(),
        DeviceState::Testing => "testing".to_owned(),
        DeviceState::Quarantined { reason, remedy } => format!("quarantined: {reason}; {remedy}"),
    };
    line(text, "  ", "state", &standing);
    let unit = if device.cuda.is_some() { "multiprocessor" } else { "thread" };
    let units = counted(device.parallelism.into(), unit);
    line(text, "  ", "size", &format!("{units}, {}", bytes(device.memory_bytes)));
    if let Some(cuda) = &device.cuda {
        describe_cuda(text, cuda);
    }
}

/// Says where the kernels of a device come from.
pub(crate) fn origin_of_kernels(cuda: &CudaInfo) -> String {
    match cuda.cubin {
        Some((major, minor)) => format!("installed for compute capability {major}.{minor}"),
        None => "compiled by the driver".to_owned(),
    }
}

fn describe_cuda(text: &mut String, cuda: &CudaInfo) {
    let (major, minor) = cuda.compute_capability;
    line(text, "  ", "uuid", &cuda.uuid);
    line(text, "  ", "compute", &format!("{major}.{minor}"));
    line(text, "  ", "driver", &cuda.driver);
    line(text, "  ", "pcie", &cuda.pcie);
    line(text, "  ", "mig", cuda.mig.as_deref().unwrap_or_default());
    line(text, "  ", "start", &format!("{:.1} s", f64::from(cuda.start_millis) / 1000.0));
    line(text, "  ", "kernels", &origin_of_kernels(cuda));
}

fn describe_load(text: &mut String, told: &DeviceTelemetry) {
    line(text, "  ", "busy", &format!("{:.0} %", told.busy * 100.0));
    line(text, "  ", "rate", &rate(told.samples_per_second));
    let memory =
        [told.memory_free.map(|b| (b, "free")), told.memory_held.map(|b| (b, "held by this node"))];
    let memory: Vec<String> = memory
        .into_iter()
        .flatten()
        .map(|(count, what)| format!("{} {what}", bytes(count)))
        .collect();
    line(text, "  ", "memory", &memory.join(", "));
    let mut heat = Vec::new();
    heat.extend(told.temperature.map(|degrees| format!("{degrees} °C")));
    heat.extend(told.power_milliwatts.map(|power| format!("{:.0} W", f64::from(power) / 1000.0)));
    heat.extend(told.clock_mhz.map(|clock| format!("{clock} MHz")));
    heat.extend(told.memory_clock_mhz.map(|clock| format!("memory {clock} MHz")));
    line(text, "  ", "now", &heat.join(", "));
    line(text, "  ", "throttled", &told.throttles.join(", "));
    let ecc = [(told.ecc_corrected, "corrected"), (told.ecc_uncorrected, "not corrected")];
    let ecc: Vec<String> =
        ecc.into_iter().filter_map(|(errors, what)| Some(format!("{} {what}", errors?))).collect();
    line(text, "  ", "ecc", &ecc.join(", "));
    let xid = told.xid.map(|xid| format!("{}, {} ago", xid.code, span(xid.secs_ago)));
    line(text, "  ", "xid", &xid.unwrap_or_default());
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use tessera_protocol::device::{DeviceKind, XidEvent};
    use tessera_protocol::ids::NodeId;

    /// A node without devices.
    pub(in crate::commands) fn node() -> NodeSummary {
        NodeSummary {
            node: NodeId(uuid::Uuid::from_u128(1)),
            name: "rack-1".into(),
            identity: 3,
            state: NodeState::Unfit,
            devices: Vec::new(),
            telemetry: Vec::new(),
            units_leased: 0,
            units_committed: 3,
            samples_per_second: 0.0,
            silent_secs: 2,
            build: "tessera".into(),
            note: String::new(),
            pool: Some("gpu".into()),
            since: 5,
            drained: false,
            busy: None,
        }
    }

    #[test]
    fn a_quarantined_device_says_why_and_what_ends_it() {
        let remedy = "run `tessera doctor`".to_owned();
        let device = DeviceInfo {
            slot: "cuda:0".into(),
            kind: DeviceKind::Cuda,
            name: "NVIDIA T".into(),
            parallelism: 40,
            memory_bytes: 8 << 30,
            cuda: Some(CudaInfo {
                compute_capability: (7, 5),
                start_millis: 1500,
                cubin: Some((7, 5)),
                ..CudaInfo::default()
            }),
            state: DeviceState::Quarantined { reason: "wrong results".into(), remedy },
        };
        let told = DeviceTelemetry {
            temperature: Some(81),
            xid: Some(XidEvent { code: 79, secs_ago: 5 }),
            ..DeviceTelemetry::default()
        };
        let idle = NodeSummary { devices: vec![device], telemetry: vec![told], ..node() };
        let node = NodeSummary { busy: Some(0.974), ..idle.clone() };
        let text = describe(&node);
        assert!(!describe(&idle).contains("time with work"), "it had no work");
        for expected in [
            "name        rack-1 #3",
            "pool        gpu",
            "busy        97 % of the time with work",
            "device      cuda:0: NVIDIA T",
            "  state     quarantined: wrong results; run `tessera doctor`",
            "  size      40 multiprocessors, 8.0 GiB",
            "  compute   7.5",
            "  start     1.5 s",
            "  kernels   installed for compute capability 7.5",
            "  now       81 °C",
            "  xid       79, 5 s ago",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in\n{text}");
        }
        assert!(!text.contains("note") && !text.contains("mig"), "{text}");
    }
}
