//! `job set`: changes a job that was submitted.

use crate::args::job_set::JobSetArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::job::JobChange;

/// `tessera job set`.
pub(crate) async fn run(args: JobSetArgs) -> Result<Status, CliError> {
    let change = change(&args);
    let checked = change.check();
    let change = checked.map_err(|error| {
        CliError::new(Status::Usage, format!("--{}: {}", error.field, error.problem))
    })?;
    let farm = Farm::of(&args.farm)?;
    let job = job_id::find(&farm, &args.job).await?;
    let words = change.words();
    match farm.ask(&Request::SetJob { job, change: Box::new(change) }).await? {
        Response::Done => eprintln!("{job}: {words}"),
        _ => return Err(unexpected()),
    }
    Ok(Status::Done)
}

fn change(args: &JobSetArgs) -> JobChange {
    JobChange {
        name: args.name.clone(),
        priority: args.priority,
        pool: args.any_pool.then_some(None).or_else(|| args.pool.clone().map(Some)),
        max_nodes: args.no_max_nodes.then_some(None).or_else(|| args.max_nodes.map(Some)),
    }
}
