//! Jobs that are not to begin before a time.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Input, RequestId, Settings};
use tessera_protocol::client::Response;
use tessera_protocol::ids::JobId;
use tessera_protocol::job::{JobEdit, JobSpec};
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{JobState, Waits};
use tessera_support::inputs;
use uuid::Uuid;

/// A farm with two nodes and nothing to do, and a job of two units that begins after so many
/// seconds.
fn farm(secs: u64) -> SmallFarm {
    let settings = Settings { settle: Duration::ZERO, ..Settings::default().without_checks() };
    let mut farm = SmallFarm::new(settings, 1, 2);
    farm.work(1, 1);
    farm.finish();
    let begins = farm.now.secs() + secs;
    let render = inputs::render();
    let render = tessera_protocol::RenderSpec { width: 2 * inputs::TILE, ..render };
    farm.submit_spec(2, JobSpec { not_before: Some(begins), ..inputs::job(render) });
    farm
}

fn ada() -> Caller {
    Caller { name: "ada".to_owned(), id: 294, admin: false }
}

fn set(farm: &mut SmallFarm, not_before: Option<u64>) {
    let edit = Box::new(JobEdit { not_before: Some(not_before), ..JobEdit::default() });
    let (request, job, caller) = (RequestId(3), farm.job, ada());
    assert_eq!(farm.ask(Input::EditJob { request, job, edit, caller }), Response::Done);
}

fn held(farm: &SmallFarm) -> usize {
    farm.core.leases().count()
}

// promise: P4
#[test]
fn a_job_begins_at_its_time_by_itself_and_not_before() {
    let mut farm = farm(7200);
    assert_eq!(held(&farm), 0);
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!((summary.state, summary.waits), (JobState::Queued, Some(Waits::NotBefore)));
    let said = "begins at 1970-01-01 02:16:40Z (--not-before)";
    assert_eq!((summary.note.as_str(), summary.left_secs), (said, None));
    let begins = farm.core.job(farm.job).and_then(|job| job.spec.not_before);
    // The core asks to be woken then, once nothing else is due.
    farm.later(Duration::from_secs(100));
    assert_eq!(farm.core.next_wakeup().map(|at| at.secs()), begins);
    farm.later(Duration::from_secs(7099));
    assert_eq!(held(&farm), 0);
    farm.later(Duration::from_secs(1));
    assert_eq!(held(&farm), 2);
}

// promise: P1
#[test]
fn the_time_survives_restarts_and_passes_while_nobody_looks() {
    for from_snapshot in [true, false] {
        let mut farm = farm(60);
        farm.restart(from_snapshot);
        (1..=2).for_each(|node| farm.step(inputs::joined(node, inputs::join(node, 1))));
        farm.later(Duration::from_secs(59));
        assert_eq!(held(&farm), 0);
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(600));
        (1..=2).for_each(|node| farm.step(inputs::joined(node, inputs::join(node, 1))));
        assert_eq!(held(&farm), 2, "it began while no node was there");
    }
}

#[test]
fn the_time_is_changed_and_what_runs_goes_on() {
    let mut farm = farm(7200);
    let begins = farm.now.secs() + 60;
    set(&mut farm, Some(begins));
    farm.later(Duration::from_secs(60));
    assert_eq!(held(&farm), 2);
    // Later again: what nodes have begun ends, and nothing more begins.
    let job = farm.job;
    let begins = farm.now.secs() + 600;
    set(&mut farm, Some(begins));
    assert_eq!(held(&farm), 2);
    farm.work(1, 1);
    assert_eq!(held(&farm), 1);
    let fails = tessera_protocol::node::Failure::Device("lost".into());
    farm.fail(2, fails);
    farm.later(Duration::from_secs(599));
    assert_eq!(held(&farm), 0);
    let summary = farm.core.job_summary(job).expect("a job");
    assert_eq!((summary.state, summary.waits), (JobState::Running, Some(Waits::NotBefore)));
    // At once, by whoever may change it.
    set(&mut farm, None);
    assert_eq!(held(&farm), 1);
    (1..=2).for_each(|node| farm.work(node, 1));
    assert!(farm.is_resolving());
}

#[test]
fn nothing_is_copied_of_a_job_that_begins_later() {
    let settings = Settings { settle: Duration::ZERO, ..Settings::default().without_checks() };
    let mut farm = SmallFarm::new(settings, 1, 2);
    assert_eq!((farm.leased(1).len(), farm.leased(2).len()), (1, 0));
    let begins = farm.now.secs() + 50;
    set(&mut farm, Some(begins));
    farm.later(Duration::from_secs(40));
    assert_eq!((farm.leased(1).len(), farm.leased(2).len()), (1, 0), "what runs goes on, alone");
    farm.later(Duration::from_secs(10));
    assert_eq!((farm.leased(1).len(), farm.leased(2).len()), (1, 1), "its time has come");
}

#[test]
fn a_pause_and_a_time_hold_a_job_back_each_by_itself() {
    let mut farm = farm(60);
    let job = farm.job;
    assert_eq!(farm.change(JobChange::Pause, job, ada()), Response::Done);
    farm.later(Duration::from_secs(61));
    assert_eq!(held(&farm), 0, "it is paused");
    assert_eq!(farm.change(JobChange::Resume, job, ada()), Response::Done);
    assert_eq!(held(&farm), 2);

    let mut farm = self::farm(60);
    assert_eq!(farm.change(JobChange::Pause, job, ada()), Response::Done);
    assert_eq!(farm.change(JobChange::Resume, job, ada()), Response::Done);
    assert_eq!(held(&farm), 0, "it is too early");
    // One that is cancelled before does not begin.
    farm.cancel(JobId(Uuid::from_u128(2)), ada());
    farm.later(Duration::from_secs(61));
    assert_eq!(held(&farm), 0);
}
