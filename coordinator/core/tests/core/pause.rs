//! Jobs that are paused and go on.

use crate::stand::Stand;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Moment, RequestId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::status::{FrameState, JobState};
use tessera_support::inputs::{self as plain, joined};

fn caller(name: &str) -> Caller {
    Caller { name: name.to_owned(), admin: false }
}

fn pause(stand: &mut Stand, pause: bool, name: &str) -> Response {
    let job = stand.job;
    stand.ask(Input::Pause { request: RequestId(7), job, pause, caller: caller(name) })
}

fn state(stand: &Stand) -> (JobState, String) {
    let summary = stand.core.job_summary(stand.job).expect("a job");
    (summary.state, summary.note)
}

fn stand(units: u32, nodes: u64) -> Stand {
    Stand::new(Settings::default().without_checks(), units, nodes)
}

#[test]
fn a_paused_job_gives_its_units_back_and_gets_them_again() {
    let mut stand = stand(3, 2);
    assert_eq!((stand.leased(1), stand.leased(2)), (vec![0], vec![1]));
    assert_eq!(pause(&mut stand, true, "ada"), Response::Done);
    assert!(stand.lease(1).is_none() && stand.lease(2).is_none());
    let (paused, note) = state(&stand);
    assert!(
        paused == JobState::Paused && note.starts_with("paused by `ada`; `tessera resume "),
        "{note}"
    );
    // Nothing is given while time passes, nodes come, and others are served.
    stand.later(Duration::from_secs(100));
    stand.step(joined(3, plain::join(3, 4)));
    assert!(stand.core.leases().next().is_none());
    assert_eq!(pause(&mut stand, false, "ada"), Response::Done);
    assert_eq!(state(&stand).0, JobState::Running);
    assert_eq!(stand.core.leases().count(), 3);
    (1..=3).for_each(|node| stand.work(node, 1));
    assert!(stand.is_resolving());
    stand.finish();
    assert_eq!(state(&stand).0, JobState::Done);
    assert_eq!(stand.audit(), 3);
}

#[test]
fn another_job_has_the_nodes_of_a_paused_one() {
    let mut stand = stand(2, 1);
    let first = stand.job;
    stand.submit(2);
    assert_eq!(stand.lease(1).map(|lease| lease.unit.job), Some(first));
    let paused =
        Input::Pause { request: RequestId(7), job: first, pause: true, caller: caller("ada") };
    assert_eq!(stand.ask(paused), Response::Done);
    assert_eq!(stand.lease(1).map(|lease| lease.unit.job), Some(stand.job));
}

#[test]
fn pausing_and_resuming_twice_is_harmless_and_a_job_that_ended_is_neither() {
    let mut stand = stand(1, 1);
    assert_eq!(pause(&mut stand, false, "ada"), Response::Done);
    assert_eq!(pause(&mut stand, true, "ada"), Response::Done);
    let records = stand.records.len();
    assert_eq!(pause(&mut stand, true, "ada"), Response::Done);
    assert_eq!(stand.records.len(), records);
    let refused = pause(&mut stand, false, "eve");
    assert!(matches!(refused, Response::Error(RequestError::NotAllowed(_))), "{refused:?}");
    let cancel = Input::Cancel { request: RequestId(8), job: stand.job, caller: caller("ada") };
    assert_eq!(stand.ask(cancel), Response::Done);
    for (wish, word) in [(true, "paused"), (false, "resumed")] {
        let refused = pause(&mut stand, wish, "ada");
        let Response::Error(RequestError::Invalid(text)) = &refused else { panic!("{refused:?}") };
        assert!(text.contains("has ended already") && text.contains(word), "{text}");
    }
    assert_eq!(state(&stand).0, JobState::Cancelled);
}

// promise: P6
#[test]
fn a_frame_that_is_complete_is_finished_though_its_job_is_paused() {
    let mut stand = stand(1, 1);
    stand.work(1, 1);
    assert!(stand.is_resolving());
    assert_eq!(pause(&mut stand, true, "ada"), Response::Done);
    stand.finish();
    assert!(matches!(stand.frame(), Some(FrameState::Done(_))));
    assert_eq!(state(&stand).0, JobState::Done);
}

// promise: P6
#[test]
fn a_pause_outlives_a_restart_and_so_does_what_a_node_has_finished() {
    let mut stand = stand(2, 1);
    let lease = stand.lease(1).expect("a lease");
    // The coordinator has forgotten its leases, and is asked to pause before the node is back.
    let replayed = |stand: &Stand| {
        let from_records =
            Core::replay(Settings::default(), [], stand.records.clone(), stand.now).unwrap();
        let parts = from_records.snapshot();
        let parts = parts
            .into_iter()
            .map(|part| tessera_core::SnapshotPart::from_bytes(&part.to_bytes().unwrap()).unwrap());
        let again = Core::replay(Settings::default(), parts, [], stand.now).unwrap();
        assert_eq!(again.durable_difference(&from_records), None);
        again
    };
    stand.core = replayed(&stand);
    assert_eq!(pause(&mut stand, true, "ada"), Response::Done);
    stand.core = replayed(&stand);
    assert_eq!(state(&stand).0, JobState::Paused);
    let mut join = plain::join(1, 1);
    join.finished = vec![lease];
    stand.step(joined(1, join));
    stand.now = Moment(stand.now.0 + 10_000);
    stand.step(Input::Tick);
    assert!(stand.core.leases().next().is_none());
    let result = plain::result(lease, 1);
    stand.step(Input::ResultArrived { session: tessera_core::SessionId(1), result });
    assert_eq!(stand.core.job_summary(stand.job).map(|job| job.units_committed), Some(1));
    assert!(stand.core.leases().next().is_none());
    assert_eq!(pause(&mut stand, false, "ada"), Response::Done);
    assert_eq!(stand.leased(1), [1]);
}
