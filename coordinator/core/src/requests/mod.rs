//! What users and operators ask for: submit and edit a job, and cancel, pause, resume, retry and
//! forget one or many at once.

pub(crate) mod after;
pub(crate) mod change;
pub(crate) mod cost_rules;
pub(crate) mod edit;
pub(crate) mod forget;
pub(crate) mod jobs;
pub(crate) mod pause;
pub(crate) mod presets;
pub(crate) mod retry_frames;
pub(crate) mod shares;
pub(crate) mod sweep;

use crate::books::Books;
use crate::input::Caller;
use crate::state::job::Job;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::JobId;
use tessera_protocol::limits::OPEN_JOBS_MAX;

/// Checks that one more job may be open.
pub(crate) fn check_room_for_jobs(books: &Books) -> Result<(), RequestError> {
    if books.queues().len() < OPEN_JOBS_MAX {
        return Ok(());
    }
    let text = format!("{OPEN_JOBS_MAX} jobs are open; wait until some have ended, or cancel some");
    Err(RequestError::Unavailable(text))
}

/// Finds a job for a caller that owns it or is an admin.
pub(crate) fn job_of<'a>(
    books: &'a Books,
    id: JobId,
    caller: &Caller,
) -> Result<&'a Job, RequestError> {
    let job = books
        .farm()
        .job(id)
        .ok_or_else(|| RequestError::NotFound(format!("there is no job {id}")))?;
    match caller.admin || job.owner_id() == caller.id {
        true => Ok(job),
        false => {
            let (owner, number) = (job.owner(), job.owner_id());
            Err(RequestError::NotAllowed(format!("job {id} belongs to `{owner}` #{number}")))
        }
    }
}
