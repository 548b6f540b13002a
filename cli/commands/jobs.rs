//! `jobs`: lists the jobs of a farm.

use crate::args::jobs::JobsArgs;
use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::job_id::list;
use crate::job_table::shortened;
use crate::json;
use crate::table::{printable, span, table};
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::JobId;
use tessera_protocol::selection::JobSelection;
use tessera_protocol::status::{JobSummary, Waits};

/// `tessera jobs`.
pub(crate) async fn run(args: JobsArgs) -> Result<Status, CliError> {
    let client = Farm::of(&args.farm)?.connect().await?;
    let selection = args.which.selection();
    let listed = list(&client, selection.clone()).await;
    client.close().await;
    let jobs = listed?;
    if args.json {
        json::print(&jobs)?;
        return Ok(Status::Done);
    }
    if jobs.is_empty() {
        match selection == JobSelection::default() {
            true => eprintln!("no jobs; `tessera submit SCENE` makes one"),
            false => eprintln!("no job is selected; `tessera jobs` lists all"),
        }
        return Ok(Status::Done);
    }
    let now = now_secs();
    let ids: Vec<JobId> = jobs.iter().map(|job| job.job).collect();
    let rows: Vec<_> =
        jobs.iter().zip(shortened(&ids)).map(|(job, id)| row(job, id, now)).collect();
    json::line(
        table(
            &["JOB", "STATE", "NAME", "OWNER", "PRIO", "FRAMES", "DONE", "AGE", "LEFT", "NOTE"],
            &rows,
        )
        .trim_end(),
    )?;
    Ok(Status::Done)
}

fn row(job: &JobSummary, id: String, now: u64) -> Vec<String> {
    vec![
        id,
        job.state.name().to_owned(),
        printable(&job.name),
        printable(&owner(job)),
        job.priority.to_string(),
        format!("{}/{}", job.frames_done, job.frames),
        format!("{:.0} %", share(job)),
        span(now.saturating_sub(job.submitted_at)),
        job.left_secs.map_or_else(|| "-".to_owned(), span),
        short(job),
    ]
}

/// The owner's name and the number of the identity.
pub(super) fn owner(job: &JobSummary) -> String {
    format!("{} #{}", job.owner, job.owner_id)
}

/// Why a job waits, in a word or two; how it ended, where it has.
fn short(job: &JobSummary) -> String {
    match job.waits {
        None | Some(Waits::Turn) => printable(&job.note),
        Some(waits) => waits.short().to_owned(),
    }
}

fn share(job: &JobSummary) -> f64 {
    // A share below all is never shown as all.
    (job.units_committed as f64 / job.units.max(1) as f64 * 100.0).floor()
}

fn now_secs() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
