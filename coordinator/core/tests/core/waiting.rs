//! Every job that waits says for what.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, SessionId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::compute::{ComputeSpec, Domain, Program, PtxNeeds, PtxReach};
use tessera_protocol::device::{CudaInfo, DeviceInfo, DeviceKind};
use tessera_protocol::explain::Subject;
use tessera_protocol::ids::{BlobHash, Fingerprint, JobId};
use tessera_protocol::job::{AssetFile, JobKind, JobSpec};
use tessera_protocol::node::{Failure, Join};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{JobState, JobSummary, Waits};
use tessera_support::inputs::{self, device, joined};
use uuid::Uuid;

/// A farm without a job.
fn farm(settings: Settings, nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, nodes);
    let (job, admin) = (farm.job, Caller { name: "root".to_owned(), id: 1, admin: true });
    farm.cancel(job, admin);
    farm
}

fn quick() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn submit(farm: &mut SmallFarm, spec: JobSpec) -> Response {
    farm.job = JobId(Uuid::from_u128(77));
    let job = farm.job;
    farm.ask(inputs::submit(job, spec))
}

/// The word, and the line that has all of these in it.
fn waits(farm: &SmallFarm, parts: &[&str]) -> Option<Waits> {
    let summary = farm.core.job_summary(farm.job).expect("a job");
    for part in parts {
        assert!(summary.note.contains(part), "{part:?} is not in {:?}", summary.note);
    }
    told_alike(farm, &summary);
    summary.waits
}

/// The explanation has the same words as the listing, and says what helps, unless time does.
fn told_alike(farm: &SmallFarm, summary: &JobSummary) {
    let explained = farm.core.explain(&Subject::Job(farm.job)).expect("a job");
    let Some(waits) = summary.waits else { return };
    let reason = explained.reasons.first().expect("a job that waits has a reason");
    assert!(summary.note.starts_with(&reason.why), "{summary:?} {reason:?}");
    let ends_by_itself = matches!(waits, Waits::Start | Waits::Feed);
    assert_eq!(reason.help.is_empty(), ends_by_itself, "{reason:?}");
}

fn join_in(farm: &mut SmallFarm, number: u64, pool: &str) {
    let join = Join { pool: Some(pool.to_owned()), ..inputs::join(number, 1) };
    farm.step(joined(number, join));
}

pub(crate) fn kernel(program: Program) -> JobSpec {
    let domain = Domain { width: 4, height: 1, depth: 1 };
    let compute = ComputeSpec { chunk: 4, ..ComputeSpec::new(program, domain) };
    JobSpec { kind: JobKind::Compute(compute), ..inputs::job(inputs::render()) }
}

fn file() -> AssetFile {
    AssetFile { path: "kernel".to_owned(), hash: BlobHash([4; 32]), length: 9 }
}

// promise: P4
#[test]
fn jobs_wait_for_a_node_and_then_for_their_turn() {
    let mut farm = farm(quick(), 0);
    submit(&mut farm, inputs::job(inputs::render()));
    assert_eq!(waits(&farm, &["no node is connected"]), Some(Waits::Nodes));
    farm.step(joined(1, inputs::join(1, 0)));
    assert_eq!(waits(&farm, &["waits for its turn"]), Some(Waits::Turn));
    farm.step(Input::Capacity { session: SessionId(1), units: 1 });
    assert_eq!(waits(&farm, &[]), None);
    farm.work(1, 1);
    assert_eq!(waits(&farm, &[]), None, "its frame is being made");
    farm.finish();
    assert_eq!(waits(&farm, &[]), None, "it is done");
}

// promise: P4
#[test]
fn a_job_waits_for_a_node_of_its_own_pool() {
    let mut farm = farm(quick(), 1);
    let spec = JobSpec { pool: Some("gpu".to_owned()), ..inputs::job(inputs::render()) };
    submit(&mut farm, spec);
    join_in(&mut farm, 2, "cpu");
    assert_eq!(waits(&farm, &["no node of pool `gpu` is connected"]), Some(Waits::Pool));
    assert!(farm.core.leases().next().is_none());
    join_in(&mut farm, 3, "gpu");
    assert!(farm.lease(3).is_some() && farm.core.leases().count() == 1);
    assert_eq!(waits(&farm, &[]), None);
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!(summary.pool.as_deref(), Some("gpu"));
    // A job for no pool takes any node, also one of a pool.
    farm.job = JobId(Uuid::from_u128(78));
    let job = farm.job;
    farm.step(inputs::submit(job, inputs::job(inputs::render())));
    assert!(farm.core.leases().any(|(lease, _)| lease.unit.job == job));
}

// promise: P4
#[test]
fn a_job_waits_for_memory_with_both_sizes_of_its_pool() {
    let mut farm = farm(quick(), 0);
    let spec = |bytes| JobSpec {
        pool: Some("gpu".to_owned()),
        device_bytes: bytes,
        ..inputs::job(inputs::render())
    };
    submit(&mut farm, spec(3 << 30));
    join_in(&mut farm, 1, "gpu");
    let large = DeviceInfo { memory_bytes: 8 << 30, ..device() };
    farm.step(joined(2, Join { devices: vec![large], ..inputs::join(2, 1) }));
    assert_eq!(waits(&farm, &["needs 3.0 GiB", "1.0 GiB", "`n1`"]), Some(Waits::Memory));
    assert!(farm.core.leases().next().is_none());
    // What no device of its pool can hold is not taken at all.
    farm.job = JobId(Uuid::from_u128(79));
    let job = farm.job;
    let refused = farm.ask(inputs::submit(job, spec(4 << 30)));
    assert!(matches!(refused, Response::Error(RequestError::Invalid(_))), "{refused:?}");
}

// promise: P4
#[test]
fn a_job_waits_for_the_build_of_its_first_results() {
    let mut farm = farm(quick(), 1);
    let render = tessera_protocol::job::RenderSpec { width: 2 * inputs::TILE, ..inputs::render() };
    submit(&mut farm, inputs::job(render));
    farm.work(1, 1);
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(Duration::from_secs(10));
    let (session, join) = (SessionId(2), Box::new(inputs::join(2, 1)));
    let fingerprint = Fingerprint([2; 32]);
    farm.step(Input::NodeJoined { session, join, fingerprint, build: "newer".to_owned() });
    let both = [Fingerprint([1; 32]).to_string(), fingerprint.to_string()];
    assert_eq!(waits(&farm, &[&both[0], &both[1]]), Some(Waits::Fingerprint));
}

// promise: P4
#[test]
fn jobs_wait_for_devices_and_compilers() {
    let mut farm = farm(quick(), 1);
    submit(&mut farm, kernel(Program::Cuda(file())));
    assert_eq!(waits(&farm, &["NVRTC"]), Some(Waits::Compiler));
    let cuda = DeviceInfo { kind: DeviceKind::Cuda, ..device() };
    farm.step(joined(2, Join { devices: vec![cuda.clone()], ..inputs::join(2, 1) }));
    assert_eq!(waits(&farm, &["NVRTC"]), Some(Waits::Compiler));
    let compiles = Join { devices: vec![cuda], nvrtc: Some((12, 0)), ..inputs::join(3, 1) };
    farm.step(joined(3, compiles));
    assert_eq!((waits(&farm, &[]), farm.lease(3).is_some()), (None, true));

    let mut farm = self::farm(quick(), 1);
    submit(&mut farm, kernel(Program::Ptx(file())));
    assert_eq!(waits(&farm, &["a node with a CUDA device"]), Some(Waits::Device));
}

fn kernel_of(version: (u8, u8), capability: (u8, u8)) -> JobSpec {
    let mut spec = kernel(Program::Ptx(file()));
    if let JobKind::Compute(compute) = &mut spec.kind {
        compute.ptx = Some(PtxNeeds { version, capability, reach: PtxReach::Newer });
    }
    spec
}

fn join_with(farm: &mut SmallFarm, node: u64, ptx_version: (u8, u8), compute_capability: (u8, u8)) {
    let info = CudaInfo { ptx_version, compute_capability, ..CudaInfo::default() };
    let cuda = DeviceInfo { kind: DeviceKind::Cuda, cuda: Some(info), ..device() };
    farm.step(joined(node, Join { devices: vec![cuda], ..inputs::join(node, 4) }));
}

// promise: P4
#[test]
fn ptx_goes_only_to_nodes_that_take_it() {
    for (version, capability) in [((9, 0), (7, 5)), ((8, 0), (9, 0))] {
        let mut farm = farm(quick(), 0);
        join_with(&mut farm, 1, (8, 7), (8, 6));
        submit(&mut farm, kernel_of(version, capability));
        let needs = format!("PTX {}.{} for compute capability", version.0, version.1);
        let takes = "`n1` takes PTX 8.7 on 8.6";
        assert_eq!(waits(&farm, &[&needs, takes]), Some(Waits::Driver));
        assert!(farm.lease(1).is_none());
        join_with(&mut farm, 2, (9, 0), (9, 0));
        assert_eq!((waits(&farm, &[]), farm.lease(2).is_some()), (None, true));
        assert!(farm.lease(1).is_none());
    }
}

// promise: P4
#[test]
fn a_node_wrong_about_its_driver_costs_no_attempt() {
    let mut farm = farm(quick(), 0);
    join_with(&mut farm, 1, (9, 0), (9, 0));
    submit(&mut farm, kernel_of((9, 0), (9, 0)));
    let lease = farm.lease(1).expect("a lease");
    let failure = Failure::Unable("the driver refuses it".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert_eq!(farm.core.leases().count(), 0);
    let note = ["can run it", "`n1`: the driver refuses it"];
    assert_eq!(waits(&farm, &note), Some(Waits::Fingerprint));
    let counted = |record: &Record| matches!(record, Record::AttemptsEnded { .. });
    assert!(!farm.records.iter().any(counted), "no attempt is counted");
    join_with(&mut farm, 2, (9, 0), (9, 0));
    assert!(farm.lease(2).is_some_and(|lease| lease.unit.job == farm.job));
}

// promise: P4
#[test]
fn a_job_waits_for_nodes_out_of_work_and_names_them() {
    let mut farm = farm(quick(), 2);
    for name in ["n1", "n2"] {
        farm.drain(name, true, false);
    }
    submit(&mut farm, inputs::job(inputs::render()));
    assert_eq!(waits(&farm, &["`n1` is drained", "`n2` is drained"]), Some(Waits::OutOfWork));
    farm.undrain("n2");
    assert_eq!(waits(&farm, &[]), None);
}

// promise: P4
#[test]
fn a_job_waits_for_another_node_to_check_its_results() {
    let settings = Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() };
    let mut farm = farm(settings, 2);
    submit(&mut farm, inputs::job(inputs::render()));
    let (first, other) = if farm.lease(1).is_some() { (1, 2) } else { (2, 1) };
    farm.step(Input::Capacity { session: SessionId(other), units: 1 });
    farm.work(first, 1);
    assert!(farm.lease(other).is_some());
    // It is as good as gone, and its lease with it.
    farm.step(Input::NodeDraining { session: SessionId(other) });
    let lease = farm.lease(other).expect("a lease");
    farm.step(Input::Returned { session: SessionId(other), leases: vec![lease] });
    assert_eq!(waits(&farm, &["1 of its results wait for another node"]), Some(Waits::Check));
}

// promise: P4
#[test]
fn a_job_waits_for_attempts_and_for_nodes_to_return() {
    let mut farm = farm(quick(), 1);
    submit(&mut farm, inputs::job(inputs::render()));
    let lease = farm.lease(1).expect("a lease");
    let failure = Failure::Device("it broke".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert_eq!(waits(&farm, &["have failed, and are tried again in "]), Some(Waits::Backoff));
    farm.later(Duration::from_secs(2));
    assert_eq!(waits(&farm, &[]), None);

    let settings = Settings { settle: Duration::from_secs(2), ..quick() };
    farm.replace_core(
        Core::replay(settings, [], farm.records.clone(), farm.now).expect("a journal"),
    );
    farm.step(joined(1, inputs::join(1, 1)));
    assert_eq!(waits(&farm, &["has just started"]), Some(Waits::Start));
    farm.later(Duration::from_secs(3));
    assert_eq!(waits(&farm, &[]), None);
}

// promise: P4
#[test]
fn a_paused_job_waits_for_its_user() {
    let mut farm = farm(quick(), 1);
    submit(&mut farm, inputs::job(inputs::render()));
    let (job, caller) = (farm.job, Caller { name: "ada".to_owned(), id: 294, admin: false });
    farm.change(JobChange::Pause, job, caller);
    assert_eq!(waits(&farm, &["paused by `ada`"]), Some(Waits::Paused));
    assert_eq!(farm.core.job_summary(job).map(|job| job.state), Some(JobState::Paused));
}

// promise: P4
#[test]
fn a_job_waits_for_a_build_that_knows_its_options() {
    let mut farm = farm(quick(), 1);
    submit(&mut farm, inputs::job(inputs::render()));
    let lease = farm.lease(1).expect("a lease");
    let reason = "stamp: this build does not know this option".to_owned();
    let failure = Failure::Unable(reason.clone());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    assert_eq!(farm.core.leases().count(), 0, "it gets no more of this job");
    assert_eq!(waits(&farm, &["`n1`: stamp:", "all its options"]), Some(Waits::Fingerprint));
    let counted = |record: &Record| matches!(record, Record::AttemptsEnded { .. });
    assert!(!farm.records.iter().any(counted), "no attempt is counted");
    let summary = farm.core.nodes(farm.now).into_iter().next().expect("a node");
    assert!(summary.note.contains(&reason), "{}", summary.note);
    // A job without that option continues there, and another build renders this one.
    let first = farm.job;
    farm.submit(78);
    assert!(farm.lease(1).is_some_and(|lease| lease.unit.job == farm.job));
    farm.work(1, 1);
    join_in(&mut farm, 2, "cpu");
    assert!(farm.lease(2).is_some_and(|lease| lease.unit.job == first));
    farm.work(2, 1);
    farm.job = first;
    assert_eq!(waits(&farm, &[]), None);
}
