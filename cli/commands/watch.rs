//! `watch`: follows a job to its end; the exit status says how it ended.

use super::job::metered;
use super::watch_all;
use crate::args::watch::WatchArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::kernel_text::Heard;
use crate::progress::{Audience, Doing, JobProgress};
use crate::table::{counted, printable};
use crate::tev::Shown;
use crate::{job_id, json};
use std::convert::Infallible;
use std::pin::pin;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tessera_protocol::JobId;
use tessera_protocol::client::{Progress, Request, Response};
use tessera_protocol::status::{JobDetail, JobState, JobSummary};
use tokio::sync::Notify;

/// Least time between two looks at what a kernel prints.
const TEXT_EVERY: Duration = Duration::from_secs(2);
/// Longest wait for the last tiles of a job that has ended.
const LAST_TILES: Duration = Duration::from_secs(5);

/// `tessera watch`.
pub(crate) async fn run(args: WatchArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let Some(job) = &args.job else { return watch_all::run(&farm, args.json).await };
    let job = job_id::find(&farm, job).await?;
    let detail = detail_of(&farm, job).await?;
    let watching = watch(&farm, job, Doing::of(&detail.spec.kind), args.json);
    let Some(address) = &args.tev else { return watching.await };
    let shown = Shown::begin(&detail, address).await?;
    beside(shown.run(&farm), watching).await
}

/// Follows a job, and shows it meanwhile. The last tiles are shown too, if that does not take long.
async fn beside(
    showing: impl Future<Output = ()>,
    watching: impl Future<Output = Result<Status, CliError>>,
) -> Result<Status, CliError> {
    let (mut showing, mut watching) = (pin!(showing), pin!(watching));
    let ended = tokio::select! {
        ended = &mut watching => ended,
        () = &mut showing => return watching.await,
    };
    // It ends by itself where the job has ended.
    if ended.as_ref().err().is_none_or(|error| error.status() != Status::Interrupted) {
        let _ = tokio::time::timeout(LAST_TILES, showing).await;
    }
    ended
}

/// Asks for everything about a job.
pub(crate) async fn detail_of(farm: &Farm, job: JobId) -> Result<Box<JobDetail>, CliError> {
    match farm.ask(&Request::Job(job)).await? {
        Response::Job(detail) => Ok(detail),
        _ => Err(unexpected()),
    }
}

/// Follows a job to its end, and says in a last line that it is done.
pub(crate) async fn watch(
    farm: &Farm,
    job: JobId,
    doing: Doing,
    as_json: bool,
) -> Result<Status, CliError> {
    let summary = follow(farm, job, doing, as_json).await?;
    if !as_json {
        if let Some(exposure) = metered(&*detail_of(farm, job).await?) {
            eprintln!("exposure: {exposure}");
        }
        eprintln!("{}", done(&summary));
    }
    Ok(Status::Done)
}

/// The last line of a job that is done. The bar is gone by then.
fn done(summary: &JobSummary) -> String {
    let frames = counted(summary.frames.into(), "frame");
    format!("done: {} of {frames}; `tessera fetch {}`", summary.frames_done, summary.job)
}

/// Shows a job's progress to its end: lines of JSON, or a bar and a line for each finished frame.
/// Fails if the job did.
pub(crate) async fn follow(
    farm: &Farm,
    job: JobId,
    doing: Doing,
    as_json: bool,
) -> Result<JobSummary, CliError> {
    let summary = if as_json {
        let mut failed_output = None;
        let mut heard = |progress: &Progress| {
            if let Err(error) = json::print(progress) {
                failed_output.get_or_insert(error);
            }
        };
        let summary = unless_interrupted(job, farm.follow(job, &mut heard)).await?;
        if let Some(error) = failed_output {
            return Err(error);
        }
        summary
    } else {
        let shown = (doing, Audience::of_stderr(false));
        unless_interrupted(job, follow_shown(farm, job, shown)).await?
    };
    outcome_on_farm(&summary)?;
    Ok(summary)
}

/// Shows a job's progress to its end on standard error, and what its kernel prints as it comes.
pub(super) async fn follow_shown(
    farm: &Farm,
    job: JobId,
    (doing, audience): (Doing, Audience),
) -> Result<JobSummary, CliError> {
    let bar = Mutex::new(JobProgress::new(audience, doing));
    let progressed = Notify::new();
    let mut text = Heard::default();
    let mut heard = |progress: &Progress| {
        locked(&bar).show(progress);
        progressed.notify_one();
    };
    let summary = tokio::select! {
        summary = farm.follow(job, &mut heard) => summary?,
        never = listen(farm, job, (&progressed, &bar, &mut text)), if doing == Doing::Computing => {
            match never {}
        }
    };
    locked(&bar).end();
    if doing == Doing::Computing {
        text.ask(farm, job).await.iter().for_each(|line| locked(&bar).say(line));
    }
    Ok(summary)
}

/// Shows what a kernel has printed whenever units have ended, at most once in [`TEXT_EVERY`].
async fn listen(
    farm: &Farm,
    job: JobId,
    (progressed, bar, text): (&Notify, &Mutex<JobProgress>, &mut Heard),
) -> Infallible {
    loop {
        progressed.notified().await;
        tokio::time::sleep(TEXT_EVERY).await;
        let lines = text.ask(farm, job).await;
        let bar = locked(bar);
        lines.iter().for_each(|line| bar.say(line));
    }
}

fn locked(bar: &Mutex<JobProgress>) -> MutexGuard<'_, JobProgress> {
    bar.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for a job; Ctrl-C ends the waiting, not the job.
pub(super) async fn unless_interrupted(
    job: JobId,
    following: impl Future<Output = Result<JobSummary, CliError>>,
) -> Result<JobSummary, CliError> {
    tokio::select! {
        summary = following => summary,
        _ = tokio::signal::ctrl_c() => Err(CliError::new(Status::Interrupted, "interrupted; the \
            job continues")
            .hint(format!(
                "`tessera watch {job}` follows it again, `tessera cancel {job}` ends it"
            ))),
    }
}

/// How a job has ended, as a status to leave with.
pub(crate) fn outcome(summary: &JobSummary) -> Result<Status, CliError> {
    let note = if summary.note.is_empty() {
        String::new()
    } else {
        format!(": {}", printable(&summary.note))
    };
    match summary.state {
        JobState::Failed if summary.frames_done > 0 => {
            let frames = counted(summary.frames.into(), "frame");
            let message = format!("{} of {frames} failed{note}", summary.frames_failed);
            Err(CliError::new(Status::SomeFramesFailed, message))
        }
        JobState::Failed => Err(CliError::new(Status::JobFailed, format!("the job failed{note}"))),
        JobState::Cancelled => {
            Err(CliError::new(Status::JobFailed, format!("the job was cancelled{note}")))
        }
        JobState::Done | JobState::Queued | JobState::Running | JobState::Paused => {
            Ok(Status::Done)
        }
    }
}

/// Returns the same for a job of a running farm, where the user can do more about it.
pub(super) fn outcome_on_farm(summary: &JobSummary) -> Result<Status, CliError> {
    let job = summary.job;
    outcome(summary).map_err(|error| match summary.state {
        JobState::Failed => error.hint(format!(
            "`tessera job {job}` lists what failed, and `tessera logs {job}` prints what was said \
                of it; `tessera retry {job}` renders the failed frames again"
        )),
        _ => error,
    })
}
