//! A real collector and what stands behind it: Rotel takes OTLP and passes it on by its own OTLP,
//! to a receiver that decodes it by OpenTelemetry's schema for Python.

use serde_json::Value;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use tessera_support::farm::{Farm, Process, skipped};

/// A collector that runs, and the file with what it has passed on.
pub(super) struct Collector {
    port: u16,
    file: PathBuf,
    folder: tempfile::TempDir,
    _running: [Process; 2],
}

/// A port that nobody uses now.
pub(super) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// The value of an attribute of a span or a line.
pub(super) fn attribute(one: &Value, name: &str) -> Value {
    one["attributes"][name].clone()
}

impl Collector {
    /// Starts both; None where the tools are not there, which is told by name.
    pub(super) fn start() -> Option<Self> {
        let tools = std::env::var_os("TESSERA_OTLP_TOOLS").map(PathBuf::from);
        let Some(tools) = tools.filter(|tools| tools.join("bin/python").exists()) else {
            skipped("spans and lines at a collector: TESSERA_OTLP_TOOLS is not there");
            return None;
        };
        // It is no farm; a farm's folder and logs serve it as well.
        let (folder, farm) = (tempfile::tempdir().expect("a folder"), Farm::prepare());
        let (port, behind) = (free_port(), free_port());
        let file = folder.path().join("received.jsonl");
        std::fs::write(&file, "").expect("a file");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/otlp/receiver.py");
        let mut receiver = Command::new(tools.join("bin/python"));
        receiver.arg(script).arg(behind.to_string()).arg(&file);
        let running = [farm.spawn(receiver, "receiver"), {
            let mut rotel = Command::new(rotel(&tools));
            rotel
                .args(["start", "--exporter", "otlp", "--otlp-exporter-protocol", "http"])
                .arg(format!("--otlp-exporter-endpoint=http://127.0.0.1:{behind}"))
                .arg(format!("--otlp-http-endpoint=127.0.0.1:{port}"))
                .arg(format!("--otlp-grpc-endpoint=127.0.0.1:{}", free_port()))
                .current_dir(folder.path());
            farm.spawn(rotel, "rotel")
        }];
        for port in [port, behind] {
            farm.wait_for("the collector", |_| TcpStream::connect(("127.0.0.1", port)).is_ok());
        }
        Some(Self { port, file, folder, _running: running })
    }

    /// Where it takes OTLP over HTTP.
    pub(super) fn address(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Waits until something has arrived; all that has.
    pub(super) fn wait_for(&self, farm: &Farm, holds: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        farm.wait_for("what the collector passes on", |_| holds(&self.received()));
        self.received()
    }

    fn received(&self) -> Vec<Value> {
        assert!(self.folder.path().exists());
        let text = std::fs::read_to_string(&self.file).expect("what was received");
        // The last line may not be whole yet.
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }
}

/// The collector's program, in the Python package that brings it.
fn rotel(tools: &Path) -> PathBuf {
    let lib = std::fs::read_dir(tools.join("lib")).expect("a folder of Python's");
    let found =
        lib.filter_map(Result::ok).map(|one| one.path().join("site-packages/rotel/rotel-agent"));
    found.into_iter().find(|path| path.exists()).expect("the package rotel")
}
