//! Failed frames that are rendered again.

use crate::stand::Stand;
use crate::waiting::kernel;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, RequestId, SessionId, Settings, SnapshotPart};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::compute::{ComputeSpec, Element, InputArray, Program};
use tessera_protocol::ids::{BlobHash, Fingerprint, FrameNumber, JobId};
use tessera_protocol::job::{JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::Failure;
use tessera_protocol::status::{FrameState, JobState};
use tessera_support::inputs::{self as plain, TILE, joined};
use uuid::Uuid;

/// A unit is dead when it has failed twice.
fn settings() -> Settings {
    Settings { attempts: 2, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn caller(name: &str) -> Caller {
    Caller { name: name.to_owned(), admin: false }
}

fn retry(stand: &mut Stand, name: &str) -> Response {
    let job = stand.job;
    stand.ask(Input::Retry { request: RequestId(7), job, caller: caller(name) })
}

fn fail(stand: &mut Stand) {
    let lease = stand.lease(1).expect("a lease");
    let failure = Failure::Device("it broke".to_owned());
    stand.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    stand.later(Duration::from_secs(70));
}

fn state(stand: &Stand) -> JobState {
    stand.core.job_summary(stand.job).expect("a job").state
}

/// A job of two frames of so many units each.
fn submit_two_frames(stand: &mut Stand, units: u32) {
    stand.job = JobId(Uuid::from_u128(2));
    let frames = "1-2".parse().expect("frames");
    let render = RenderSpec { width: units * TILE, frames, ..plain::render() };
    let job = stand.job;
    stand.step(plain::submit(job, plain::job(render)));
}

fn frames(stand: &Stand) -> Vec<FrameState> {
    stand.core.frames(stand.job, 0).expect("frames").into_iter().map(|row| row.state).collect()
}

fn restarted(stand: &Stand) -> Core {
    let from_records =
        Core::replay(settings(), [], stand.records.clone(), stand.now).expect("a sound journal");
    let parts = from_records.snapshot().into_iter();
    let parts = parts.map(|part| {
        SnapshotPart::from_bytes(&part.to_bytes().expect("bytes of a part")).expect("a part")
    });
    let again = Core::replay(settings(), parts, [], stand.now).expect("a sound journal");
    assert_eq!(again.durable_difference(&from_records), None);
    again
}

// promise: P3, P4
#[test]
fn failed_frames_have_their_attempts_anew_and_finished_ones_stay() {
    let mut stand = Stand::new(settings(), 1, 0);
    submit_two_frames(&mut stand, 2);
    stand.step(joined(1, plain::join(1, 1)));
    // The first job, of one unit, was there before.
    stand.work(1, 1);
    (0..2).for_each(|_| stand.work(1, 1));
    stand.finish();
    stand.work(1, 1);
    fail(&mut stand);
    fail(&mut stand);
    assert_eq!(state(&stand), JobState::Failed);
    let first = frames(&stand)[0].clone();
    assert!(matches!((&first, &frames(&stand)[1]), (FrameState::Done(_), FrameState::Failed(_))));

    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    assert_eq!(state(&stand), JobState::Running);
    assert_eq!(
        frames(&stand),
        [first.clone(), FrameState::Open { committed: 0, units: 2, round: None }]
    );
    // One failure more is not the end again.
    fail(&mut stand);
    assert_eq!(state(&stand), JobState::Running);
    (0..2).for_each(|_| {
        stand.work(1, 1);
        stand.later(Duration::from_secs(70));
    });
    let files = match &first {
        FrameState::Done(files) => files.clone(),
        other => panic!("{other:?}"),
    };
    let (job, frame) = (stand.job, FrameNumber(2));
    stand.step(Input::FrameResolved { job, frame, files });
    assert_eq!((state(&stand), frames(&stand)[0].clone()), (JobState::Done, first));
    assert_eq!(stand.audit(), 5);
}

#[test]
fn frames_of_a_job_that_goes_on_are_opened_again_beside_the_others() {
    let mut stand = Stand::new(settings(), 1, 0);
    submit_two_frames(&mut stand, 3);
    stand.step(joined(1, plain::join(1, 1)));
    stand.work(1, 1);
    stand.work(1, 1);
    // The first frame fails with its second unit; the second frame is begun.
    fail(&mut stand);
    while frames(&stand)[0] != FrameState::Failed(String::new()) && stand.lease(1).is_some() {
        let lease = stand.lease(1).expect("a lease");
        if lease.unit.frame == FrameNumber(1) && lease.unit.unit.0 == 1 {
            fail(&mut stand);
            break;
        }
        stand.work(1, 1);
    }
    assert!(matches!(frames(&stand)[0], FrameState::Failed(_)), "{:?}", frames(&stand));
    assert_eq!(state(&stand), JobState::Running);
    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    assert_eq!(frames(&stand)[0], FrameState::Open { committed: 0, units: 3, round: None });
    (0..8).for_each(|_| stand.work(1, 1));
    assert_eq!(frames(&stand), [FrameState::Resolving, FrameState::Resolving]);
    stand.audit();
}

// promise: P3, P4
#[test]
fn what_nodes_still_have_of_a_failed_frame_is_not_taken() {
    let mut stand = Stand::new(settings(), 2, 2);
    let lease = stand.lease(2).expect("a lease");
    // A restart forgets the lease; its result would be taken, were it not for the retry.
    stand.core = restarted(&stand);
    stand.step(joined(1, plain::join(1, 1)));
    fail(&mut stand);
    fail(&mut stand);
    assert_eq!(state(&stand), JobState::Failed);
    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    stand.core = restarted(&stand);
    let mut join = plain::join(2, 0);
    join.finished = vec![lease];
    stand.step(joined(2, join));
    stand.step(Input::ResultArrived { session: SessionId(2), result: plain::result(lease, 1) });
    assert_eq!(stand.core.job_summary(stand.job).map(|job| job.units_committed), Some(0));
    assert_eq!(stand.audit(), 0);
}

#[test]
fn a_cancelled_job_can_be_retried_and_others_may_take_it() {
    let mut stand = Stand::new(settings(), 2, 1);
    stand.work(1, 1);
    let cancel = Input::Cancel { request: RequestId(8), job: stand.job, caller: caller("ada") };
    assert_eq!(stand.ask(cancel), Response::Done);
    stand.step(Input::SessionLost { session: SessionId(1) });
    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    // No result is left that a node of another build would have to fit.
    assert_eq!(stand.core.job(stand.job).map(|job| job.fingerprint), Some(None));
    let join = Box::new(plain::join(2, 1));
    let (session, fingerprint) = (SessionId(2), Fingerprint([2; 32]));
    stand.step(Input::NodeJoined { session, join, fingerprint, build: "newer".to_owned() });
    (0..2).for_each(|_| stand.work(2, 1));
    stand.finish();
    assert_eq!(state(&stand), JobState::Done);
    assert_eq!(stand.audit(), 2);
}

#[test]
fn a_job_that_was_paused_at_its_end_can_be_retried_and_paused_again() {
    let mut stand = Stand::new(settings(), 1, 1);
    let job = stand.job;
    let pause = || Input::Pause { request: RequestId(9), job, pause: true, caller: caller("ada") };
    assert_eq!(stand.ask(pause()), Response::Done);
    let cancel = Input::Cancel { request: RequestId(8), job, caller: caller("ada") };
    assert_eq!(stand.ask(cancel), Response::Done);
    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    assert_eq!(state(&stand), JobState::Running);
    assert_eq!(stand.ask(pause()), Response::Done);
    assert_eq!(state(&stand), JobState::Paused);
    assert_eq!(stand.audit(), 0);
}

#[test]
fn where_nothing_has_failed_there_is_nothing_to_retry() {
    let mut stand = Stand::new(settings(), 1, 1);
    let refused = |response: Response| match response {
        Response::Error(RequestError::Invalid(text)) => {
            assert!(text.contains("nothing to retry"), "{text}")
        }
        other => panic!("{other:?}"),
    };
    refused(retry(&mut stand, "ada"));
    stand.work(1, 1);
    stand.finish();
    assert_eq!(state(&stand), JobState::Done);
    refused(retry(&mut stand, "ada"));
    let foreign = retry(&mut stand, "eve");
    assert!(matches!(foreign, Response::Error(RequestError::NotAllowed(_))), "{foreign:?}");
    assert_eq!(state(&stand), JobState::Done);
}

// promise: P3, P4
#[test]
fn an_order_of_before_the_end_makes_no_frame_of_after_the_retry() {
    let mut stand = Stand::new(settings(), 1, 1);
    stand.work(1, 1);
    assert!(stand.is_resolving());
    let cancel = Input::Cancel { request: RequestId(8), job: stand.job, caller: caller("ada") };
    assert_eq!(stand.ask(cancel), Response::Done);
    assert_eq!(retry(&mut stand, "ada"), Response::Done);
    stand.work(1, 1);
    // The first order is answered; the frame is asked for again, and its answer counts.
    assert_eq!(stand.orders_of(stand.job), 1);
    stand.finish();
    assert_eq!((stand.frame(), stand.orders_of(stand.job)), (Some(FrameState::Resolving), 2));
    stand.finish();
    assert_eq!(state(&stand), JobState::Done);
}

/// A frame's failure and the end of its job are two records, and a crash may come between them.
#[test]
fn a_chain_that_broke_before_a_crash_ends_after_it() {
    let mut stand = Stand::new(settings(), 1, 0);
    let spec = kernel(Program::Builtin("mandelbrot".to_owned()));
    let JobKind::Compute(compute) = spec.kind else { panic!("{spec:?}") };
    let state_array = InputArray {
        name: "state".to_owned(),
        hash: BlobHash([9; 32]),
        length: 144,
        element: Element::F32,
        shape: vec![4],
    };
    let frames = "1-2".parse().expect("frames");
    let chained = ComputeSpec {
        frames,
        inputs: vec![state_array],
        feed: Some("state".to_owned()),
        ..compute
    };
    stand.job = JobId(Uuid::from_u128(2));
    let submit = plain::submit(stand.job, JobSpec { kind: JobKind::Compute(chained), ..spec });
    stand.step(submit);
    stand.step(joined(1, plain::join(1, 1)));
    stand.work(1, 1);
    (0..2).for_each(|_| fail(&mut stand));
    assert_eq!(state(&stand), JobState::Failed);
    let told = stand.core.job_summary(stand.job).expect("a job").note;

    let whole = stand.records.clone();
    let Some((Record::JobEnded { .. }, cut)) = whole.split_last() else { panic!("{whole:?}") };
    let core = Core::replay(settings(), [], cut.to_vec(), stand.now).expect("a sound journal");
    let summary = core.job_summary(stand.job).expect("a job");
    assert_eq!((summary.state, summary.note), (JobState::Failed, told));
}
