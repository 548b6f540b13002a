//! A farm on a stand: a coordinator, and nodes that are given a rack of fake GPUs.

use serde_json::Value;
use std::path::PathBuf;
use std::sync::OnceLock;
use tessera_fake_cuda::{Config, Device, Fault, Rack};
use tessera_support::farm::{Farm, library, rendered};

/// The picture of most tests: 24 units, each far below a second of interpreting.
pub(crate) const PICTURE: [&str; 10] =
    ["--size", "64x48", "--spp", "4", "--depth", "3", "--tile", "16", "--unit-samples", "2"];

/// The scene of all tests.
pub(crate) fn scene() -> PathBuf {
    library("cornell-box.gltf")
}

/// A coordinator, a rack, and the nodes that have it.
pub(crate) struct Stand {
    pub(crate) farm: Farm,
    pub(crate) rack: Rack,
    /// Seconds after which nodes that join end a worker that gets no further.
    pub(crate) watchdog_secs: u32,
    /// Variables of nodes that join.
    pub(crate) environment: Vec<(&'static str, &'static str)>,
}

impl Stand {
    /// A farm without a node, and a rack that lies ready.
    pub(crate) fn prepare(config: &Config) -> Stand {
        let rack = Rack::new(config).expect("a rack");
        let mut farm = Farm::prepare();
        farm.start_coordinator();
        Stand { farm, rack, watchdog_secs: 60, environment: Vec::new() }
    }

    /// One node `rack` that drives every device of a rack.
    pub(crate) fn start(config: &Config) -> Stand {
        let mut stand = Stand::prepare(config);
        stand.add_node("rack", "cuda");
        stand
    }

    /// A node joins that has the rack, with these devices.
    pub(crate) fn add_node(&mut self, name: &str, devices: &str) {
        let mut environment: Vec<_> =
            self.rack.environment().into_iter().map(|(name, value)| (name.into(), value)).collect();
        // The driver's cache of compiled kernels belongs to this farm alone.
        environment.push(("XDG_CACHE_HOME".into(), self.farm.folder().join("cache").into()));
        let more = self.environment.iter().map(|(name, value)| (name.into(), value.into()));
        environment.extend(more);
        let watchdog = self.watchdog_secs.to_string();
        let arguments = ["--device", devices, "--threads", "1", "--watchdog", &watchdog];
        self.farm.add_node_with(name, &arguments, environment);
    }

    /// What the coordinator knows of a node; null before it has joined.
    pub(crate) fn node(&self, name: &str) -> Value {
        let output = self.farm.run(&["nodes", name, "--json"]);
        serde_json::from_slice(&output.stdout).unwrap_or_default()
    }

    /// A device of the node `rack`: `ready`, `testing`, or why it is quarantined.
    pub(crate) fn standing(&self, device: usize) -> String {
        let state = &self.node("rack")["devices"][device]["state"];
        let reason =
            state["quarantined"]["reason"].as_str().map(|reason| format!("quarantined: {reason}"));
        reason.or_else(|| state.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Waits until a device stands so.
    pub(crate) fn wait_until(&self, device: usize, standing: &str) {
        let what = format!("device {device} to be {standing}");
        self.farm.wait_for(&what, |_| self.standing(device).starts_with(standing));
    }

    /// Renders a picture on the farm; its hash.
    pub(crate) fn render(&self, options: &[&str]) -> String {
        let job = self.farm.submit(&scene(), options);
        self.farm.hashes(&job).remove(0)
    }
}

/// The hash that [`PICTURE`] has on a CPU.
pub(crate) fn on_cpu() -> &'static str {
    static HASH: OnceLock<String> = OnceLock::new();
    HASH.get_or_init(|| rendered_on_cpu(&PICTURE))
}

/// The hash of any picture on a CPU.
pub(crate) fn rendered_on_cpu(options: &[&str]) -> String {
    rendered(&scene(), options)
}

/// A device that takes a little time for each launch, so that those of several overlap on few
/// processors.
pub(crate) fn device() -> Device {
    Device { pause_micros_per_launch: 4_000, ..Device::default() }
}

/// Two devices, of which the first has a fault.
pub(crate) fn with_fault(fault: Fault) -> Config {
    let mut config = Config::of(2, device());
    config.devices[0].faults.push(fault);
    config
}
