//! Changes of one job or many in one step: cancel, pause, resume, retry and forget all that are
//! selected. What is allowed, and what happens to one job, is decided in the file of each change.

use crate::books::Books;
use crate::input::{Caller, RequestId};
use crate::report::selected::{Meanings, ambiguous, meets, name_of};
use crate::requests::after::check_waits_again;
use crate::requests::{forget, job_of, jobs, pause, retry_frames};
use crate::selection::Selection;
use crate::state::job::Job;
use crate::text::cut;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::limits::{JOBS_CHANGED_MAX, NAME_MAX};
use tessera_protocol::selection::{JobChange, JobsChanged};

/// Changes the selected jobs, or only tells what would be changed, and replies.
pub(crate) fn on_change_jobs(
    books: &mut Books,
    request: RequestId,
    change: &JobChange,
    selection: &Selection,
    dry_run: bool,
    caller: &Caller,
) {
    let changed = changed(books, change, selection, dry_run, caller);
    books.reply(request, changed.map(Response::Changed));
}

fn changed(
    books: &mut Books,
    change: &JobChange,
    selection: &Selection,
    dry_run: bool,
    caller: &Caller,
) -> Result<JobsChanged, RequestError> {
    if let Some(owner) = selection.owner.filter(|owner| !caller.admin && *owner != caller.id) {
        let owner = selection.jobs.owner.clone().unwrap_or_else(|| format!("#{owner}"));
        return Err(RequestError::NotAllowed(format!("these are the jobs of `{owner}`")));
    }
    let mut report = JobsChanged::default();
    let chosen = match selection.jobs.jobs.is_empty() {
        true => by_conditions(books, change, selection, caller, &mut report),
        false => by_texts(books, selection, caller, &mut report)?,
    };
    // A job is newer than those that it waits for. It is cancelled before it ends with one.
    let newest_first = matches!(change, JobChange::Cancel { .. });
    let chosen = if newest_first { chosen.into_iter().rev().collect() } else { chosen };
    let mut changed = BTreeSet::new();
    for id in chosen {
        let planned = job_of(books, id, caller)
            .and_then(|job| check_others(books, change, job, &changed).map(|()| job))
            .and_then(|job| Ok(applies(books, change, job)?.then(|| name_of(books, job))));
        match planned {
            Err(why) => report.refuse(id.to_string(), why),
            Ok(None) => report.unchanged += 1,
            Ok(Some(_)) if !dry_run && let Err(why) = apply(books, change, id, caller) => {
                report.refuse(id.to_string(), why);
            }
            Ok(Some(name)) => {
                changed.insert(id);
                report.jobs.push(name);
            }
        }
    }
    if newest_first {
        report.jobs.reverse();
    }
    Ok(report)
}

/// Returns the newest jobs that the change applies to and that meet the conditions, in the order of
/// their acceptance. Others than operators reach only their own.
fn by_conditions(
    books: &Books,
    change: &JobChange,
    selection: &Selection,
    caller: &Caller,
    report: &mut JobsChanged,
) -> Vec<JobId> {
    let limit = selection.jobs.limit.map_or(usize::MAX, |limit| limit as usize);
    let is_meant = |job: &&Job| {
        (caller.admin || job.owner_id() == caller.id)
            && meets(books, job, selection, books.now())
            && applies(books, change, job) == Ok(true)
    };
    let mut meant = books.farm().newest(u64::MAX).filter(is_meant).take(limit);
    let mut chosen: Vec<JobId> =
        meant.by_ref().take(JOBS_CHANGED_MAX).map(|job| job.id()).collect();
    report.left = meant.count() as u64;
    chosen.reverse();
    chosen
}

/// Returns the jobs that texts mean and that meet the conditions, in the order of their acceptance.
/// A text that means jobs of others too means the caller's own, unless the caller is an operator.
fn by_texts(
    books: &Books,
    selection: &Selection,
    caller: &Caller,
    report: &mut JobsChanged,
) -> Result<Vec<JobId>, RequestError> {
    let mut meanings = Meanings::new(books);
    let mut chosen: BTreeMap<u64, JobId> = BTreeMap::new();
    for text in &selection.jobs.jobs {
        let mut meant = meanings.of(text)?;
        if meant.is_empty() {
            let why = RequestError::NotFound(format!("there is no job {text:?}"));
            report.refuse(cut(text, NAME_MAX), why);
            continue;
        }
        meant.retain(|job| meets(books, job, selection, books.now()));
        if !caller.admin && meant.iter().any(|job| job.owner_id() == caller.id) {
            meant.retain(|job| job.owner_id() == caller.id);
        }
        match meant.as_slice() {
            [] => {}
            [job] => drop(chosen.insert(job.order(), job.id())),
            several => report.refuse(cut(text, NAME_MAX), ambiguous(books, text, several)),
        }
    }
    let limit = selection.jobs.limit.map_or(usize::MAX, |limit| limit as usize);
    let over = chosen.len().saturating_sub(limit.min(JOBS_CHANGED_MAX));
    Ok(chosen.into_values().skip(over).collect())
}

/// Checks what a change asks of other jobs. Those that are to be changed before this one count as
/// changed, as nothing is in a dry run.
fn check_others(
    books: &Books,
    change: &JobChange,
    job: &Job,
    changed: &BTreeSet<JobId>,
) -> Result<(), RequestError> {
    match change {
        JobChange::Retry if job.is_final() => {
            check_waits_again(books, job, |on| changed.contains(&on))
        }
        _ => Ok(()),
    }
}

/// Returns whether a change has something to do with a job: false if the job is like this already.
/// An error says why it cannot be done.
fn applies(books: &Books, change: &JobChange, job: &Job) -> Result<bool, RequestError> {
    match change {
        JobChange::Cancel { .. } => jobs::cancels(job),
        JobChange::Pause => pause::changes(job, true),
        JobChange::Resume => pause::changes(job, false),
        JobChange::Retry => retry_frames::retries(books, job).map(|()| true),
        JobChange::Forget => forget::forgets(job).map(|()| true),
    }
}

fn apply(
    books: &mut Books,
    change: &JobChange,
    id: JobId,
    caller: &Caller,
) -> Result<(), RequestError> {
    match change {
        JobChange::Cancel { reason } => jobs::cancel(books, id, caller, reason),
        JobChange::Pause => pause::set_paused(books, id, true, caller),
        JobChange::Resume => pause::set_paused(books, id, false, caller),
        JobChange::Retry => retry_frames::retry_job(books, id, caller),
        JobChange::Forget => forget::forget(books, id, caller),
    }
}
