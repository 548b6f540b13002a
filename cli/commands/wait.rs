//! `wait`: waits for the end of a job; the exit status says how it ended.

use super::watch::{outcome_on_farm, unless_interrupted};
use crate::args::wait::WaitArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::table::printable;
use crate::{job_id, json};
use std::time::Duration;
use tessera_protocol::client::Progress;
use tessera_protocol::status::{JobState, JobSummary};

/// `tessera wait`.
pub(crate) async fn run(args: WaitArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let mut paused = false;
    let mut heard = |progress: &Progress| say_pauses(&progress.summary, &mut paused);
    let following = unless_interrupted(job, farm.follow(job, &mut heard));
    let summary = match args.timeout {
        None => following.await?,
        Some(secs) => match tokio::time::timeout(Duration::from_secs(secs), following).await {
            Ok(summary) => summary?,
            Err(_) => {
                let message = format!("job {job} has not ended within {secs} s");
                return Err(CliError::new(Status::TimedOut, message)
                    .hint("it continues; `tessera job` shows its progress"));
            }
        },
    };
    if args.json {
        json::print(&summary)?;
    }
    outcome_on_farm(&summary)
}

/// Tells a waiting user that a job is paused, and that it continues.
fn say_pauses(summary: &JobSummary, paused: &mut bool) {
    let now = summary.state == JobState::Paused;
    if std::mem::replace(paused, now) != now {
        match now {
            true => eprintln!("waiting: {}", printable(&summary.note)),
            false if !summary.state.is_final() => eprintln!("job {} continues", summary.job),
            false => {}
        }
    }
}
