//! Deleting all jobs of one owner, for the owner, an operator or an admin. The shell deletes the
//! files that they leave.

use crate::books::Books;
use crate::ends::end_job;
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use crate::owner::Owner;
use crate::sweep::Sweep;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::status::JobState;
use tessera_protocol::usage::Swept;

/// Sweeps the jobs of an owner, and replies with what was done.
pub(crate) fn on_sweep(
    books: &mut Books,
    request: RequestId,
    owner: &Owner,
    sweep: Sweep,
    caller: &Caller,
) {
    let answer = swept(books, owner, sweep, caller);
    books.reply(request, answer.map(Response::Swept));
}

fn swept(
    books: &mut Books,
    owner: &Owner,
    sweep: Sweep,
    caller: &Caller,
) -> Result<Swept, RequestError> {
    if !caller.admin && owner.id() != caller.id {
        return Err(RequestError::NotAllowed(format!("these are the jobs of `{owner}`")));
    }
    let usage = books.farm().usage().of_owner(owner);
    let own = books.farm().jobs().filter(|job| owner.id() == job.owner_id());
    let own: Vec<JobId> = own.map(|job| job.id()).collect();
    let report = Swept {
        jobs_cancelled: usage.jobs,
        jobs_forgotten: own.len() as u64,
        frames: own.iter().map(|id| done_of(books, *id)).sum(),
        frame_bytes: usage.frame_bytes,
        ..Swept::default()
    };
    if sweep == Sweep::Count {
        return Ok(report);
    }
    let note = format!("cancelled by `{}`, with all jobs of `{owner}`", caller.name);
    for id in &own {
        if books.is_open(*id) {
            end_job(books, *id, JobState::Cancelled, &note);
        }
    }
    for job in own {
        books.record(Record::JobForgotten { job });
    }
    Ok(report)
}

fn done_of(books: &Books, id: JobId) -> u64 {
    books.farm().job(id).map_or(0, |job| u64::from(job.counts().frames_done))
}
