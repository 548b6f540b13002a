//! For how long devices waited for what their units need: counted per job, for people.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Arrived, Input, Record, SessionId, Settings};
use tessera_protocol::status::JobState;
use tessera_support::inputs;

/// A node ends what it holds with a result that tells of a wait.
fn work(farm: &mut SmallFarm, number: u64, waited_micros: u64) {
    let lease = farm.lease(number).expect("it holds a unit");
    let result = Arrived { waited_micros, ..inputs::result(lease, 7) };
    farm.step(Input::ResultArrived { session: SessionId(number), result });
}

fn waited_millis(farm: &SmallFarm) -> u64 {
    farm.core.job(farm.job).expect("it was accepted").devices_waited_millis
}

fn records(farm: &SmallFarm) -> usize {
    let of_kind = |record: &&Record| matches!(record, Record::DeviceWaited { .. });
    farm.records.iter().filter(of_kind).count()
}

fn settings() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default() }
}

#[test]
fn waits_are_summed_and_outlast_a_restart() {
    let mut farm = SmallFarm::new(settings().without_checks(), 5, 2);
    farm.later(Duration::from_secs(5));
    work(&mut farm, 1, 3_000_400);
    work(&mut farm, 2, 1_000_000);
    assert_eq!((waited_millis(&farm), records(&farm)), (4_000, 2));
    // Nothing is written down where nothing waited.
    work(&mut farm, 1, 0);
    work(&mut farm, 2, 999);
    assert_eq!((waited_millis(&farm), records(&farm)), (4_000, 2));
    work(&mut farm, 1, 0);
    farm.finish();
    assert_eq!(farm.standing_of(1).0, JobState::Done);
    for from_snapshot in [false, true] {
        farm.restart(from_snapshot);
        assert_eq!(waited_millis(&farm), 4_000);
    }
}

#[test]
fn no_wait_is_longer_than_its_lease_was_held() {
    let mut farm = SmallFarm::new(settings().without_checks(), 3, 1);
    farm.later(Duration::from_secs(5));
    work(&mut farm, 1, u64::MAX);
    assert_eq!(waited_millis(&farm), 5_000);
    farm.later(Duration::from_millis(20));
    work(&mut farm, 1, 1_000_000);
    assert_eq!(waited_millis(&farm), 5_020);
    // The lease was lost with the session. Its result counts, and the wait is not known.
    farm.later(Duration::from_secs(5));
    let lease = farm.lease(1).expect("it holds a unit");
    farm.restart(false);
    let mut join = inputs::join(1, 1);
    join.finished = vec![lease];
    farm.step(inputs::joined(1, join));
    let result = Arrived { waited_micros: 1_000_000, ..inputs::result(lease, 7) };
    farm.step(Input::ResultArrived { session: SessionId(1), result });
    assert!(farm.is_resolving());
    assert_eq!((waited_millis(&farm), records(&farm)), (5_020, 2));
}

#[test]
fn a_device_that_checks_a_result_may_have_waited() {
    let mut farm = SmallFarm::new(settings(), 1, 2);
    farm.later(Duration::from_secs(2));
    work(&mut farm, 1, 1_000_000);
    farm.later(Duration::from_secs(2));
    work(&mut farm, 2, 500_000);
    assert!(farm.is_resolving());
    assert_eq!((waited_millis(&farm), records(&farm)), (1_500, 2));
}
