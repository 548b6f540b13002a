//! Failed frames that are rendered again.

use crate::small_farm::SmallFarm;
use crate::waiting::kernel;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, SessionId, Settings, SnapshotPart};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::compute::{ComputeSpec, Element, InputArray, Program};
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId};
use tessera_protocol::job::{JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::Failure;
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameState, JobState};
use tessera_support::inputs::{self, TILE, joined};
use uuid::Uuid;

/// A unit is dead when it has failed twice.
fn settings() -> Settings {
    Settings { attempts: 2, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn caller(name: &str) -> Caller {
    Caller { name: name.to_owned(), id: name.bytes().map(u64::from).sum(), admin: false }
}

fn retry(farm: &mut SmallFarm, name: &str) -> Response {
    let job = farm.job;
    farm.change(JobChange::Retry, job, caller(name))
}

fn fail(farm: &mut SmallFarm) {
    let lease = farm.lease(1).expect("a lease");
    let failure = Failure::Device("it broke".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    farm.later(Duration::from_secs(70));
}

fn state(farm: &SmallFarm) -> JobState {
    farm.core.job_summary(farm.job).expect("a job").state
}

/// A job of two frames of so many units each.
fn submit_two_frames(farm: &mut SmallFarm, units: u32) {
    farm.job = JobId(Uuid::from_u128(2));
    let frames = "1-2".parse().expect("frames");
    let render = RenderSpec { width: units * TILE, frames, ..inputs::render() };
    let job = farm.job;
    farm.step(inputs::submit(job, inputs::job(render)));
}

fn frames(farm: &SmallFarm) -> Vec<FrameState> {
    farm.core.frames(farm.job, 0).expect("frames").into_iter().map(|row| row.state).collect()
}

fn restarted(farm: &SmallFarm) -> Core {
    let from_records =
        Core::replay(settings(), [], farm.records.clone(), farm.now).expect("a sound journal");
    let parts = from_records.snapshot().into_iter();
    let parts = parts.map(|part| {
        SnapshotPart::from_bytes(&part.to_bytes().expect("bytes of a part")).expect("a part")
    });
    let again = Core::replay(settings(), parts, [], farm.now).expect("a sound journal");
    assert_eq!(again.durable_difference(&from_records), None);
    again
}

// promise: P3, P4
#[test]
fn a_retry_resets_attempts_of_failed_frames_only() {
    let mut farm = SmallFarm::new(settings(), 1, 0);
    submit_two_frames(&mut farm, 2);
    farm.step(joined(1, inputs::join(1, 1)));
    // The first job, of one unit, was there before.
    farm.work(1, 1);
    (0..2).for_each(|_| farm.work(1, 1));
    farm.finish();
    farm.work(1, 1);
    fail(&mut farm);
    fail(&mut farm);
    assert_eq!(state(&farm), JobState::Failed);
    let first = frames(&farm)[0].clone();
    assert!(matches!((&first, &frames(&farm)[1]), (FrameState::Done(_), FrameState::Failed(_))));

    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    assert_eq!(state(&farm), JobState::Running);
    assert_eq!(
        frames(&farm),
        [first.clone(), FrameState::Open { committed: 0, units: 2, round: None }]
    );
    // One failure more is not the end again.
    fail(&mut farm);
    assert_eq!(state(&farm), JobState::Running);
    (0..2).for_each(|_| {
        farm.work(1, 1);
        farm.later(Duration::from_secs(70));
    });
    let files = match &first {
        FrameState::Done(files) => files.clone(),
        other => panic!("{other:?}"),
    };
    let (job, frame) = (farm.job, FrameNumber(2));
    farm.step(Input::FrameResolved { job, frame, files, exposure: None });
    assert_eq!((state(&farm), frames(&farm)[0].clone()), (JobState::Done, first));
    assert_eq!(farm.audit(), 5);
}

#[test]
fn failed_frames_of_an_open_job_can_be_retried() {
    let mut farm = SmallFarm::new(settings(), 1, 0);
    submit_two_frames(&mut farm, 3);
    farm.step(joined(1, inputs::join(1, 1)));
    farm.work(1, 1);
    farm.work(1, 1);
    // The first frame fails with its second unit; the second frame is begun.
    fail(&mut farm);
    while frames(&farm)[0] != FrameState::Failed(String::new()) && farm.lease(1).is_some() {
        let lease = farm.lease(1).expect("a lease");
        if lease.unit.frame == FrameNumber(1) && lease.unit.unit.0 == 1 {
            fail(&mut farm);
            break;
        }
        farm.work(1, 1);
    }
    assert!(matches!(frames(&farm)[0], FrameState::Failed(_)), "{:?}", frames(&farm));
    assert_eq!(state(&farm), JobState::Running);
    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    assert_eq!(frames(&farm)[0], FrameState::Open { committed: 0, units: 3, round: None });
    (0..8).for_each(|_| farm.work(1, 1));
    assert_eq!(frames(&farm), [FrameState::Resolving, FrameState::Resolving]);
    farm.audit();
}

// promise: P3, P4
#[test]
fn results_from_before_a_retry_are_refused() {
    let mut farm = SmallFarm::new(settings(), 2, 2);
    let lease = farm.lease(2).expect("a lease");
    // A restart forgets the lease; its result would be taken, were it not for the retry.
    farm.replace_core(restarted(&farm));
    farm.step(joined(1, inputs::join(1, 1)));
    fail(&mut farm);
    fail(&mut farm);
    assert_eq!(state(&farm), JobState::Failed);
    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    farm.replace_core(restarted(&farm));
    let mut join = inputs::join(2, 0);
    join.finished = vec![lease];
    farm.step(joined(2, join));
    farm.step(Input::ResultArrived { session: SessionId(2), result: inputs::result(lease, 1) });
    assert_eq!(farm.core.job_summary(farm.job).map(|job| job.units_committed), Some(0));
    assert_eq!(farm.audit(), 0);
}

#[test]
fn a_cancelled_job_can_be_retried_and_others_may_take_it() {
    let mut farm = SmallFarm::new(settings(), 2, 1);
    farm.work(1, 1);
    farm.cancel(farm.job, caller("ada"));
    farm.step(Input::SessionLost { session: SessionId(1) });
    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    // No result is left that a node of another build would have to fit.
    assert_eq!(farm.core.job(farm.job).map(|job| job.fingerprint), Some(None));
    let join = Box::new(inputs::join(2, 1));
    let (session, fingerprint) = (SessionId(2), Fingerprint([2; 32]));
    farm.step(Input::NodeJoined { session, join, fingerprint, build: "newer".to_owned() });
    (0..2).for_each(|_| farm.work(2, 1));
    farm.finish();
    assert_eq!(state(&farm), JobState::Done);
    assert_eq!(farm.audit(), 2);
}

#[test]
fn a_job_paused_at_its_end_can_be_retried_and_paused() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    let job = farm.job;
    let pause = |farm: &mut SmallFarm| farm.change(JobChange::Pause, job, caller("ada"));
    assert_eq!(pause(&mut farm), Response::Done);
    farm.cancel(job, caller("ada"));
    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    assert_eq!(state(&farm), JobState::Running);
    assert_eq!(pause(&mut farm), Response::Done);
    assert_eq!(state(&farm), JobState::Paused);
    assert_eq!(farm.audit(), 0);
}

#[test]
fn a_retry_without_failed_frames_is_refused() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    let refused = |response: Response| match response {
        Response::Error(RequestError::Invalid(text)) => {
            assert!(text.contains("nothing to retry"), "{text}")
        }
        other => panic!("{other:?}"),
    };
    refused(retry(&mut farm, "ada"));
    farm.work(1, 1);
    farm.finish();
    assert_eq!(state(&farm), JobState::Done);
    refused(retry(&mut farm, "ada"));
    let foreign = retry(&mut farm, "eve");
    assert!(matches!(foreign, Response::Error(RequestError::NotAllowed(_))), "{foreign:?}");
    assert_eq!(state(&farm), JobState::Done);
}

// promise: P3, P4
#[test]
fn an_order_from_before_a_retry_makes_no_frame() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    farm.work(1, 1);
    assert!(farm.is_resolving());
    farm.cancel(farm.job, caller("ada"));
    assert_eq!(retry(&mut farm, "ada"), Response::Done);
    farm.work(1, 1);
    // The first order is answered; the frame is asked for again, and its answer counts.
    assert_eq!(farm.orders_of(farm.job), 1);
    farm.finish();
    assert_eq!((farm.frame(), farm.orders_of(farm.job)), (Some(FrameState::Resolving), 2));
    farm.finish();
    assert_eq!(state(&farm), JobState::Done);
}

/// A frame's failure and the end of its job are two records, and a crash may come between them.
#[test]
fn a_chain_broken_before_a_crash_ends_after_the_restart() {
    let mut farm = SmallFarm::new(settings(), 1, 0);
    let spec = kernel(Program::Builtin("mandelbrot".to_owned()));
    let JobKind::Compute(compute) = spec.kind else { panic!("{spec:?}") };
    let state_array = InputArray {
        name: "state".to_owned(),
        hash: BlobHash([9; 32]),
        length: 144,
        element: Element::F32,
        shape: vec![4],
        from: None,
    };
    let frames = "1-2".parse().expect("frames");
    let chained = ComputeSpec {
        frames,
        inputs: vec![state_array],
        feed: Some("state".to_owned()),
        ..compute
    };
    farm.job = JobId(Uuid::from_u128(2));
    let submit = inputs::submit(farm.job, JobSpec { kind: JobKind::Compute(chained), ..spec });
    farm.step(submit);
    farm.step(joined(1, inputs::join(1, 1)));
    farm.work(1, 1);
    (0..2).for_each(|_| fail(&mut farm));
    assert_eq!(state(&farm), JobState::Failed);
    let told = farm.core.job_summary(farm.job).expect("a job").note;

    let whole = farm.records.clone();
    let Some((Record::JobEnded { .. }, cut)) = whole.split_last() else { panic!("{whole:?}") };
    let core = Core::replay(settings(), [], cut.to_vec(), farm.now).expect("a sound journal");
    let summary = core.job_summary(farm.job).expect("a job");
    assert_eq!((summary.state, summary.note), (JobState::Failed, told));
}
