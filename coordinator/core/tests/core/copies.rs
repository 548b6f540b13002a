//! Units that two nodes work on at once: which are copied, whose result counts, and what becomes of
//! the other lease.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Core, Input, Record, SessionId, Settings};
use tessera_protocol::ids::{Lease, ProcessEpoch};
use tessera_protocol::node::{Failure, Join};
use tessera_protocol::status::{CopyCount, FrameState};
use tessera_support::inputs::{self, node};

fn settings() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

/// So many nodes; the first holds the last of so many units for so long that an idle node has a
/// copy of it.
fn copied(settings: Settings, units: u32, nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, units, nodes);
    for _ in 1..units {
        farm.work(2, 7);
    }
    farm.later(Duration::from_secs(31));
    farm
}

fn copies(farm: &SmallFarm) -> CopyCount {
    farm.core.job(farm.job).expect("it was accepted").copies
}

fn fail(farm: &mut SmallFarm, number: u64, lease: Lease) {
    let failure = Failure::Device("it is hot".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(number), lease, failure });
}

fn attempts(farm: &SmallFarm) -> usize {
    let ended = farm.records.iter().filter_map(|record| match record {
        Record::AttemptsEnded { attempts, .. } => Some(attempts.len()),
        _ => None,
    });
    ended.sum()
}

// promise: P4
#[test]
fn a_slow_unit_is_copied_once_and_the_copy_may_win() {
    let mut farm = copied(settings(), 1, 3);
    let (first, copy) = (farm.lease(1).expect("the first"), farm.lease(2).expect("the copy"));
    assert_eq!((first.unit, first.epoch < copy.epoch), (copy.unit, true));
    assert_eq!(farm.lease(3), None, "a unit has two leases at most");
    assert_eq!(copies(&farm).running, 1);
    assert_eq!(farm.core.job_summary(farm.job).expect("it is known").units_leased, 1);
    farm.work(2, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.core.leases().count(), 0, "the other is stopped");
    assert_eq!(copies(&farm), CopyCount { running: 0, won: 1, lost: 0, wasted_millis: 31_000 });
    // What the first has made meanwhile is not taken.
    let records = farm.records.len();
    farm.step(Input::ResultArrived { session: SessionId(1), result: inputs::result(first, 7) });
    assert_eq!((farm.records.len(), farm.audit()), (records, 1));
}

#[test]
fn the_lease_that_was_copied_may_win() {
    let mut farm = copied(settings(), 1, 2);
    farm.later(Duration::from_secs(4));
    farm.work(1, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.core.leases().count(), 0);
    assert_eq!(copies(&farm), CopyCount { running: 0, won: 0, lost: 1, wasted_millis: 4_000 });
    assert_eq!(farm.audit(), 1);
}

#[test]
fn nothing_is_copied_while_unleased_units_wait() {
    let mut farm = SmallFarm::new(settings(), 3, 2);
    farm.later(Duration::from_secs(31));
    assert_eq!((farm.leased(1), farm.leased(2)), (vec![0], vec![1]));
    farm.work(2, 7);
    assert_eq!(farm.leased(2), [2], "unleased units come first");
    farm.work(2, 7);
    assert_eq!(farm.leased(2), [0], "the first is known to be slower now");
    assert_eq!(copies(&farm).running, 1);
}

// promise: P4
#[test]
fn only_the_last_failure_of_two_leases_is_an_attempt() {
    let mut farm = copied(settings(), 1, 2);
    let (first, copy) = (farm.lease(1).expect("the first"), farm.lease(2).expect("the copy"));
    fail(&mut farm, 2, copy);
    assert_eq!((attempts(&farm), farm.leased(1)), (0, vec![0]));
    fail(&mut farm, 1, first);
    assert_eq!(attempts(&farm), 1);
    assert_eq!(farm.audit(), 0);
}

// promise: P4
#[test]
fn a_unit_that_fails_wherever_it_is_copied_fails_its_frame() {
    let mut farm = copied(settings(), 1, 3);
    for _ in 0..100 {
        for number in 1..=3 {
            if let Some(lease) = farm.lease(number) {
                fail(&mut farm, number, lease);
            }
        }
        farm.later(Duration::from_secs(31));
    }
    assert!(matches!(farm.frame(), Some(FrameState::Failed(_))), "{:?}", farm.frame());
    assert_eq!(attempts(&farm), usize::from(Settings::default().attempts));
}

#[test]
fn a_node_that_is_lost_leaves_the_unit_to_the_other() {
    let mut farm = copied(settings(), 1, 2);
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(Duration::from_secs(2));
    assert_eq!((attempts(&farm), farm.leased(2)), (0, vec![0]));
    farm.work(2, 7);
    assert!(farm.is_resolving());
    assert_eq!(copies(&farm), CopyCount::default(), "nobody was stopped");
    assert_eq!(farm.audit(), 1);
}

#[test]
fn a_cancel_ends_both_leases() {
    let mut farm = copied(settings(), 1, 2);
    let caller = tessera_core::Caller { name: "ada".to_owned(), id: 294, admin: false };
    farm.cancel(farm.job, caller);
    assert_eq!(farm.core.leases().count(), 0);
    assert_eq!(farm.audit(), 0);
}

#[test]
fn a_slow_check_is_copied_and_the_first_vote_ends_it() {
    let mut farm = SmallFarm::new(Settings { settle: Duration::ZERO, ..Settings::default() }, 1, 3);
    farm.work(1, 7);
    assert_eq!(farm.leased(2), [0], "the check");
    farm.later(Duration::from_secs(31));
    assert_eq!(farm.leased(3), [0], "its copy, and not for the node that is checked");
    farm.work(3, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.core.leases().count(), 0);
    assert_eq!((copies(&farm).won, farm.audit()), (1, 1));
}

#[test]
fn a_restart_keeps_the_counts_and_takes_one_of_two_leases_up() {
    let mut farm = copied(settings(), 2, 2);
    farm.work(2, 7);
    farm.submit(2);
    farm.later(Duration::from_secs(31));
    let leases = [1, 2].map(|number| farm.lease(number).expect("both work on it"));
    let (parts, of_first) =
        (farm.core.snapshot(), tessera_protocol::JobId(uuid::Uuid::from_u128(1)));
    let bytes = parts.iter().map(|part| part.to_bytes().expect("it is small"));
    let parts: Vec<_> = bytes
        .map(|bytes| tessera_core::SnapshotPart::from_bytes(&bytes).expect("its own"))
        .collect();
    let counted = farm.core.job(of_first).expect("it is known").copies;
    assert_eq!((counted.won, counted.wasted_millis), (1, 31_000));
    for (parts, records) in [(Vec::new(), farm.records.clone()), (parts, Vec::new())] {
        let mut core = Core::replay(settings(), parts, records, farm.now).expect("its own journal");
        assert_eq!(core.durable_difference(&farm.core), None);
        assert_eq!(core.job(of_first).expect("it is known").copies, counted);
        for (number, lease) in (1..).zip(leases) {
            let join =
                Join { process: ProcessEpoch(1), running: vec![lease], ..inputs::join(number, 0) };
            core.handle(inputs::joined(number, join), farm.now);
            core.verify().expect("the core stands by its invariants");
        }
        assert_eq!(core.leases().collect::<Vec<_>>(), [(leases[0], node(1))]);
    }
}
