//! Checks the devices: they open, and they render the standard scenes to the known films.

use super::Finding;
use crate::commands::node_detail::origin_of_kernels;
use crate::standard::Frame;
use crate::table::{bytes, counted};
use std::time::Instant;
use tessera_node::device::cuda::{find_compiler, probe};
use tessera_node::device::worker::Refusal;
use tessera_node::device::{self, Device, Devices};
use tessera_node::{Config, DeviceSpec};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_transport::error::chain;

/// Checks the driver, and how far the processes that use it are confined. Returns nothing if no GPU
/// is wanted.
pub(crate) fn driver(config: &Config) -> Vec<Finding> {
    let explicit = config.devices.iter().any(|spec| matches!(spec, DeviceSpec::Cuda(_)));
    if !explicit && !config.devices.contains(&DeviceSpec::Auto) {
        return Vec::new();
    }
    let without = |text: String, refused: bool| match (explicit, refused) {
        (true, _) => Finding::fail(
            "driver",
            text,
            "install what is missing, or render on the CPU: --device cpu",
        ),
        (false, true) => {
            Finding::warn("driver", format!("{text}; rendering on the CPU"), "GPUs are not used")
        }
        (false, false) => Finding::ok("driver", format!("{text}; rendering on the CPU")),
    };
    let probed = match probe(config) {
        Ok(probed) => probed,
        Err(error) => return vec![without(chain(&error), true)],
    };
    let driver = match &probed.devices {
        Ok(found) => {
            let names: Vec<String> = found.iter().map(|device| device.name.clone()).collect();
            Finding::ok(
                "driver",
                format!("it finds {}: {}", counted(found.len() as u64, "device"), names.join(", ")),
            )
        }
        Err(refusal) => without(refusal.to_string(), !matches!(refusal, Refusal::NoDriver)),
    };
    let confined = probed.sandbox.to_string();
    let workers = if probed.sandbox.holds() {
        Finding::ok("workers", confined)
    } else {
        Finding::warn(
            "workers",
            confined,
            "a kernel with Landlock and seccomp (5.13 or newer) confines them wholly",
        )
    };
    vec![driver, workers]
}

/// Opens the devices that a node with these settings would use. The finding says why there are
/// none.
pub(crate) fn open(config: &Config) -> Result<Devices, Finding> {
    device::open(config).map_err(|error| {
        Finding::fail(
            "device",
            chain(&error),
            "choose others, such as `--device cpu`; `auto` takes what works",
        )
    })
}

/// Returns whether a device is a GPU.
pub(crate) fn is_gpu(device: &dyn Device) -> bool {
    device.info().kind != DeviceKind::Cpu
}

/// Describes a device in a few words.
pub(crate) fn describe(info: &DeviceInfo) -> String {
    let part = if info.kind == DeviceKind::Cpu { "thread" } else { "multiprocessor" };
    let parts = counted(info.parallelism.into(), part);
    let mut text = format!("{}: {}, {parts}, {}", info.slot, info.name, bytes(info.memory_bytes));
    if let Some(cuda) = &info.cuda {
        let (major, minor) = cuda.compute_capability;
        text += &format!(", compute capability {major}.{minor}, driver {}", cuda.driver);
        text += &format!(", {} at {}", cuda.uuid, cuda.pcie);
        if let Some(profile) = &cuda.mig {
            text += &format!(", MIG slice {profile}");
        }
        let (start, kernels) = (f64::from(cuda.start_millis) / 1e3, origin_of_kernels(cuda));
        text += &format!(", started in {start:.1} s, kernels {kernels}");
    }
    text
}

/// Renders the frames whose films are known, and compares every bit.
pub(crate) fn known_answers(device: &dyn Device, frames: &[Frame]) -> Finding {
    let info = device.info();
    let what = describe(&info);
    if let DeviceState::Quarantined { reason, remedy } = info.state {
        return Finding::fail("device", format!("{what}: {reason}"), remedy);
    }
    let start = Instant::now();
    let mut right = 0;
    for frame in frames {
        let film = match frame.render(device) {
            Ok(film) => film,
            Err(error) => {
                let text = format!("{what}: {}: {}", frame.name, chain(&error));
                return Finding::fail(
                    "device",
                    text,
                    "leave it out: `--device` names those to use",
                );
            }
        };
        match frame.is_right(&film) {
            Some(true) => right += 1,
            Some(false) => {
                let text = format!("{what}: {} came out with wrong bits", frame.name);
                return Finding::fail(
                    "device",
                    text,
                    "it computes wrongly; leave it out and have it checked",
                );
            }
            None => {}
        }
    }
    let took = start.elapsed().as_secs_f64();
    Finding::ok("device", format!("{what}; {right} known answers right in {took:.2} s"))
}

/// NVIDIA's run-time compiler: users' own kernels need it somewhere, and a node may be the place.
/// Asked of a worker, as a node does it: it may bring down the process that opens it, and a worker
/// may not see all that this process sees.
pub(crate) fn compiler(config: &Config, gpu: bool) -> Finding {
    let hint = "only compute jobs that come as CUDA C++ instead of PTX need it here";
    match find_compiler(config) {
        Ok(Ok(found)) => {
            let (major, minor) = found.version;
            Finding::ok("nvrtc", format!("{major}.{minor} at `{}`", found.path.display()))
        }
        Ok(Err(_)) if !gpu => Finding::ok("nvrtc", "not found, and not needed without a GPU"),
        Ok(Err(reason)) => Finding::warn("nvrtc", reason, hint),
        Err(error) => {
            Finding::warn("nvrtc", format!("it cannot be opened: {}", chain(&error)), hint)
        }
    }
}
