//! Lines are kept within bounds, over restarts and damage, for whose they are.

use super::shelf::{Bounds, Shelf, Unnumbered, Whose, page};
use super::{Follow, Logs, Sayable};
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::time::Duration;
use tessera_protocol::logs::{
    LOG_PAGE_MAX, LogAbout, LogLine, LogLines, LogPage, LogQuery, LogSource, LogTarget, LogText,
    Severity,
};
use tessera_protocol::{Epoch, FrameNumber, JobId, Lease, NodeId, UnitIndex, UnitKey};
use tessera_telemetry::Lines;
use uuid::Uuid;

fn node(number: u128) -> NodeId {
    NodeId(Uuid::from_u128(number))
}

fn of_job(number: u128, owner: u64) -> Whose {
    Whose::Job { job: JobId(Uuid::from_u128(number)), owner }
}

fn line(text: &str) -> Unnumbered {
    Unnumbered {
        at_millis: 5,
        node: "rack-1".into(),
        source: LogSource::Node,
        severity: Severity::Info,
        job: None,
        frame: None,
        unit: None,
        epoch: None,
        text: LogText::new(text),
    }
}

fn all() -> LogQuery {
    LogQuery::newest(LogTarget::Node(String::new()), LOG_PAGE_MAX)
}

fn texts(page: &LogPage) -> Vec<&str> {
    page.lines.iter().map(|line| line.text.as_str()).collect()
}

fn kept(shelf: &Shelf, whose: Whose) -> LogPage {
    page(&shelf.read(whose), &all())
}

fn files(root: &Path) -> u64 {
    let folders = ["jobs", "nodes"].map(|part| root.join(part).read_dir().unwrap());
    folders.into_iter().flatten().map(|file| file.unwrap().metadata().unwrap().len()).sum()
}

fn small() -> Bounds {
    Bounds { half_bytes: 4096, jobs_bytes: 64 << 10, jobs: 100, nodes: 10 }
}

// promise: P8
#[test]
fn a_job_that_says_much_keeps_its_newest_lines() {
    let root = tempfile::tempdir().unwrap();
    let mut shelf = Shelf::open(root.path(), small()).unwrap();
    let whose = of_job(1, 3);
    for number in 0..1000 {
        shelf.append(whose, &[line(&number.to_string())]).unwrap();
        assert!(shelf.bytes() <= 2 * 4096 && files(root.path()) == shelf.bytes());
    }
    let page = kept(&shelf, whose);
    let numbers: Vec<u32> = texts(&page).iter().map(|text| text.parse().unwrap()).collect();
    let expected: Vec<u32> = (1000 - numbers.len() as u32..1000).collect();
    assert!(numbers == expected && numbers.len() > 20, "{numbers:?}");
    assert!(page.lines.windows(2).all(|pair| pair[0].number < pair[1].number));
}

// promise: P8
#[test]
fn who_says_much_loses_the_own_oldest_lines() {
    let root = tempfile::tempdir().unwrap();
    let mut shelf = Shelf::open(root.path(), small()).unwrap();
    let quiet = of_job(1, 4);
    shelf.append(quiet, &[line("quiet")]).unwrap();
    for job in 2..200 {
        let lines = vec![line(&"x".repeat(500)); 5];
        shelf.append(of_job(job, 3), &lines).unwrap();
        assert!(shelf.bytes() <= 64 << 10);
    }
    assert_eq!(files(root.path()), shelf.bytes());
    assert_eq!(texts(&kept(&shelf, quiet)), ["quiet"]);
    assert!(kept(&shelf, of_job(2, 3)).lines.is_empty(), "the oldest is gone");
    assert_eq!(kept(&shelf, of_job(199, 3)).lines.len(), 5);
    for job in 200..500 {
        shelf.append(of_job(job, 5), &[line("x")]).unwrap();
    }
    assert!(root.path().join("jobs").read_dir().unwrap().count() <= 100);
    for number in 0..30 {
        shelf.append(Whose::Node(node(number)), &[line("x")]).unwrap();
    }
    assert_eq!(root.path().join("nodes").read_dir().unwrap().count(), 10);
    assert_eq!(texts(&kept(&shelf, quiet)), ["quiet"]);
}

// promise: P8
#[test]
fn lines_survive_a_restart_and_damage_costs_its_lines_alone() {
    let root = tempfile::tempdir().unwrap();
    let (whose, other) = (of_job(1, 3), Whose::Node(node(7)));
    let mut shelf = Shelf::open(root.path(), small()).unwrap();
    shelf.append(whose, &[line("a"), line("b"), line("c")]).unwrap();
    shelf.append(other, &[line("of the node")]).unwrap();
    let before = kept(&shelf, whose);
    drop(shelf);
    let file = root.path().join("jobs").read_dir().unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&file).unwrap();
    // The second line is damaged, and the process was killed within a fourth.
    let second = bytes.iter().position(|byte| *byte == b'\n').unwrap() + 5;
    bytes[second] = 0xff;
    std::fs::write(&file, &bytes).unwrap();
    std::fs::OpenOptions::new().append(true).open(&file).unwrap().write_all(b"{\"num").unwrap();
    let mut shelf = Shelf::open(root.path(), small()).unwrap();
    assert_eq!(files(root.path()), shelf.bytes());
    assert_eq!(texts(&kept(&shelf, whose)), ["a", "c"]);
    shelf.append(whose, &[line("d")]).unwrap();
    let after = kept(&shelf, whose);
    assert_eq!(texts(&after), ["a", "c", "d"]);
    assert!(after.next > before.next, "numbers grow over restarts");
    assert_eq!(texts(&kept(&shelf, other)), ["of the node"]);
    assert_eq!(files(root.path()), shelf.bytes());
}

#[test]
fn lines_go_with_their_job() {
    let root = tempfile::tempdir().unwrap();
    let mut shelf = Shelf::open(root.path(), small()).unwrap();
    for job in 1..=3 {
        shelf.append(of_job(job, 3), &[line("x")]).unwrap();
    }
    shelf.append(Whose::Node(node(7)), &[line("x")]).unwrap();
    shelf.forget(JobId(Uuid::from_u128(1)));
    assert_eq!(root.path().join("jobs").read_dir().unwrap().count(), 2);
    shelf.retain(&BTreeSet::from([JobId(Uuid::from_u128(3))]));
    assert_eq!(root.path().join("jobs").read_dir().unwrap().count(), 1);
    assert_eq!(texts(&kept(&shelf, of_job(3, 3))), ["x"]);
    assert_eq!(texts(&kept(&shelf, Whose::Node(node(7)))), ["x"]);
    assert_eq!(files(root.path()), shelf.bytes());
}

#[test]
fn a_page_has_the_lines_that_are_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let mut shelf = Shelf::open(root.path(), Bounds::default()).unwrap();
    let whose = of_job(1, 3);
    for number in 0..10u32 {
        let severity = if number % 2 == 0 { Severity::Info } else { Severity::Error };
        let unit = Some(UnitIndex(number % 3));
        let (frame, at_millis) = (Some(FrameNumber(number / 5)), u64::from(number));
        let line = Unnumbered { severity, unit, frame, at_millis, ..line(&number.to_string()) };
        shelf.append(whose, &[line]).unwrap();
    }
    let text = shelf.read(whose);
    let asked = |query: LogQuery| page(&text, &query);
    let newest = asked(LogQuery { rows: 3, ..all() });
    assert_eq!((texts(&newest), newest.more), (vec!["7", "8", "9"], true));
    let errors = asked(LogQuery { severity: Severity::Error, ..all() });
    assert_eq!((texts(&errors), errors.more), (vec!["1", "3", "5", "7", "9"], false));
    let frame = asked(LogQuery { frame: Some(FrameNumber(1)), since_millis: 7, ..all() });
    assert_eq!(texts(&frame), ["7", "8", "9"]);
    let of_unit = LogQuery { frame: Some(FrameNumber(0)), unit: Some(UnitIndex(1)), ..all() };
    assert_eq!(texts(&asked(of_unit)), ["1", "4"]);
    assert!(asked(LogQuery { source: Some(LogSource::Device), ..all() }).lines.is_empty());
    let (mut after, mut read) = (0, Vec::new());
    loop {
        let page = asked(LogQuery { after: Some(after), rows: 4, ..all() });
        read.extend(texts(&page).into_iter().map(str::to_owned));
        after = page.next;
        if !page.more {
            break;
        }
    }
    assert_eq!(read, (0..10).map(|number| number.to_string()).collect::<Vec<_>>());
    assert_eq!(after, newest.next);
}

fn said(about: LogAbout, text: &str) -> LogLine {
    LogLine {
        at_millis: u64::MAX,
        source: LogSource::Device,
        severity: Severity::Warning,
        about,
        text: LogText::new(text),
    }
}

/// Waits for what comes after the lines that were read.
async fn next(follow: &mut Follow) -> LogPage {
    let page = tokio::time::timeout(Duration::from_secs(20), follow.next()).await;
    page.expect("lines come").expect("the coordinator does not stop")
}

// promise: P8
#[tokio::test]
async fn a_node_cannot_write_into_the_log_of_anothers_job() {
    let root = tempfile::tempdir().unwrap();
    let logs = Logs::open(root.path(), Lines::default()).unwrap();
    let (mine, other) = (JobId::new(), JobId::new());
    let lease = |job, unit| {
        let unit = UnitKey { job, frame: FrameNumber(1), unit: UnitIndex(unit) };
        Lease { unit, epoch: Epoch(9) }
    };
    let sayable = Sayable::default();
    sayable.admit_job(mine, 3);
    sayable.admit_units([lease(mine, 1).unit]);
    let mut follow = Follow::new(logs.clone(), Whose::Job { job: mine, owner: 3 }, all());
    assert!(next(&mut follow).await.lines.is_empty());
    let lines = vec![
        said(LogAbout::Unit(lease(mine, 1)), "mine"),
        said(LogAbout::Unit(lease(mine, 2)), "of a unit that another node has"),
        said(LogAbout::Job(other), "forged"),
        said(LogAbout::Unit(lease(other, 1)), "forged"),
        said(LogAbout::Node, "of the node"),
    ];
    logs.take((node(7), "rack-1"), &sayable, LogLines(lines));
    let page = next(&mut follow).await;
    assert_eq!(texts(&page), ["mine"]);
    let line = &page.lines[0];
    assert_eq!(
        (line.node.as_str(), line.unit, line.epoch),
        ("rack-1", Some(UnitIndex(1)), Some(Epoch(9)))
    );
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    assert!(u128::from(line.at_millis) <= now.as_millis(), "no line is of the future");
    assert_eq!(texts(&logs.page(Whose::Node(node(7)), &all())), ["mine", "of the node"]);
    logs.stop();
    for owner in [0, 3, 4] {
        assert!(logs.page(Whose::Job { job: other, owner }, &all()).lines.is_empty());
    }
    let counts = logs.counts();
    assert!(counts.contains(&("kept", 2)) && counts.contains(&("foreign", 3)), "{counts:?}");
}

// promise: P8
#[tokio::test]
async fn a_flood_is_cut_counted_and_leaves_others_their_lines() {
    let root = tempfile::tempdir().unwrap();
    let logs = Logs::open(root.path(), Lines::default()).unwrap();
    let sayable = Sayable::default();
    let flood = LogLines(vec![said(LogAbout::Node, &"x".repeat(1000)); 64]);
    for _ in 0..1000 {
        logs.take((node(1), "loud"), &sayable, flood.clone());
    }
    logs.take((node(2), "quiet"), &sayable, LogLines(vec![said(LogAbout::Node, "heard")]));
    logs.stop();
    assert_eq!(texts(&logs.page(Whose::Node(node(2)), &all())), ["heard"]);
    assert!(logs.bytes() <= (256 << 10) + 4096, "{}", logs.bytes());
    let counts = logs.counts();
    let (_, too_many) = counts.iter().find(|(name, _)| *name == "too_many").unwrap();
    assert!(*too_many >= 64_000 - 2200, "{counts:?}");
}

#[tokio::test]
async fn who_follows_gets_each_line_once() {
    let root = tempfile::tempdir().unwrap();
    let logs = Logs::open(root.path(), Lines::default()).unwrap();
    let sayable = Sayable::default();
    let say = |text: &str| {
        let lines = LogLines(vec![said(LogAbout::Node, text)]);
        logs.take((node(1), "rack-1"), &sayable, lines);
    };
    say("0");
    let mut follow = Follow::new(logs.clone(), Whose::Node(node(1)), all());
    let mut read: Vec<String> = Vec::new();
    for number in 1..=20 {
        say(&number.to_string());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    while read.len() < 21 {
        read.extend(texts(&next(&mut follow).await).into_iter().map(str::to_owned));
    }
    assert_eq!(read, (0..=20).map(|number| number.to_string()).collect::<Vec<_>>());
    logs.stop();
}
