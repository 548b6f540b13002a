//! What ends an attempt, by class: devices that do not get on, and what is lacking that is not of
//! the unit.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::journal::Ending;
use tessera_core::{Input, Record, SessionId, Settings};
use tessera_protocol::ids::Lease;
use tessera_protocol::node::{Failure, Heartbeat, Progress};
use tessera_protocol::status::{FrameState, NodeState};
use tessera_support::inputs::{self, node};

fn settings() -> Settings {
    Settings {
        settle: Duration::ZERO,
        copy_after: Duration::from_secs(86_400),
        ..Settings::default().without_checks()
    }
}

/// A node says that it lives, and how far its unit is.
fn beat(farm: &mut SmallFarm, number: u64, done: Option<u64>) {
    let leases: Vec<Lease> = farm.lease(number).into_iter().collect();
    let progress =
        leases.iter().zip(done).map(|(lease, done)| Progress { lease: *lease, device: 0, done });
    let progress = progress.collect();
    let heartbeat = Heartbeat { leases, working: 1, ..inputs::beat(progress) };
    farm.step(Input::Heartbeat { session: SessionId(number), heartbeat });
}

/// Time passes, and a node says the same every ten seconds.
fn beats(farm: &mut SmallFarm, number: u64, secs: u64, mut done: impl FnMut() -> Option<u64>) {
    for _ in 0..secs / 10 {
        farm.later(Duration::from_secs(10));
        beat(farm, number, done());
    }
}

fn endings(farm: &SmallFarm) -> Vec<Ending> {
    let ended = farm.records.iter().filter_map(|record| match record {
        Record::AttemptsEnded { attempts, .. } => {
            Some(attempts.iter().map(|attempt| attempt.ending.clone()))
        }
        _ => None,
    });
    ended.flatten().collect()
}

// promise: P4
#[test]
fn a_stalled_unit_is_taken_back_and_its_device_named() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    beat(&mut farm, 1, Some(5));
    beats(&mut farm, 1, 60, || Some(5));
    assert_eq!((endings(&farm), farm.leased(1)), (Vec::new(), vec![0]), "not yet");
    beats(&mut farm, 1, 10, || Some(4));
    let ended = endings(&farm);
    assert!(
        matches!(&ended[..],
            [Ending::TimedOut(reason)]
                if reason.contains("cpu (plain)") && reason.contains("70 s")),
        "{ended:?}"
    );
    assert_eq!(farm.leased(1), Vec::<u32>::new(), "it waits");
    let failures = farm.core.job(farm.job).expect("it is known").failures;
    assert!(failures[0].reason.starts_with("timed out: no progress"), "{failures:?}");
    // It makes progress after all.
    farm.later(Duration::from_secs(1));
    farm.work(1, 7);
    assert!(farm.is_resolving());
    assert_eq!(farm.audit(), 1);
}

#[test]
fn the_first_of_several_stalled_units_may_fail_the_frame() {
    let mut farm = SmallFarm::new(Settings { attempts: 1, ..settings() }, 2, 0);
    farm.step(inputs::joined(1, inputs::join(1, 2)));
    let leases: Vec<Lease> = farm.core.leases().map(|(lease, _)| lease).collect();
    assert_eq!(leases.len(), 2);
    for _ in 0..20 {
        let still = |lease: &Lease| Progress { lease: *lease, device: 0, done: 5 };
        let (leases, progress) = (leases.clone(), leases.iter().map(still).collect());
        let heartbeat = Heartbeat { leases, working: 2, ..inputs::beat(progress) };
        farm.step(Input::Heartbeat { session: SessionId(1), heartbeat });
        farm.later(Duration::from_secs(10));
    }
    assert!(
        matches!(&endings(&farm)[..], [Ending::TimedOut(_)]),
        "the other's lease had ended with the frame"
    );
    assert!(matches!(farm.frame(), Some(FrameState::Failed(_))), "{:?}", farm.frame());
    assert_eq!(farm.audit(), 0);
}

#[test]
fn slow_units_and_units_without_progress_reports_are_kept() {
    let mut farm = SmallFarm::new(settings(), 2, 2);
    for done in 0..30 {
        beats(&mut farm, 1, 50, || Some(done));
        beat(&mut farm, 2, None);
    }
    assert_eq!((endings(&farm), farm.leased(1), farm.leased(2)), (Vec::new(), vec![0], vec![1]));
}

#[test]
fn a_node_that_stalls_on_several_jobs_is_unfit() {
    let mut farm = SmallFarm::new(settings(), 1, 2);
    farm.submit(2);
    farm.submit(3);
    // The second node has the second job's unit, and keeps it.
    let mut unfit = None;
    for _ in 0..40 {
        beats(&mut farm, 1, 10, || Some(1));
        beat(&mut farm, 2, None);
        let rows = farm.core.nodes(farm.now);
        unfit = unfit.or(rows
            .into_iter()
            .find(|row| row.state == NodeState::Unfit)
            .map(|row| (row, endings(&farm).len(), farm.core.quarantines())));
    }
    let (row, times, quarantines) = unfit.expect("it is set aside");
    assert_eq!((row.node, times), (node(1), 3));
    let [quarantine] = quarantines.as_slice() else { panic!("{quarantines:?}") };
    assert_eq!((quarantine.node, quarantine.word), (node(1), "unfit"));
    assert!(row.note.contains("3 attempts of 2 jobs failed here in a row"), "{}", row.note);
}

// promise: P4
#[test]
fn a_missing_file_costs_no_attempt_and_fails_after_the_bound() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    let lack = |farm: &mut SmallFarm| {
        let lease = farm.lease(1).expect("it is tried again");
        let failure = Failure::Asset("`a.gltf` cannot be had".to_owned());
        farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    };
    let mut waited = Duration::ZERO;
    while waited < Duration::from_secs(600) {
        lack(&mut farm);
        assert_eq!(endings(&farm), Vec::new(), "after {waited:?}");
        let note = farm.core.job_summary(farm.job).expect("it is known").note;
        assert!(note.starts_with("waiting: `a.gltf` cannot be had (u00000"), "{note}");
        farm.later(Duration::from_secs(60));
        waited += Duration::from_secs(60);
    }
    for _ in 0..Settings::default().attempts {
        lack(&mut farm);
        farm.later(Duration::from_secs(60));
    }
    let Some(FrameState::Failed(reason)) = farm.frame() else { panic!("{:?}", farm.frame()) };
    assert!(reason.contains("failed: `a.gltf` cannot be had; waited"), "{reason}");
    assert_eq!(endings(&farm).len(), usize::from(Settings::default().attempts));
}

#[test]
fn a_file_that_arrives_in_time_costs_no_attempt() {
    let mut farm = SmallFarm::new(settings(), 1, 2);
    let lease = farm.lease(1).expect("it is leased");
    let failure = Failure::Asset("no room on the disk".to_owned());
    farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
    farm.later(Duration::from_secs(1));
    assert_eq!((farm.leased(1), farm.leased(2)), (vec![], vec![0]), "another node is preferred");
    assert_eq!(farm.core.job_summary(farm.job).expect("it is known").note, "");
    farm.work(2, 7);
    assert!(farm.is_resolving());
    assert_eq!((endings(&farm), farm.audit()), (Vec::new(), 1));
}

#[test]
fn an_absent_node_does_not_prolong_its_leases() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    let longest =
        Settings { lease: minutes(2), lease_longest: minutes(5), grace: minutes(4), ..settings() };
    let mut farm = SmallFarm::new(longest, 1, 1);
    for _ in 0..4 {
        farm.later(minutes(1));
        beat(&mut farm, 1, None);
    }
    assert_eq!(farm.leased(1), [0]);
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(minutes(1));
    assert_eq!(endings(&farm), [Ending::Expired]);
    assert_eq!(farm.core.leases().count(), 0);
}
