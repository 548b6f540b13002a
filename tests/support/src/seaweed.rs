//! A real S3 server (SeaweedFS) in a temporary folder, for one test: started, killed, stopped for a
//! while, restarted; never left behind.

use crate::farm::skipped;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Bucket that each has.
pub const BUCKET: &str = "films";
/// Id of the key that may read, write and list there, and nothing elsewhere.
pub const KEY: &str = "farm";
/// The key.
pub const SECRET: &str = "hush-hush";
/// Object by which it is seen that it has its objects.
const READY: &str = "ready";
/// How long a start may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often another one is tried.
const TRIES: usize = 5;
/// How long a command of its shell may take.
const SHELL_TIME: Duration = Duration::from_secs(10);
/// Ports of its parts.
const PORTS: usize = 8;

/// A running S3 server on loopback.
pub struct Seaweed {
    folder: Arc<tempfile::TempDir>,
    program: PathBuf,
    data: PathBuf,
    /// Of the master, the volumes, the filer and S3, each for HTTP and gRPC.
    ports: [u16; PORTS],
    server: Child,
}

/// Ports that are free now, below those that the system gives to connections.
fn free_ports() -> [u16; PORTS] {
    const FIRST: u32 = 20_000;
    const COUNT: u32 = 12_000;
    static TRIED: AtomicU32 = AtomicU32::new(0);
    let mut ports = Vec::new();
    while ports.len() < PORTS {
        // Test programs beside this one begin elsewhere.
        let next = std::process::id().wrapping_mul(97) + TRIED.fetch_add(1, Relaxed);
        let port = (FIRST + next % COUNT) as u16;
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            ports.push(port);
        }
    }
    ports.try_into().expect("as many")
}

impl Seaweed {
    /// Starts one with a bucket, if it is installed (`TESSERA_WEED`). `what`: what is left out
    /// otherwise.
    pub fn start(what: &str) -> Option<Self> {
        let named = std::env::var_os("TESSERA_WEED").map(PathBuf::from);
        let Some(mut program) = named.filter(|program| program.is_file()) else {
            skipped(&format!("{what}: SeaweedFS is not installed (TESSERA_WEED)"));
            return None;
        };
        let mut folder = Arc::new(tempfile::tempdir().expect("a temporary folder"));
        let identities = format!(
            r#"{{"identities":[{{"name":"farm","credentials":[{{"accessKey":"{KEY}",
            "secretKey":"{SECRET}"}}],
            "actions":["Read:{BUCKET}","Write:{BUCKET}","List:{BUCKET}"]}}]}}"#
        );
        std::fs::write(folder.path().join("s3.json"), identities).expect("a file");
        let mut tries = 0;
        loop {
            tries += 1;
            let data = folder.path().join(format!("data-{tries}"));
            std::fs::create_dir(&data).expect("a folder");
            let ports = free_ports();
            let server = spawn(&program, &data, &ports);
            let mut seaweed = Self { folder, program, data, ports, server };
            // Somebody else may have taken one of its ports meanwhile.
            let problem = match seaweed.begin() {
                Ok(()) => return Some(seaweed),
                Err(problem) => problem,
            };
            assert!(tries < TRIES, "it does not start: {problem}\n{}", seaweed.log());
            (folder, program) = seaweed.end();
        }
    }

    /// Waits until it works, and makes its bucket.
    fn begin(&mut self) -> Result<(), String> {
        self.wait()?;
        self.try_shell(&format!("s3.bucket.create -name {BUCKET}"))?;
        self.replace(READY, b"ready");
        Ok(())
    }

    /// Ends it, and gives back what another one needs.
    fn end(mut self) -> (Arc<tempfile::TempDir>, PathBuf) {
        self.kill();
        (self.folder.clone(), self.program.clone())
    }

    /// Waits until it listens. Fails if it has ended.
    fn wait(&mut self) -> Result<(), String> {
        let deadline = Instant::now() + PATIENCE;
        let answers = |port| TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
        while !answers(self.port()) {
            if Instant::now() >= deadline {
                return Err("it does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(100));
            if !matches!(self.server.try_wait(), Ok(None)) {
                return Err("it ended".to_owned());
            }
        }
        Ok(())
    }

    /// Runs a command of its shell, and returns what it prints.
    pub fn shell(&mut self, command: &str) -> String {
        let said = self.try_shell(command);
        said.unwrap_or_else(|problem| panic!("{command}: {problem}\n{}", self.log()))
    }

    fn try_shell(&mut self, command: &str) -> Result<String, String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.run_shell(command);
            if said.is_ok() || Instant::now() >= deadline {
                return said;
            }
            if !matches!(self.server.try_wait(), Ok(None)) {
                return Err("it ended".to_owned());
            }
            // Its parts find each other a moment after they listen.
            std::thread::sleep(Duration::from_millis(300));
        }
    }

    /// Runs its shell once. One that hangs, because a part is not there, is ended.
    fn run_shell(&self, command: &str) -> Result<String, String> {
        let mut shell = Command::new(&self.program)
            .current_dir(self.folder.path())
            .args(["shell", "-master"])
            .arg(format!("127.0.0.1:{}.{}", self.ports[0], self.ports[1]))
            .args(["-filer", &format!("127.0.0.1:{}.{}", self.ports[4], self.ports[5])])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("its shell runs");
        let mut input = shell.stdin.take().expect("a pipe");
        writeln!(input, "lock\n{command}\nunlock\nexit").expect("a command");
        drop(input);
        let deadline = Instant::now() + SHELL_TIME;
        while matches!(shell.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                // It may have ended at this moment.
                let _ = shell.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let output = shell.wait_with_output().expect("its shell ends");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complained = String::from_utf8_lossy(&output.stderr).into_owned();
        match output.status.success() && !complained.contains("error:") {
            true => Ok(said),
            false => Err(format!("{said}{complained}")),
        }
    }

    /// Lets it take nothing more: its bucket has a quota, and more bytes than that.
    pub fn fill(&mut self) {
        // It compresses what can be.
        let bytes =
            (0u32..3 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8 ^ at as u8);
        self.replace("filler", &bytes.collect::<Vec<u8>>());
        self.shell(&format!("s3.bucket.quota -name {BUCKET} -op=set -sizeMB=1"));
        let deadline = Instant::now() + PATIENCE;
        // Its master hears of new bytes every few seconds.
        while !self.shell("s3.bucket.quota.enforce -apply").contains("read only") {
            assert!(Instant::now() < deadline, "it is not full\n{}", self.log());
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Ends that.
    pub fn make_room(&mut self) {
        self.shell(&format!("s3.bucket.quota -name {BUCKET} -op=remove"));
        self.shell("s3.bucket.quota.enforce -apply");
    }

    /// The end of what it has logged.
    pub fn log(&self) -> String {
        let text = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(15)..].join("\n")
    }

    /// Its port on loopback for S3.
    pub fn port(&self) -> u16 {
        self.ports[6]
    }

    /// The address of blobs in its bucket, below a prefix.
    pub fn address(&self, prefix: &str) -> String {
        self.address_at(self.port(), prefix)
    }

    /// The address, by way of another port.
    pub fn address_at(&self, port: u16, prefix: &str) -> String {
        format!("s3://{BUCKET}/{prefix}?endpoint=http://127.0.0.1:{port}")
    }

    /// Replaces the bytes of an object, as a broken or hostile store would. Its filer takes a form.
    pub fn replace(&self, name: &str, bytes: &[u8]) {
        let about = "Content-Disposition: form-data; name=\"file\"; filename=\"x\"";
        let head = format!("--x\r\n{about}\r\n\r\n");
        let end = "\r\n--x--\r\n";
        let length = head.len() + bytes.len() + end.len();
        let request = format!(
            "POST /buckets/{BUCKET}/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\
             Content-Type: multipart/form-data; boundary=x\r\n\
             Content-Length: {length}\r\n\r\n{head}"
        );
        let answer = self.ask_filer(&[request.as_bytes(), bytes, end.as_bytes()].concat());
        assert!(answer.starts_with("HTTP/1.1 201"), "{name}: {answer}");
    }

    /// Names of what is in a folder of its bucket, in order.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let request = format!(
            "GET /buckets/{BUCKET}/{folder}/?limit=10000 HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Accept: application/json\r\nConnection: close\r\n\r\n"
        );
        let answer = self.ask_filer(request.as_bytes());
        let path = format!("/buckets/{BUCKET}/{folder}/");
        let names = answer
            .split("\"FullPath\":\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next()?.strip_prefix(&path).map(str::to_owned));
        names.collect()
    }

    /// Reads an object, past the key.
    pub fn read(&self, name: &str) -> Vec<u8> {
        let request = format!("GET /buckets/{BUCKET}/{name} HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n");
        let mut answer = Vec::new();
        let address = (Ipv4Addr::LOCALHOST, self.ports[4]);
        let mut stream = TcpStream::connect(address).expect("its filer listens");
        stream.write_all(request.as_bytes()).expect("a request");
        stream.read_to_end(&mut answer).expect("an answer");
        let head = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
        answer.split_off(head + 4)
    }

    /// Deletes an object, past the key.
    pub fn delete(&self, name: &str) {
        let request = format!(
            "DELETE /buckets/{BUCKET}/{name} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Connection: close\r\n\r\n"
        );
        let answer = self.ask_filer(request.as_bytes());
        assert!(answer.starts_with("HTTP/1.1 204"), "{name}: {answer}");
    }

    /// Kills it, and starts it again with what it had.
    pub fn crash_and_restart(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills it.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }

    /// Starts it again after a kill, and waits until it has its objects again.
    pub fn restart(&mut self) {
        self.server = spawn(&self.program, &self.data, &self.ports);
        self.wait().unwrap_or_else(|problem| panic!("{problem}\n{}", self.log()));
        let deadline = Instant::now() + PATIENCE;
        let request = format!(
            "GET /buckets/{BUCKET}/{READY} HTTP/1.1\r\nHost: 127.0.0.1\r\n\
             Connection: close\r\n\r\n"
        );
        while !self.ask_filer(request.as_bytes()).starts_with("HTTP/1.1 200") {
            assert!(Instant::now() < deadline, "it does not come back: {}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Sends a request to its filer, which asks nobody who they are. Returns the answer, or as much
    /// of it as came.
    fn ask_filer(&self, request: &[u8]) -> String {
        let mut answer = Vec::new();
        if let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.ports[4])) {
            // A connection that breaks has no answer.
            let _ = stream.write_all(request).and_then(|()| stream.read_to_end(&mut answer));
        }
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(self.server.id() as i32).expect("a process");
        kill_process(pid, signal).expect("a signal");
    }

    /// Stops it in the middle of what it does.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Lets it go on.
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }
}

impl Drop for Seaweed {
    fn drop(&mut self) {
        self.kill();
    }
}

fn spawn(program: &Path, data: &Path, ports: &[u16; PORTS]) -> Child {
    let folder = data.parent().expect("a folder");
    let log = std::fs::File::options().create(true).append(true).open(folder.join("log"));
    let log = log.expect("a log");
    let names = [
        "-master.port",
        "-master.port.grpc",
        "-volume.port",
        "-volume.port.grpc",
        "-filer.port",
        "-filer.port.grpc",
        "-s3.port",
        "-s3.port.grpc",
    ];
    let mut command = Command::new(program);
    command
        .current_dir(folder)
        .args(["-logtostderr", "server", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"])
        .arg(format!("-dir={}", data.display()))
        .args(["-filer", "-s3", "-s3.config=s3.json", "-s3.iam=false"])
        .args(["-s3.port.iceberg=0", "-s3.port.lance=0"])
        .args(["-master.volumeSizeLimitMB=64", "-volume.max=60", "-master.telemetry=false"]);
    for (name, port) in names.iter().zip(ports) {
        command.arg(format!("{name}={port}"));
    }
    command.stdin(Stdio::null()).stdout(log.try_clone().expect("a log")).stderr(log);
    command.spawn().expect("SeaweedFS runs")
}
