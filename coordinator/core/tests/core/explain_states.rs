//! Explanations of states that several nodes bring about together: checks, liars, builds, finishing
//! and frames that feed each other. Each help is followed.

use crate::explain::{first, of_frame, of_job, of_node, quick, root, words};
use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{
    Arrived, Caller, FilmShape, Input, RequestId, ResultShape, SessionId, Settings,
};
use tessera_protocol::compute::{ComputeSpec, Domain, Element, InputArray, Program};
use tessera_protocol::device::{DeviceInfo, DeviceKind};
use tessera_protocol::explain::Explanation;
use tessera_protocol::ids::{BlobHash, Fingerprint, JobId};
use tessera_protocol::job::{AssetFile, JobKind, JobSpec, RenderSpec};
use tessera_protocol::node::{Failure, Heartbeat, Join, LimitReached, NodeLimit, Task};
use tessera_support::inputs::{self, joined};
use uuid::Uuid;

/// Indices of a chunk.
const CHUNK: u32 = 4;

/// Everything is checked.
fn all() -> Settings {
    Settings { check_share: 1024, settle: Duration::ZERO, ..Settings::default() }
}

fn nobody_waits_for(of: &Explanation, word: &str) {
    assert!(!words(of).contains(&word), "{of:?}");
}

// promise: P4
#[test]
fn results_that_wait_for_a_second_node_say_so() {
    let mut farm = SmallFarm::new(all(), 1, 1);
    assert!(farm.lease(1).is_some(), "it is busy from now on");
    farm.submit(2);
    farm.step(joined(2, inputs::join(2, 1)));
    farm.work(2, 7);
    assert!(!farm.is_resolving(), "the other is to check it");
    let help = "another node that may have the job";
    first(&of_job(&farm), "check", "1 of its results wait for another node", help);
    first(&of_frame(&farm), "in_check", "1 of its results are rendered again", help);
    farm.step(joined(3, inputs::join(3, 1)));
    farm.work(3, 7);
    first(&of_job(&farm), "files", "the coordinator makes its files", "");
}

// promise: P4
#[test]
fn nodes_that_were_wrong_say_it_until_they_are_put_back() {
    let mut farm = SmallFarm::new(all(), 3, 3);
    farm.work(1, 9);
    for _ in 0..8 {
        (2..=3).for_each(|number| farm.work(number, 7));
    }
    let help = "`tessera undrain n1` ends that";
    first(&of_node(&farm, "n1"), "wrong", "quarantined: it gave a wrong result", help);
    farm.finish();
    farm.submit(2);
    for number in [2, 3] {
        farm.step(Input::SessionLost { session: SessionId(number) });
    }
    // Of the three, only the liar is left.
    farm.later(Duration::from_secs(21));
    let alone = of_node(&farm, "n1");
    assert_eq!(words(&alone), ["wrong_alone", "at_work"], "{alone:?}");
    first(&alone, "wrong_alone", "only because no other node may have any", help);
    farm.undrain("n1");
    assert_eq!(words(&of_node(&farm, "n1")), ["at_work"]);
}

// promise: P4
#[test]
fn nodes_in_doubt_say_it_until_they_are_put_back() {
    let mut farm = SmallFarm::new(all(), 1, 2);
    farm.work(1, 9);
    farm.work(2, 7);
    for _ in 0..6 {
        farm.later(Duration::from_secs(21));
        farm.work(1, 9);
        farm.work(2, 7);
    }
    first(&of_frame(&farm), "frame_failed", "has different results on `n1` and `n2`", "retry");
    for name in ["n1", "n2"] {
        let of = of_node(&farm, name);
        let help = format!("`tessera undrain {name}` ends that");
        first(&of, "doubted", "in doubt, so that all its results are checked", &help);
        farm.undrain(name);
        nobody_waits_for(&of_node(&farm, name), "doubted");
    }
}

// promise: P4
#[test]
fn a_node_that_cannot_do_a_job_names_it_and_others_do_it() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.fail(1, Failure::Unable("stamp: this build does not know this option".to_owned()));
    let job = farm.job.to_string();
    let of = of_node(&farm, "n1");
    first(&of, "unable", "not able to do 1 open jobs", "a newer build or driver");
    first(&of, "unable", &job, "");
    first(&of_job(&farm), "unable", "`n1`: stamp: this build", "start a node with a newer build");
    farm.step(joined(2, inputs::join(2, 1)));
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_node_of_another_build_says_so_and_the_same_build_goes_on() {
    let mut farm = SmallFarm::new(quick(), 2, 1);
    farm.work(1, 7);
    farm.step(Input::SessionLost { session: SessionId(1) });
    farm.later(Duration::from_secs(30));
    let (session, join) = (SessionId(2), Box::new(inputs::join(2, 1)));
    let fingerprint = Fingerprint([2; 32]);
    farm.step(Input::NodeJoined { session, join, fingerprint, build: "newer".to_owned() });
    let why = format!("fingerprint {fingerprint} differs from the first results of 1 open jobs");
    first(&of_node(&farm, "n2"), "fingerprint", &why, "run the same build everywhere");
    first(&of_job(&farm), "fingerprint", "its first results have the fingerprint", "run the build");
    farm.step(joined(3, inputs::join(3, 1)));
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_node_that_keeps_failing_a_job_is_told_how_to_end_that() {
    let mut farm = SmallFarm::new(quick(), 2, 2);
    for _ in 0..40 {
        farm.later(Duration::from_secs(10));
        if farm.lease(1).is_some() {
            farm.fail(1, Failure::Device("it is hot".to_owned()));
        }
    }
    let of = of_node(&farm, "n1");
    assert!(words(&of).contains(&"failing"), "{of:?}");
    let failing = of.reasons.iter().find(|reason| reason.word == "failing").expect("it is there");
    assert!(failing.why.contains("passed over for 1 open jobs, such as "), "{failing:?}");
    assert!(failing.help.contains("`tessera undrain n1`"), "{failing:?}");
    farm.undrain("n1");
    nobody_waits_for(&of_node(&farm, "n1"), "failing");
    assert!(farm.lease(1).is_some(), "it has a unit of that job again");
}

// promise: P4
#[test]
fn a_node_off_the_list_says_how_it_comes_back() {
    let mut farm = SmallFarm::new(quick(), 1, 2);
    farm.step(Input::SessionLost { session: SessionId(2) });
    farm.later(Duration::from_secs(600));
    let (request, node, by) = (RequestId(9), "n2".to_owned(), "root".to_owned());
    farm.ask(Input::RemoveNode { request, node, by });
    let help = "it comes back onto the list";
    first(&of_node(&farm, "n2"), "removed", "removed by `root`", help);
    farm.step(joined(2, inputs::join(2, 1)));
    nobody_waits_for(&of_node(&farm, "n2"), "removed");
}

/// A kernel of so many chunks, which is a user's own.
fn kernel(chunks: u32) -> ComputeSpec {
    let file = AssetFile { path: "a.ptx".to_owned(), hash: BlobHash([1; 32]), length: 1 };
    let domain = Domain { width: CHUNK * chunks, height: 1, depth: 1 };
    ComputeSpec { chunk: CHUNK, ..ComputeSpec::new(Program::Ptx(file), domain) }
}

fn join_with_cuda(farm: &mut SmallFarm, number: u64) {
    let device = DeviceInfo { kind: DeviceKind::Cuda, ..inputs::device() };
    farm.step(joined(number, Join { devices: vec![device], ..inputs::join(number, 1) }));
}

/// A node ends the chunk that it holds, if any, with a result of this hash.
fn run(farm: &mut SmallFarm, number: u64, hash: u8) {
    let Some(lease) = farm.lease(number) else { return };
    let shape = ResultShape::Chunk(kernel(1).chunk_shape(CHUNK));
    let arrived = Arrived { shape, hash: BlobHash([hash; 32]), ..inputs::result(lease, 0) };
    farm.step(Input::ResultArrived { session: SessionId(number), result: arrived });
}

fn submit_compute(farm: &mut SmallFarm, number: u128, compute: ComputeSpec) {
    farm.job = JobId(Uuid::from_u128(number));
    farm.step(inputs::submit(farm.job, JobSpec::new("k", JobKind::Compute(compute))));
}

/// A farm of so many nodes with CUDA devices, and no job.
fn cuda_farm(settings: Settings, nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings, 1, 0);
    let (job, caller): (JobId, Caller) = (farm.job, root());
    farm.cancel(job, caller);
    (1..=nodes).for_each(|number| join_with_cuda(&mut farm, number));
    farm
}

// promise: P4
#[test]
fn a_job_whose_only_node_was_wrong_about_it_waits_for_another() {
    let mut farm = cuda_farm(all(), 3);
    submit_compute(&mut farm, 2, kernel(60));
    for _ in 0..6 {
        (1..=3).for_each(|number| run(&mut farm, number, if number == 1 { 9 } else { 7 }));
    }
    assert!(farm.lease(1).is_none(), "it gets no more of this job");
    // The others end what they have, and are away for a moment.
    for number in [2, 3] {
        farm.step(Input::Capacity { session: SessionId(number), units: 0 });
    }
    for number in [2, 3] {
        run(&mut farm, number, 7);
        farm.step(Input::SessionLost { session: SessionId(number) });
    }
    let of = of_job(&farm);
    first(&of, "barred", "`n1` gave it wrong results", "start another node");
    join_with_cuda(&mut farm, 4);
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_frame_that_reads_another_waits_until_that_is_made() {
    let mut farm = cuda_farm(quick(), 1);
    let state = InputArray {
        name: "state".to_owned(),
        hash: BlobHash([9; 32]),
        length: 144,
        element: Element::F32,
        shape: vec![4],
        from: None,
    };
    let domain = Domain { width: CHUNK, height: 1, depth: 1 };
    let program = Program::Builtin("mandelbrot".to_owned());
    let chained = ComputeSpec {
        frames: "1-2".parse().expect("frames"),
        inputs: vec![state],
        feed: Some("state".to_owned()),
        chunk: CHUNK,
        ..ComputeSpec::new(program, domain)
    };
    submit_compute(&mut farm, 3, chained);
    run(&mut farm, 1, 7);
    assert!(farm.is_resolving(), "{:?}", of_job(&farm));
    first(&of_job(&farm), "feed", "f0001, which the next frame reads, is being made", "");
    farm.finish();
    first(&of_job(&farm), "at_work", "in work", "");
}

// promise: P4
#[test]
fn a_frame_that_nodes_finish_says_where() {
    let mut farm = SmallFarm::new(quick(), 1, 0);
    let finishing = Some(Fingerprint([1; 32]));
    let join = Join { finishing, ..inputs::join(1, 1) };
    farm.step(joined(1, join));
    let render = RenderSpec { width: 96, height: 48, tile: 128, ..inputs::render() };
    let job = farm.job;
    farm.cancel(job, root());
    farm.submit_render(2, render);
    let lease = farm.lease(1).expect("a unit");
    let Task::Tile { tile, samples } = farm.given[&lease] else { panic!("a tile first") };
    let shape = ResultShape::Film(FilmShape {
        width: tile.width,
        height: tile.height,
        channels: 3,
        first: samples.first,
        samples: samples.count,
    });
    let result = Arrived { shape, ..inputs::result(lease, 7) };
    farm.step(Input::ResultArrived { session: SessionId(1), result });
    first(&of_frame(&farm), "finishing", "its samples are complete; 1 pieces are finished on", "");
    let lease = farm.lease(1).expect("a piece");
    let Task::Finish(finish) = farm.given[&lease] else { panic!("the piece") };
    let shape = ResultShape::Finished(finish.piece);
    let result = Arrived { shape, ..inputs::result(lease, 8) };
    farm.step(Input::ResultArrived { session: SessionId(1), result });
    let of = of_frame(&farm);
    first(&of, "files", "the coordinator makes its files", "");
    assert_eq!(words(&of), ["files"], "said once");
}

/// The attempt that is noted first with this word, and its help.
fn noted(farm: &SmallFarm, word: &str, help: &str) {
    let of = of_job(farm);
    let found = of.reasons.iter().find(|reason| reason.word == word);
    let found = found.unwrap_or_else(|| panic!("no {word}: {of:?}"));
    assert!(found.why.contains(" on `n1`: "), "{found:?}");
    assert!(found.help.contains(help), "{help:?} is not in {found:?}");
}

// promise: P4
#[test]
fn every_ending_that_is_noted_with_a_job_says_what_helps() {
    let mut farm = SmallFarm::new(quick(), 1, 1);
    farm.fail(1, Failure::Scene("`a.gltf` is no glTF file".to_owned()));
    noted(&farm, "unprepared", "check the scene with `tessera inspect`");

    let mut farm = SmallFarm::new(quick(), 1, 1);
    let reason = "it takes more than 64 MiB".to_owned();
    farm.fail(1, Failure::Limit(LimitReached { limit: NodeLimit::SceneMemory, reason }));
    noted(&farm, "limited", "raise the named limit on that node");

    let mut farm = SmallFarm::new(quick(), 3, 2);
    for _ in 0..7 {
        farm.later(Duration::from_secs(10));
        for number in 1..=2 {
            let leases = farm.lease(number).into_iter().collect();
            let working = u32::from(number == 2);
            let heartbeat = Heartbeat { leases, working, ..inputs::beat(Vec::new()) };
            farm.step(Input::Heartbeat { session: SessionId(number), heartbeat });
        }
    }
    // Said of the node, and not of the job, which lost nothing.
    let of = of_node(&farm, "n1");
    first(&of, "unfit", "it is connected and began none of 1 units", "`tessera doctor` there");
    assert_eq!(words(&of_job(&farm)), ["at_work"]);

    let mut farm = SmallFarm::new(quick(), 2, 2);
    for _ in 0..8 {
        farm.later(Duration::from_secs(10));
        if farm.lease(1).is_some() {
            farm.fail(1, Failure::Device("it is hot".to_owned()));
        }
    }
    noted(&farm, "repeated", "`tessera doctor` on that node; others have the unit");
}
