//! A coordinator and nodes as processes in a temporary folder, each node with a rack of its own;
//! all of it goes with this value.

use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tessera_fake_cuda::{Config, Device, Rack};
use tessera_support::ports;

/// How long anything may take before the test fails: generous, since machines are slow and shared.
const PATIENCE: Duration = Duration::from_secs(300);

/// Says what is left out, and why: straight to standard error, since a passing test's own output is
/// not shown.
pub(crate) fn not_run(what: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "NOT RUN: {what}");
}

/// A file of the examples.
pub(crate) fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/compute").join(name);
    path.to_str().unwrap().to_owned()
}

/// A file of these tests.
pub(crate) fn kernel(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/compute/kernels").join(name);
    path.to_str().unwrap().to_owned()
}

/// A fake GPU that takes some milliseconds for a launch, so that a kill meets a node at work.
fn device() -> Device {
    Device { memory: 512 << 20, pause_micros_per_launch: 20_000, ..Device::default() }
}

struct Node {
    name: String,
    rack: Option<Rack>,
    /// Where it looks for NVRTC, if not where the others do.
    nvrtc: Option<PathBuf>,
    process: Option<Child>,
}

/// A farm.
pub(crate) struct Farm {
    folder: tempfile::TempDir,
    port: u16,
    coordinator: Option<Child>,
    nodes: Vec<Node>,
}

impl Drop for Farm {
    fn drop(&mut self) {
        let nodes = self.nodes.iter_mut().filter_map(|node| node.process.as_mut());
        for child in nodes.chain(&mut self.coordinator) {
            end(child);
        }
    }
}

fn end(child: &mut Child) {
    // It may have ended already.
    let _ = child.kill();
    let _ = child.wait();
}

impl Farm {
    /// A coordinator, and so many nodes with a fake GPU each.
    pub(crate) fn start(gpu_nodes: usize) -> Self {
        Self::start_with(gpu_nodes, |_| ())
    }

    /// The same with a coordinator whose command is changed.
    pub(crate) fn start_with(gpu_nodes: usize, change: impl FnOnce(&mut Command)) -> Self {
        let port = ports::udp(Ipv4Addr::LOCALHOST.into()).port();
        let folder = tempfile::tempdir().unwrap();
        let mut farm = Self { folder, port, coordinator: None, nodes: Vec::new() };
        let data = farm.path("coordinator");
        let listen = format!("127.0.0.1:{port}");
        let mut command = farm.command(&["coordinator", "--data", &data, "--listen", &listen]);
        change(&mut command);
        farm.coordinator = Some(farm.spawn(&mut command, "coordinator"));
        farm.wait_for("the coordinator to answer", |farm| farm.run(&["jobs"]).status.success());
        for index in 0..gpu_nodes {
            farm.add_gpu_node(&format!("gpu-{index}"));
        }
        farm
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().join(name).to_str().unwrap().to_owned()
    }

    /// `tessera` with this farm's environment.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tessera"));
        command.args(arguments);
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
            command.env_remove(name);
        }
        if let Some(nvrtc) = std::env::var_os("TESSERA_NVRTC") {
            command.env("TESSERA_NVRTC", nvrtc);
        }
        command
            .env("XDG_CONFIG_HOME", self.path("config"))
            .env("XDG_CACHE_HOME", self.path("cache"))
            .env("TESSERA_COORDINATOR", format!("127.0.0.1:{}", self.port))
            .env("TESSERA_IDENTITY", self.path("coordinator/admin"))
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    fn spawn(&self, command: &mut Command, log: &str) -> Child {
        let path = self.path(&format!("{log}.log"));
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        command.stdout(Stdio::null()).stderr(file).spawn().unwrap()
    }

    fn add_gpu_node(&mut self, name: &str) {
        let rack = Rack::new(&Config::of(1, device())).unwrap();
        self.add(name, Some(rack), None);
    }

    /// A node with a fake GPU that looks for NVRTC there and nowhere else.
    pub(crate) fn add_gpu_node_with(&mut self, name: &str, nvrtc: PathBuf) {
        let rack =
            Rack::new(&Config::of(1, Device { memory: 512 << 20, ..Device::default() })).unwrap();
        self.add(name, Some(rack), Some(nvrtc));
    }

    /// A coordinator, and a node whose fake GPU takes no processor for a kernel that never ends.
    pub(crate) fn start_for_endless_kernels() -> Self {
        let mut farm = Self::start(0);
        farm.add_node_of("gpu-0", Device { steps_max: 1 << 26, ..device() });
        farm
    }

    /// A node with this fake GPU.
    pub(crate) fn add_node_of(&mut self, name: &str, device: Device) {
        let rack = Rack::new(&Config::of(1, device)).unwrap();
        self.add(name, Some(rack), None);
    }

    /// A node with a rack of its own.
    pub(crate) fn add_gpu_node_of(&mut self, name: &str, config: &Config) {
        self.add(name, Some(Rack::new(config).unwrap()), None);
    }

    pub(crate) fn add_cpu_node(&mut self, name: &str) {
        self.add(name, None, None);
    }

    fn add(&mut self, name: &str, rack: Option<Rack>, nvrtc: Option<PathBuf>) {
        let token = self.text(&["token", "create", "--role", "node"]);
        std::fs::write(self.path(&format!("{name}.token")), token).unwrap();
        self.nodes.push(Node { name: name.to_owned(), rack, nvrtc, process: None });
        self.start_node(self.nodes.len() - 1);
    }

    /// Starts a node, again if it was killed.
    pub(crate) fn start_node(&mut self, index: usize) {
        let Node { name, rack, nvrtc, .. } = &self.nodes[index];
        let (token, data) = (self.path(&format!("{name}.token")), self.path(name));
        let device = if rack.is_some() { "cuda" } else { "cpu" };
        let mut command = self.command(&[
            "node",
            "--device",
            device,
            "--name",
            name,
            "--token-file",
            &token,
            "--data",
            &data,
        ]);
        if let Some(rack) = rack {
            rack.lend_to(&mut command);
        } else {
            command.args(["--threads", "2"]);
        }
        if let Some(nvrtc) = nvrtc {
            command.env("TESSERA_NVRTC", nvrtc);
        }
        let log = name.clone();
        let process = self.spawn(&mut command, &log);
        self.nodes[index].process = Some(process);
    }

    /// SIGKILL.
    pub(crate) fn kill_node(&mut self, index: usize) {
        if let Some(mut process) = self.nodes[index].process.take() {
            end(&mut process);
        }
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs a command that must succeed; its trimmed standard output.
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "tessera {}: {}\n{error}\n{}",
            arguments.join(" "),
            output.status,
            self.logs()
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Runs a command that must fail; its exit status and standard error.
    pub(crate) fn failure(&self, arguments: &[&str]) -> (i32, String) {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "tessera {} succeeded\n{error}", arguments.join(" "));
        (output.status.code().unwrap_or(-1), error)
    }

    /// Every node is ready, and so are all its devices.
    pub(crate) fn assert_in_service(&self) {
        let nodes: serde_json::Value =
            serde_json::from_str(&self.text(&["nodes", "--json"])).unwrap();
        for node in nodes.as_array().unwrap() {
            assert_eq!(node["state"], "ready", "{node}\n{}", self.logs());
            for device in node["devices"].as_array().unwrap() {
                assert_eq!(device["state"], "ready", "{device}\n{}", self.logs());
            }
        }
    }

    /// Waits until every node is ready.
    pub(crate) fn wait_until_ready(&self) {
        self.wait_for("the nodes to be ready", |farm| {
            let output = farm.run(&["nodes", "--json"]);
            let nodes: serde_json::Value =
                serde_json::from_slice(&output.stdout).unwrap_or_default();
            let nodes = nodes.as_array().cloned().unwrap_or_default();
            nodes.len() == farm.nodes.len() && nodes.iter().all(|node| node["state"] == "ready")
        });
    }

    pub(crate) fn wait_for(&self, what: &str, mut holds: impl FnMut(&Farm) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited in vain for {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The ends of all logs.
    pub(crate) fn logs(&self) -> String {
        let names =
            ["coordinator"].into_iter().chain(self.nodes.iter().map(|node| node.name.as_str()));
        let end_of = |name: &str| {
            let text =
                std::fs::read_to_string(self.path(&format!("{name}.log"))).unwrap_or_default();
            let from = text.char_indices().rev().nth(3000).map_or(0, |(index, _)| index);
            format!("--- {name}\n{}\n", &text[from..])
        };
        names.map(end_of).collect()
    }

    /// The bytes of a file in the farm's folder.
    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        std::fs::read(PathBuf::from(self.path(name))).unwrap()
    }
}
