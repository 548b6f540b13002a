//! What a collector is given of a farm at work: a trace for each frame, a span for each answer, the
//! lines of jobs. Nothing of it is on the way of a commit.

use crate::farm::{Farm, PATIENCE};
use crate::logs::{line, log_of};
use crate::metrics::node::{Node, submit};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tessera_protocol::client::{Request, Role};
use tessera_protocol::logs::{LogAbout, LogLines, Severity};
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};
use tessera_protocol::{FrameNumber, JobId};
use tessera_telemetry::{Line, Lines, Share, Sink, Span, SpanId, TraceId, Tracer, Value};
use tessera_transport::FarmClient;

/// Keeps what it is offered, or refuses all of it.
struct Taken<T> {
    takes: bool,
    kept: Mutex<Vec<T>>,
}

impl<T> Taken<T> {
    fn new(takes: bool) -> Arc<Self> {
        Arc::new(Self { takes, kept: Mutex::default() })
    }
}

impl<T: Send> Sink<T> for Taken<T> {
    fn offer(&self, one: T) -> bool {
        self.kept.lock().unwrap().push(one);
        self.takes
    }
}

/// A farm whose spans and lines are kept, and ada's connection to it.
async fn farm(
    folder: &Path,
    takes: bool,
) -> (Farm, FarmClient, Arc<Taken<Span>>, Arc<Taken<Line>>) {
    let (spans, lines) = (Taken::new(takes), Taken::new(takes));
    let farm = Farm::start_in(folder, |config| {
        config.tracer = Tracer::into_sink(Share::ALL, spans.clone());
        config.lines = Lines::into_sink(lines.clone());
    })
    .await;
    let client = FarmClient::new(farm.dial(&farm.person(Role::Artist, "ada")).await.unwrap());
    (farm, client, spans, lines)
}

/// Waits until what is kept has something.
async fn kept<T: Clone>(taken: &Taken<T>, holds: impl Fn(&T) -> bool) -> Vec<T> {
    let until = Instant::now() + PATIENCE;
    loop {
        let kept = taken.kept.lock().unwrap().clone();
        if kept.iter().any(&holds) {
            return kept;
        }
        assert!(Instant::now() < until, "it does not come");
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

fn attribute<'a>(span: &'a Span, name: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|(one, _)| *one == name).map(|(_, value)| value)
}

fn text<'a>(span: &'a Span, name: &str) -> &'a str {
    match attribute(span, name) {
        Some(Value::Text(text)) => text,
        other => panic!("{name}: {other:?}"),
    }
}

/// Does all units of a job, the first one at the second try.
async fn render(node: &mut Node, units: usize) {
    let first = node.work().await.lease();
    node.fail(first).await;
    for _ in 0..units {
        let unit = node.work().await.lease();
        node.deliver(unit, 0).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_is_one_trace_with_a_span_for_each_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let (farm, client, taken, _) = farm(folder.path(), true).await;
    let job = submit(&client, folder.path(), 3).await;
    let mut node = Node::join(&farm, "rig-1").await;
    render(&mut node, 3).await;
    let spans = kept(&taken, |span| span.name == "frame").await;
    let of_job: Vec<_> =
        spans.iter().filter(|span| attribute(span, "tessera.job").is_some()).collect();
    let (trace, root) =
        (TraceId::of_frame(job, FrameNumber(0)), SpanId::of_frame(job, FrameNumber(0)));
    assert!(of_job.iter().all(|span| span.trace == trace), "{of_job:#?}");
    let ids: BTreeSet<_> = of_job.iter().map(|span| span.id).collect();
    assert_eq!(ids.len(), of_job.len(), "each has an id of its own");
    let named =
        |name: &str| -> Vec<&&Span> { of_job.iter().filter(|span| span.name == name).collect() };

    let [frame] = named("frame")[..] else { panic!("one frame: {of_job:#?}") };
    assert_eq!((frame.id, frame.parent), (root, None));
    assert_eq!(attribute(frame, "tessera.units"), Some(&Value::Count(3)));
    assert_eq!(attribute(frame, "tessera.spans_left_out"), Some(&Value::Count(0)));
    assert_eq!(text(frame, "tessera.outcome"), "done");
    assert_eq!(named("assemble").len(), 1);

    let tiles = named("tile");
    assert!(tiles.iter().all(|span| span.parent == Some(root) && span.from >= frame.from));
    assert!(tiles.iter().all(|span| text(span, "tessera.node") == "rig-1"));
    let (failed, done): (Vec<&&Span>, Vec<_>) =
        tiles.iter().partition(|span| span.problem.is_some());
    let [failed] = failed[..] else { panic!("one failed: {tiles:#?}") };
    assert_eq!(text(failed, "tessera.outcome"), "failed");
    assert!(failed.problem.as_ref().unwrap().contains("it is too hot"), "{failed:?}");
    let units: BTreeSet<_> =
        done.iter().map(|span| format!("{:?}", attribute(span, "tessera.unit"))).collect();
    assert_eq!((units.len(), done.len()), (3, 3));
    for span in done {
        assert_eq!(text(span, "tessera.outcome"), "committed");
        assert_eq!(attribute(span, "tessera.device_seconds"), Some(&Value::Measure(2.0)));
        let commits = named("commit");
        assert!(commits.iter().any(|commit| commit.parent == Some(span.id)), "{commits:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_the_traces_of_its_frames() {
    let folder = tempfile::tempdir().unwrap();
    let (farm, client, taken, _) = farm(folder.path(), true).await;
    let job = submit(&client, folder.path(), 3).await;
    let mut node = Node::join(&farm, "rig-1").await;
    node.work().await;
    let selection = JobSelection { jobs: vec![job.to_string()], ..JobSelection::default() };
    let change = JobChange::Cancel { reason: String::new() };
    let cancel = JobsChange { change, selection, all: false, dry_run: false };
    client.request(&Request::ChangeJobs(Box::new(cancel))).await.unwrap();
    let spans = kept(&taken, |span| span.name == "frame").await;
    let frame = spans.iter().find(|span| span.name == "frame").unwrap();
    assert_eq!(frame.problem.as_deref(), Some("its job was cancelled"));
    let unit = spans.iter().find(|span| span.name == "tile").expect("what was begun");
    assert_eq!(text(unit, "tessera.outcome"), "unused");
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_a_span_without_what_is_somebodys() {
    let folder = tempfile::tempdir().unwrap();
    let (farm, _, taken, _) = farm(folder.path(), true).await;
    let token = farm.token(&farm.person(Role::Artist, "ada")).await;
    let path = format!("/api/v1/jobs/{}?secret=x", JobId::new());
    let trace = TraceId::of_frame(JobId::new(), FrameNumber(1));
    let hex: String = trace.0.iter().map(|byte| format!("{byte:02x}")).collect();
    let headers =
        format!("Authorization: Bearer {token}\r\ntraceparent: 00-{hex}-00f067aa0ba902b7-01\r\n");
    assert_eq!(farm.request(("GET", &path), &headers, None).await.status, 404);
    assert_eq!(farm.request(("BREW", "/teapot"), "", None).await.status, 404);
    let spans = kept(&taken, |span| span.name == "_OTHER").await;
    let named = |name: &str| spans.iter().find(|span| span.name == name);
    let span = named("GET /api/v1/jobs/{job}").unwrap_or_else(|| panic!("{spans:#?}"));
    assert!(span.is_answer && span.problem.is_none() && span.parent.is_none());
    assert_ne!(span.trace, trace, "nobody says of which trace it is");
    assert_eq!(text(span, "http.route"), "/api/v1/jobs/{job}");
    assert_eq!(attribute(span, "http.response.status_code"), Some(&Value::Count(404)));
    let all = format!("{spans:?}");
    assert!(!all.contains("secret") && !all.contains(&token) && !all.contains("BREW"), "{all}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_may_be_said_is_offered_with_its_node() {
    let folder = tempfile::tempdir().unwrap();
    let (farm, client, _, taken) = farm(folder.path(), true).await;
    submit(&client, folder.path(), 3).await;
    let mut node = Node::join(&farm, "rig-1").await;
    let lease = node.work().await.lease();
    let said = LogLines(vec![
        line(LogAbout::Job(JobId::new()), Severity::Error, "forged"),
        line(LogAbout::Unit(lease), Severity::Warning, "it is warm"),
    ]);
    log_of(&node).await.send(&said).await.unwrap();
    let lines = kept(&taken, |line| line.text == "it is warm").await;
    let [line] = &lines[..] else { panic!("one line: {lines:?}") };
    assert_eq!((line.about, line.severity), (LogAbout::Unit(lease), Severity::Warning));
    assert_eq!(line.node.as_deref(), Some("rig-1"));
}

// promise: P1
#[tokio::test(flavor = "multi_thread")]
async fn a_collector_that_takes_nothing_holds_up_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let (farm, client, spans, _) = farm(folder.path(), false).await;
    submit(&client, folder.path(), 40).await;
    let mut node = Node::join(&farm, "rig-1").await;
    let mut unit = node.work().await;
    for count in 0..40 {
        match node.commit(unit, count == 39).await.0 {
            Some(next) => unit = next,
            None => break,
        }
    }
    let offered = kept(&spans, |span| span.name == "frame").await;
    let frame = offered.iter().find(|span| span.name == "frame").unwrap();
    let Some(Value::Count(left_out)) = attribute(frame, "tessera.spans_left_out") else {
        panic!("{frame:?}")
    };
    assert!(*left_out >= 80, "a span and a commit for each unit: {left_out}");
}
