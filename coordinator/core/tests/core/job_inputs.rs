//! Inputs that are frames of another job: found once all of them are finished, kept from the sweep,
//! the same after a replay; refused where the other job makes no such frames.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::compute::{ComputeSpec, Domain, Element, FromJob, InputArray, Program};
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId};
use tessera_protocol::job::{After, FormatSpec, JobKind, JobSpec, RenderSpec, Until};
use tessera_protocol::status::{FrameFile, JobState};
use tessera_support::inputs;
use uuid::Uuid;

const FILM: u128 = 2;
const NEXT: u128 = 3;

fn settings() -> Settings {
    Settings { attempts: 1, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

fn id(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

/// A farm of one node, with a film of these frames.
fn farm(frames: &str) -> SmallFarm {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    farm.work(1, 1);
    farm.finish();
    let render = RenderSpec { frames: frames.parse().expect("frames"), ..inputs::render() };
    farm.job = id(FILM);
    let answer = farm.ask(inputs::submit(id(FILM), inputs::job(render)));
    assert_eq!(answer, Response::Accepted(id(FILM)));
    farm
}

fn hash_of(frame: u32) -> BlobHash {
    BlobHash([100 + frame as u8; 32])
}

/// The node renders the film's next frame, which gets its file.
fn render(farm: &mut SmallFarm, frame: u32) {
    farm.work(1, 1);
    let (format, hash) = ("exr".to_owned(), hash_of(frame));
    let files = vec![FrameFile { format, hash, length: 1000, pixels_sha256: [0; 32] }];
    let (job, frame) = (id(FILM), FrameNumber(frame));
    farm.step(Input::FrameResolved { job, frame, files, exposure: None });
}

/// A job of these frames that reads the film's.
fn reader(frames: &str) -> JobSpec {
    let RenderSpec { width, height, .. } = inputs::render();
    let image = InputArray {
        name: "image".to_owned(),
        hash: BlobHash::default(),
        length: 0,
        element: Element::F32,
        shape: vec![height.into(), width.into(), 3],
        from: Some(FromJob { job: id(FILM), file: "exr".to_owned() }),
    };
    let program = Program::Builtin("resize".to_owned());
    let compute = ComputeSpec {
        inputs: vec![image],
        channels: 3,
        frames: frames.parse().expect("frames"),
        ..ComputeSpec::new(program, Domain { width: 4, height: 4, depth: 1 })
    };
    let after = vec![After { job: id(FILM), until: Until::Success }];
    JobSpec { after, kind: JobKind::Compute(compute), ..inputs::job(inputs::render()) }
}

fn submit(farm: &mut SmallFarm, spec: JobSpec) -> Response {
    farm.job = id(NEXT);
    farm.ask(inputs::submit(id(NEXT), spec))
}

/// The reader's spec as nodes get it.
fn found(core: &Core) -> ComputeSpec {
    match core.job(id(NEXT)).expect("a job").spec.kind {
        JobKind::Compute(compute) => compute,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_frame_reads_the_frame_of_its_number() {
    let mut farm = farm("1-3");
    let spec = reader("2-3");
    assert_eq!(submit(&mut farm, spec.clone()), Response::Accepted(id(NEXT)));
    render(&mut farm, 1);
    render(&mut farm, 2);
    assert!(found(&farm.core).files().next().is_none() && !found(&farm.core).inputs[0].is_found());
    assert_eq!(farm.lease(1).map(|lease| lease.unit.job), Some(id(FILM)));
    render(&mut farm, 3);
    let compute = found(&farm.core);
    let hashes: Vec<BlobHash> = compute.files().map(|(_, hash, _)| hash).collect();
    assert_eq!(hashes, [hash_of(2), hash_of(3)]);
    assert_eq!(compute.inputs_at(FrameNumber(3))[0].hash, hash_of(3));
    assert_eq!(farm.lease(1).map(|lease| lease.unit.job), Some(id(NEXT)));
    // Sent once more, the submission is the same; another one is not.
    assert_eq!(submit(&mut farm, spec.clone()), Response::Accepted(id(NEXT)));
    let mut other = spec;
    other.name = "other".to_owned();
    assert!(matches!(submit(&mut farm, other), Response::Error(RequestError::Invalid(_))));
    // The journal gives the same files, and nobody may forget the film's while they are read.
    let records = farm.records.clone();
    let again = Core::replay(settings(), [], records, farm.now).expect("a sound journal");
    assert_eq!(found(&again), compute);
    let caller = Caller { name: "ada".to_owned(), id: 294, admin: true };
    farm.change(tessera_protocol::selection::JobChange::Forget, id(FILM), caller);
    assert!(farm.core.job(id(FILM)).is_none());
    assert!(farm.core.named_blobs().contains(&hash_of(2)));
    assert!(!farm.core.named_blobs().contains(&hash_of(1)));
}

#[test]
fn a_single_frame_is_read_by_all_frames() {
    let mut farm = farm("7");
    assert_eq!(submit(&mut farm, reader("1-40")), Response::Accepted(id(NEXT)));
    render(&mut farm, 7);
    let compute = found(&farm.core);
    assert!(compute.frame_inputs.is_empty() && compute.inputs[0].hash == hash_of(7));
}

#[test]
fn a_film_that_is_over_is_read_at_once() {
    let mut farm = farm("1-2");
    render(&mut farm, 1);
    render(&mut farm, 2);
    assert_eq!(farm.standing_of(FILM).0, JobState::Done);
    assert_eq!(submit(&mut farm, reader("1-2")), Response::Accepted(id(NEXT)));
    assert_eq!(found(&farm.core).files().count(), 2);
}

#[test]
fn inputs_that_the_other_job_does_not_make_are_refused() {
    let mut farm = farm("1-3");
    let with = |change: &dyn Fn(&mut InputArray, &mut JobSpec)| {
        let mut spec = reader("1-3");
        let mut input = match &spec.kind {
            JobKind::Compute(compute) => compute.inputs[0].clone(),
            other => panic!("{other:?}"),
        };
        change(&mut input, &mut spec);
        if let JobKind::Compute(compute) = &mut spec.kind {
            compute.inputs = vec![input];
        }
        spec
    };
    let file = |name: &str| {
        let name = name.to_owned();
        with(&move |input, _| input.from.as_mut().expect("a job").file.clone_from(&name))
    };
    for (spec, told) in [
        (with(&|input, _| input.shape[2] = 4), "makes f32 ["),
        (with(&|input, _| input.element = Element::F64), "and the input is f64"),
        (with(&|input, _| input.hash = BlobHash([9; 32])), "beside a file"),
        (file("npy"), "has no file `npy`, but `exr`"),
        (file("flux.npy"), "has no output `flux`"),
        (reader("1-4"), "has no frame 4; its frames are 1-3"),
    ] {
        match submit(&mut farm, spec) {
            Response::Error(RequestError::Invalid(text)) => assert!(text.contains(told), "{text}"),
            other => panic!("{told}: {other:?}"),
        }
    }
    let films = RenderSpec { formats: vec![FormatSpec::Png], ..inputs::render() };
    let kind = JobKind::Render(films);
    assert!(kind.frame_array(None).unwrap_err().contains("no EXR files"));
}

#[test]
fn a_job_waits_for_the_success_of_what_it_reads() {
    let check = |after: Vec<After>| {
        tessera_protocol::RawJobSpec::from(JobSpec { after, ..reader("1") }).check().map(drop)
    };
    assert!(check(reader("1").after).is_ok());
    for until in [Until::End, Until::Frames] {
        let error = check(vec![After { job: id(FILM), until }]).unwrap_err();
        assert!(error.field == "input" && error.problem.contains("success"), "{error}");
    }
    assert!(check(Vec::new()).is_err());
}
