//! What devices say decides who gets work: memory predicted and measured, devices out of work, and
//! nodes that are slow.

use std::time::Duration;
use tessera_core::{
    Action, Arrived, Core, FilmShape, Input, Moment, Record, ResultShape, SessionId, Settings, Step,
};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState};
use tessera_protocol::ids::{JobId, Lease};
use tessera_protocol::job::{JobSpec, RenderSpec};
use tessera_protocol::node::{CoordinatorToNode, Failure, Heartbeat, Join, MemoryShortage};
use tessera_protocol::status::{JobState, NodeState};
use tessera_support::inputs::{self, TILE};
use uuid::Uuid;

const GIB: u64 = 1 << 30;

/// A core, its clock in milliseconds, and what it last did.
struct Farm {
    core: Core,
    now: u64,
    step: Step,
}

fn device(memory_bytes: u64, state: DeviceState) -> DeviceInfo {
    let name = format!("GPU of {}", memory_bytes / GIB);
    DeviceInfo {
        slot: "cuda:0".to_owned(),
        kind: DeviceKind::Cuda,
        name,
        memory_bytes,
        state,
        ..inputs::device()
    }
}

impl Farm {
    fn new() -> Self {
        let settings =
            Settings { lease: Duration::from_secs(10_000), ..Settings::default().without_checks() };
        Self { core: Core::new(settings, Moment(1_000_000)), now: 1_000_000, step: Step::default() }
    }

    fn input(&mut self, input: Input) {
        self.core.handle(input, Moment(self.now));
        self.step = self.core.take_step();
        self.core.verify().expect("the core is consistent");
    }

    fn wait(&mut self, millis: u64) {
        self.now += millis;
        self.input(Input::Tick);
    }

    fn join(&mut self, number: u64, capacity: u32, memory: u64) {
        let devices = vec![device(memory, DeviceState::Ready)];
        let join =
            Join { name: format!("rack-{number}"), devices, ..inputs::join(number, capacity) };
        self.input(inputs::joined(number, join));
    }

    /// Submits a job of so many units; the answer.
    fn submit(&mut self, number: u128, units: u32, device_bytes: u64) -> Response {
        let render = RenderSpec { width: units * TILE, ..inputs::render() };
        let spec = JobSpec { device_bytes, ..inputs::job(render) };
        self.input(inputs::submit(job(number), spec));
        let replies = self.step.actions.iter().filter_map(|action| match action {
            Action::Reply { response, .. } => Some(response.clone()),
            _ => None,
        });
        let replies: Vec<Response> = replies.collect();
        replies.first().cloned().expect("an answer")
    }

    /// What the last step gave to a node.
    fn given(&self, number: u64) -> Vec<Lease> {
        let work = self.step.actions.iter().filter_map(|action| match action {
            Action::Send { session, message: CoordinatorToNode::Work(work) }
                if session.0 == number =>
            {
                Some(work.iter().map(|unit| unit.lease()))
            }
            _ => None,
        });
        work.flatten().collect()
    }

    fn result(&mut self, number: u64, lease: Lease, device_micros: u64) {
        let result = Arrived { device_micros, ..inputs::result(lease, 2) };
        self.input(Input::ResultArrived { session: SessionId(number), result });
    }

    fn beat(&mut self, number: u64) {
        let heartbeat = Heartbeat {
            sequence: 1,
            leases: Vec::new(),
            outbox: 0,
            working: 0,
            busy: None,
            devices: Vec::new(),
            progress: Vec::new(),
        };
        self.input(Input::Heartbeat { session: SessionId(number), heartbeat });
    }

    fn out_of_memory(&mut self, number: u64, lease: Lease, needed: u64, available: u64) {
        let reason = "the arrays do not fit".to_owned();
        let failure = Failure::OutOfMemory(MemoryShortage { device: 0, needed, available, reason });
        self.input(Input::UnitFailed { session: SessionId(number), lease, failure });
    }

    fn states(&mut self, number: u64, memory: u64, state: DeviceState) {
        let devices = vec![device(memory, state)];
        self.input(Input::DevicesChanged { session: SessionId(number), devices });
    }

    fn note(&self, number: u128) -> (JobState, String) {
        let summary = self.core.job_summary(job(number)).expect("a job that was accepted");
        (summary.state, summary.note)
    }
}

fn job(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

#[test]
fn a_job_that_fits_no_device_known_is_refused_with_both_numbers() {
    let mut farm = Farm::new();
    farm.join(1, 2, 8 * GIB);
    farm.join(2, 2, 4 * GIB);
    let Response::Error(RequestError::Invalid(text)) = farm.submit(1, 4, 14 * GIB + GIB / 5) else {
        panic!("it is not refused");
    };
    for part in ["14.2 GiB", "8.0 GiB", "rack-1", "GPU of 8"] {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
    assert_eq!(farm.submit(2, 4, 8 * GIB), Response::Accepted(job(2)));
    assert_eq!((farm.given(1).len(), farm.given(2).len()), (2, 0));
}

#[test]
fn an_early_job_waits_for_a_device_with_enough_memory() {
    let mut farm = Farm::new();
    assert_eq!(farm.submit(1, 4, 14 * GIB), Response::Accepted(job(1)));
    assert_eq!(farm.submit(2, 4, GIB), Response::Accepted(job(2)));
    farm.join(1, 2, 8 * GIB);
    assert!(farm.given(1).iter().all(|lease| lease.unit.job == job(2)), "the other job continues");
    let (state, note) = farm.note(1);
    assert_eq!(state, JobState::Queued);
    assert!(note.contains("14.0 GiB") && note.contains("8.0 GiB"), "{note}");
    farm.join(2, 2, 16 * GIB);
    assert_eq!(farm.given(2).len(), 2);
}

// promise: P4
#[test]
fn out_of_memory_costs_no_attempt_and_moves_the_unit() {
    let mut farm = Farm::new();
    farm.join(1, 1, 8 * GIB);
    farm.submit(1, 3, GIB);
    // More often than attempts are allowed, on one device after another.
    for number in 1..=6 {
        let lease = farm.given(number)[0];
        farm.join(number + 1, 1, (8 + number) * GIB);
        farm.step = Step::default();
        farm.out_of_memory(number, lease, 0, 7 * GIB);
        assert!(
            !farm.step.records.iter().any(|record| matches!(record, Record::AttemptsEnded { .. }))
        );
        assert!(farm.given(number).is_empty(), "a device that was too small gets no other unit");
        if farm.given(number + 1).is_empty() {
            // It took a unit as it joined.
            farm.input(Input::Capacity { session: SessionId(number + 1), units: 2 });
        }
        assert!(!farm.given(number + 1).is_empty());
    }
    assert!(farm.core.job(job(1)).expect("a job").failures.is_empty());
}

// promise: P4
#[test]
fn out_of_memory_everywhere_fails_the_job_with_both_sizes() {
    let mut farm = Farm::new();
    farm.join(1, 1, 8 * GIB);
    farm.submit(1, 3, 0);
    farm.submit(2, 3, 0);
    let lease = farm.given(1).first().copied();
    let lease =
        lease.or_else(|| farm.core.leases().next().map(|(lease, _)| lease)).expect("a lease");
    farm.out_of_memory(1, lease, 14 * GIB, 7 * GIB);
    let (state, note) = farm.note(1);
    assert_eq!(state, JobState::Failed);
    for part in ["14.0 GiB", "7.0 GiB", "8.0 GiB", "rack-1"] {
        assert!(note.contains(part), "{part:?} is not in {note:?}");
    }
    assert_eq!(
        farm.given(1).first().map(|lease| lease.unit.job),
        Some(job(2)),
        "the next job continues"
    );
}

#[test]
fn a_node_with_all_devices_quarantined_is_unfit_with_a_remedy() {
    let mut farm = Farm::new();
    farm.join(1, 2, 8 * GIB);
    farm.submit(1, 4, GIB);
    let reason = "wrong results in the known-answer test".to_owned();
    let remedy = "reset the GPU, then `tessera doctor`".to_owned();
    farm.states(
        1,
        8 * GIB,
        DeviceState::Quarantined { reason: reason.clone(), remedy: remedy.clone() },
    );
    assert_eq!(farm.core.leases().count(), 0, "its units are for others");
    let row = &farm.core.nodes(Moment(farm.now))[0];
    assert_eq!(row.state, NodeState::Unfit);
    assert!(row.note.contains(&reason) && row.note.contains(&remedy), "{}", row.note);
    let found = farm.core.quarantines();
    assert!(found.iter().all(|one| one.device.is_some() && one.word == "devices"), "{found:?}");
    assert!(found.len() == row.devices.len() && found[0].why.contains(&reason), "{found:?}");
    farm.join(2, 2, 8 * GIB);
    assert_eq!(farm.given(2).len(), 2);
    farm.states(1, 8 * GIB, DeviceState::Testing);
    assert!(farm.given(1).is_empty());
    assert_eq!(farm.core.quarantines(), [], "being tested is no quarantine");
    farm.states(1, 8 * GIB, DeviceState::Ready);
    assert_eq!(farm.given(1).len(), 2);
}

#[test]
fn a_node_says_what_its_machine_cannot_confine() {
    let mut farm = Farm::new();
    let lacks = "Landlock 5 of 6: signals are refused by seccomp alone";
    let unconfined = Some(lacks.to_owned());
    farm.input(inputs::joined(1, Join { unconfined, ..inputs::join(1, 1) }));
    let long = Some("x".repeat(1 << 20));
    farm.input(inputs::joined(2, Join { unconfined: long, ..inputs::join(2, 1) }));
    farm.join(3, 1, GIB);
    let rows = farm.core.nodes(Moment(farm.now));
    assert_eq!(rows[0].note, format!("sandbox: {lacks}"));
    assert_eq!(rows[0].state, NodeState::Ready);
    assert!(rows[1].note.len() < 10_000, "{} bytes", rows[1].note.len());
    assert_eq!(rows[2].note, "");
}

#[test]
fn the_last_units_are_kept_for_the_fast_node_but_not_for_ever() {
    let mut farm = Farm::new();
    farm.join(1, 1, GIB);
    farm.join(2, 1, GIB);
    farm.submit(1, 8, 0);
    let (fast, slow) = (
        farm.core.leases().find(|(_, node)| node.0.as_u128() == 1),
        farm.core.leases().find(|(_, node)| node.0.as_u128() == 2),
    );
    let (mut fast, slow) = (fast.expect("a lease").0, slow.expect("a lease").0);
    // A second a unit, against a hundred.
    for _ in 0..3 {
        farm.now += 1_000;
        farm.result(1, fast, 1_000_000);
        fast = farm.given(1)[0];
    }
    farm.result(2, slow, 100_000_000);
    assert!(farm.given(2).is_empty(), "the fast one ends the rest sooner");
    // The fast one stands still from now on.
    farm.wait(3_000);
    assert!(farm.given(2).is_empty());
    farm.wait(20_000);
    assert_eq!(farm.given(2).len(), 1, "no unit waits without end");
}

#[test]
fn a_wrong_first_estimate_delays_no_unit() {
    let mut farm = Farm::new();
    farm.join(1, 1, GIB);
    farm.join(2, 1, GIB);
    farm.submit(1, 36, 0);
    let of = |farm: &Farm, number: u128| {
        let lease = farm.core.leases().find(|(_, node)| node.0.as_u128() == number);
        lease.expect("a lease").0
    };
    // An hour a unit, against a hundred: the slow one is to wait for what the other should need for
    // the rest.
    let hour = 3_600_000;
    farm.now += hour;
    farm.result(1, of(&farm, 1), hour * 1000);
    farm.result(2, of(&farm, 2), 100 * hour * 1000);
    // It was the first unit that took long: from now on one takes a second.
    for _ in 0..32 {
        assert!(farm.given(2).is_empty());
        farm.now += 1_000;
        farm.result(1, of(&farm, 1), 1_000_000);
        farm.beat(2);
    }
    // Then it stands still.
    let begun = farm.now;
    while farm.given(2).is_empty() && farm.now < begun + hour {
        farm.now += 1_000;
        farm.beat(2);
    }
    assert!(farm.now - begun < 60_000, "{} ms", farm.now - begun);
}

#[test]
fn a_unit_is_leased_even_if_every_node_is_slow() {
    let mut farm = Farm::new();
    (1..=20).for_each(|number| farm.join(number, 1, GIB));
    // The last of the tiles is narrow, so that the others are larger than the mean.
    let render = RenderSpec { width: 20 * TILE + 1, ..inputs::render() };
    farm.input(inputs::submit(job(1), inputs::job(render)));
    farm.now += 100_000;
    let held: Vec<Lease> = farm.core.leases().map(|(lease, _)| lease).collect();
    let (lost, held) = held.split_last().expect("each node has a unit");
    for lease in held {
        let number =
            farm.core.leases().find(|(of, _)| of == lease).expect("it is held").1.0.as_u128();
        farm.result(number as u64, *lease, 100_000_000);
    }
    let narrow = farm.core.leases().find(|(lease, _)| lease.unit.unit.0 == 20).expect("it is held");
    let shape = FilmShape { width: 1, height: TILE, channels: 3, first: 0, samples: 1 };
    let result = Arrived {
        shape: ResultShape::Film(shape),
        device_micros: 1_000_000,
        ..inputs::result(narrow.0, 2)
    };
    farm.input(Input::ResultArrived { session: SessionId(narrow.1.0.as_u128() as u64), result });
    // All are known now and idle, but one that is lost.
    let holder = farm.core.leases().find(|(lease, _)| lease == lost).expect("it is held").1;
    farm.input(Input::SessionLost { session: SessionId(holder.0.as_u128() as u64) });
    farm.wait(5_000);
    let units: Vec<u32> = farm.core.leases().map(|(lease, _)| lease.unit.unit.0).collect();
    assert_eq!(units, [lost.unit.unit.0], "the node that would end it first has it");
}

#[test]
fn a_single_slow_node_gets_every_unit() {
    let mut farm = Farm::new();
    farm.join(1, 1, GIB);
    farm.submit(1, 5, 0);
    let mut lease = farm.core.leases().next().expect("a lease").0;
    for _ in 0..4 {
        farm.now += 100_000;
        farm.result(1, lease, 100_000_000);
        lease = farm.given(1)[0];
    }
}

#[test]
fn unpreparable_scenes_fail_their_jobs_and_blame_no_node() {
    let mut farm = Farm::new();
    farm.join(1, 1, GIB);
    // Another is there, so that the first is not spared for being the last.
    farm.join(2, 0, GIB);
    for number in 1..=20 {
        farm.submit(number, 1, 0);
        let given = farm.given(1);
        assert_eq!(given.len(), 1, "job {number}: the node is still given work");
        let failure = Failure::Scene("`a.gltf` is cut off".to_owned());
        let session = SessionId(1);
        farm.input(Input::UnitFailed { session, lease: given[0], failure: failure.clone() });
        farm.now += 1_000;
        farm.input(Input::Tick);
        // Nobody else takes units, so that its second word counts.
        let lease = farm.given(1)[0];
        farm.input(Input::UnitFailed { session, lease, failure });
        let (state, note) = farm.note(number);
        assert!(
            state == JobState::Failed && note.contains("`a.gltf` is cut off"),
            "{state:?}: {note}"
        );
    }
    assert!(farm.core.nodes(Moment(farm.now)).iter().all(|row| row.state == NodeState::Ready));
}
