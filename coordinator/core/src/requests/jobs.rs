//! Submitting and cancelling jobs.

use crate::books::Books;
use crate::ends::{end_if_over, end_job, settle_waits};
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use crate::requests::after::check_after;
use crate::requests::cost_rules::check_budget;
use crate::requests::edit::check_priority;
use crate::requests::shares::check_share;
use crate::requests::{check_room_for_jobs, job_of};
use crate::schedule::memory::fits_nowhere;
use crate::state::job::Job;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::JobSpec;
use tessera_protocol::status::JobState;

/// Accepts a job, or refuses it with a reason.
pub(crate) fn on_submit(
    books: &mut Books,
    request: RequestId,
    job: JobId,
    spec: Box<JobSpec>,
    caller: Caller,
) {
    let answer = accept(books, job, spec, caller);
    books.reply(request, answer);
    settle_waits(books, job);
    end_if_over(books, job);
}

fn accept(
    books: &mut Books,
    job: JobId,
    spec: Box<JobSpec>,
    caller: Caller,
) -> Result<Response, RequestError> {
    if let Some(known) = books.farm().job(job) {
        return match known.was_submitted_as(&spec) && known.owner_id() == caller.id {
            true => Ok(Response::Accepted(job)),
            false => Err(RequestError::Invalid(format!("job id {job} belongs to another job"))),
        };
    }
    check_priority(spec.priority, None, &caller)?;
    check_room_for_jobs(books)?;
    let (owner, owner_id) = (caller.name, caller.id);
    let planned = books.farm().planned(job, &spec, (&owner, owner_id), books.now());
    check_share(books, &planned, false)?;
    check_after(books, &planned)?;
    check_budget(books, &planned)?;
    if let Some(problem) = fits_nowhere(books, spec.device_bytes, spec.pool.as_deref()) {
        return Err(RequestError::Invalid(problem));
    }
    books.record(Record::JobAccepted { job, spec, owner, owner_id, at: books.now() });
    books.open_queue(job);
    Ok(Response::Accepted(job))
}

/// Cancels a job with a reason, which may be empty.
pub(crate) fn cancel(
    books: &mut Books,
    id: JobId,
    caller: &Caller,
    reason: &str,
) -> Result<(), RequestError> {
    if cancels(job_of(books, id, caller)?)? {
        let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
        let note = format!("cancelled by `{}`{reason}", caller.name);
        end_job(books, id, JobState::Cancelled, &note);
    }
    Ok(())
}

/// Returns whether a cancel ends a job: false if it is cancelled already.
pub(crate) fn cancels(job: &Job) -> Result<bool, RequestError> {
    match job.end().map(|end| end.state) {
        None => Ok(true),
        Some(JobState::Cancelled) => Ok(false),
        Some(_) => Err(RequestError::Invalid(format!("job {} has ended already", job.id()))),
    }
}
