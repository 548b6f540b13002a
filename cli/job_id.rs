//! Finds the job that a text means, and lists selected jobs.

use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, RequestError, Response};
use tessera_protocol::limits::MEANINGS_NAMED_MAX;
use tessera_protocol::selection::{JobPage, JobQuery, JobSelection};
use tessera_protocol::status::{JobName, JobSummary};
use tessera_transport::FarmClient;

/// Finds the one job that a text means: its id, the beginning of one, or its name.
pub(crate) async fn find(farm: &Farm, text: &str) -> Result<JobId, CliError> {
    if let Ok(job) = text.parse() {
        return Ok(job);
    }
    let client = farm.connect().await?;
    let found = find_on(&client, text).await;
    client.close().await;
    found
}

/// Finds the same over a connection that is there.
pub(crate) async fn find_on(client: &FarmClient, text: &str) -> Result<JobId, CliError> {
    if let Ok(job) = text.parse() {
        return Ok(job);
    }
    let query = JobQuery::first(JobSelection::of_text(text));
    match client.request(&Request::Jobs(query)).await? {
        Response::Jobs(page) => choose(text, &page),
        _ => Err(unexpected()),
    }
}

fn choose(text: &str, page: &JobPage) -> Result<JobId, CliError> {
    match page.jobs.as_slice() {
        [job] => Ok(job.job),
        [] => {
            let message = format!("there is no job `{text}`");
            Err(CliError::new(Status::NotFound, message).hint(
                "give a job's id, four or more characters of its beginning, or its name; \
                 `tessera jobs` lists them",
            ))
        }
        several => {
            let jobs = several.iter().take(MEANINGS_NAMED_MAX).map(JobName::from).collect();
            let (text, count) = (text.to_owned(), several.len() as u64);
            Err(RequestError::Ambiguous { text, count, jobs }.into())
        }
    }
}

/// Returns all selected jobs, page by page, the newest last.
pub(crate) async fn list(
    client: &FarmClient,
    selection: JobSelection,
) -> Result<Vec<JobSummary>, CliError> {
    let mut query = JobQuery::first(selection);
    let mut jobs: Vec<JobSummary> = Vec::new();
    loop {
        let Response::Jobs(page) = client.request(&Request::Jobs(query.clone())).await? else {
            return Err(unexpected());
        };
        if let Some(limit) = &mut query.selection.limit {
            *limit = limit.saturating_sub(u32::try_from(page.jobs.len()).unwrap_or(u32::MAX));
        }
        jobs.extend(page.jobs);
        query.before = page.next;
        if query.before.is_none() || query.selection.limit == Some(0) {
            jobs.reverse();
            return Ok(jobs);
        }
    }
}
