//! Jobs that wait for other jobs, or frame by frame: what they wait for, and what becomes of them.

use crate::small_farm::SmallFarm;
use std::time::Duration;
use tessera_core::{Caller, Core, Input, Record, SessionId, Settings};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::explain::Subject;
use tessera_protocol::ids::{BlobHash, FrameNumber, JobId};
use tessera_protocol::job::{After, JobSpec, RenderSpec, Until};
use tessera_protocol::node::Failure;
use tessera_protocol::selection::{JobChange, JobSelection, JobsChanged};
use tessera_protocol::status::{FrameFile, JobState, Waits};
use tessera_support::inputs::{self, joined};
use uuid::Uuid;

fn settings() -> Settings {
    Settings { attempts: 1, settle: Duration::ZERO, ..Settings::default().without_checks() }
}

/// Node 1, without a job that is open.
fn farm() -> SmallFarm {
    let mut farm = SmallFarm::new(settings(), 1, 1);
    farm.work(1, 1);
    farm.finish();
    farm
}

fn id(number: u128) -> JobId {
    JobId(Uuid::from_u128(number))
}

fn ada() -> Caller {
    Caller { name: "ada".to_owned(), id: 294, admin: false }
}

/// A job of these frames that waits for others.
fn spec(frames: &str, after: &[(u128, Until)]) -> JobSpec {
    let render = RenderSpec { frames: frames.parse().expect("frames"), ..inputs::render() };
    let after = after.iter().map(|(job, until)| After { job: id(*job), until: *until });
    let after = after.collect();
    JobSpec { after, name: format!("film {frames}"), ..inputs::job(render) }
}

fn submit(farm: &mut SmallFarm, number: u128, frames: &str, after: &[(u128, Until)]) -> Response {
    farm.job = id(number);
    farm.ask(inputs::submit(id(number), spec(frames, after)))
}

fn accept(farm: &mut SmallFarm, number: u128, frames: &str, after: &[(u128, Until)]) {
    assert_eq!(submit(farm, number, frames, after), Response::Accepted(id(number)));
}

/// The job and frame of which node 1 holds the unit.
fn held(farm: &SmallFarm) -> Option<(u128, u32)> {
    farm.lease(1).map(|lease| (lease.unit.job.0.as_u128(), lease.unit.frame.0))
}

/// The files of a frame are made.
fn resolve(farm: &mut SmallFarm, number: u128, frame: u32) {
    let (hash, format) = (BlobHash([3; 32]), "exr".to_owned());
    let files = vec![FrameFile { format, hash, length: 1, pixels_sha256: [0; 32] }];
    let (job, frame) = (id(number), FrameNumber(frame));
    farm.step(Input::FrameResolved { job, frame, files, exposure: None });
}

/// Node 1 renders the unit that it holds, which is this one's, and its frame is made.
fn render(farm: &mut SmallFarm, number: u128, frame: u32) {
    assert_eq!(held(farm), Some((number, frame)));
    farm.work(1, 1);
    resolve(farm, number, frame);
}

fn fail(farm: &mut SmallFarm) {
    farm.fail(1, Failure::Device("it broke".to_owned()));
    farm.later(Duration::from_secs(70));
}

fn state(farm: &SmallFarm, number: u128) -> JobState {
    farm.standing_of(number).0
}

fn ends_of_waits(farm: &SmallFarm, number: u128) -> usize {
    let of =
        |record: &&Record| matches!(record, Record::WaitEnded { job, .. } if *job == id(number));
    farm.records.iter().filter(of).count()
}

fn change(farm: &mut SmallFarm, change: JobChange, number: u128) -> Response {
    farm.change(change, id(number), ada())
}

/// The same for several jobs in one request.
fn change_all(
    farm: &mut SmallFarm,
    change: JobChange,
    jobs: &[u128],
    dry_run: bool,
) -> JobsChanged {
    let jobs = jobs.iter().map(|number| id(*number).to_string()).collect();
    let selection = Box::new(JobSelection { jobs, ..JobSelection::default() }.into());
    let request = tessera_core::RequestId(1);
    let caller = Caller { admin: true, ..ada() };
    match farm.ask(Input::ChangeJobs { request, change, selection, dry_run, caller }) {
        Response::Changed(changed) => changed,
        other => panic!("{other:?} is no answer to a change"),
    }
}

/// The text of a refusal.
fn refused(response: Response) -> String {
    match response {
        Response::Error(error) => error.to_string(),
        other => panic!("{other:?} is no refusal"),
    }
}

// promise: P4
#[test]
fn a_job_waits_until_another_has_succeeded() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "7", &[(2, Until::Success)]);
    assert_eq!(held(&farm), Some((2, 1)));
    farm.step(joined(2, inputs::join(2, 1)));
    assert_eq!(farm.lease(2), None, "nothing of a job that waits is leased");
    let summary = farm.core.job_summary(id(3)).expect("a job");
    assert_eq!((summary.state, summary.waits), (JobState::Queued, Some(Waits::After)));
    assert!(summary.note.contains("waits for job `film 1`"), "{}", summary.note);
    assert!(summary.note.contains("0 of 1 frames, running"), "{}", summary.note);
    assert_eq!(summary.left_secs, None);
    let explained = farm.core.explain(&Subject::Job(id(3))).expect("a job");
    assert_eq!(explained.reasons[0].word, "after");

    render(&mut farm, 2, 1);
    assert_eq!(ends_of_waits(&farm, 3), 1);
    assert_eq!(held(&farm), Some((3, 7)));
    render(&mut farm, 3, 7);
    assert_eq!(state(&farm, 3), JobState::Done);
    farm.audit();
}

// promise: P4
#[test]
fn jobs_end_with_the_one_for_which_they_wait() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    accept(&mut farm, 4, "1", &[(3, Until::Success), (2, Until::Success)]);
    accept(&mut farm, 5, "1", &[(4, Until::End)]);
    fail(&mut farm);
    let (third, fourth) = (farm.standing_of(3), farm.standing_of(4));
    assert_eq!((third.0, fourth.0), (JobState::Failed, JobState::Failed));
    assert!(third.1.contains(&format!("({}), for which this job waits, has failed", id(2))));
    assert!(fourth.1.contains("for which this job waits, has failed"), "{}", fourth.1);
    // The last waited for an end only.
    assert_eq!(held(&farm), Some((5, 1)));
    farm.restart(true);
    farm.audit();
}

// promise: P4
#[test]
fn a_cancel_ends_those_that_wait_and_names_the_job() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    assert_eq!(change(&mut farm, inputs::cancel(), 2), Response::Done);
    let (state, note) = farm.standing_of(3);
    assert_eq!(state, JobState::Failed);
    assert!(note.contains("was cancelled") && note.contains(&id(2).to_string()), "{note}");
    // A job that waits is cancelled as any other is, and then ends nobody but who waits for it.
    accept(&mut farm, 4, "1", &[]);
    accept(&mut farm, 5, "1", &[(4, Until::Success)]);
    assert_eq!(change(&mut farm, inputs::cancel(), 5), Response::Done);
    assert_eq!(held(&farm), Some((4, 1)));
}

// promise: P4
#[test]
fn all_jobs_of_a_chain_are_cancelled_at_once() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    let changed = change_all(&mut farm, inputs::cancel(), &[], false);
    let cancelled: Vec<JobId> = changed.jobs.iter().map(|job| job.job).collect();
    assert_eq!((cancelled, changed.refused), (vec![id(2), id(3)], 0));
    assert_eq!(state(&farm, 3), JobState::Cancelled);
}

// promise: P4
#[test]
fn frames_wait_for_the_frames_of_their_numbers() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-4", &[]);
    accept(&mut farm, 3, "2-4x2", &[(2, Until::Frames)]);
    accept(&mut farm, 4, "2-4x2", &[(3, Until::Frames), (2, Until::Frames)]);
    farm.step(Input::Capacity { session: SessionId(1), units: 1 });
    render(&mut farm, 2, 1);
    assert_eq!(farm.core.job_summary(id(3)).expect("a job").waits, Some(Waits::After));
    render(&mut farm, 2, 2);
    let summary = farm.core.job_summary(id(3)).expect("a job");
    assert_ne!(summary.waits, Some(Waits::After), "one of its frames may go ahead");
    let detail = farm.core.job(id(3)).expect("a job");
    assert_eq!((detail.after[0].frames_done, detail.after[0].frames), (1, 2));
    let frame = Subject::Frame { job: id(3), frame: FrameNumber(4) };
    let why = &farm.core.explain(&frame).expect("a frame").reasons;
    let of_frame = why.iter().find(|reason| reason.word == "after").expect("it waits");
    assert!(of_frame.why.contains("f0004 of job `film 1-4`"), "{}", of_frame.why);
    farm.restart(true);
    farm.step(joined(1, inputs::join(1, 1)));
    // Shares decide whose turn it is; all comes to its end, and no frame before its time.
    for _ in 0..6 {
        let (job, frame) = held(&farm).expect("work until the end");
        let is_done = |of: u128| {
            let frames = farm.core.frames_done(id(of));
            frames.contains(&FrameNumber(frame))
        };
        assert!(job != 3 || is_done(2), "frame {frame} of {job} is early");
        assert!(job != 4 || is_done(2) && is_done(3), "frame {frame} of {job} is early");
        render(&mut farm, job, frame);
    }
    assert_eq!([2, 3, 4].map(|job| state(&farm, job)), [JobState::Done; 3]);
    assert_eq!(ends_of_waits(&farm, 4), 2);
    farm.restart(false);
    farm.audit();
}

// promise: P4
#[test]
fn a_later_frame_goes_ahead_of_one_that_waits() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-3", &[]);
    accept(&mut farm, 3, "1-3", &[(2, Until::Frames)]);
    // The first frame of the other job fails, and it goes on with the rest.
    farm.fail(1, Failure::Device("it broke".to_owned()));
    farm.later(Duration::from_secs(70));
    for _ in 0..3 {
        let (job, frame) = held(&farm).expect("work");
        render(&mut farm, job, frame);
        if farm.standing_of(2).0 == JobState::Failed {
            break;
        }
    }
    let done = farm.core.frames_done(id(3));
    assert!(!done.contains(&FrameNumber(1)));
    let (state, note) = farm.standing_of(3);
    assert_eq!(state, JobState::Failed, "{note}");
    assert!(note.contains("without f0001, for which this job waits"), "{note}");
}

// promise: P4
#[test]
fn a_job_without_the_failed_frame_goes_on() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-2", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Frames)]);
    change(&mut farm, JobChange::Pause, 3);
    render(&mut farm, 2, 1);
    assert_eq!(ends_of_waits(&farm, 3), 1, "also while it is paused");
    assert_eq!(held(&farm), Some((2, 2)));
    fail(&mut farm);
    assert_eq!((state(&farm, 2), state(&farm, 3)), (JobState::Failed, JobState::Paused));
    change(&mut farm, JobChange::Resume, 3);
    render(&mut farm, 3, 1);
    assert_eq!(state(&farm, 3), JobState::Done);
}

// promise: P4
#[test]
fn a_paused_job_stays_paused_when_its_wait_ends() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    change(&mut farm, JobChange::Pause, 3);
    change(&mut farm, JobChange::Resume, 3);
    farm.step(joined(2, inputs::join(2, 1)));
    assert_eq!(farm.lease(2), None, "it goes on waiting");
    change(&mut farm, JobChange::Pause, 3);
    render(&mut farm, 2, 1);
    assert_eq!(held(&farm), None);
    change(&mut farm, JobChange::Resume, 3);
    assert!(farm.core.leases().next().is_some());
}

// promise: P4
#[test]
fn what_cannot_be_waited_for_is_refused_by_name() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-3", &[]);
    let unknown = submit(&mut farm, 9, "1", &[(77, Until::End)]);
    assert!(matches!(&unknown, Response::Error(RequestError::NotFound(_))), "{unknown:?}");
    assert!(refused(unknown).contains(&id(77).to_string()));
    let own = submit(&mut farm, 9, "1", &[(9, Until::Success)]);
    assert!(matches!(own, Response::Error(RequestError::NotFound(_))), "nobody waits for itself");
    let text = refused(submit(&mut farm, 9, "2-5", &[(2, Until::Frames)]));
    assert!(text.contains("has no frame 4; its frames are 1-3"), "{text}");
    assert_eq!(change(&mut farm, inputs::cancel(), 2), Response::Done);
    for until in [Until::Success, Until::Frames] {
        let text = refused(submit(&mut farm, 9, "1", &[(2, until)]));
        assert!(text.contains("was cancelled") && text.contains("--after-any"), "{text}");
    }
    // Its end has been reached, and so has that of the farm's first job.
    accept(&mut farm, 9, "1", &[(2, Until::End), (1, Until::Success)]);
    assert_eq!((held(&farm), ends_of_waits(&farm, 9)), (Some((9, 1)), 2));
    // The same submit again is the same job.
    accept(&mut farm, 9, "1", &[(2, Until::End), (1, Until::Success)]);
    let other = submit(&mut farm, 9, "1", &[(2, Until::End)]);
    assert!(matches!(other, Response::Error(RequestError::Invalid(_))), "{other:?}");
}

// promise: P3, P4
#[test]
fn a_wait_that_ended_survives_the_other_job() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    let open = refused(change(&mut farm, JobChange::Forget, 2));
    assert!(open.contains("has not ended"), "{open}");
    render(&mut farm, 2, 1);
    assert_eq!(change(&mut farm, JobChange::Forget, 2), Response::Done);
    let detail = farm.core.job(id(3)).expect("a job");
    assert_eq!((detail.after[0].over, detail.after[0].state), (true, None));
    for from_snapshot in [false, true] {
        farm.restart(from_snapshot);
    }
    farm.step(joined(1, inputs::join(1, 1)));
    render(&mut farm, 3, 1);
    farm.audit();
}

// promise: P3, P4
#[test]
fn an_end_that_was_not_noted_is_noted_at_the_start() {
    for fails in [false, true] {
        let mut farm = farm();
        accept(&mut farm, 2, "1", &[]);
        accept(&mut farm, 3, "1", &[(2, Until::Success)]);
        accept(&mut farm, 4, "1", &[(3, Until::End)]);
        match fails {
            true => fail(&mut farm),
            false => render(&mut farm, 2, 1),
        }
        // What followed from the end of the second job was not durable yet.
        let ended =
            |record: &Record| matches!(record, Record::JobEnded { job, .. } if *job == id(2));
        let end = farm.records.iter().position(ended).expect("it has ended");
        farm.records.truncate(end + 1);
        let core = Core::replay(settings(), [], farm.records.clone(), farm.now);
        farm.replace_core(core.expect("a sound journal"));
        farm.step(joined(1, inputs::join(1, 1)));
        assert_eq!(held(&farm), Some(if fails { (4, 1) } else { (3, 1) }));
        assert_eq!(state(&farm, 3).is_final(), fails);
    }
}

// promise: P4
#[test]
fn a_retry_makes_jobs_wait_again() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    accept(&mut farm, 4, "1", &[(3, Until::Success)]);
    fail(&mut farm);
    assert_eq!([2, 3, 4].map(|job| state(&farm, job)), [JobState::Failed; 3]);
    let text = refused(change(&mut farm, JobChange::Retry, 3));
    assert!(text.contains("has failed") && text.contains("retry that one first"), "{text}");
    assert_eq!(change(&mut farm, JobChange::Retry, 2), Response::Done);
    assert_eq!(state(&farm, 3), JobState::Failed, "nobody has asked for it");
    assert_eq!(change(&mut farm, JobChange::Retry, 3), Response::Done);
    assert_eq!(change(&mut farm, JobChange::Retry, 4), Response::Done);
    assert_eq!(farm.core.job_summary(id(3)).expect("a job").waits, Some(Waits::After));
    farm.restart(true);
    farm.step(joined(1, inputs::join(1, 1)));
    (2..=4).for_each(|job| render(&mut farm, job, 1));
    assert_eq!([2, 3, 4].map(|job| state(&farm, job)), [JobState::Done; 3]);
    farm.audit();
}

// promise: P4
#[test]
fn a_chain_is_retried_by_one_request() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-2", &[]);
    accept(&mut farm, 3, "1-2", &[(2, Until::Frames)]);
    accept(&mut farm, 4, "1", &[(3, Until::Success)]);
    change(&mut farm, inputs::cancel(), 2);
    assert_eq!([3, 4].map(|job| state(&farm, job)), [JobState::Failed; 2]);
    for dry_run in [true, false] {
        let changed = change_all(&mut farm, JobChange::Retry, &[4, 3, 2], dry_run);
        assert_eq!((changed.jobs.len(), changed.refused), (3, 0), "{changed:?}");
    }
    let states = [JobState::Running, JobState::Queued, JobState::Queued];
    assert_eq!([2, 3, 4].map(|job| state(&farm, job)), states);
    farm.audit();
}

// promise: P4
#[test]
fn a_retry_finds_its_wait_over_or_in_vain() {
    let mut farm = farm();
    accept(&mut farm, 2, "1-2", &[]);
    accept(&mut farm, 3, "1-2", &[(2, Until::Frames)]);
    render(&mut farm, 2, 1);
    change(&mut farm, inputs::cancel(), 2);
    assert_eq!(state(&farm, 3), JobState::Failed);
    change(&mut farm, JobChange::Retry, 2);
    render(&mut farm, 2, 2);
    assert_eq!(change(&mut farm, JobChange::Retry, 3), Response::Done);
    assert_eq!(ends_of_waits(&farm, 3), 1, "the other is done by now");
    render(&mut farm, 3, 1);
    render(&mut farm, 3, 2);

    accept(&mut farm, 4, "1", &[]);
    accept(&mut farm, 5, "1", &[(4, Until::Success)]);
    change(&mut farm, inputs::cancel(), 4);
    change(&mut farm, JobChange::Forget, 4);
    let text = refused(change(&mut farm, JobChange::Retry, 5));
    assert!(text.contains("is not known any more") && text.contains("submit"), "{text}");
}

// promise: P4
#[test]
fn a_long_chain_ends_in_one_step() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    let last = 2000;
    for number in 3..=last {
        let spec = spec("1", &[(number - 1, Until::Success)]);
        farm.core.handle(inputs::submit(id(number), spec), farm.now);
    }
    farm.step(Input::Tick);
    change(&mut farm, inputs::cancel(), 2);
    assert_eq!(farm.core.open_jobs(None).count(), 0);
    let (state, note) = farm.standing_of(last);
    assert_eq!(state, JobState::Failed);
    assert!(note.contains(&id(last - 1).to_string()), "{note}");
}

// promise: P4
#[test]
fn waiting_jobs_do_not_count_as_work_that_nodes_could_have() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    let alone = farm.core.tally(None).0.queue_micros;
    accept(&mut farm, 3, "1-9", &[(2, Until::Success)]);
    let tally = farm.core.tally(None).0;
    assert_eq!((tally.queue_micros, tally.units_open), (alone, 10));
    let detail = farm.core.job(id(2)).expect("a job");
    let awaited = (detail.awaited_count, detail.awaited_by[0].job, detail.awaited_by[0].over);
    assert_eq!(awaited, (1, id(3), false));
}

// promise: P3
#[test]
fn records_of_waits_without_a_reason_are_refused() {
    let mut farm = farm();
    accept(&mut farm, 2, "1", &[]);
    accept(&mut farm, 3, "1", &[(2, Until::Success)]);
    let early = Record::WaitEnded { job: id(3), on: id(2) };
    let other = Record::WaitEnded { job: id(2), on: id(3) };
    for wrong in [early, other] {
        let records = || farm.records.iter().cloned().chain([wrong.clone()]);
        assert!(Core::replay(settings(), [], records(), farm.now).is_err(), "{wrong:?}");
        assert!(!Core::audit([], records()).problems.is_empty(), "{wrong:?}");
    }
}
