//! One bad node ends nobody's job: words of nodes about scenes and kernels, limits of nodes, nodes
//! that do nothing, and attempts.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::journal::Ending;
use tessera_core::{Input, Record, SessionId, Settings};
use tessera_protocol::ids::{Lease, ProcessEpoch};
use tessera_protocol::job::{JobSpec, RenderSpec, RetryPolicy};
use tessera_protocol::node::{Failure, Heartbeat, Join, LimitReached, NodeLimit};
use tessera_protocol::status::{FrameState, JobState, NodeState, Waits};
use tessera_support::inputs::{self, TILE};

fn settings() -> Settings {
    Settings { settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn secs(secs: u64) -> Duration {
    Duration::from_secs(secs)
}

fn scene() -> Failure {
    Failure::Scene("`a.gltf` is cut off".to_owned())
}

fn limit(limit: NodeLimit) -> Failure {
    let reason = "preparing the scene takes more than 64 MiB of memory; simplify it, or raise \
        --scene-memory";
    Failure::Limit(LimitReached { limit, reason: reason.to_owned() })
}

/// A node says that it lives, and on how much it works.
fn beat(farm: &mut SmallFarm, number: u64, working: u32) {
    let leases: Vec<Lease> = farm.lease(number).into_iter().collect();
    let heartbeat = Heartbeat { leases, working, ..inputs::beat(Vec::new()) };
    farm.step(Input::Heartbeat { session: SessionId(number), heartbeat });
}

/// Units that nodes finish until none is leased; never those of `but`.
fn work_all(farm: &mut SmallFarm, nodes: std::ops::RangeInclusive<u64>, but: u64) {
    while let Some(number) =
        nodes.clone().find(|number| *number != but && farm.lease(*number).is_some())
    {
        farm.work(number, 7);
    }
}

fn endings(farm: &SmallFarm) -> Vec<Ending> {
    let ended = farm.records.iter().filter_map(|record| match record {
        Record::AttemptsEnded { attempts, .. } => Some(attempts),
        _ => None,
    });
    ended.flatten().map(|attempt| attempt.ending.clone()).collect()
}

/// A job of so many units with bounds of its own.
fn spec(units: u32, attempts: Option<u8>, give_up_secs: Option<u32>) -> JobSpec {
    let render = RenderSpec { width: units * TILE, ..inputs::render() };
    JobSpec { retry: RetryPolicy { attempts, give_up_secs }, ..inputs::job(render) }
}

// promise: P4, P8
#[test]
fn a_scene_that_one_node_cannot_prepare_is_rendered_by_others() {
    let mut farm = SmallFarm::new(settings(), 4, 3);
    farm.fail(1, scene());
    assert_eq!(farm.standing_of(1).0, JobState::Running, "{:?}", farm.standing_of(1));
    assert_eq!(farm.lease(1), None, "it is passed over");
    let note = farm.row(1).note;
    assert!(
        note.starts_with("passed over for 1 open jobs, such as")
            && note.contains("`a.gltf` is cut off")
            && note.contains("`tessera undrain n1`"),
        "{note}"
    );
    work_all(&mut farm, 1..=3, 0);
    assert!(farm.is_resolving(), "the unit went to others at once");
    assert_eq!(farm.core.job(farm.job).expect("it is known").failures[0].node, "n1");
    farm.finish();
    assert_eq!((farm.standing_of(1).0, farm.row(1).note.as_str()), (JobState::Done, ""));
    // It is given the next job like all.
    farm.submit(2);
    farm.submit(3);
    farm.submit(4);
    assert!(farm.lease(1).is_some());
    farm.audit();
}

// promise: P8
#[test]
fn a_scene_or_kernel_that_two_nodes_cannot_prepare_ends_its_job() {
    let kernel = || Failure::Program("it lacks `tessera_kernel`".to_owned());
    for (failure, what) in [
        (scene(), "the scene cannot be prepared: `a.gltf` is cut off"),
        (kernel(), "the kernel cannot be used: it lacks `tessera_kernel`"),
    ] {
        let mut farm = SmallFarm::new(settings(), 4, 3);
        farm.fail(3, failure.clone());
        assert_eq!(farm.standing_of(1).0, JobState::Running);
        farm.fail(2, failure);
        let (state, note) = farm.standing_of(1);
        assert_eq!(state, JobState::Failed);
        assert_eq!(note, format!("{what} (said by `n2` and `n3`)"));
        assert!((1..=3).all(|number| farm.row(number).state == NodeState::Ready));
        farm.audit();
    }
}

#[test]
fn the_second_word_of_the_only_node_ends_the_job() {
    let mut farm = SmallFarm::new(settings(), 2, 1);
    farm.fail(1, scene());
    assert_eq!((farm.standing_of(1).0, farm.leased(1)), (JobState::Running, vec![1]));
    farm.work(1, 7);
    // It has made a result of that frame, so that its word has fallen.
    farm.later(secs(1));
    farm.fail(1, scene());
    assert_eq!(farm.standing_of(1).0, JobState::Running);
    let mut farm = SmallFarm::new(settings(), 1, 1);
    farm.fail(1, scene());
    assert_eq!((farm.standing_of(1).0, farm.lease(1)), (JobState::Running, None));
    assert_eq!(farm.core.job_summary(farm.job).expect("it is known").waits, Some(Waits::Backoff));
    farm.later(secs(1));
    farm.fail(1, scene());
    let (state, note) = farm.standing_of(1);
    assert_eq!(state, JobState::Failed);
    assert!(note.contains("(said twice by `n1`, the only node that may have it)"), "{note}");
}

#[test]
fn a_node_that_restarts_has_said_so_once_all_the_same() {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    for process in 2..4 {
        farm.fail(1, scene());
        farm.step(Input::SessionLost { session: SessionId(1) });
        let join = Join { process: ProcessEpoch(process), ..inputs::join(1, 1) };
        farm.step(inputs::joined(1, join));
        farm.later(secs(1));
        if process == 2 {
            assert_eq!(farm.standing_of(1).0, JobState::Running);
        }
    }
    assert_eq!(farm.standing_of(1).0, JobState::Failed);
}

// promise: P4
#[test]
fn a_node_whose_word_is_refuted_job_after_job_is_unfit() {
    let mut farm = SmallFarm::new(settings(), 1, 2);
    let mut jobs = 1;
    for number in 1..9 {
        if number > 1 {
            farm.submit(number);
        }
        jobs = number;
        if farm.lease(1).is_none() {
            break;
        }
        farm.fail(1, scene());
        farm.work(2, 7);
        assert!(farm.is_resolving(), "job {number}");
    }
    let row = farm.row(1);
    assert_eq!((row.state, jobs), (NodeState::Unfit, 4));
    assert!(row.note.contains("3 attempts of 3 jobs failed here in a row"), "{}", row.note);
}

// promise: P4, P8
#[test]
fn a_limit_of_a_node_is_the_nodes_and_named() {
    let mut farm = SmallFarm::new(settings(), 6, 3);
    farm.fail(3, limit(NodeLimit::SceneMemory));
    assert_eq!((farm.standing_of(1).0, farm.lease(3)), (JobState::Running, None));
    let row = farm.row(3);
    assert_eq!(row.state, NodeState::Ready);
    assert!(
        row.note.contains("by its limit of scene memory: preparing the scene takes more than 64")
            && row.note.contains("to end that, start it with a greater --scene-memory"),
        "{}",
        row.note
    );
    work_all(&mut farm, 1..=3, 0);
    assert!(farm.is_resolving());
    let text = "scene memory: preparing the scene takes more than 64 MiB of memory; simplify it, \
        or raise --scene-memory";
    assert_eq!(endings(&farm), [Ending::Limited(text.to_owned())]);
    // Twenty jobs later it is still no worse than others.
    for number in 2..22 {
        farm.finish();
        farm.submit_spec(number, spec(6, Some(1), None));
        assert!(farm.lease(3).is_some(), "job {number}");
        farm.fail(3, limit(NodeLimit::SceneTime));
        work_all(&mut farm, 1..=3, 0);
        assert!(farm.is_resolving(), "job {number}");
    }
    farm.audit();
}

/// A job that two nodes are too small for.
fn too_large(give_up_secs: Option<u32>) -> SmallFarm {
    let mut farm = SmallFarm::new(settings(), 1, 2);
    farm.work(1, 7);
    farm.finish();
    farm.submit_spec(2, spec(3, None, give_up_secs));
    farm.fail(1, limit(NodeLimit::SceneMemory));
    farm.later(secs(5));
    farm.fail(2, limit(NodeLimit::SceneTime));
    farm
}

// promise: P4
#[test]
fn a_job_that_every_node_is_too_small_for_waits_and_fails() {
    for (give_up, after) in [(None, 600), (Some(90), 90), (Some(0), 0)] {
        let mut farm = too_large(give_up);
        if after > 0 {
            let summary = farm.core.job_summary(farm.job).expect("it is known");
            assert_eq!((summary.state, summary.waits), (JobState::Running, Some(Waits::Limits)));
            assert!(
                summary.note.starts_with("waits for a node with more: `n1` by its scene memory:")
                    && summary.note.contains("`n2` by its scene time:")
                    && summary.note.ends_with(&format!("it fails in {after} s (--give-up)")),
                "{}",
                summary.note
            );
            farm.later(secs(after - 1));
            assert_eq!(farm.standing_of(2).0, JobState::Running);
            farm.later(secs(1));
        }
        let (state, note) = farm.standing_of(2);
        assert_eq!(state, JobState::Failed, "{give_up:?}: {note}");
        assert!(
            note.starts_with(&format!("given up after {after} s"))
                && note.contains("raise --scene-memory")
                && note.contains("--give-up"),
            "{note}"
        );
        farm.audit();
    }
}

#[test]
fn a_node_with_more_takes_up_a_job_others_are_too_small_for() {
    let mut farm = too_large(None);
    farm.later(secs(500));
    farm.step(inputs::joined(3, inputs::join(3, 1)));
    assert_eq!(farm.leased(3), [0]);
    farm.later(secs(300));
    assert_eq!(farm.standing_of(2).0, JobState::Running, "the wait is over");
    farm.work(3, 7);
    // The same node, started with more.
    farm.step(Input::SessionLost { session: SessionId(1) });
    let join = Join { process: ProcessEpoch(2), ..inputs::join(1, 1) };
    farm.step(inputs::joined(1, join));
    assert_eq!((farm.leased(1), farm.row(1).note.as_str()), (vec![2], ""));
    work_all(&mut farm, 1..=3, 0);
    assert!(farm.is_resolving());
}

#[test]
fn the_wait_for_a_larger_node_begins_again_when_it_leaves() {
    let mut farm = too_large(Some(100));
    farm.later(secs(50));
    farm.step(inputs::joined(3, inputs::join(3, 1)));
    farm.later(secs(50));
    farm.step(Input::SessionLost { session: SessionId(3) });
    (0..6).for_each(|_| farm.later(secs(10)));
    assert_eq!(farm.standing_of(2).0, JobState::Running);
    (0..15).for_each(|_| farm.later(secs(10)));
    assert_eq!(farm.standing_of(2).0, JobState::Failed, "within twice its time");
}

#[test]
fn a_full_disk_is_asked_again_and_a_setting_is_not() {
    for (kind, again) in [(NodeLimit::Disk, true), (NodeLimit::SceneMemory, false)] {
        let mut farm = SmallFarm::new(settings(), 1, 1);
        for _ in 0..3 {
            if farm.lease(1).is_some() {
                farm.fail(1, limit(kind));
            }
            assert_eq!(farm.lease(1), None);
            farm.later(secs(60));
        }
        assert_eq!((farm.lease(1).is_some(), endings(&farm).len() > 1), (again, again));
        if again {
            farm.work(1, 7);
            assert!(farm.is_resolving());
        }
    }
}

// promise: P4
#[test]
fn a_node_that_beats_and_does_nothing_loses_its_units() {
    let mut farm = SmallFarm::new(settings(), 3, 2);
    for _ in 0..6 {
        farm.later(secs(10));
        (1..=2).for_each(|number| beat(&mut farm, number, u32::from(number == 2)));
    }
    assert_eq!((farm.leased(1), farm.leased(2)), (vec![0], vec![1]), "not yet");
    farm.later(secs(1));
    (1..=2).for_each(|number| beat(&mut farm, number, u32::from(number == 2)));
    assert_eq!(farm.leased(1), Vec::<u32>::new());
    assert!(matches!(&endings(&farm)[..], [Ending::Idle(_)]), "{:?}", endings(&farm));
    let row = farm.row(1);
    assert!(
        row.state == NodeState::Unfit
            && row.note.contains("it is connected and began none of 1 units for 60 s"),
        "{row:?}"
    );
    work_all(&mut farm, 2..=2, 0);
    assert!(farm.is_resolving(), "the other node has all");
    // It is tried again, and set aside for longer.
    farm.finish();
    farm.submit_spec(2, spec(3, None, None));
    farm.later(secs(60));
    assert!(farm.lease(1).is_some());
    farm.audit();
}

// promise: P7
#[test]
fn a_check_on_an_idle_node_goes_to_another() {
    let checked = Settings { settle: Duration::ZERO, ..Settings::default() };
    let never = Settings { copy_after: secs(86_400), ..checked };
    let mut farm = SmallFarm::new(never, 1, 3);
    farm.work(1, 7);
    assert_eq!(farm.leased(2), [0], "the check");
    for _ in 0..7 {
        farm.later(secs(10));
        beat(&mut farm, 2, 0);
    }
    assert_eq!((farm.leased(2), farm.leased(3)), (vec![], vec![0]));
    farm.work(3, 7);
    assert!(farm.is_resolving());
}

// promise: P7
#[test]
fn a_check_that_stands_still_is_copied_by_nodes_of_known_speed() {
    let checked = Settings { settle: Duration::ZERO, ..Settings::default() };
    let mut farm = SmallFarm::new(checked, 30, 3);
    for _ in 0..200 {
        (1..=3).for_each(|number| farm.work(number, 7));
        farm.later(Duration::from_millis(100));
        if farm.core.leases().count() == 1 {
            break;
        }
    }
    // Whoever has the last check stands still.
    let stuck = (1..=3).find(|number| farm.lease(*number).is_some());
    if let Some(stuck) = stuck {
        farm.later(secs(31));
        work_all(&mut farm, 1..=3, stuck);
    }
    assert!(farm.is_resolving());
}

#[test]
fn attempts_of_a_unit_are_those_of_its_job() {
    let device = || Failure::Device("it is hot".to_owned());
    for attempts in [1, 2, 7] {
        let mut farm = SmallFarm::new(settings(), 1, 0);
        farm.submit_spec(2, spec(1, Some(attempts), None));
        farm.step(inputs::joined(1, inputs::join(1, 1)));
        farm.work(1, 7);
        let mut times = 0;
        while let Some(FrameState::Open { .. }) = farm.frame() {
            farm.fail(1, device());
            farm.later(secs(61));
            times += 1;
        }
        assert_eq!(times, u32::from(attempts));
        let Some(FrameState::Failed(reason)) = farm.frame() else { panic!("{:?}", farm.frame()) };
        assert!(reason.contains(&format!("failed {attempts} times")), "{reason}");
    }
}

// promise: P4
#[test]
fn a_node_that_fails_all_uses_up_no_units_attempts() {
    let mut farm = SmallFarm::new(settings(), 2, 2);
    for _ in 0..200 {
        // The other one works on a long unit.
        farm.later(secs(10));
        beat(&mut farm, 2, 1);
        if farm.lease(1).is_some() {
            farm.fail(1, Failure::Device("it is hot".to_owned()));
        }
    }
    assert!(matches!(farm.frame(), Some(FrameState::Open { .. })), "{:?}", farm.frame());
    assert!(farm.row(1).note.contains("failed on it twice in a row"), "{:?}", farm.row(1));
    work_all(&mut farm, 2..=2, 0);
    assert!(farm.is_resolving());
    farm.audit();
}
