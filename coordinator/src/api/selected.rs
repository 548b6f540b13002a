//! Listings and changes of jobs, one or many: finds the owner that a selection names, and asks the
//! core.

use super::caller::Caller;
use super::context::Context;
use super::naming::find_owner;
use super::{jobs, roles};
use crate::driver::{Ask, Question};
use tessera_core::{JobsPage, Selection};
use tessera_protocol::JobId;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::selection::{
    JobChange, JobQuery, JobSelection, JobsChange, JobsChanged, Refusal,
};

/// Returns a page of the selected jobs.
pub(super) async fn list(
    context: &Context,
    caller: &Caller,
    query: JobQuery,
) -> Result<Response, RequestError> {
    let JobQuery { selection, before, rows, order } = query;
    let selection = Box::new(checked(context, caller, selection)?);
    context.question(Question::Jobs { selection, page: JobsPage { before, rows, order } }).await
}

/// Changes all selected jobs in one step, or tells what would be changed.
pub(super) async fn change(
    context: &Context,
    caller: &Caller,
    wanted: JobsChange,
) -> Result<Response, RequestError> {
    wanted.check()?;
    let JobsChange { change, selection, all: _, dry_run } = wanted;
    let selection = checked(context, caller, selection)?;
    if change == JobChange::Retry && !dry_run {
        return retry(context, caller, selection).await.map(Response::Changed);
    }
    if !dry_run {
        context.room()?;
    }
    ask(context, caller, (change, selection, dry_run)).await.map(Response::Changed)
}

fn checked(
    context: &Context,
    caller: &Caller,
    jobs: JobSelection,
) -> Result<Selection, RequestError> {
    jobs.check()?;
    let owner = jobs.owner.as_ref().map(|text| find_owner(context, caller, text)).transpose()?;
    Ok(Selection { jobs, owner: owner.map(|owner| owner.id()) })
}

async fn ask(
    context: &Context,
    caller: &Caller,
    (change, selection, dry_run): (JobChange, Selection, bool),
) -> Result<JobsChanged, RequestError> {
    let (selection, caller) = (Box::new(selection), roles::owner(caller));
    match context.ask(Ask::ChangeJobs { change, selection, dry_run, caller }).await? {
        Response::Changed(changed) => Ok(changed),
        Response::Error(error) => Err(error),
        _ => Err(RequestError::Unavailable("the core answered something else".into())),
    }
}

/// Renders failed frames of the selected jobs again. The files of ended jobs may have been deleted,
/// so they are checked first, and jobs without their files are refused.
async fn retry(
    context: &Context,
    caller: &Caller,
    selection: Selection,
) -> Result<JobsChanged, RequestError> {
    context.room()?;
    let _submitting = context.submitting.read().await;
    let meant = ask(context, caller, (JobChange::Retry, selection, true)).await?;
    let mut refusals = meant.refusals;
    let mut refused = meant.refused;
    let mut here: Vec<JobId> = Vec::new();
    for name in &meant.jobs {
        match jobs::check_files_of(context, name.job).await {
            Ok(()) => here.push(name.job),
            Err(why) => {
                refused += 1;
                refusals.push(Refusal { what: name.job.to_string(), why });
            }
        }
    }
    let mut changed = JobsChanged::default();
    if !here.is_empty() {
        let ids = here.iter().map(ToString::to_string).collect();
        let selection = JobSelection { jobs: ids, ..JobSelection::default() }.into();
        changed = ask(context, caller, (JobChange::Retry, selection, false)).await?;
    }
    changed.left = meant.left;
    changed.refused += refused;
    refusals.append(&mut changed.refusals);
    refusals.truncate(tessera_protocol::limits::REFUSALS_NAMED_MAX);
    Ok(JobsChanged { refusals, ..changed })
}
