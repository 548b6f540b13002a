//! Every job that waits says for what.

use crate::stand::Stand;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, RequestId, SessionId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::compute::{ComputeFormat, ComputeSpec, Domain, Element, Program};
use tessera_protocol::device::{DeviceInfo, DeviceKind};
use tessera_protocol::ids::{BlobHash, Fingerprint, JobId};
use tessera_protocol::job::{AssetFile, JobKind, JobSpec};
use tessera_protocol::node::{Failure, Join};
use tessera_protocol::status::{JobState, Waits};
use tessera_support::inputs::{self as plain, device, joined};
use uuid::Uuid;

/// A farm without a job.
fn stand(settings: Settings, nodes: u64) -> Stand {
    let mut stand = Stand::new(settings, 1, nodes);
    let (job, admin) = (stand.job, Caller { name: "root".to_owned(), admin: true });
    stand.ask(Input::Cancel { request: RequestId(1), job, caller: admin });
    stand
}

fn quick() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn submit(stand: &mut Stand, spec: JobSpec) -> Response {
    stand.job = JobId(Uuid::from_u128(77));
    let job = stand.job;
    stand.ask(plain::submit(job, spec))
}

/// The word, and the line that has all of these in it.
fn waits(stand: &Stand, parts: &[&str]) -> Option<Waits> {
    let summary = stand.core.job_summary(stand.job).expect("a job");
    for part in parts {
        assert!(summary.note.contains(part), "{part:?} is not in {:?}", summary.note);
    }
    summary.waits
}

fn join_in(stand: &mut Stand, number: u64, pool: &str) {
    let join = Join { pool: Some(pool.to_owned()), ..plain::join(number, 1) };
    stand.step(joined(number, join));
}

pub(crate) fn kernel(program: Program) -> JobSpec {
    let compute = ComputeSpec {
        program,
        inputs: Vec::new(),
        arguments: Vec::new(),
        domain: Domain { width: 4, height: 1, depth: 1 },
        channels: 1,
        element: Element::F32,
        reduction: None,
        formats: vec![ComputeFormat::Npy],
        chunk: 4,
        frames: "1".parse().expect("a frame"),
        feed: None,
        seed: 0,
        time_limit_secs: 60,
    };
    JobSpec { kind: JobKind::Compute(compute), ..plain::job(plain::render()) }
}

fn file() -> AssetFile {
    AssetFile { path: "kernel".to_owned(), hash: BlobHash([4; 32]), length: 9 }
}

// promise: P4
#[test]
fn for_any_node_and_then_for_its_turn() {
    let mut stand = stand(quick(), 0);
    submit(&mut stand, plain::job(plain::render()));
    assert_eq!(waits(&stand, &["no node is connected"]), Some(Waits::Nodes));
    stand.step(joined(1, plain::join(1, 0)));
    assert_eq!(waits(&stand, &["waits for its turn"]), Some(Waits::Turn));
    stand.step(Input::Capacity { session: SessionId(1), units: 1 });
    assert_eq!(waits(&stand, &[]), None);
    stand.work(1, 1);
    assert_eq!(waits(&stand, &[]), None, "its frame is being made");
    stand.finish();
    assert_eq!(waits(&stand, &[]), None, "it is done");
}

// promise: P4
#[test]
fn for_a_node_of_its_pool_and_it_gets_no_other() {
    let mut stand = stand(quick(), 1);
    let spec = JobSpec { pool: Some("gpu".to_owned()), ..plain::job(plain::render()) };
    submit(&mut stand, spec);
    join_in(&mut stand, 2, "cpu");
    assert_eq!(waits(&stand, &["no node of pool `gpu` is connected"]), Some(Waits::Pool));
    assert!(stand.core.leases().next().is_none());
    join_in(&mut stand, 3, "gpu");
    assert!(stand.lease(3).is_some() && stand.core.leases().count() == 1);
    assert_eq!(waits(&stand, &[]), None);
    let summary = stand.core.job_summary(stand.job).expect("a job");
    assert_eq!(summary.pool.as_deref(), Some("gpu"));
    // A job for no pool takes any node, also one of a pool.
    stand.job = JobId(Uuid::from_u128(78));
    let job = stand.job;
    stand.step(plain::submit(job, plain::job(plain::render())));
    assert!(stand.core.leases().any(|(lease, _)| lease.unit.job == job));
}

// promise: P4
#[test]
fn for_memory_with_both_numbers_of_its_pool() {
    let mut stand = stand(quick(), 0);
    let spec = |bytes| JobSpec {
        pool: Some("gpu".to_owned()),
        device_bytes: bytes,
        ..plain::job(plain::render())
    };
    submit(&mut stand, spec(3 << 30));
    join_in(&mut stand, 1, "gpu");
    let large = DeviceInfo { memory_bytes: 8 << 30, ..device() };
    stand.step(joined(2, Join { devices: vec![large], ..plain::join(2, 1) }));
    assert_eq!(waits(&stand, &["needs 3.0 GiB", "1.0 GiB", "`n1`"]), Some(Waits::Memory));
    assert!(stand.core.leases().next().is_none());
    // What no device of its pool can hold is not taken at all.
    stand.job = JobId(Uuid::from_u128(79));
    let job = stand.job;
    let refused = stand.ask(plain::submit(job, spec(4 << 30)));
    assert!(matches!(refused, Response::Error(RequestError::Invalid(_))), "{refused:?}");
}

// promise: P4
#[test]
fn for_the_build_of_its_first_results_and_both_are_named() {
    let mut stand = stand(quick(), 1);
    let render = tessera_protocol::job::RenderSpec { width: 2 * plain::TILE, ..plain::render() };
    submit(&mut stand, plain::job(render));
    stand.work(1, 1);
    stand.step(Input::SessionLost { session: SessionId(1) });
    stand.later(Duration::from_secs(10));
    let (session, join) = (SessionId(2), Box::new(plain::join(2, 1)));
    let fingerprint = Fingerprint([2; 32]);
    stand.step(Input::NodeJoined { session, join, fingerprint, build: "newer".to_owned() });
    let both = [Fingerprint([1; 32]).to_string(), fingerprint.to_string()];
    assert_eq!(waits(&stand, &[&both[0], &both[1]]), Some(Waits::Fingerprint));
}

// promise: P4
#[test]
fn for_devices_and_compilers() {
    let mut stand = stand(quick(), 1);
    submit(&mut stand, kernel(Program::Cuda(file())));
    assert_eq!(waits(&stand, &["NVRTC"]), Some(Waits::Compiler));
    let cuda = DeviceInfo { kind: DeviceKind::Cuda, ..device() };
    stand.step(joined(2, Join { devices: vec![cuda.clone()], ..plain::join(2, 1) }));
    assert_eq!(waits(&stand, &["NVRTC"]), Some(Waits::Compiler));
    let compiles = Join { devices: vec![cuda], nvrtc: Some((12, 0)), ..plain::join(3, 1) };
    stand.step(joined(3, compiles));
    assert_eq!((waits(&stand, &[]), stand.lease(3).is_some()), (None, true));

    let mut stand = self::stand(quick(), 1);
    submit(&mut stand, kernel(Program::Ptx(file())));
    assert_eq!(waits(&stand, &["a node with a CUDA device"]), Some(Waits::Device));
}

// promise: P4
#[test]
fn for_nodes_that_are_out_of_work_and_they_are_named() {
    let mut stand = stand(quick(), 2);
    for name in ["n1", "n2"] {
        let drain = Input::Drain { request: RequestId(3), node: name.to_owned(), drain: true };
        assert_eq!(stand.ask(drain), Response::Done);
    }
    submit(&mut stand, plain::job(plain::render()));
    assert_eq!(waits(&stand, &["`n1` is draining", "`n2` is draining"]), Some(Waits::OutOfWork));
    stand.undrain("n2");
    assert_eq!(waits(&stand, &[]), None);
}

// promise: P4
#[test]
fn for_another_node_to_check_its_results() {
    let settings = Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() };
    let mut stand = stand(settings, 2);
    submit(&mut stand, plain::job(plain::render()));
    let (first, other) = if stand.lease(1).is_some() { (1, 2) } else { (2, 1) };
    stand.step(Input::Capacity { session: SessionId(other), units: 1 });
    stand.work(first, 1);
    assert!(stand.lease(other).is_some());
    // It is as good as gone, and its lease with it.
    stand.step(Input::NodeDraining { session: SessionId(other) });
    let lease = stand.lease(other).expect("a lease");
    stand.step(Input::Returned { session: SessionId(other), leases: vec![lease] });
    assert_eq!(waits(&stand, &["1 of its results wait for another node"]), Some(Waits::Check));
}

// promise: P4
#[test]
fn for_another_attempt_and_for_nodes_to_come_back() {
    let mut stand = stand(quick(), 1);
    submit(&mut stand, plain::job(plain::render()));
    let lease = stand.lease(1).expect("a lease");
    let failure = Failure::Device("it broke".to_owned());
    stand.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert_eq!(waits(&stand, &["have failed, and are tried again in "]), Some(Waits::Backoff));
    stand.later(Duration::from_secs(2));
    assert_eq!(waits(&stand, &[]), None);

    let settings = Settings { settle: Duration::from_secs(2), ..quick() };
    stand.core = Core::replay(settings, [], stand.records.clone(), stand.now).expect("a journal");
    stand.step(joined(1, plain::join(1, 1)));
    assert_eq!(waits(&stand, &["has just started"]), Some(Waits::Start));
    stand.later(Duration::from_secs(3));
    assert_eq!(waits(&stand, &[]), None);
}

// promise: P4
#[test]
fn for_its_user() {
    let mut stand = stand(quick(), 1);
    submit(&mut stand, plain::job(plain::render()));
    let (job, caller) = (stand.job, Caller { name: "ada".to_owned(), admin: false });
    stand.ask(Input::Pause { request: RequestId(2), job, pause: true, caller });
    assert_eq!(waits(&stand, &["paused by `ada`"]), Some(Waits::Paused));
    assert_eq!(stand.core.job_summary(job).map(|job| job.state), Some(JobState::Paused));
}

// promise: P4
#[test]
fn for_a_build_that_knows_its_options_and_no_attempt_is_counted() {
    let mut stand = stand(quick(), 1);
    submit(&mut stand, plain::job(plain::render()));
    let lease = stand.lease(1).expect("a lease");
    let reason = "stamp: this build does not know this option".to_owned();
    let failure = Failure::Unable(reason.clone());
    stand.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert_eq!(stand.core.leases().count(), 0, "it gets no more of this job");
    assert_eq!(waits(&stand, &["`n1`: stamp:", "all its options"]), Some(Waits::Fingerprint));
    let counted = |record: &Record| matches!(record, Record::AttemptsEnded { .. });
    assert!(!stand.records.iter().any(counted), "no attempt is counted");
    let summary = stand.core.nodes(stand.now).into_iter().next().expect("a node");
    assert!(summary.note.contains(&reason), "{}", summary.note);
    // A job without that option goes on there, and another build renders this one.
    let first = stand.job;
    stand.submit(78);
    assert!(stand.lease(1).is_some_and(|lease| lease.unit.job == stand.job));
    stand.work(1, 1);
    join_in(&mut stand, 2, "cpu");
    assert!(stand.lease(2).is_some_and(|lease| lease.unit.job == first));
    stand.work(2, 1);
    stand.job = first;
    assert_eq!(waits(&stand, &[]), None);
}
