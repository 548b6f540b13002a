//! `watch`: follows a job to its end; the exit status says how it ended.

use super::job::metered;
use crate::args::watch::WatchArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::progress::{Audience, Doing, JobProgress};
use crate::table::{counted, printable};
use crate::{job_id, json, kernel_text};
use tessera_protocol::JobId;
use tessera_protocol::client::{Progress, Request, Response};
use tessera_protocol::status::{JobDetail, JobState, JobSummary};

/// `tessera watch`.
pub(crate) async fn run(args: WatchArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let detail = detail_of(&farm, job).await?;
    let watched = watch(&farm, job, Doing::of(&detail.spec.kind), args.json).await;
    if detail.spec.kind.compute().is_some() && !args.json {
        kernel_text::show(&farm, job).await;
    }
    watched
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
    let mut bar = JobProgress::new(Audience::of_stderr(as_json), doing);
    let mut failed_output = None;
    let mut heard = |progress: &Progress| {
        if as_json {
            if let Err(error) = json::print(progress) {
                failed_output.get_or_insert(error);
            }
        } else {
            bar.show(progress);
        }
    };
    let summary = unless_interrupted(job, farm.follow(job, &mut heard)).await?;
    bar.end();
    if let Some(error) = failed_output {
        return Err(error);
    }
    outcome_on_farm(&summary)?;
    Ok(summary)
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
            "`tessera job {job}` lists what failed; `tessera retry {job}` renders the failed \
                frames again"
        )),
        _ => error,
    })
}
