//! A farm of the real program, built with `otlp`, beside a real collector: what arrives there; and
//! beside collectors that are dead or never answer: what that costs. For `.ci/nightly --only otlp`.

mod collector;

use crate::farm::importer;
use crate::hostile::traps::Trap;
use collector::{Collector, attribute, free_port};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use tessera_protocol::{FrameNumber, JobId};
use tessera_support::farm::{Farm, library};
use tessera_telemetry::{SpanId, TraceId};

/// Tiles of a frame of the jobs here.
const TILES: u64 = 4;
const SCENE: [&str; 8] = ["--size", "32x32", "--tile", "16", "--spp", "1", "--frames", "1-2"];

/// A farm of one node, which sends all that it has to say to an address.
fn farm(collector: &str) -> Farm {
    let mut farm = Farm::prepare();
    let mut command = farm.coordinator_command();
    command.args(["--http", "127.0.0.1:0"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", collector);
    command.env("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    farm.run_coordinator(command);
    let environment = vec![("OTEL_EXPORTER_OTLP_ENDPOINT".into(), collector.into())];
    farm.add_node_with("node-0", &["--device", "cpu", "--threads", "1"], environment);
    farm
}

/// Renders two frames; the job, and the hashes of its files.
fn render(farm: &Farm) -> (JobId, Vec<String>) {
    let job = farm.submit(&library("cornell-box.gltf"), &SCENE);
    assert!(farm.run(&["wait", &job]).status.success(), "{}", farm.logs());
    (job.parse().expect("an id"), farm.hashes(&job))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Looks at the trace of a frame.
fn check_trace(spans: &[&Value], job: JobId, frame: FrameNumber) {
    let root = hex(&SpanId::of_frame(job, frame).0);
    let named =
        |name: &str| -> Vec<&&Value> { spans.iter().filter(|span| span["name"] == name).collect() };
    let [whole] = named("frame")[..] else { panic!("one frame: {spans:#?}") };
    assert_eq!((whole["id"].as_str(), whole["parent"].as_str()), (Some(&*root), Some("")));
    assert_eq!(attribute(whole, "tessera.outcome"), "done");
    assert!(attribute(whole, "tessera.units").as_u64() >= Some(TILES), "{whole}");
    let done: Vec<_> = named("tile")
        .into_iter()
        .filter(|span| attribute(span, "tessera.outcome") == "committed")
        .collect();
    let units: BTreeSet<u64> =
        done.iter().filter_map(|span| attribute(span, "tessera.unit").as_u64()).collect();
    assert_eq!((units, done.len() as u64), ((0..TILES).collect(), TILES), "{spans:#?}");
    for tile in done {
        assert_eq!(tile["parent"], root.as_str());
        assert_eq!(service(tile), Some("tessera-coordinator"));
        assert_eq!(attribute(tile, "tessera.node"), "node-0");
        let parts: BTreeMap<&str, &str> = spans
            .iter()
            .filter(|span| span["parent"] == tile["id"])
            .filter_map(|span| Some((span["name"].as_str()?, service(span)?)))
            .collect();
        let (coordinator, node) = ("tessera-coordinator", "tessera-node");
        let expected = [("commit", coordinator), ("render", node), ("send", node), ("store", node)];
        assert_eq!(parts, expected.into(), "{spans:#?}");
    }
    assert!(named("prepare").iter().any(|span| service(span) == Some("tessera-node")));
    // A span is within its frame, and all on one clock here.
    let time = |span: &Value, which: &str| span[which].as_u64().expect("nanoseconds");
    for tile in named("tile") {
        assert!(time(whole, "from") <= time(tile, "from"), "{tile} {whole}");
        assert!(time(tile, "from") <= time(tile, "to") && time(tile, "to") <= time(whole, "to"));
    }
}

fn service(span: &Value) -> Option<&str> {
    span["service"]["service.name"].as_str()
}

/// A job whose scene no node can prepare, once its node has said so.
fn submit_broken(farm: &Farm) -> JobId {
    // The head of a binary file, and nothing after it.
    let head = &b"glTF\x02\0\0\0\x0c\0\0\0"[..];
    let trap = Trap { main: "scene.glb", ..Trap::new("no chunk", head) };
    importer::send_all(farm, &[trap]);
    let jobs: Value = serde_json::from_str(&farm.text(&["jobs", "--json"])).expect("JSON");
    let mut all = jobs.as_array().expect("a list").iter();
    let broken = all.find(|job| job["state"] == "failed").expect("it has failed");
    let broken = broken["job"].as_str().expect("an id");
    farm.wait_for("the importer's words", |farm| {
        !farm.text(&["logs", broken, "--source", "importer", "--json"]).is_empty()
    });
    broken.parse().expect("an id")
}

#[test]
fn a_collector_has_a_trace_for_each_frame() {
    let Some(collector) = Collector::start() else { return };
    let mut farm = farm(&collector.address());
    let (job, _) = render(&farm);
    let broken = submit_broken(&farm);
    assert!(farm.drain_node(0) && farm.stop_coordinator(), "{}", farm.logs());

    let last = hex(&SpanId::of_frame(broken, FrameNumber(0)).0);
    let all = collector.wait_for(&farm, |all| {
        let has = |name: &str, trace: FrameNumber| {
            let trace = hex(&TraceId::of_frame(job, trace).0);
            all.iter().any(|one| one["name"] == name && one["trace"] == trace)
        };
        has("frame", FrameNumber(1)) && has("frame", FrameNumber(2)) && {
            all.iter().any(|one| one["id"] == last && one["kind"] == "span")
        }
    });
    let spans = |trace: &str| -> Vec<&Value> {
        all.iter().filter(|one| one["kind"] == "span" && one["trace"] == trace).collect()
    };
    for frame in [FrameNumber(1), FrameNumber(2)] {
        check_trace(&spans(&hex(&TraceId::of_frame(job, frame).0)), job, frame);
    }
    let id = job.to_string();
    let traces: BTreeSet<&str> = all
        .iter()
        .filter(|one| one["kind"] == "span" && attribute(one, "tessera.job") == id.as_str())
        .filter_map(|one| one["trace"].as_str())
        .collect();
    assert_eq!(traces.len(), 2, "one trace for each frame: {traces:?}");
    check_lines(&all, broken);
    let of_coordinator = all.iter().filter(|one| service(one) == Some("tessera-coordinator"));
    for one in of_coordinator {
        assert_eq!(one["service"]["deployment.environment.name"], "test", "{one}");
        assert_eq!(one["service"]["service.version"], env!("CARGO_PKG_VERSION"), "{one}");
    }
}

/// The lines of a job whose frame could not be prepared, and those of the programs.
fn check_lines(all: &[Value], broken: JobId) {
    let id = broken.to_string();
    let lines: Vec<&Value> = all.iter().filter(|one| one["kind"] == "line").collect();
    let says = |line: &&&Value, text: &str| line["text"].as_str().unwrap_or("").contains(text);
    let of_job = |line: &&&Value| attribute(line, "tessera.job") == id.as_str();
    let kept = lines
        .iter()
        .filter(of_job)
        .find(|line| attribute(line, "tessera.node") == "node-0" && says(line, "not prepared"));
    let kept = kept.unwrap_or_else(|| panic!("a line of the job: {lines:#?}"));
    assert_eq!(service(kept), Some("tessera-coordinator"));
    assert_eq!(attribute(kept, "tessera.source"), "importer");
    assert_eq!(kept["severity"], 17, "{kept}");
    assert_eq!(kept["trace"], hex(&TraceId::of_frame(broken, FrameNumber(0)).0), "{kept}");
    let own = |name: &str, text: &str| {
        lines.iter().any(|line| service(line) == Some(name) && says(&line, text))
    };
    assert!(own("tessera-coordinator", "job accepted"), "{lines:#?}");
    assert!(own("tessera-node", "node started"), "{lines:#?}");
}

/// What was beside a collector that does not do its work.
struct Beside {
    hashes: Vec<String>,
    log: String,
    end_took: Duration,
}

impl Beside {
    /// How often the coordinator's log has a text.
    fn count(&self, text: &str) -> usize {
        self.log.matches(text).count()
    }
}

/// Renders beside such a collector, and ends.
fn beside(collector: &str) -> Beside {
    let mut farm = farm(collector);
    let (job, hashes) = render(&farm);
    let detail = farm.text(&["job", &job.to_string(), "--json"]);
    let detail: Value = serde_json::from_str(&detail).expect("JSON");
    assert_eq!(detail["summary"]["state"], "done", "{detail}");
    assert!(farm.drain_node(0), "{}", farm.logs());
    let began = Instant::now();
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    let end_took = began.elapsed();
    let log = std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log");
    Beside { hashes, log, end_took }
}

// promise: P1
#[test]
fn a_dead_collector_costs_what_was_to_be_sent() {
    let mut plain = Farm::start(1, 1);
    let (_, expected) = render(&plain);
    assert!(plain.stop_coordinator());
    let it = beside(&format!("http://127.0.0.1:{}", free_port()));
    assert_eq!(it.hashes, expected);
    assert_eq!(it.count("the collector takes no spans"), 1);
    assert_eq!(it.count("the collector takes no lines"), 1);
    assert_eq!(it.count("spans were left out"), 1);
    assert_eq!(it.count("Connection refused"), 2);
}

// promise: P8
#[test]
fn a_collector_that_never_answers_ends_with_the_farm() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let holds = std::thread::spawn(move || {
        // Taken, and never read or answered.
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            held.push(stream);
        }
    });
    let it = beside(&format!("http://{address}"));
    assert_eq!(it.hashes.len(), 2);
    assert_eq!(it.count("spans were left out"), 1);
    let took = it.end_took;
    assert!(took < Duration::from_secs(15), "two seconds are for the collector: {took:?}");
    assert!(!holds.is_finished(), "the collector was there all the time");
}
