//! A farm of real processes in a temporary folder: starts, kills and restarts them; never leaves
//! one behind.

use crate::{ports, root};
use rustix::process::{Pid, Signal, kill_process};
use std::ffi::OsString;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long anything may take here before the test fails: generous, since machines are slow and
/// shared.
const PATIENCE: Duration = Duration::from_secs(240);

/// The program under test: where cargo says that it is, or beside the folder of the test program.
pub fn tessera() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| {
        let built = || {
            let test = std::env::current_exe().expect("the path of this program");
            let folder = test.ancestors().nth(2).expect("target/release/deps/PROGRAM");
            folder.join("tessera").to_str().expect("a UTF-8 path").to_owned()
        };
        std::env::var("CARGO_BIN_EXE_tessera").unwrap_or_else(|_| built())
    })
}

/// A scene of the project's own library.
pub fn library(name: &str) -> PathBuf {
    root().join("scenes/library").join(name)
}

/// Says what is left out, and why: straight to standard error, since a passing test's own output is
/// not shown.
pub fn skipped(what: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "SKIPPED: {what}");
}

/// Whether tests that take a minute each run: in `.ci/nightly`. Says by name what is left out.
pub fn takes_minutes(what: &str) -> bool {
    let runs = std::env::var_os("TESSERA_MINUTES").is_some();
    if !runs {
        skipped(&format!("{what}: it takes a minute, and TESSERA_MINUTES is not set"));
    }
    runs
}

/// The folder of shared scenes, if this checkout has one beside it; says so by name where it does
/// not.
pub fn shared_scenes() -> Option<PathBuf> {
    let folder = std::env::var_os("TESSERA_SCENES").unwrap_or("../shared/scenes".into());
    let folder = root().join(folder);
    if folder.is_dir() {
        return Some(folder);
    }
    skipped(&format!("{} is not there", folder.display()));
    None
}

/// The pixels of a scene's picture as one process renders it on the CPU, with options of `render`.
pub fn rendered(scene: &Path, options: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let out = folder.path().join("picture.exr");
    let output = Command::new(tessera())
        .arg("render")
        .arg(scene)
        .args(options)
        .args(["--device", "cpu", "-q", "-o"])
        .arg(&out)
        .output()
        .expect("the binary runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    pixels_sha256(&out)
}

/// Sends a signal by its name, `TERM` say, to a process that has not been waited for.
///
/// # Panics
/// If the signal is not one that tests send, or cannot be sent.
pub fn send_signal(process: u32, name: &str) {
    let signal = match name {
        "ABRT" => Signal::ABORT,
        "CONT" => Signal::CONT,
        "HUP" => Signal::HUP,
        "INT" => Signal::INT,
        "KILL" => Signal::KILL,
        "STOP" => Signal::STOP,
        "TERM" => Signal::TERM,
        _ => panic!("SIG{name} is none that tests send"),
    };
    let process = Pid::from_raw(process.cast_signed()).expect("a process's number");
    kill_process(process, signal).unwrap_or_else(|error| panic!("SIG{name}: {error}"));
}

/// A process that is killed when its owner goes.
pub struct Process(Child);

impl Process {
    /// Its process id.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Sends a signal by its name, `TERM` say.
    pub fn signal(&self, name: &str) {
        send_signal(self.id(), name);
    }

    /// Waits for it to end by itself; its exit status.
    pub fn wait(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        while Instant::now() < deadline {
            if let Ok(Some(status)) = self.0.try_wait() {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        None
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// SIGKILL: no chance to tidy up.
    pub fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }

    /// SIGTERM, and waits for the end; true if it ended by itself with success.
    pub fn terminate(&mut self) -> bool {
        self.signal("TERM");
        let status = self.wait();
        self.kill();
        status == Some(0)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where a process runs: on this machine as it is, or behind a command that puts what follows it
/// elsewhere.
#[derive(Clone, Debug, Default)]
pub struct Host(pub Vec<OsString>);

impl Host {
    /// A program there.
    pub fn command(&self, program: &str) -> Command {
        match self.0.split_first() {
            None => Command::new(program),
            Some((first, rest)) => {
                let mut command = Command::new(first);
                command.args(rest).arg(program);
                command
            }
        }
    }
}

/// A coordinator's folder and port, and the nodes that have joined it.
pub struct Farm {
    folder: tempfile::TempDir,
    /// What commands, coordinators and nodes run that are started next.
    program: PathBuf,
    /// Of the coordinator and of users.
    host: Host,
    address: SocketAddr,
    coordinator: Option<Process>,
    nodes: Vec<Node>,
}

/// A node that has joined, running or not.
struct Node {
    name: String,
    host: Host,
    /// Its arguments beyond those that every node of a farm has.
    arguments: Vec<String>,
    environment: Vec<(OsString, OsString)>,
    process: Option<Process>,
}

impl Farm {
    /// A coordinator and this many nodes of `threads` threads each.
    pub fn start(nodes: usize, threads: u32) -> Farm {
        let mut farm = Farm::prepare();
        farm.start_with(nodes, threads);
        farm
    }

    /// A folder and a port; nothing runs yet.
    pub fn prepare() -> Farm {
        Farm::prepare_at(Ipv4Addr::LOCALHOST.into())
    }

    /// The same, at another address of this machine.
    pub fn prepare_at(ip: IpAddr) -> Farm {
        Farm::prepare_on(Host::default(), ports::udp(ip))
    }

    /// The same, on a host where this address and port are free.
    pub fn prepare_on(host: Host, address: SocketAddr) -> Farm {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let program = tessera().into();
        Farm { folder, program, host, address, coordinator: None, nodes: Vec::new() }
    }

    /// Starts what [`Self::prepare`] has not.
    pub fn start_with(&mut self, nodes: usize, threads: u32) {
        self.start_coordinator();
        for index in 0..nodes {
            self.add_node(&format!("node-{index}"), threads);
        }
    }

    /// What is started from now on is of this program.
    pub fn use_program(&mut self, program: &Path) {
        program.clone_into(&mut self.program);
    }

    /// The farm's own folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The coordinator's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder().join("coordinator")
    }

    /// Where the coordinator listens.
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// `tessera` with this farm's environment and nobody else's.
    pub fn command(&self, arguments: &[&str]) -> Command {
        self.command_on(&self.host, arguments)
    }

    fn command_on(&self, host: &Host, arguments: &[&str]) -> Command {
        let mut command = host.command(self.program.to_str().expect("a UTF-8 path"));
        command.args(arguments);
        self.environment(&mut command);
        command
    }

    fn environment(&self, command: &mut Command) {
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("TESSERA_")) {
            command.env_remove(name);
        }
        command
            .env("XDG_CONFIG_HOME", self.folder().join("config"))
            .env("TESSERA_COORDINATOR", self.address())
            .env("TESSERA_IDENTITY", self.data().join("admin"))
            // Farms of tests are many on a machine. Those that need pages give `--http`.
            .env("TESSERA_HTTP", "off")
            .current_dir(self.folder())
            .stdin(Stdio::null());
    }

    /// Starts a process whose output goes to a log of this name.
    pub fn spawn(&self, mut command: Command, log: &str) -> Process {
        let path = self.folder().join(format!("{log}.log"));
        let file =
            std::fs::OpenOptions::new().create(true).append(true).open(path).expect("a log file");
        command.stdout(Stdio::null()).stderr(file);
        Process(command.spawn().expect("the binary starts"))
    }

    /// Starts the coordinator (again), and waits until it answers.
    pub fn start_coordinator(&mut self) {
        let command = self.coordinator_command();
        self.run_coordinator(command);
    }

    /// The coordinator's command line.
    pub fn coordinator_command(&self) -> Command {
        let data = self.data();
        let data = data.to_str().expect("a UTF-8 path");
        self.command(&["coordinator", "--data", data, "--listen", &self.address()])
    }

    /// Runs a coordinator by this command line, and waits until it answers.
    pub fn run_coordinator(&mut self, mut command: Command) {
        self.environment(&mut command);
        self.coordinator = Some(self.spawn(command, "coordinator"));
        self.wait_for("the coordinator to answer", |farm| {
            farm.command(&["jobs"]).output().is_ok_and(|o| o.status.success())
        });
    }

    /// Starts the coordinator (again); false if it ends instead of answering.
    pub fn try_start_coordinator(&mut self) -> bool {
        let mut process = self.spawn(self.coordinator_command(), "coordinator");
        let deadline = Instant::now() + PATIENCE;
        while process.is_running() && Instant::now() < deadline {
            if self.command(&["jobs"]).output().is_ok_and(|output| output.status.success()) {
                self.coordinator = Some(process);
                return true;
            }
            std::thread::sleep(Duration::from_millis(30));
        }
        false
    }

    /// A signal to the coordinator, by its name.
    pub fn signal_coordinator(&self, name: &str) {
        self.coordinator.as_ref().expect("a coordinator that runs").signal(name);
    }

    /// A signal to a node, by its name.
    pub fn signal_node(&self, index: usize, name: &str) {
        self.nodes[index].process.as_ref().expect("a node that runs").signal(name);
    }

    /// The process id of the coordinator, which runs.
    pub fn coordinator_process(&self) -> u32 {
        self.coordinator.as_ref().expect("a coordinator that runs").id()
    }

    /// The process id of a node that runs.
    pub fn node_process(&self, index: usize) -> u32 {
        self.nodes[index].process.as_ref().expect("a node that runs").id()
    }

    /// SIGKILL to the coordinator.
    pub fn kill_coordinator(&mut self) {
        self.coordinator = None;
    }

    /// SIGTERM to the coordinator; true if it ended with success.
    pub fn stop_coordinator(&mut self) -> bool {
        self.coordinator.take().is_some_and(|mut process| process.terminate())
    }

    /// A node of CPU threads joins with a fresh token.
    pub fn add_node(&mut self, name: &str, threads: u32) {
        self.add_node_with(
            name,
            &["--device", "cpu", "--threads", &threads.to_string()],
            Vec::new(),
        );
    }

    /// A node joins with a fresh token, these arguments and more environment.
    pub fn add_node_with(
        &mut self,
        name: &str,
        arguments: &[&str],
        environment: Vec<(OsString, OsString)>,
    ) {
        self.invite_with(name, arguments, environment);
        self.start_node(self.nodes.len() - 1);
    }

    /// A node of one CPU thread joins from another host.
    pub fn add_node_on(&mut self, host: Host, name: &str) {
        self.invite(name, 1);
        if let Some(node) = self.nodes.last_mut() {
            node.host = host;
        }
        self.start_node(self.nodes.len() - 1);
    }

    /// Makes a token for a node of CPU threads that is yet to be started; a `--device` on its
    /// command line wins.
    pub fn invite(&mut self, name: &str, threads: u32) {
        let cpu = ("TESSERA_DEVICE".into(), "cpu".into());
        self.invite_with(name, &["--threads", &threads.to_string()], vec![cpu]);
    }

    fn invite_with(
        &mut self,
        name: &str,
        arguments: &[&str],
        environment: Vec<(OsString, OsString)>,
    ) {
        let token = self.text(&["token", "create", "--role", "node"]);
        std::fs::write(self.folder().join(format!("{name}.token")), token).expect("a token file");
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        let (name, host) = (name.to_owned(), Host::default());
        self.nodes.push(Node { name, host, arguments, environment, process: None });
    }

    /// Starts a node (again) in its own folder.
    pub fn start_node(&mut self, index: usize) {
        let process = self.spawn(self.node_command(index), &self.nodes[index].name);
        self.nodes[index].process = Some(process);
    }

    /// A node's command line.
    pub fn node_command(&self, index: usize) -> Command {
        let Node { name, host, arguments, environment, .. } = &self.nodes[index];
        let token = self.folder().join(format!("{name}.token"));
        let data = self.folder().join(name);
        let mut command = self.command_on(host, &["node", "--name", name]);
        command
            .arg("--token-file")
            .arg(token)
            .arg("--data")
            .arg(data)
            .args(arguments)
            .envs(environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// SIGKILL to a node.
    pub fn kill_node(&mut self, index: usize) {
        self.nodes[index].process = None;
    }

    /// SIGTERM to a node; true if it drained and ended with success.
    pub fn drain_node(&mut self, index: usize) -> bool {
        self.nodes[index].process.take().is_some_and(|mut process| process.terminate())
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the binary runs")
    }

    /// Runs a command that must succeed; its trimmed standard output.
    pub fn text(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "tessera {}: {}\n{error}",
            arguments.join(" "),
            output.status
        );
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// Enrols a user of this role; the folder of the identity.
    pub fn enrol(&self, role: &str, who: &str) -> String {
        let token = self.text(&["token", "create", "--role", role]);
        let file = self.folder().join(format!("{who}.token"));
        std::fs::write(&file, token).expect("a token file");
        let folder = self.folder().join(who).display().to_string();
        let file = file.display().to_string();
        self.text(&["enrol", "--token-file", &file, "--name", who, "--identity", &folder]);
        folder
    }

    /// Submits a scene; the job's id.
    pub fn submit(&self, scene: &Path, options: &[&str]) -> String {
        let mut arguments = vec!["submit", scene.to_str().expect("a UTF-8 path")];
        arguments.extend_from_slice(options);
        self.text(&arguments)
    }

    /// How many units of a job are committed.
    pub fn units_committed(&self, job: &str) -> u64 {
        let job: serde_json::Value =
            serde_json::from_str(&self.text(&["job", job, "--json"])).expect("JSON");
        job["summary"]["units_committed"].as_u64().expect("a count")
    }

    /// Waits for a job's end and fetches its frames; the pixel hash of each frame file, in order of
    /// its name.
    pub fn hashes(&self, job: &str) -> Vec<String> {
        self.text(&["wait", job]);
        let folder = self.folder().join(format!("out-{job}"));
        self.text(&["fetch", job, "-o", folder.to_str().expect("a UTF-8 path")]);
        let mut files: Vec<PathBuf> = std::fs::read_dir(&folder)
            .expect("fetched frames")
            .map(|entry| entry.expect("a folder entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "exr"))
            .collect();
        files.sort();
        assert!(!files.is_empty(), "no frame was fetched");
        files.iter().map(|path| pixels_sha256(path)).collect()
    }

    /// Waits until something holds.
    pub fn wait_for(&self, what: &str, mut holds: impl FnMut(&Farm) -> bool) {
        let deadline = Instant::now() + PATIENCE;
        while !holds(self) {
            assert!(Instant::now() < deadline, "waited in vain for {what}\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// The ends of all logs, for a failure's message.
    pub fn logs(&self) -> String {
        let mut all = String::new();
        let names =
            ["coordinator"].into_iter().chain(self.nodes.iter().map(|node| node.name.as_str()));
        for name in names {
            let text = std::fs::read_to_string(self.folder().join(format!("{name}.log")))
                .unwrap_or_default();
            let from = text.char_indices().rev().nth(3000).map_or(0, |(index, _)| index);
            all.push_str(&format!("--- {name}\n{}\n", &text[from..]));
        }
        all
    }
}

/// SHA-256 of a frame's 32-bit float RGB, row by row, little endian: read back from the EXR.
pub fn pixels_sha256(path: &Path) -> String {
    use sha2::Digest;
    let image = exr::prelude::read_first_rgba_layer_from_file(
        path,
        |size, _| (size.width(), vec![[0f32; 3]; size.width() * size.height()]),
        |(width, pixels), position, (r, g, b, _): (f32, f32, f32, f32)| {
            pixels[position.y() * *width + position.x()] = [r, g, b];
        },
    )
    .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut hasher = sha2::Sha256::new();
    for value in image.layer_data.channel_data.pixels.1.iter().flatten() {
        hasher.update(value.to_le_bytes());
    }
    hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
