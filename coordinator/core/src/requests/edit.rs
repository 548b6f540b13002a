//! Changing a job that was submitted: its name, its priority, its pool, and how many nodes work on
//! it. Units that nodes hold go on.

use crate::books::Books;
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use crate::requests::job_of;
use crate::schedule::memory::fits_nowhere;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::{JobEdit, PRIORITY_DEFAULT};

/// Changes a job, and replies.
pub(crate) fn on_edit(
    books: &mut Books,
    request: RequestId,
    job: JobId,
    edit: JobEdit,
    caller: &Caller,
) {
    let answer = edit_job(books, job, edit, caller);
    books.reply(request, answer);
}

fn edit_job(
    books: &mut Books,
    id: JobId,
    edit: JobEdit,
    caller: &Caller,
) -> Result<Response, RequestError> {
    let job = job_of(books, id, caller)?;
    if job.is_final() {
        let text = format!("job {id} has ended already, and cannot be changed");
        return Err(RequestError::Invalid(text));
    }
    if let Some(priority) = edit.priority {
        check_priority(priority, Some((id, job.spec().priority)), caller)?;
    }
    let mut planned = job.spec().clone();
    let undo = edit.clone().apply(&mut planned);
    if undo.is_empty() {
        return Ok(Response::Done);
    }
    let moved = undo.pool.is_some();
    if let Some(problem) = fits_nowhere(books, planned.device_bytes, planned.pool.as_deref())
        && moved
    {
        return Err(RequestError::Invalid(problem));
    }
    // Its place among the shares depends on what is changed.
    books.withdraw_job(id);
    books.record(Record::JobChanged {
        job: id,
        change: edit,
        by: caller.name.clone(),
        at: books.now(),
    });
    books.offer_job(id);
    Ok(Response::Done)
}

/// Checks that a caller may give a job this priority. `known`: the job and its present priority, if
/// it was submitted before.
pub(crate) fn check_priority(
    priority: u8,
    known: Option<(JobId, u8)>,
    caller: &Caller,
) -> Result<(), RequestError> {
    let lowered = known.is_some_and(|(_, before)| priority <= before);
    if caller.admin || priority <= PRIORITY_DEFAULT || lowered {
        return Ok(());
    }
    let how = match known {
        Some((job, _)) => format!("ask one for `tessera job set {job} --priority {priority}`"),
        None => format!(
            "submit the job with at most {PRIORITY_DEFAULT}, and ask one for `tessera job set`"
        ),
    };
    Err(RequestError::NotAllowed(format!(
        "priority {priority} is above {PRIORITY_DEFAULT}, to which only operators and admins may \
         raise a job; {how}"
    )))
}
