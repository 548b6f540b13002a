//! A replica that gets the records of a core one by one has its state, and can go on as it.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{
    Caller, Core, Input, MemoryShelf, Moment, Record, Replica, SessionId, Settings,
};
use tessera_protocol::job::RenderSpec;
use tessera_protocol::node::Failure;
use tessera_support::inputs::{self, TILE};

fn settings() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

/// A farm with a finished job, one that was cancelled, and one with a commit and a failed attempt.
fn busy_farm() -> SmallFarm {
    let mut farm = SmallFarm::new(settings(), 2, 1);
    farm.work(1, 7);
    farm.work(1, 7);
    farm.submit(2);
    farm.cancel(farm.job, Caller { name: "root".to_owned(), id: 1, admin: true });
    farm.submit_render(3, RenderSpec { width: 3 * TILE, ..inputs::render() });
    farm.work(1, 7);
    let lease = farm.lease(1).expect("the second unit");
    let failure = Failure::Device("it is hot".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    farm
}

fn replica_of(records: &[Record]) -> Replica {
    let records = records.iter().cloned();
    Replica::replay_onto(MemoryShelf::new(), settings(), [], records, Moment(1)).expect("a journal")
}

#[test]
fn a_replica_has_the_state_of_the_core_it_follows() {
    let farm = busy_farm();
    assert!(farm.records.len() > 8, "{:?}", farm.records);
    for begun in [0, 1, farm.records.len() / 2] {
        let (before, after) = farm.records.split_at(begun);
        let mut replica = replica_of(before);
        for (at, record) in after.iter().enumerate() {
            replica.apply(record).expect("the next record");
            let at_once = replica_of(&farm.records[..=begun + at]);
            assert_eq!(replica.core().durable_difference(at_once.core()), None);
        }
        assert_eq!(replica.core().durable_difference(&farm.core), None);
    }
}

#[test]
fn a_replica_says_nothing_that_only_the_leader_knows() {
    let farm = busy_farm();
    let replica = replica_of(&farm.records);
    let (own, leads) = (replica.core().job_summary(farm.job), farm.core.job_summary(farm.job));
    let (own, leads) = (own.expect("the job"), leads.expect("the job"));
    assert_eq!((own.state, own.units_committed), (leads.state, leads.units_committed));
    assert_eq!((own.waits, own.note.as_str(), own.left_secs), (None, "", None));
}

#[test]
fn a_replica_that_leads_is_the_core_of_a_replay() {
    let farm = busy_farm();
    let mut led = replica_of(&farm.records).lead(settings(), farm.now);
    let replayed = Core::replay(settings(), [], farm.records.iter().cloned(), farm.now);
    let mut replayed = replayed.expect("a journal");
    assert_eq!(led.verify(), Ok(()));
    assert_eq!(led.durable_difference(&replayed), None);
    let (step, other) = (led.take_step(), replayed.take_step());
    assert_eq!((step.records, step.actions.len()), (other.records, other.actions.len()));
    assert_eq!(led.open_jobs(None).count(), replayed.open_jobs(None).count());
    assert_eq!(led.open_jobs(None).count(), 2);
}

#[test]
fn a_record_that_does_not_follow_is_an_error() {
    let farm = busy_farm();
    let mut replica = replica_of(&farm.records);
    let again = farm.records.iter().find(|record| matches!(record, Record::JobAccepted { .. }));
    assert!(replica.apply(again.expect("a job")).is_err());
}
