//! Finds a job by its id or the beginning of one.

use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use tessera_protocol::JobId;
use tessera_protocol::client::{Request, Response};

/// Shortest beginning that is looked up.
const PREFIX_MIN: usize = 4;

/// Finds the one job that a text names.
pub(crate) async fn find(farm: &Farm, text: &str) -> Result<JobId, CliError> {
    if let Ok(job) = text.parse() {
        return Ok(job);
    }
    let is_prefix =
        text.len() >= PREFIX_MIN && text.chars().all(|c| c.is_ascii_hexdigit() || c == '-');
    if !is_prefix {
        return Err(CliError::new(Status::NotFound, format!("no job `{text}`")).hint(
            "give a job's id, or four or more characters of its beginning; `tessera jobs` lists \
                them",
        ));
    }
    let Response::Jobs(jobs) = farm.ask(&Request::Jobs).await? else { return Err(unexpected()) };
    choose(text, jobs.iter().map(|summary| summary.job))
}

fn choose(prefix: &str, jobs: impl Iterator<Item = JobId>) -> Result<JobId, CliError> {
    let prefix = prefix.to_ascii_lowercase();
    let found: Vec<JobId> = jobs.filter(|job| job.to_string().starts_with(&prefix)).collect();
    match found.as_slice() {
        [job] => Ok(*job),
        [] => Err(CliError::new(Status::NotFound, format!("no job begins with `{prefix}`"))
            .hint("`tessera jobs` lists them")),
        several => {
            let message = format!("{} jobs begin with `{prefix}`", several.len());
            Err(CliError::new(Status::Usage, message)
                .hint("give more of the id; `tessera jobs` lists them"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_beginning_names_one_job() {
        let jobs =
            ["01890000-0000-7000-8000-000000000001", "01890000-0000-7000-8000-00000000000a", "ff"];
        let jobs: Vec<JobId> = jobs.iter().filter_map(|text| text.parse().ok()).collect();
        let choose = |prefix: &str| choose(prefix, jobs.iter().copied());
        assert_eq!(choose("01890000-0000-7000-8000-00000000000A").ok(), Some(jobs[1]));
        assert_eq!(choose("0189").map_err(|e| e.status()), Err(Status::Usage));
        assert_eq!(choose("beef").map_err(|e| e.status()), Err(Status::NotFound));
    }
}
