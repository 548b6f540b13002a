//! Results of users' kernels that differ: who is wrong, when the kernel is, and that no node is put
//! out of other jobs for it.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Arrived, Input, Record, ResultShape, SessionId, Settings};
use tessera_protocol::compute::{ComputeSpec, Domain, Program};
use tessera_protocol::device::{DeviceInfo, DeviceKind};
use tessera_protocol::ids::{BlobHash, JobId};
use tessera_protocol::job::{AssetFile, JobKind, JobSpec};
use tessera_protocol::node::{Failure, Join};
use tessera_protocol::status::{FrameState, JobState, NodeState};
use tessera_support::inputs::{self, node};

/// Indices of a chunk.
const CHUNK: u32 = 4;

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

fn own() -> Program {
    Program::Ptx(AssetFile { path: "a.ptx".to_owned(), hash: BlobHash([1; 32]), length: 1 })
}

fn kernel(program: Program, chunks: u32) -> ComputeSpec {
    let domain = Domain { width: CHUNK * chunks, height: 1, depth: 1 };
    ComputeSpec { chunk: CHUNK, ..ComputeSpec::new(program, domain) }
}

/// A node with a CUDA device and room for one unit.
fn joined(farm: &mut SmallFarm, number: u64) {
    let device = DeviceInfo { kind: DeviceKind::Cuda, ..inputs::device() };
    let join = Join { devices: vec![device], ..inputs::join(number, 1) };
    farm.step(inputs::joined(number, join));
}

fn submit(farm: &mut SmallFarm, number: u128, compute: ComputeSpec) {
    farm.job = JobId(uuid::Uuid::from_u128(number));
    farm.step(inputs::submit(farm.job, JobSpec::new("k", JobKind::Compute(compute))));
}

/// So many nodes, and a job of this kernel.
fn farm(settings: Settings, nodes: u64, compute: ComputeSpec) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 0);
    let first = inputs::submit(farm.job, inputs::job(inputs::render()));
    let Input::Submit { job, caller, .. } = first else { unreachable!() };
    farm.cancel(job, caller);
    (1..=nodes).for_each(|number| joined(&mut farm, number));
    submit(&mut farm, 2, compute);
    farm
}

/// A node ends the chunk that it holds, if any, with a result of this hash.
fn run(farm: &mut SmallFarm, number: u64, hash: u8) -> bool {
    let Some(lease) = farm.lease(number) else { return false };
    let shape = ResultShape::Chunk(kernel(own(), 1).chunk_shape(CHUNK));
    let arrived = Arrived { shape, hash: BlobHash([hash; 32]), ..inputs::result(lease, 0) };
    farm.step(Input::ResultArrived { session: SessionId(number), result: arrived });
    true
}

fn wait(farm: &mut SmallFarm) {
    farm.later(Duration::from_secs(21));
}

fn note(farm: &SmallFarm) -> (JobState, String) {
    let summary = farm.core.job_summary(farm.job).expect("the job");
    (summary.state, summary.note)
}

/// Every node is ready, and nothing is said of any.
fn assert_trusted(farm: &SmallFarm) {
    for row in farm.core.nodes(farm.now) {
        assert!(row.state == NodeState::Ready && row.note.is_empty(), "{row:?}");
    }
    let suspected = |record: &Record| matches!(record, Record::NodeSuspected { .. });
    assert!(!farm.records.iter().any(suspected));
}

fn barred(farm: &SmallFarm) -> Vec<u64> {
    let of = |record: &Record| match record {
        Record::NodeBarred { node: id, .. } => (1..9).find(|number| node(*number) == *id),
        _ => None,
    };
    farm.records.iter().filter_map(of).collect()
}

// promise: P7
#[test]
fn a_kernel_that_contradicts_itself_ends_its_job() {
    let mut farm = farm(all(), 2, kernel(own(), 1));
    assert!(run(&mut farm, 1, 7) && run(&mut farm, 2, 8));
    let again = (1..=2).find(|number| farm.lease(*number).is_some()).expect("a second run");
    run(&mut farm, again, 9);
    let (state, note) = note(&farm);
    assert_eq!(state, JobState::Failed);
    assert!(
        note.contains("not deterministic: chunk 0 differs between `n1` and `n2`")
            && note.contains(&format!("`n{again}` gave another result"))
            && note.contains("--nondeterministic"),
        "{note}"
    );
    assert_trusted(&farm);
    // The next job of somebody else is served by both.
    submit(&mut farm, 3, kernel(Program::Builtin("merge".to_owned()), 2));
    assert!(run(&mut farm, 1, 7) && run(&mut farm, 2, 7));
    farm.audit();
}

// promise: P7
#[test]
fn a_contradiction_ends_the_job_also_if_a_crash_loses_its_end() {
    let mut farm = farm(all(), 2, kernel(own(), 1));
    assert!(run(&mut farm, 1, 7) && run(&mut farm, 2, 8));
    let again = (1..=2).find(|number| farm.lease(*number).is_some()).expect("a second run");
    // It agrees with the other now, and with itself no more.
    run(&mut farm, again, 15 - if again == 1 { 7 } else { 8 });
    farm.restart_before(|record| matches!(record, Record::JobEnded { .. }));
    (1..=2).for_each(|number| joined(&mut farm, number));
    wait(&mut farm);
    let (state, note) = note(&farm);
    assert_eq!(state, JobState::Failed, "{note}");
    assert!(note.contains(&format!("`n{again}` gave another result")), "{note}");
    assert_trusted(&farm);
}

// promise: P7
#[test]
fn three_results_of_three_nodes_end_the_job() {
    let mut farm = farm(all(), 3, kernel(own(), 1));
    let mut hash = 0;
    while note(&farm).0 != JobState::Failed && hash < 9 {
        // A node that runs it again stays with its result.
        let next = (1..=3).find(|number| farm.lease(*number).is_some()).expect("a run");
        run(&mut farm, next, next as u8);
        hash += 1;
    }
    let (_, note) = note(&farm);
    assert!(note.contains("three nodes have three results"), "{note}");
    assert_trusted(&farm);
}

/// Each of three nodes ends what it has, the first with a wrong result that is always the same.
fn all_run(farm: &mut SmallFarm) {
    for number in 1..=3 {
        run(farm, number, if number == 1 { 9 } else { 7 });
    }
}

/// A farm of three nodes whose first always has another result, until the job's frame is complete.
fn lied_to(farm: &mut SmallFarm) {
    for _ in 0..16 {
        all_run(farm);
    }
}

// promise: P7
#[test]
fn a_steady_liar_gets_no_more_of_the_job_and_keeps_others() {
    let mut farm = farm(all(), 3, kernel(own(), 3));
    lied_to(&mut farm);
    assert!(farm.is_resolving(), "{:?}", note(&farm));
    assert_eq!(barred(&farm), [1]);
    let taken = |record: &&Record| matches!(record, Record::UnitsTakenBack { .. });
    assert_eq!(farm.records.iter().filter(taken).count(), 1, "what it had done is done again");
    assert_trusted(&farm);
    let failures = farm.core.job(farm.job).expect("the job").failures;
    assert!(failures.iter().any(|row| row.node == "n1" && row.reason.contains("no more of this")));
    assert_eq!(farm.audit(), 3);
    farm.finish();
    submit(&mut farm, 3, kernel(own(), 3));
    assert!(farm.lease(1).is_some(), "it has another job");
}

// promise: P1, P7
#[test]
fn what_is_known_of_a_kernel_survives_restarts() {
    for from_snapshot in [false, true] {
        let mut farm = farm(all(), 3, kernel(own(), 4));
        while barred(&farm).is_empty() {
            all_run(&mut farm);
        }
        farm.restart(from_snapshot);
        farm.later(Duration::from_secs(1));
        [2, 3, 1].iter().for_each(|number| joined(&mut farm, *number));
        assert!(farm.lease(1).is_none() && farm.lease(2).is_some());
    }
    // Votes that differ are kept: the second run is still asked for.
    let mut farm = farm(all(), 2, kernel(own(), 1));
    assert!(run(&mut farm, 1, 7) && run(&mut farm, 2, 8));
    farm.restart(true);
    farm.later(Duration::from_secs(1));
    joined(&mut farm, 2);
    assert!(run(&mut farm, 2, 9));
    assert!(note(&farm).1.contains("`n2` gave another result"), "{:?}", note(&farm));
}

// promise: P4
#[test]
fn two_nodes_that_stay_with_their_results_blame_nobody() {
    let mut farm = farm(all(), 2, kernel(own(), 1));
    for _ in 0..4 {
        run(&mut farm, 1, 7);
        run(&mut farm, 2, 8);
    }
    wait(&mut farm);
    let Some(FrameState::Failed(reason)) = farm.frame() else { panic!("{:?}", farm.frame()) };
    assert!(reason.contains("chunk 0 has different results on `n1` and `n2`"), "{reason}");
    assert_trusted(&farm);
}

// promise: P4
#[test]
fn two_are_believed_if_the_third_cannot_be_asked_again() {
    let mut farm = farm(all(), 2, kernel(own(), 1));
    assert!(run(&mut farm, 1, 9));
    joined(&mut farm, 3);
    farm.step(Input::SessionLost { session: SessionId(1) });
    wait(&mut farm);
    for _ in 0..4 {
        for number in 2..=3 {
            run(&mut farm, number, 7);
        }
        wait(&mut farm);
    }
    assert!(farm.is_resolving(), "{:?}", note(&farm));
    assert_eq!(barred(&farm), [1]);
}

// promise: P7
#[test]
fn a_single_node_runs_the_first_chunk_twice() {
    let settings = Settings { settle: Duration::ZERO, check_share: 1, ..Settings::default() };
    let mut steady = farm(settings.clone(), 1, kernel(own(), 3));
    let runs = (0..9).filter(|_| run(&mut steady, 1, 7)).count();
    assert_eq!((runs, steady.is_resolving()), (4, true), "one chunk of three");
    let known = Settings { check_first: 0, ..settings.clone() };
    let mut known = farm(known, 1, kernel(own(), 3));
    assert_eq!((0..9).filter(|_| run(&mut known, 1, 7)).count(), 4, "of a well-known node too");
    let mut other = farm(settings.clone(), 1, kernel(own(), 3));
    assert!(run(&mut other, 1, 7) && run(&mut other, 1, 8));
    let (state, text) = note(&other);
    assert_eq!(state, JobState::Failed);
    assert!(text.contains("chunk 0 differs between two runs on `n1`"), "{text}");
    assert_trusted(&other);
    let mut unchecked = farm(settings.without_checks(), 1, kernel(own(), 3));
    assert_eq!((0..9).filter(|_| run(&mut unchecked, 1, 7)).count(), 3);
}

#[test]
fn what_is_meant_to_differ_is_not_compared() {
    let spec = ComputeSpec { nondeterministic: true, ..kernel(own(), 4) };
    for nodes in [1, 3] {
        let mut farm = farm(all(), nodes, spec.clone());
        let mut hash = 0;
        for _ in 0..9 {
            (1..=nodes).for_each(|number| {
                hash += 1;
                run(&mut farm, number, hash);
            });
        }
        assert!(farm.is_resolving(), "{:?}", note(&farm));
        let checked = |record: &Record| matches!(record, Record::UnitChecked { .. });
        assert!(!farm.records.iter().any(checked));
        assert_trusted(&farm);
    }
}

// promise: P7
#[test]
fn a_built_in_kernel_still_finds_the_liar_for_all_jobs() {
    let mut farm = farm(all(), 3, kernel(Program::Builtin("merge".to_owned()), 3));
    lied_to(&mut farm);
    assert!(farm.is_resolving() && barred(&farm).is_empty());
    let rows = farm.core.nodes(farm.now);
    let liar = rows.iter().find(|row| row.node == node(1)).expect("it is listed");
    assert_eq!(liar.state, NodeState::Unfit);
}

// promise: P4
#[test]
fn a_kernel_that_brings_workers_down_makes_no_node_unfit() {
    let settings = Settings { attempts: 100, ..all() };
    let mut farm = farm(settings, 2, kernel(own(), 20));
    for _ in 0..10 {
        for number in 1..=2 {
            let lease = farm.lease(number).expect("a chunk");
            let failure = Failure::Worker("it has ended".to_owned());
            let session = SessionId(number);
            farm.step(Input::UnitFailed { session, lease, failure });
        }
    }
    assert_trusted(&farm);
}
