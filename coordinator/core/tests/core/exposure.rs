//! An exposure that is metered in a job's first frame and used for all of them.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Input, Record, SessionId, Settings};
use tessera_protocol::client::Response;
use tessera_protocol::ids::{BlobHash, FrameNumber};
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::node::Failure;
use tessera_protocol::selection::JobChange;
use tessera_protocol::status::{FrameFile, FrameState, JobState};
use tessera_support::inputs::{self, joined};

/// A unit is dead when it has failed twice.
fn settings() -> Settings {
    Settings { attempts: 2, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

/// Three frames of one unit each.
fn render() -> RenderSpec {
    RenderSpec {
        frames: "4-6".parse().expect("frames"),
        formats: vec![FormatSpec::Png],
        auto_exposure: true,
        ..inputs::render()
    }
}

/// A farm of so many nodes, whose first job's unit is done.
fn farm(nodes: u64) -> SmallFarm {
    let mut farm = SmallFarm::new(settings(), 1, nodes);
    (1..=nodes).for_each(|node| farm.work(node, 1));
    farm.submit_render(2, render());
    farm
}

fn frames(farm: &SmallFarm) -> Vec<FrameState> {
    farm.core.frames(farm.job, 0).expect("frames").into_iter().map(|row| row.state).collect()
}

fn orders(farm: &SmallFarm) -> usize {
    farm.orders_of(farm.job)
}

fn exposure(farm: &SmallFarm) -> f32 {
    let detail = farm.core.job(farm.job).expect("a job");
    detail.spec.kind.render().expect("a render job").exposure
}

fn resolved(farm: &mut SmallFarm, frame: u32, exposure: Option<f32>) {
    let (format, hash) = ("png".to_owned(), BlobHash([3; 32]));
    let files = vec![FrameFile { format, hash, length: 1, pixels_sha256: [0; 32] }];
    let (job, frame) = (farm.job, FrameNumber(frame));
    farm.step(Input::FrameResolved { job, frame, files, exposure });
}

/// Works on every frame but the first, as far as a node holds units of them.
fn work_on_others(farm: &mut SmallFarm) {
    for node in [1, 2, 1, 2] {
        if farm.lease(node).is_some_and(|lease| lease.unit.frame != FrameNumber(4)) {
            farm.work(node, 1);
        }
    }
}

#[test]
fn files_wait_until_the_first_frame_is_metered() {
    for from_snapshot in [false, true] {
        let mut farm = farm(2);
        work_on_others(&mut farm);
        assert_eq!(frames(&farm)[1..], [FrameState::Resolving, FrameState::Resolving]);
        assert_eq!(orders(&farm), 0, "their exposure is not known");
        farm.restart(from_snapshot);
        (1..=2).for_each(|node| farm.step(joined(10 + node, inputs::join(10 + node, 1))));
        assert_eq!(orders(&farm), 0, "nor after a restart");

        (11..=12).for_each(|node| farm.work(node, 1));
        assert_eq!(orders(&farm), 1);
        // A resolver that does not say what it metered has not done it.
        resolved(&mut farm, 4, None);
        assert_eq!((frames(&farm)[0].clone(), exposure(&farm)), (FrameState::Resolving, 0.0));
        farm.later(Duration::from_secs(70));
        assert_eq!(orders(&farm), 2);
        resolved(&mut farm, 4, Some(-3.41));
        assert!(matches!(frames(&farm)[0], FrameState::Done(_)));
        assert_eq!((orders(&farm), exposure(&farm)), (4, -3.41));

        farm.restart(from_snapshot);
        assert_eq!(exposure(&farm), -3.41);
        // The client that submitted it may not have heard the answer.
        let again = inputs::submit(farm.job, inputs::job(render()));
        assert_eq!(farm.ask(again), Response::Accepted(farm.job));
        let other = inputs::job(RenderSpec { exposure: 1.0, auto_exposure: false, ..render() });
        let other = inputs::submit(farm.job, other);
        assert!(matches!(farm.ask(other), Response::Error(_)));
        // What later frames tell changes nothing.
        resolved(&mut farm, 5, Some(9.0));
        resolved(&mut farm, 6, None);
        assert_eq!(exposure(&farm), -3.41);
        assert_eq!(farm.core.job_summary(farm.job).expect("a job").state, JobState::Done);
        let metered = |record: &&Record| matches!(record, Record::ExposureMetered { .. });
        assert_eq!(farm.records.iter().filter(metered).count(), 1);
        farm.audit();
    }
}

#[test]
fn a_job_fails_with_the_frame_that_is_metered() {
    let mut farm = farm(1);
    let state = |farm: &SmallFarm| farm.core.job_summary(farm.job).expect("a job").state;
    while state(&farm) == JobState::Running || state(&farm) == JobState::Queued {
        match farm.lease(1) {
            Some(lease) if lease.unit.frame == FrameNumber(4) => {
                let failure = Failure::Device("it broke".to_owned());
                farm.step(Input::UnitFailed { session: SessionId(1), lease, failure });
            }
            Some(_) => farm.work(1, 1),
            None => farm.later(Duration::from_secs(70)),
        }
    }
    let summary = farm.core.job_summary(farm.job).expect("a job");
    assert_eq!((summary.state, orders(&farm)), (JobState::Failed, 0));
    assert!(summary.note.contains("which the frames after it need, failed"), "{}", summary.note);

    let (job, caller) = (farm.job, Caller { name: "ada".to_owned(), id: 294, admin: false });
    assert_eq!(farm.change(JobChange::Retry, job, caller), Response::Done);
    (0..3).for_each(|_| farm.work(1, 1));
    assert_eq!(orders(&farm), 1);
    resolved(&mut farm, 4, Some(2.0));
    assert_eq!((orders(&farm), exposure(&farm)), (3, 2.0));
    farm.audit();
}

#[test]
fn without_a_file_that_shows_it_nothing_is_metered() {
    let mut farm = farm(2);
    farm.submit_render(3, RenderSpec { formats: vec![FormatSpec::Exr], ..render() });
    let (job, first) = (farm.job, FrameNumber(4));
    while let Some(node) = [1, 2].into_iter().find(|node| {
        let lease = farm.lease(*node);
        lease.is_some_and(|lease| lease.unit.job != job || lease.unit.frame != first)
    }) {
        farm.work(node, 1);
    }
    assert!(orders(&farm) > 0, "the first frame is open, and others' files are made");
}
