//! `cancel`, `pause`, `resume`, `retry` and `forget`: change all selected jobs in one request.

use crate::args::change::ChangeArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_table::table_of;
use crate::json;
use crate::table::counted;
use serde_json::{Value, json};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::selection::{JobChange, JobsChange, JobsChanged, Refusal};
use tessera_transport::FarmClient;

/// Most refusals that are shown in full.
const REFUSALS_SHOWN_MAX: usize = 8;

/// Changes the selected jobs, and says what was done and what was refused.
pub(crate) async fn run(args: ChangeArgs, change: JobChange) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let client = farm.connect().await?;
    let request = args.request(change.clone());
    let changed = ask_all(&client, request).await;
    client.close().await;
    let changed = changed?;
    if args.json {
        json::line(&as_json(&changed)?.to_string())?;
    } else {
        if args.dry_run && !changed.jobs.is_empty() {
            json::line(table_of(&changed.jobs).trim_end())?;
        }
        // If nothing was done, the refusals say all.
        if changed.refused == 0 || !changed.jobs.is_empty() {
            eprintln!("{}", summary(&change, &changed, args.dry_run));
        }
    }
    conclude(changed.refusals, changed.refused)
}

/// Asks until no selected job is left: one request changes ten thousand.
async fn ask_all(client: &FarmClient, mut wanted: JobsChange) -> Result<JobsChanged, CliError> {
    let mut all = ask(client, &wanted).await?;
    let mut last = all.jobs.len();
    while all.left > 0 && last > 0 && !wanted.dry_run {
        if let Some(limit) = &mut wanted.selection.limit {
            *limit = limit.saturating_sub(u32::try_from(last).unwrap_or(u32::MAX));
        }
        let more = ask(client, &wanted).await?;
        last = more.jobs.len();
        all.jobs.extend(more.jobs);
        all.refused += more.refused;
        all.refusals.extend(more.refusals);
        all.left = more.left;
    }
    Ok(all)
}

async fn ask(client: &FarmClient, wanted: &JobsChange) -> Result<JobsChanged, CliError> {
    match client.request(&Request::ChangeJobs(Box::new(wanted.clone()))).await? {
        Response::Changed(changed) => Ok(changed),
        _ => Err(unexpected()),
    }
}

fn as_json(changed: &JobsChanged) -> Result<Value, CliError> {
    let mut value = json::value(changed)?;
    let refusals = changed.refusals.iter().map(|Refusal { what, why }| {
        let status = CliError::from(why.clone()).status() as u8;
        json!({ "what": what, "why": why.to_string(), "status": status })
    });
    value["refusals"] = refusals.collect();
    Ok(value)
}

/// What was done, in a line.
fn summary(change: &JobChange, changed: &JobsChanged, dry_run: bool) -> String {
    let jobs = counted(changed.jobs.len() as u64, "job");
    if dry_run {
        let left = match changed.left {
            0 => String::new(),
            left => format!(", and {left} more"),
        };
        return format!("{jobs}{left} would be {}; nothing was done", change.done());
    }
    match (changed.jobs.as_slice(), changed.unchanged) {
        ([], 0) => format!("no job is selected that can be {}", change.done()),
        ([], unchanged) => {
            let was = if unchanged == 1 { "is" } else { "are" };
            format!("{} {was} {} already", counted(unchanged, "job"), already(change))
        }
        ([name], _) => of_one(change, name.job),
        _ => of_several(change, &jobs),
    }
}

/// A job's state that the change would lead to.
fn already(change: &JobChange) -> &'static str {
    match change {
        JobChange::Resume => "going on",
        change => change.done(),
    }
}

fn of_one(change: &JobChange, job: JobId) -> String {
    match change {
        JobChange::Cancel { .. } => {
            format!("cancelled {job}; its finished frames can still be fetched")
        }
        JobChange::Pause => format!("paused {job}; `tessera resume {job}` resumes it"),
        JobChange::Resume => format!("resumed {job}"),
        JobChange::Retry => format!(
            "the failed frames of {job} are rendered again; `tessera watch {job}` follows it"
        ),
        JobChange::Forget => format!(
            "forgot {job}; its frames are deleted when they are older than the coordinator's \
             --blob-grace"
        ),
    }
}

fn of_several(change: &JobChange, jobs: &str) -> String {
    match change {
        JobChange::Cancel { .. } => {
            format!("cancelled {jobs}; their finished frames can still be fetched")
        }
        JobChange::Pause => format!("paused {jobs}; `tessera resume` resumes them"),
        JobChange::Resume => format!("resumed {jobs}"),
        JobChange::Retry => format!("the failed frames of {jobs} are rendered again"),
        JobChange::Forget => format!(
            "forgot {jobs}; their frames are deleted when they are older than the coordinator's \
             --blob-grace"
        ),
    }
}

/// Shows the refusals. The first one, which is shown last, decides the exit status.
fn conclude(refusals: Vec<Refusal>, refused: u64) -> Result<Status, CliError> {
    let mut errors = refusals.into_iter().map(|refusal| CliError::from(refusal.why));
    let Some(first) = errors.next() else { return Ok(Status::Done) };
    let first = match first.status() {
        Status::NotFound => first.hint("`tessera jobs` lists them"),
        _ => first,
    };
    let mut shown = 1;
    for error in errors.take(REFUSALS_SHOWN_MAX - 1) {
        eprint!("{}", error.for_people());
        shown += 1;
    }
    if refused > shown {
        eprintln!("{} more were refused", refused - shown);
    }
    Err(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::client::RequestError;

    #[test]
    fn the_first_refusal_decides_the_status() {
        assert_eq!(conclude(Vec::new(), 0).ok(), Some(Status::Done));
        let refusal = |why| Refusal { what: "x".into(), why };
        let refusals = vec![
            refusal(RequestError::NotAllowed("no".into())),
            refusal(RequestError::NotFound("nothing".into())),
        ];
        let status = conclude(refusals, 2).map_err(|error| error.status());
        assert_eq!(status.err(), Some(Status::NotAllowed));
        let several = RequestError::Ambiguous { text: "x".into(), count: 2, jobs: Vec::new() };
        let status = conclude(vec![refusal(several)], 1).map_err(|error| error.status());
        assert_eq!(status.err(), Some(Status::Usage));
    }

    #[test]
    fn nothing_selected_is_said() {
        let text = |changed| summary(&JobChange::Pause, &changed, false);
        assert_eq!(text(JobsChanged::default()), "no job is selected that can be paused");
        let already = JobsChanged { unchanged: 2, ..JobsChanged::default() };
        assert_eq!(text(already), "2 jobs are paused already");
        let would = summary(&JobChange::Forget, &JobsChanged::default(), true);
        assert_eq!(would, "0 jobs would be forgotten; nothing was done");
    }
}
