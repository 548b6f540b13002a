//! `cancel`: ends jobs.

use crate::args::cancel::CancelArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use crate::table::counted;
use tessera_protocol::client::{Request, Response};

/// `tessera cancel`.
pub(crate) async fn run(args: CancelArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    if let Some(owner) = args.owner {
        let request = Request::CancelAll { owner: owner.clone() };
        let Response::Swept(swept) = farm.ask(&request).await? else {
            return Err(unexpected());
        };
        let jobs = counted(swept.jobs_cancelled, "job");
        eprintln!("cancelled {jobs} of `{owner}`; finished frames can still be fetched");
    }
    for text in &args.jobs {
        let job = job_id::find(&farm, text).await?;
        let request = match args.reason.clone() {
            Some(reason) => Request::CancelFor { job, reason },
            None => Request::Cancel(job),
        };
        match farm.ask(&request).await? {
            Response::Done => {
                eprintln!("cancelled {job}; its finished frames can still be fetched")
            }
            _ => return Err(unexpected()),
        }
    }
    Ok(Status::Done)
}
