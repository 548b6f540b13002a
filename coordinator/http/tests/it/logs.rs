//! Lines that nodes say, over HTTP: for whose they are, as they come, on pages, and beside commits.

use crate::events::Stream;
use crate::farm::{Farm, PATIENCE};
use crate::metrics::node::{Node, submit};
use crate::pages::session;
use serde_json::Value;
use std::time::{Duration, Instant};
use tessera_protocol::client::{Request, Role};
use tessera_protocol::logs::{LogAbout, LogLine, LogLines, LogSource, LogText, Severity};
use tessera_protocol::selection::{JobChange, JobSelection, JobsChange};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{JobId, Lease};
use tessera_transport::frame::open_one_way;
use tessera_transport::{FarmClient, FrameSender};

pub(crate) fn line(about: LogAbout, severity: Severity, text: &str) -> LogLine {
    let (source, at_millis) = (LogSource::Compiler, 0);
    LogLine { at_millis, source, severity, about, text: LogText::new(text) }
}

pub(crate) async fn log_of(node: &Node) -> FrameSender {
    open_one_way(&node.link.connection, StreamKind::Log).await.unwrap()
}

/// Waits until so many lines are there; the answer.
async fn lines(farm: &Farm, token: &str, path: &str, count: usize) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let answer = farm.send(token, ("GET", path), None).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        let page = answer.json();
        if page["lines"].as_array().unwrap().len() >= count {
            return page;
        }
        assert!(Instant::now() < until, "{page}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn texts(page: &Value) -> Vec<&str> {
    page["lines"].as_array().unwrap().iter().map(|line| line["text"].as_str().unwrap()).collect()
}

/// A farm with a job of ada's, and a node that has a unit of it.
async fn begun() -> (Farm, tempfile::TempDir, (FarmClient, JobId), (Node, Lease)) {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(&folder.path().join("data"), |_| {}).await;
    let ada = farm.person(Role::Artist, "ada");
    let client = FarmClient::new(farm.dial(&ada).await.unwrap());
    let job = submit(&client, folder.path(), 40).await;
    let mut node = Node::join(&farm, "rig-1").await;
    let lease = node.work().await.lease();
    (farm, folder, (client, job), (node, lease))
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn lines_are_for_the_owner_and_operators_alone() {
    let (farm, folder, (client, job), (node, lease)) = begun().await;
    let bob = farm.person(Role::Artist, "bob");
    let others = FarmClient::new(farm.dial(&bob).await.unwrap());
    let foreign = submit(&others, folder.path(), 1).await;
    let mut log = log_of(&node).await;
    let wild = "it does not compile\u{1b}[2J\u{202e}<script>\n";
    let said = LogLines(vec![
        line(LogAbout::Unit(lease), Severity::Error, wild),
        line(LogAbout::Job(foreign), Severity::Error, "forged"),
        line(LogAbout::Job(job), Severity::Info, "of the job"),
        line(LogAbout::Node, Severity::Info, "of the node"),
    ]);
    log.send(&said).await.unwrap();
    let ada = farm.token(&farm.person(Role::Artist, "ada")).await;
    let (bob, olga) =
        (farm.token(&bob).await, farm.token(&farm.person(Role::Operator, "olga")).await);
    let path = format!("/api/v1/jobs/{job}/logs");
    let escaped = "it does not compile\\u{1b}[2J\\u{202e}<script> ";
    for token in [&ada, &olga] {
        let page = lines(&farm, token, &path, 2).await;
        assert_eq!(texts(&page), [escaped, "of the job"]);
        let first = &page["lines"][0];
        assert_eq!(
            (first["node"].as_str(), first["source"].as_str()),
            (Some("rig-1"), Some("compiler"))
        );
        assert_eq!(first["epoch"].as_u64(), Some(lease.epoch.0));
    }
    let errors = farm.send(&ada, ("GET", &format!("{path}?severity=error")), None).await.json();
    assert_eq!(texts(&errors), [escaped]);
    for what in ["severity=loud", "source=nobody", "rows=x", "unknown=1"] {
        let answer = farm.send(&ada, ("GET", &format!("{path}?{what}")), None).await;
        assert_eq!(answer.status, 400, "{what}: {}", answer.text());
    }
    for what in ["rows=0", "rows=5000", "unit=1"] {
        let answer = farm.send(&ada, ("GET", &format!("{path}?{what}")), None).await;
        assert_eq!(answer.status, 422, "{what}: {}", answer.text());
    }
    for (token, path, status) in [
        (&bob, path.clone(), 403),
        (&bob, format!("{path}/follow"), 403),
        (&ada, "/api/v1/nodes/rig-1/logs".to_owned(), 403),
        (&olga, "/api/v1/nodes/nobody/logs".to_owned(), 404),
        (&olga, format!("/api/v1/jobs/{}/logs", JobId::new()), 404),
    ] {
        let answer = farm.send(token, ("GET", &path), None).await;
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
    }
    let of_node = lines(&farm, &olga, "/api/v1/nodes/rig-1/logs", 3).await;
    assert_eq!(texts(&of_node), [escaped, "of the job", "of the node"]);
    let forged = farm.send(&bob, ("GET", &format!("/api/v1/jobs/{foreign}/logs")), None).await;
    assert_eq!(texts(&forged.json()), [""; 0], "nobody writes into the log of another's job");
    drop(client);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_follows_gets_lines_as_they_come_until_the_end() {
    let (farm, _folder, (client, job), (node, lease)) = begun().await;
    let ada = farm.token(&farm.person(Role::Artist, "ada")).await;
    let path = format!("/api/v1/jobs/{job}/logs/follow");
    let follow = |last: Option<&str>| Stream::open_at(&farm, &path, &ada, last);
    let stream = follow(None);
    let (_, id, first) = stream.next("lines");
    assert!(texts(&first).is_empty() && id.is_some());
    let mut log = log_of(&node).await;
    let mut say = async |text: &str| {
        let lines = LogLines(vec![line(LogAbout::Unit(lease), Severity::Info, text)]);
        log.send(&lines).await.unwrap();
    };
    say("one").await;
    let (_, id, page) = stream.next("lines");
    assert_eq!(texts(&page), ["one"]);
    drop(stream);
    say("two").await;
    let stream = follow(id.as_deref());
    let mut read = Vec::new();
    while read.is_empty() {
        let (_, _, page) = stream.next("lines");
        read.extend(texts(&page).into_iter().map(str::to_owned));
    }
    assert_eq!(read, ["two"], "it goes on where it was cut");
    let selection = JobSelection { jobs: vec![job.to_string()], ..JobSelection::default() };
    let change = JobChange::Cancel { reason: String::new() };
    let cancel = JobsChange { change, selection, all: false, dry_run: false };
    client.request(&Request::ChangeJobs(Box::new(cancel))).await.unwrap();
    say("the last words").await;
    let (_, _, page) = stream.next("lines");
    assert_eq!(texts(&page), ["the last words"]);
    stream.next("end");
    assert!(stream.ends(PATIENCE));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_stands_on_the_page_with_what_was_said() {
    let (farm, _folder, (_client, job), (mut node, lease)) = begun().await;
    let mut log = log_of(&node).await;
    let said = LogLines(vec![line(LogAbout::Unit(lease), Severity::Error, "too <hot>")]);
    log.send(&said).await.unwrap();
    let ada = farm.token(&farm.person(Role::Artist, "ada")).await;
    lines(&farm, &ada, &format!("/api/v1/jobs/{job}/logs"), 1).await;
    node.fail(lease).await;
    let mine = session(&farm, Role::Artist, "ada").await;
    let path = format!("/jobs/{job}");
    let until = Instant::now() + PATIENCE;
    let page = loop {
        let page = farm.request(("GET", &path), &mine, None).await.text();
        if page.contains("Failed attempts") {
            break page;
        }
        assert!(Instant::now() < until, "{page}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(page.contains("What was said (1)"), "{page}");
    assert!(page.contains("too &lt;hot&gt;") && page.contains("role=\"log\""), "{page}");
    let theirs = session(&farm, Role::Artist, "bob").await;
    let page = farm.request(("GET", &path), &theirs, None).await.text();
    assert!(page.contains("Failed attempts") && !page.contains("&lt;hot&gt;"), "{page}");
    let quiet = farm.request(("GET", &format!("{path}?level=loud")), &mine, None).await;
    assert_eq!(quiet.status, 400);
}

// promise: P8
#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_lines_slows_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let farm = Farm::start_in(&folder.path().join("data"), |_| {}).await;
    let client = FarmClient::new(farm.dial(&farm.person(Role::Artist, "ada")).await.unwrap());
    submit(&client, folder.path(), 400).await;
    let mut node = Node::join(&farm, "rig-1").await;
    let mut unit = node.work().await;
    let mut times = [Vec::new(), Vec::new()];
    let loud = Node::join(&farm, "loud").await;
    let flooding = |mut log: FrameSender| {
        tokio::spawn(async move {
            let line = line(LogAbout::Node, Severity::Info, &"x".repeat(1000));
            let lines = LogLines(vec![line; 64]);
            let mut sent = 0u64;
            while log.send(&lines).await.is_ok() {
                sent += 64;
                FLOODED.store(sent, std::sync::atomic::Ordering::Relaxed);
            }
        })
    };
    let (mut flood, began) = (None, Instant::now());
    for (round, times) in times.iter_mut().enumerate() {
        if round == 1 {
            flood = Some(flooding(log_of(&loud).await));
        }
        for _ in 0..60 {
            let (next, took) = node.commit(unit, false).await;
            unit = next.expect("another unit");
            times.push(took);
        }
    }
    flood.unwrap().abort();
    let [without, with] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    let sent = FLOODED.load(std::sync::atomic::Ordering::Relaxed);
    let figures = farm.coordinator.api();
    let admin = farm.person(Role::Admin, "root");
    let caller = tessera_coordinator::api::Caller::from(&admin.peer);
    let figures = figures.figures(&caller).await.unwrap();
    let kept = figures.log_lines.iter().find(|(name, _)| *name == "kept").unwrap().1;
    eprintln!(
        "a commit: {without:?} without, {with:?} with a flood of lines (medians); of {sent} lines \
         {kept} are kept, in {} bytes",
        figures.log_bytes
    );
    // 2,000 at once, and 40 a second.
    let most = 2100 + 40 * began.elapsed().as_secs();
    assert!(sent > 2100 && kept < most, "{sent} were sent, {kept} kept");
    assert!(figures.log_bytes <= 2 * (256 << 10) + (64 << 10), "{}", figures.log_bytes);
    assert!(with < without * 10 + Duration::from_millis(200), "{without:?}, {with:?}");
}

/// Lines that the flood has sent.
static FLOODED: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
