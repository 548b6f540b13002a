//! Events out of a real farm: webhooks to receivers that are dead, slow, lying or send elsewhere
//! hold up nobody and get nothing sent where it must not; nothing is lost over a crash.

use super::event_receiver::{Manner, Receiver, SECRET};
use super::standby_client::ask;
use serde_json::Value;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;
use tessera_protocol::client::Role;
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::node::{Join, NodeToCoordinator};
use tessera_protocol::stream::StreamKind;
use tessera_protocol::{Hello, NodeId, ProcessEpoch};
use tessera_support::farm::{Farm, library};
use tessera_transport::frame::open_both;
use tessera_transport::{Authority, PeerIdentity, Timing, connect};

/// A job that is over in a moment.
const LIGHT: [&str; 6] = ["--size", "32x32", "--spp", "2", "--frames", "1"];
/// Every event.
const ALL: &str = "events = ['done', 'failed', 'cancelled', 'waiting', 'quarantine', 'budget']";
/// Longest time of a small job, and from its end until a good receiver knows it, in seconds: less
/// than the silent receivers would take after each other.
const SOON: u64 = 30;
/// Silent receivers, each of which costs a sender 10 s for each attempt.
const SILENT: [&str; 4] = ["silent", "silent-2", "silent-3", "silent-4"];

/// A webhook to an address, for these events.
pub(super) fn webhook(name: &str, url: &str, more: &str) -> String {
    format!("[[webhook]]\nname = '{name}'\nurl = '{url}'\nsecret-file = 'secret'\n{more}\n")
}

/// The URL of a receiver.
pub(super) fn url(receiver: &Receiver) -> String {
    format!("http://{}/tessera?key=1", receiver.address())
}

/// Starts the farm's coordinator with a file of events.
pub(super) fn start(farm: &mut Farm, file: &str, more: &[&str]) {
    write(farm.folder(), file);
    let mut command = farm.coordinator_command();
    command.args(["--events", "events.toml"]).args(more);
    farm.run_coordinator(command);
}

/// Writes a file of events, and the secret that it names.
pub(super) fn write(folder: &Path, file: &str) {
    let secret = folder.join("secret");
    std::fs::write(&secret, SECRET).expect("a secret");
    std::fs::set_permissions(&secret, PermissionsExt::from_mode(0o600)).expect("its rights");
    std::fs::write(folder.join("events.toml"), file).expect("a file of events");
}

pub(super) fn submit(farm: &Farm, name: &str, more: &[&str]) -> String {
    let named = ["--name", name];
    farm.submit(&library("cornell-box.gltf"), &[&LIGHT[..], &named, more].concat())
}

fn log(farm: &Farm) -> String {
    std::fs::read_to_string(farm.folder().join("coordinator.log")).expect("a log")
}

fn free_port() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

/// An answer that sends the client elsewhere.
fn redirect(to: &str) -> Manner {
    Manner::Says(format!(
        "HTTP/1.1 307 Temporary Redirect\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"
    ))
}

#[test]
fn hostile_receivers_lose_and_delay_nothing_of_others() {
    let mut farm = Farm::prepare();
    let [good, lure, trap] = [(); 3].map(|()| Receiver::start(Manner::Takes));
    let says = |text: &str| Receiver::start(Manner::Says(text.to_owned()));
    let mut hostile = vec![
        ("refuses", says("HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")),
        ("garbage", says("\x00\x7f\r\n\r\nnothing like HTTP")),
        ("hangs-up", says("")),
        ("long-head", Receiver::start(Manner::Endless("HTTP/1.1 200 OK\r\nX: ".to_owned()))),
        ("metadata", Receiver::start(redirect("http://169.254.169.254/latest/meta-data/"))),
        ("elsewhere", Receiver::start(redirect(&url(&lure)))),
    ];
    hostile.extend(SILENT.map(|name| (name, Receiver::start(Manner::Silent))));
    let dead = free_port();
    // The lure is allowed, so that only a redirect that is not followed keeps it empty. The trap is
    // not, neither by its address nor by a name that is listed and stands for loopback.
    let (_, port) = trap.address().rsplit_once(':').expect("a port");
    let mut allowed = vec![good.address(), lure.address(), &dead, "localhost"];
    allowed.extend(hostile.iter().map(|(_, one)| one.address()));
    let mut file = format!("allow = {allowed:?}\n");
    file += &webhook("dead", &format!("http://{dead}/"), ALL);
    file += &webhook("unlisted", &format!("https://127.0.0.1:{port}/"), ALL);
    file += &webhook("by-name", &format!("http://localhost:{port}/"), ALL);
    for (name, receiver) in &hostile {
        file += &webhook(name, &url(receiver), ALL);
    }
    file += &webhook("good", &url(&good), ALL);
    let pages = free_port();
    start(&mut farm, &file, &["--http", &pages]);
    farm.add_node("node-0", 1);

    let jobs: Vec<String> = (0..3).map(|at| submit(&farm, &format!("shot-{at}"), &[])).collect();
    jobs.iter().for_each(|job| drop(farm.text(&["wait", job])));
    farm.wait_for("the good receiver to know all", |_| good.events().len() >= 3);
    for job in &jobs {
        assert_eq!(good.kinds_of(job), ["done"], "{}", farm.logs());
    }
    for got in good.got() {
        assert_eq!((&got.body["version"], &got.body["target"]), (&1.into(), &"good".into()));
        for event in got.body["events"].as_array().expect("events") {
            let ended = event["at"].as_u64().expect("a time");
            assert!(got.at.saturating_sub(ended) <= SOON, "{} s late", got.at - ended);
            let submitted = event["job"]["submitted_at"].as_u64().expect("a time");
            assert!(ended - submitted <= SOON, "the job took {} s", ended - submitted);
            assert_eq!(event["job"]["state"], "done");
        }
    }
    // Each has been tried, and has failed for the reason that it gives.
    let reasons = [
        ("dead", "onnection refused"),
        ("unlisted", "127.0.0.1 is a loopback address"),
        ("by-name", "is a loopback address"),
        ("silent", "no answer within 10 s"),
        ("refuses", "answered 500"),
        ("garbage", "invalid HTTP"),
        ("hangs-up", "closed before message completed"),
        ("long-head", "head"),
        ("metadata", "answered 307 Temporary Redirect: no redirect is followed"),
        ("elsewhere", "no redirect is followed"),
    ];
    for (name, reason) in reasons {
        farm.wait_for(&format!("`{name}` to fail: {reason}"), |farm| {
            log(farm).lines().any(|line| line.contains(name) && line.contains(reason))
        });
    }
    assert_eq!((lure.connections(), trap.connections()), (0, 0), "sent where it must not");
    figures(&farm, &pages);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
}

/// What monitoring says of the targets.
fn figures(farm: &Farm, pages: &str) {
    let token = farm.text(&["token", "create", "--api", "--role", "viewer"]);
    let bearer = format!("Authorization: Bearer {token}");
    let text = ask(pages, ("GET", "/metrics"), &[bearer], "").text();
    for line in [
        "tessera_events_delivered_total{target=\"good\"} 3",
        "tessera_event_target_failing{target=\"good\"} 0",
        "tessera_events_waiting{target=\"good\"} 0",
        "tessera_event_target_failing{target=\"silent\"} 1",
        "tessera_events_waiting{target=\"elsewhere\"} 3",
        "tessera_events_delivered_total{target=\"dead\"} 0",
        "tessera_events_dropped_total{target=\"dead\"} 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    let attempts = "tessera_event_attempts_failed_total{target=\"refuses\"} ";
    let (_, count) = text.split_once(attempts).expect("a count of failed attempts");
    let count: f64 =
        count.split_whitespace().next().and_then(|count| count.parse().ok()).expect("a number");
    assert!(count >= 1.0, "{text}");
}

#[test]
fn events_reach_a_receiver_that_was_down_over_a_crash() {
    let mut farm = Farm::prepare();
    let (late, busy) = (free_port(), Receiver::start(Manner::TakesAfter(2)));
    let mut file = format!("allow = ['{late}', '{}']\n", busy.address());
    file += &webhook("late", &format!("http://{late}/tessera?key=1"), "events = ['done']");
    file += &webhook("busy", &url(&busy), "events = ['done']");
    start(&mut farm, &file, &[]);
    farm.add_node("node-0", 1);
    let first = submit(&farm, "first", &[]);
    farm.text(&["wait", &first]);
    farm.wait_for("the busy receiver to take it", |_| !busy.events().is_empty());
    assert!(busy.connections() >= 3, "two attempts were refused");
    let kept = farm.data().join("events.json");
    farm.wait_for("the event to be kept", |_| {
        let text = std::fs::read_to_string(&kept).unwrap_or_default();
        let kept: Value = serde_json::from_str(&text).unwrap_or_default();
        kept["queues"]["late"][0]["job"]["id"] == first && kept["queues"]["busy"][0].is_null()
    });
    let mode = std::fs::metadata(&kept).expect("what is kept").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    farm.kill_coordinator();
    let receiver = Receiver::start_at(&late, Manner::Takes);
    start(&mut farm, &file, &[]);
    let second = submit(&farm, "second", &[]);
    farm.text(&["wait", &second]);
    farm.wait_for("both events", |_| receiver.events().len() >= 2 && busy.events().len() >= 2);
    for one in [&receiver, &busy] {
        assert_eq!(one.kinds_of(&first), ["done"], "once");
        assert_eq!(one.kinds_of(&second), ["done"]);
    }
    let id = |one: &Receiver| one.events()[0]["id"].clone();
    assert_eq!(id(&receiver), id(&busy), "the same event has the same id everywhere");
    // What a crash leaves is refused by nobody.
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    assert!(farm.run(&["fsck", "--data", farm.data().to_str().expect("a path")]).status.success());
}

#[test]
fn what_happened_before_a_crash_and_was_not_told_is_told() {
    let mut farm = Farm::start(1, 1);
    let job = submit(&farm, "untold", &[]);
    farm.text(&["wait", &job]);
    farm.kill_coordinator();
    let receiver = Receiver::start(Manner::Takes);
    let file = format!("allow = ['{}']\n", receiver.address());
    start(&mut farm, &(file + &webhook("studio", &url(&receiver), "events = ['done']")), &[]);
    farm.wait_for("the end of the job", |_| receiver.kinds_of(&job) == ["done"]);
}

#[test]
fn each_target_gets_the_events_that_it_asks_for() {
    let mut farm = Farm::prepare();
    let [farmwide, ada, film] = [(); 3].map(|()| Receiver::start(Manner::Takes));
    let addresses = [&farmwide, &ada, &film].map(|one| one.address().to_owned());
    let mut file = format!("allow = ['{}']\nwaiting-secs = 1\n", addresses.join("', '"));
    file += &webhook(
        "farm",
        &url(&farmwide),
        "events = ['failed', 'cancelled', 'waiting', 'quarantine']",
    );
    file += &webhook("ada", &url(&ada), "events = ['cancelled', 'failed']\nowner = 'ada'");
    file += &webhook("film", &url(&film), "events = ['cancelled']\njob = 'film-*'");
    start(&mut farm, &file, &[]);
    let identity = farm.enrol("artist", "ada");
    let first = submit(&farm, "film-1", &[]);
    farm.wait_for("a job without nodes to be told", |_| farmwide.kinds_of(&first) == ["waiting"]);
    let of_ada = submit(&farm, "other", &["--after", &first, "--identity", &identity]);
    farm.text(&["cancel", &first]);
    farm.wait_for("the jobs' ends", |_| {
        farmwide.kinds_of(&first) == ["waiting", "cancelled"]
            && farmwide.kinds_of(&of_ada) == ["failed"]
            && film.kinds_of(&first) == ["cancelled"]
            && ada.kinds_of(&of_ada) == ["failed"]
    });
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let _node = runtime.block_on(join_with_a_broken_device(&farm));
    farm.wait_for("the quarantine", |_| farmwide.events().len() >= 4);
    let event = farmwide.events().pop().expect("an event");
    let node = &event["node"];
    assert_eq!((&event["kind"], &node["name"]), (&"quarantine".into(), &"worn".into()));
    assert_eq!((&node["device"], &node["reason"]), (&"cuda:0".into(), &"devices".into()));
    assert!(node["note"].as_str().is_some_and(|note| note.contains("row remapping")), "{node}");
    assert_eq!((ada.events().len(), film.events().len()), (1, 1));
}

#[test]
fn a_budget_is_told_when_it_is_nearly_used_up_and_used_up() {
    let mut farm = Farm::prepare();
    let [farmwide, ada, bob] = [(); 3].map(|()| Receiver::start(Manner::Takes));
    let addresses = [&farmwide, &ada, &bob].map(|one| one.address().to_owned());
    let mut file = format!("allow = ['{}']\n", addresses.join("', '"));
    for (name, receiver, more) in
        [("farm", &farmwide, ""), ("ada", &ada, "owner = 'ada'"), ("bob", &bob, "owner = 'bob'")]
    {
        file += &webhook(name, &url(receiver), &format!("events = ['budget']\n{more}"));
    }
    start(&mut farm, &file, &[]);
    let identity = farm.enrol("artist", "ada");
    let job = submit(&farm, "first", &["--identity", &identity]);
    farm.add_node("node-0", 1);
    let set = |farm: &Farm, amount: f64| {
        let rules = format!(
            "currency = 'EUR'\n[[price]]\nper_hour = 3600\n[[budget]]\nof = {{ owner = 'ada' }}\n\
             amount = {amount}\nwarn_percent = 1\n"
        );
        let path = farm.folder().join("rules.toml");
        std::fs::write(&path, rules).expect("a file");
        farm.text(&["cost", "rules", "--set", path.to_str().expect("a path")]);
    };
    farm.text(&["wait", &job]);
    set(&farm, 1e6);
    let second = submit(&farm, "second", &["--identity", &identity]);
    farm.text(&["wait", &second]);
    let spent = |farm: &Farm| {
        let report: Value = serde_json::from_str(&farm.text(&["cost", "--json"])).expect("JSON");
        report["budgets"][0]["spent"].as_f64().expect("an amount")
    };
    let sum = spent(&farm);
    assert!(sum > 0.0);
    // So much that a hundredth of it is spent, and then less than is spent.
    set(&farm, sum * 50.0);
    farm.wait_for("the first word", |_| ada.events().len() == 1);
    set(&farm, sum / 2.0);
    farm.wait_for("the second word", |_| ada.events().len() == 2);
    let events = ada.events();
    let reached: Vec<&Value> = events.iter().map(|event| &event["budget"]["reached"]).collect();
    assert_eq!(reached, [&Value::Null, &"pause".into()], "{events:?}");
    let (kind, budget) = (&events[1]["kind"], &events[1]["budget"]);
    assert_eq!((kind, &budget["of"]["owner"]), (&"budget".into(), &"ada".into()));
    let note = budget["note"].as_str().expect("a note");
    assert!(
        note.starts_with("the budget of `ada` this month is used up: no unit begins"),
        "{note}"
    );
    farm.wait_for("the farm's target", |_| farmwide.events().len() == 2);
    assert_eq!((farmwide.events(), bob.events().len()), (events, 0));
}

#[test]
fn a_job_asks_for_a_target_that_is_there_for_it() {
    let mut farm = Farm::prepare();
    let [everybody, asked] = [(); 2].map(|()| Receiver::start(Manner::Takes));
    let mut file = format!("allow = ['{}', '{}']\n", everybody.address(), asked.address());
    file += &webhook("everybody", &url(&everybody), "events = ['done', 'cancelled']");
    file += &webhook("asked", &url(&asked), "events = ['cancelled']\non-request = true");
    start(&mut farm, &file, &[]);
    let plain = submit(&farm, "plain", &[]);
    let asks = submit(&farm, "asks", &["--notify", "asked"]);
    assert!(farm.text(&["job", &asks]).contains("notify      asked"));
    farm.text(&["cancel", &plain, &asks]);
    farm.wait_for("all events", |_| everybody.events().len() >= 2 && !asked.events().is_empty());
    assert_eq!((asked.kinds_of(&asks), asked.events().len()), (vec!["cancelled".into()], 1));
    let scene = library("cornell-box.gltf");
    let scene = scene.to_str().expect("a path");
    for (name, said) in [
        ("everybody", "jobs can name asked, and not `everybody`"),
        ("nobody", "jobs can name asked, and not `nobody`"),
        ("no name", "is not the name of a target"),
    ] {
        let output = farm.run(&["submit", scene, "--notify", name]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && error.contains(said), "{error}");
    }
    assert_eq!(farm.text(&["jobs", "--state", "open", "--json"]), "[]", "none was accepted");
}

/// A node that says that its device is broken, for as long as the returned value lives.
async fn join_with_a_broken_device(farm: &Farm) -> impl Sized {
    let authority = Authority::open(&farm.data().join("authority")).expect("the authority");
    let node = NodeId(uuid::Uuid::now_v7());
    let peer = PeerIdentity::new(Role::Node, "worn", Some(node)).expect("a name").numbered(900);
    let identity = authority.issue(&peer).expect("an identity");
    let address = farm.address().parse().expect("an address");
    let hello = Hello::ours(tessera_node::fingerprint());
    let link = connect(&address, &identity, &hello, Timing::default()).await.expect("a link");
    let (mut control, incoming) =
        open_both(&link.connection, StreamKind::NodeControl).await.expect("a stream");
    let device = DeviceInfo {
        slot: "cuda:0".into(),
        kind: DeviceKind::Cuda,
        name: "a worn card".into(),
        memory_bytes: 1 << 30,
        cuda: None,
        parallelism: 1,
        state: DeviceState::Quarantined {
            reason: "row remapping failed".into(),
            remedy: "replace the card".into(),
        },
    };
    let join = Join { devices: vec![device], ..Join::new(node, "worn", ProcessEpoch(1)) };
    control.send(&NodeToCoordinator::Join(join)).await.expect("it joins");
    (link, control, incoming)
}

#[test]
fn an_admin_tries_a_target_and_sees_what_comes_of_it() {
    let mut farm = Farm::prepare();
    let receiver = Receiver::start(Manner::Takes);
    let dead = free_port();
    let mut file = format!("allow = ['{}', '{dead}']\n", receiver.address());
    file += &webhook("studio", &url(&receiver), "events = ['failed']");
    file += &webhook("dead", &format!("http://{dead}/"), "events = ['failed']");
    start(&mut farm, &file, &[]);
    farm.text(&["events", "test", "studio"]);
    let events = receiver.events();
    assert_eq!((events.len(), &events[0]["kind"]), (1, &"test".into()));
    let run = |arguments: &[&str]| {
        let output = farm.run(&[&["events", "test"], arguments].concat());
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let (status, said) = run(&["dead"]);
    assert!(status == Some(1) && said.contains("onnection refused"), "{said}");
    let (status, said) = run(&["nobody"]);
    assert!(status == Some(4) && said.contains("only studio, dead"), "{said}");
    let identity = farm.enrol("operator", "olga");
    let (status, said) = run(&["studio", "--identity", &identity]);
    assert!(status == Some(5), "{said}");
    assert_eq!(receiver.events().len(), 1);
    assert!(farm.stop_coordinator(), "{}", farm.logs());
    farm.start_coordinator();
    let output = farm.run(&["events", "test", "studio"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--events FILE"));
}

#[test]
fn a_wrong_file_of_events_starts_nothing() {
    let farm = Farm::prepare();
    for (file, said) in [
        ("allow = ['x']\n[[webhok]]\n", "line 2"),
        (&webhook("a", "http://127.0.0.1:9/", "events = ['done']"), "line 1: webhook `a`: http://"),
        (&webhook("a", "https://x.example/", "events = ['price']"), "no event is `price`"),
    ] {
        write(farm.folder(), file);
        let output = farm.coordinator_command().args(["--events", "events.toml"]).output();
        let output = output.expect("the binary runs");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(said), "{error}");
        assert!(!error.contains(SECRET), "{error}");
    }
    assert!(!farm.data().exists(), "the file is read first");
}

#[test]
fn all_jobs_are_watched_over_a_restart() {
    let mut farm = Farm::start(1, 1);
    let first = submit(&farm, "first", &[]);
    farm.text(&["wait", &first]);
    let held = submit(&farm, "held", &["--not-before", "2999-12-01T20:00:00Z"]);
    // Times have whole seconds.
    std::thread::sleep(Duration::from_millis(1100));
    let mut command = farm.command(&["watch", "--all", "--json"]);
    let lines = farm.folder().join("watched");
    command.stdout(std::fs::File::create(&lines).expect("a file"));
    command.stderr(std::process::Stdio::null());
    let mut watching = command.spawn().expect("the binary starts");
    let said = |what: &dyn Fn(&Value) -> bool| {
        let text = std::fs::read_to_string(&lines).unwrap_or_default();
        let rows = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        rows.filter(|row| what(row)).count()
    };
    let ended = |job: &str| {
        let job = job.to_owned();
        move |row: &Value| row["job"]["job"] == job && row["job"]["state"] == "done"
    };
    let open = |row: &Value| row["job"]["job"] == held;
    farm.wait_for("the list of open jobs", |_| said(&open) == 1);
    let second = submit(&farm, "second", &[]);
    farm.wait_for("the second job's end", |_| said(&ended(&second)) == 1);
    let frame = |row: &Value| row["event"] == "frame" && row["job"] == second;
    assert!(said(&frame) >= 1, "its frame is told");
    farm.kill_coordinator();
    std::thread::sleep(Duration::from_millis(300));
    farm.start_coordinator();
    // It may end before the watcher is back.
    let third = submit(&farm, "third", &[]);
    farm.text(&["wait", &third]);
    farm.wait_for("the third job's end", |_| said(&ended(&third)) == 1);
    farm.text(&["forget", &third]);
    let gone = |row: &Value| row["event"] == "gone" && row["job"] == third;
    farm.wait_for("that it was forgotten", |_| said(&gone) == 1);
    assert_eq!(said(&ended(&second)), 1, "an end is told once");
    assert_eq!(said(&ended(&first)), 0, "it was over before");
    let _ = watching.kill();
    let _ = watching.wait();
}
