//! Jobs that are paused and resumed.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Moment, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameState, JobState};
use tessera_support::inputs::{self, joined};

fn caller(name: &str) -> Caller {
    Caller { name: name.to_owned(), id: name.bytes().map(u64::from).sum(), admin: false }
}

fn pause(farm: &mut SmallFarm, pause: bool, name: &str) -> Response {
    let job = farm.job;
    let change = if pause { JobChange::Pause } else { JobChange::Resume };
    farm.change(change, job, caller(name))
}

fn state(farm: &SmallFarm) -> (JobState, String) {
    let summary = farm.core.job_summary(farm.job).expect("a job");
    (summary.state, summary.note)
}

fn farm(units: u32, nodes: u64) -> SmallFarm {
    SmallFarm::new(Settings::default().without_checks(), units, nodes)
}

#[test]
fn a_paused_job_gives_its_units_back_and_gets_them_again() {
    let mut farm = farm(3, 2);
    assert_eq!((farm.leased(1), farm.leased(2)), (vec![0], vec![1]));
    assert_eq!(pause(&mut farm, true, "ada"), Response::Done);
    assert!(farm.lease(1).is_none() && farm.lease(2).is_none());
    let (paused, note) = state(&farm);
    assert!(
        paused == JobState::Paused && note.starts_with("paused by `ada`; `tessera resume "),
        "{note}"
    );
    // Nothing is given while time passes, nodes come, and others are served.
    farm.later(Duration::from_secs(100));
    farm.step(joined(3, inputs::join(3, 4)));
    assert!(farm.core.leases().next().is_none());
    assert_eq!(pause(&mut farm, false, "ada"), Response::Done);
    assert_eq!(state(&farm).0, JobState::Running);
    assert_eq!(farm.core.leases().count(), 3);
    (1..=3).for_each(|node| farm.work(node, 1));
    assert!(farm.is_resolving());
    farm.finish();
    assert_eq!(state(&farm).0, JobState::Done);
    assert_eq!(farm.audit(), 3);
}

#[test]
fn another_job_has_the_nodes_of_a_paused_one() {
    let mut farm = farm(2, 1);
    let first = farm.job;
    farm.submit(2);
    assert_eq!(farm.lease(1).map(|lease| lease.unit.job), Some(first));
    assert_eq!(farm.change(JobChange::Pause, first, caller("ada")), Response::Done);
    assert_eq!(farm.lease(1).map(|lease| lease.unit.job), Some(farm.job));
}

#[test]
fn repeated_pauses_are_harmless_and_ended_jobs_refuse_them() {
    let mut farm = farm(1, 1);
    assert_eq!(pause(&mut farm, false, "ada"), Response::Done);
    assert_eq!(pause(&mut farm, true, "ada"), Response::Done);
    let records = farm.records.len();
    assert_eq!(pause(&mut farm, true, "ada"), Response::Done);
    assert_eq!(farm.records.len(), records);
    let refused = pause(&mut farm, false, "eve");
    assert!(matches!(refused, Response::Error(RequestError::NotAllowed(_))), "{refused:?}");
    farm.cancel(farm.job, caller("ada"));
    for (wish, word) in [(true, "paused"), (false, "resumed")] {
        let refused = pause(&mut farm, wish, "ada");
        let Response::Error(RequestError::Invalid(text)) = &refused else { panic!("{refused:?}") };
        assert!(text.contains("has ended already") && text.contains(word), "{text}");
    }
    assert_eq!(state(&farm).0, JobState::Cancelled);
}

// promise: P6
#[test]
fn a_complete_frame_is_resolved_though_its_job_is_paused() {
    let mut farm = farm(1, 1);
    farm.work(1, 1);
    assert!(farm.is_resolving());
    assert_eq!(pause(&mut farm, true, "ada"), Response::Done);
    farm.finish();
    assert!(matches!(farm.frame(), Some(FrameState::Done(_))));
    assert_eq!(state(&farm).0, JobState::Done);
}

// promise: P6
#[test]
fn pauses_and_finished_results_survive_a_restart() {
    let mut farm = farm(2, 1);
    let lease = farm.lease(1).expect("a lease");
    // The coordinator has forgotten its leases, and is asked to pause before the node is back.
    let replayed = |farm: &SmallFarm| {
        let from_records =
            Core::replay(Settings::default(), [], farm.records.clone(), farm.now).unwrap();
        let parts = from_records.snapshot();
        let parts = parts
            .into_iter()
            .map(|part| tessera_core::SnapshotPart::from_bytes(&part.to_bytes().unwrap()).unwrap());
        let again = Core::replay(Settings::default(), parts, [], farm.now).unwrap();
        assert_eq!(again.durable_difference(&from_records), None);
        again
    };
    farm.replace_core(replayed(&farm));
    assert_eq!(pause(&mut farm, true, "ada"), Response::Done);
    farm.replace_core(replayed(&farm));
    assert_eq!(state(&farm).0, JobState::Paused);
    let mut join = inputs::join(1, 1);
    join.finished = vec![lease];
    farm.step(joined(1, join));
    farm.now = Moment(farm.now.0 + 10_000);
    farm.step(Input::Tick);
    assert!(farm.core.leases().next().is_none());
    let result = inputs::result(lease, 1);
    farm.step(Input::ResultArrived { session: tessera_core::SessionId(1), result });
    assert_eq!(farm.core.job_summary(farm.job).map(|job| job.units_committed), Some(1));
    assert!(farm.core.leases().next().is_none());
    assert_eq!(pause(&mut farm, false, "ada"), Response::Done);
    assert_eq!(farm.leased(1), [1]);
}
