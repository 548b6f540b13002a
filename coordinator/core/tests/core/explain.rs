//! Explanations: every reason that a farm can be brought into, its words, and that following the
//! help ends it. Waits for nodes are brought about in `waiting`, which compares the words too.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Input, ResolveFailure, SessionId, Settings};
use tessera_protocol::client::RequestError;
use tessera_protocol::device::{DeviceInfo, DeviceState};
use tessera_protocol::explain::{Explanation, Reason, Subject};
use tessera_protocol::ids::FrameNumber;
use tessera_protocol::job::{JobEdit, JobSpec};
use tessera_protocol::node::{Failure, Join, LimitReached, NodeLimit};
use tessera_protocol::selection::JobChange;
use tessera_support::inputs::{self, joined};

pub(crate) fn quick() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

pub(crate) fn root() -> Caller {
    Caller { name: "root".to_owned(), id: 1, admin: true }
}

fn of(farm: &SmallFarm, subject: Subject) -> Explanation {
    farm.core.explain(&subject).expect("it is known")
}

pub(crate) fn of_job(farm: &SmallFarm) -> Explanation {
    of(farm, Subject::Job(farm.job))
}

pub(crate) fn of_frame(farm: &SmallFarm) -> Explanation {
    of(farm, Subject::Frame { job: farm.job, frame: FrameNumber(1) })
}

pub(crate) fn of_node(farm: &SmallFarm, name: &str) -> Explanation {
    of(farm, Subject::Node(name.to_owned()))
}

/// The first reason has this word, and these in its text and its help.
pub(crate) fn first<'a>(of: &'a Explanation, word: &str, why: &str, help: &str) -> &'a Reason {
    let reason = of.reasons.first().unwrap_or_else(|| panic!("no reason: {of:?}"));
    assert_eq!(reason.word, word, "{of:?}");
    assert!(reason.why.contains(why), "{why:?} is not in {reason:?}");
    assert!(reason.help.contains(help), "{help:?} is not in {reason:?}");
    reason
}

pub(crate) fn words(of: &Explanation) -> Vec<&str> {
    of.reasons.iter().map(|reason| reason.word.as_str()).collect()
}

// promise: P4
#[test]
fn a_paused_job_says_who_and_runs_when_it_is_resumed() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    let job = farm.job;
    farm.change(JobChange::Pause, job, root());
    let help = format!("`tessera resume {job}`");
    first(&of_job(&farm), "paused", "paused by `root`", &help);
    farm.change(JobChange::Resume, job, root());
    first(&of_job(&farm), "at_work", "1 units are in work on 1 nodes", "");
}

// promise: P4
#[test]
fn a_job_without_its_pool_runs_once_any_node_may() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.work(1, 1);
    farm.finish();
    let spec = JobSpec { pool: Some("gpu".to_owned()), ..inputs::job(inputs::render()) };
    farm.submit_spec(77, spec);
    let job = farm.job;
    let help = format!("`tessera job set {job} --any-pool`");
    first(&of_job(&farm), "pool", "no node of pool `gpu` is connected", &help);
    let edit = Box::new(JobEdit { pool: Some(None), ..JobEdit::default() });
    let request = tessera_core::RequestId(9);
    farm.ask(Input::EditJob { request, job, edit, caller: root() });
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_full_disk_is_named_until_the_files_are_written() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.work(1, 1);
    first(&of_job(&farm), "files", "the coordinator makes its files", "");
    first(&of_frame(&farm), "files", "the coordinator makes its files", "");
    let (job, frame) = (farm.job, FrameNumber(1));
    let failure = ResolveFailure::Retry("no space left on device".to_owned());
    farm.step(Input::FrameResolveFailed { job, frame, failure });
    first(&of_job(&farm), "disk", "f0001 cannot be written", "make room");
    farm.later(Duration::from_secs(60));
    farm.finish();
    assert_eq!(words(&of_job(&farm)), Vec::<&str>::new(), "it is done");
    first(&of_frame(&farm), "done", "it is done, and has 1 files", "`tessera fetch`");
}

// promise: P4
#[test]
fn a_missing_file_is_named_until_another_node_has_it() {
    let mut farm = SmallFarm::new(quick(), 1, 2);
    let holder = if farm.lease(1).is_some() { 1 } else { 2 };
    farm.fail(holder, Failure::Asset("`a.gltf` cannot be had".to_owned()));
    let explained = of_job(&farm);
    first(&explained, "shortage", "waiting: `a.gltf` cannot be had (u00000 of f0001", "that node");
    farm.later(Duration::from_secs(2));
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_job_too_large_for_its_node_runs_on_a_larger_one() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    let reason = "it takes more than 64 MiB".to_owned();
    farm.fail(1, Failure::Limit(LimitReached { limit: NodeLimit::SceneMemory, reason }));
    let explained = of_job(&farm);
    first(
        &explained,
        "limits",
        "waits for a node with more: `n1` by its",
        "start a node with more",
    );
    let node = of_node(&farm, "n1");
    first(&node, "limited", "passed over for 1 open jobs", "--scene-memory");
    farm.step(joined(2, inputs::join(2, 1)));
    assert!(farm.lease(2).is_some());
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn drained_nodes_and_their_jobs_work_again_when_undrained() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.work(1, 1);
    farm.finish();
    farm.drain("n1", true, false);
    farm.submit(77);
    let help = "`tessera undrain n1`";
    first(&of_job(&farm), "out_of_work", "`n1` is drained", help);
    first(&of_node(&farm, "n1"), "drained", "drained by `root`", help);
    farm.undrain("n1");
    first(&of_node(&farm, "n1"), "at_work", "it holds 1 units of 1 jobs", "");
    first(&of_job(&farm), "at_work", "1 units are in work on 1 nodes", "");
}

// promise: P4
#[test]
fn failed_attempts_are_explained_by_their_class() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.fail(1, Failure::Device("it broke".to_owned()));
    let explained = of_job(&farm);
    let backoff = first(&explained, "backoff", "are tried again in ", "`tessera job ");
    assert!(backoff.ends_secs.is_some_and(|secs| (1..=2).contains(&secs)), "{backoff:?}");
    assert_eq!(words(&explained), ["backoff", "attempt_failed"]);
    let attempt = &explained.reasons[1];
    assert!(attempt.why.contains("f0001/u00000 on `n1`: failed: it broke"), "{attempt:?}");
    assert!(attempt.help.contains("`tessera doctor`"), "{attempt:?}");
    assert_eq!(words(&of_frame(&farm)), ["open", "backoff", "attempt_failed"]);
    farm.later(Duration::from_secs(2));
    farm.fail(1, Failure::TimedOut("no end".to_owned()));
    assert_eq!(words(&of_job(&farm)), ["backoff", "timed_out", "attempt_failed"]);
    for _ in 2..Settings::default().attempts {
        farm.later(Duration::from_secs(60));
        farm.fail(1, Failure::Device("it broke".to_owned()));
    }
    let failed = of_job(&farm);
    let help = format!("`tessera retry {}`", farm.job);
    first(&failed, "failed", "times, last on `n1`: failed: it broke", &help);
    first(&of_frame(&farm), "frame_failed", "times, last on `n1`", &help);
    let job = farm.job;
    farm.change(JobChange::Retry, job, root());
    first(&of_job(&farm), "at_work", "in work", "");
    farm.cancel(job, root());
    first(&of_job(&farm), "cancelled", "cancelled by `root`", &help);
}

// promise: P4
#[test]
fn a_job_behind_others_says_who_is_before_it() {
    let mut farm = SmallFarm::new(quick(), 2, 1);
    farm.submit(77);
    let explained = of_job(&farm);
    first(&explained, "turn", "waits for its turn behind its owner's own jobs", "--priority N");
    assert_eq!(explained.ahead.len(), 1, "{explained:?}");
    assert_eq!(
        (explained.ahead[0].units, explained.ahead[0].owner.as_str()),
        (1, "its owner's own jobs")
    );
    assert_eq!((explained.begins_secs, explained.left_secs), (None, None), "no speed is known");
    first(&of_frame(&farm), "not_begun", "none of its 1 units has begun", "");
    farm.step(joined(2, inputs::join(2, 1)));
    let edit = Box::new(JobEdit { priority: Some(100), ..JobEdit::default() });
    let (request, job) = (tessera_core::RequestId(9), farm.job);
    farm.ask(Input::EditJob { request, job, edit, caller: root() });
    farm.work(1, 1);
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn nodes_say_why_they_have_no_work() {
    let mut farm = SmallFarm::new(quick(), 1, 2);
    farm.work(1, 1);
    farm.work(2, 1);
    farm.finish();
    first(&of_node(&farm, "n1"), "no_job", "no job is open", "submit one");
    let states = |farm: &mut SmallFarm, devices| {
        farm.step(Input::DevicesChanged { session: SessionId(1), devices });
    };
    let in_state = |state| vec![DeviceInfo { state, ..inputs::device() }];
    states(&mut farm, in_state(DeviceState::Testing));
    first(&of_node(&farm, "n1"), "testing", "is being tested", "");
    let quarantined = DeviceState::Quarantined { reason: "bad".into(), remedy: "reset it".into() };
    states(&mut farm, in_state(quarantined));
    first(&of_node(&farm, "n1"), "devices", "is quarantined: bad; reset it", "`tessera doctor`");
    states(&mut farm, in_state(DeviceState::Ready));
    first(&of_node(&farm, "n1"), "no_job", "no job is open", "submit one");
    farm.step(joined(3, Join { devices: Vec::new(), ..inputs::join(3, 1) }));
    first(&of_node(&farm, "n3"), "no_device", "it has no device", "start it with a device");
    farm.step(joined(4, Join { unconfined: Some("no filter".into()), ..inputs::join(4, 0) }));
    assert_eq!(words(&of_node(&farm, "n4")), ["unconfined", "full"]);
    farm.step(Input::NodeDraining { session: SessionId(4) });
    first(&of_node(&farm, "n4"), "leaving", "leaving", "start it again");
    farm.step(Input::NodeLeft { session: SessionId(4), why: "told to end".to_owned() });
    first(&of_node(&farm, "n4"), "left", "told to end", "`tessera nodes remove`");
    farm.step(Input::SessionLost { session: SessionId(2) });
    first(&of_node(&farm, "n2"), "away", "connection lost", "");
    farm.later(Duration::from_secs(600));
    first(&of_node(&farm, "n2"), "lost", "", "start it again");
    farm.step(joined(2, inputs::join(2, 1)));
    first(&of_node(&farm, "n2"), "no_job", "no job is open", "submit one");
    farm.restart(false);
    first(&of_node(&farm, "n1"), "unseen", "not seen since the coordinator started", "start it");
    let unknown = farm.core.explain(&Subject::Node("n9".to_owned()));
    assert!(matches!(unknown, Err(RequestError::NotFound(_))), "{unknown:?}");
}

// promise: P4
#[test]
fn a_failing_node_says_until_when_and_works_when_released() {
    let mut farm = SmallFarm::new(quick(), 64, 2);
    let mut tries = 0;
    while !words(&of_node(&farm, "n1")).contains(&"unfit") {
        assert!(tries < 200, "{:?}", of_node(&farm, "n1"));
        tries += 1;
        if farm.lease(1).is_some() {
            farm.fail(1, Failure::Device("it broke".to_owned()));
        }
        farm.work(2, 1);
        if farm.lease(1).is_none() && farm.lease(2).is_none() {
            farm.submit(1000 + tries);
        }
        farm.later(Duration::from_millis(100));
    }
    let explained = of_node(&farm, "n1");
    let unfit =
        first(&explained, "unfit", "failed here in a row; it gets work again in", "undrain");
    assert!(unfit.ends_secs.is_some_and(|secs| secs <= 60), "{unfit:?}");
    farm.undrain("n1");
    assert!(!words(&of_node(&farm, "n1")).contains(&"unfit"), "{:?}", of_node(&farm, "n1"));
}

// promise: P4
#[test]
fn the_time_left_is_the_work_over_the_speed_of_the_nodes() {
    let mut farm = SmallFarm::new(quick(), 10, 2);
    assert_eq!(of_job(&farm).left_secs, None, "nothing is known yet");
    // Both take two seconds a unit: eight units more, four at each.
    for _ in 0..2 {
        farm.later(Duration::from_secs(2));
        for number in [1, 2] {
            let lease = farm.lease(number).expect("a unit");
            let result =
                tessera_core::Arrived { device_micros: 2_000_000, ..inputs::result(lease, 1) };
            farm.step(Input::ResultArrived { session: SessionId(number), result });
        }
    }
    farm.later(Duration::from_millis(1100));
    let left = of_job(&farm).left_secs.expect("speeds are known");
    assert!((4..=8).contains(&left), "{left} s for six units, of which two are half done");
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!(summary.left_secs, Some(left));
    let job = farm.job;
    farm.change(JobChange::Pause, job, root());
    assert_eq!(of_job(&farm).left_secs, None, "a paused job has no end");
}
