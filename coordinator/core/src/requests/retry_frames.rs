//! Rendering the failed frames of a job again, at a user's request. They start from nothing: their
//! commits were dropped when they failed, and late results of nodes are refused. Attempts of single
//! units are in `results::failed`.

use crate::books::Books;
use crate::ends::settle_waits;
use crate::input::Caller;
use crate::journal::Record;
use crate::requests::after::check_waits_again;
use crate::requests::shares::check_share;
use crate::requests::{check_room_for_jobs, job_of};
use crate::schedule::memory::fits_nowhere;
use crate::state::job::Job;
use tessera_protocol::client::RequestError;
use tessera_protocol::ids::JobId;

/// Opens the failed frames of a job again.
pub(crate) fn retry_job(books: &mut Books, id: JobId, caller: &Caller) -> Result<(), RequestError> {
    let job = job_of(books, id, caller)?;
    retries(books, job)?;
    let ended = job.is_final();
    if ended {
        check_waits_again(books, job, |_| false)?;
    }
    let below = books.epochs().next();
    books.record(Record::JobRetried { job: id, below, by: caller.name.clone(), at: books.now() });
    if ended {
        books.open_queue(id);
        settle_waits(books, id);
        return Ok(());
    }
    let first = books.farm().job(id).and_then(|job| job.first_untouched());
    if let Some(first) = first {
        books.rewind(id, first);
    }
    books.offer_job(id);
    Ok(())
}

/// Checks that a job has frames to render again, and that there is room for them; not what it waits
/// for.
pub(crate) fn retries(books: &Books, job: &Job) -> Result<(), RequestError> {
    if job.counts().frames_failed == 0 {
        let id = job.id();
        let text = format!("no frame of job {id} has failed, so there is nothing to retry");
        return Err(RequestError::Invalid(text));
    }
    if job.is_final() {
        check_room_for_jobs(books)?;
        check_share(books, job, true)?;
    }
    match fits_nowhere(books, job.spec().device_bytes, job.spec().pool.as_deref()) {
        Some(problem) => Err(RequestError::Invalid(problem)),
        None => Ok(()),
    }
}
