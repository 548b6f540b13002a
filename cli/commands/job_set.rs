//! `job set`: changes a job that was submitted.

use crate::args::job_set::JobSetArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::JobEdit;

/// `tessera job set`.
pub(crate) async fn run(args: JobSetArgs) -> Result<Status, CliError> {
    let edit = edit_of(&args);
    let checked = edit.check();
    let edit = checked.map_err(|error| {
        CliError::new(Status::Usage, format!("--{}: {}", error.field, error.problem))
    })?;
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let words = edit.words();
    match farm.ask(&Request::EditJob { job, edit: Box::new(edit) }).await? {
        Response::Done => eprintln!("{job}: {words}"),
        _ => return Err(unexpected()),
    }
    Ok(Status::Done)
}

fn edit_of(args: &JobSetArgs) -> JobEdit {
    JobEdit {
        name: args.name.clone(),
        priority: args.priority,
        pool: args.any_pool.then_some(None).or_else(|| args.pool.clone().map(Some)),
        max_nodes: args.no_max_nodes.then_some(None).or_else(|| args.max_nodes.map(Some)),
        not_before: args.at_once.then_some(None).or_else(|| args.not_before.map(Some)),
    }
}
