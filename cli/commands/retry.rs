//! `retry`: renders the failed frames of jobs again.

use crate::args::retry::RetryArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use tessera_protocol::client::{Request, Response};

/// `tessera retry`.
pub(crate) async fn run(args: RetryArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for text in &args.jobs {
        let job = job_id::find(&farm, text).await?;
        match farm.ask(&Request::Retry(job)).await? {
            Response::Done => {
                eprintln!(
                    "the failed frames of {job} are rendered again; `tessera watch {job}` follows \
                        it"
                );
            }
            _ => return Err(unexpected()),
        }
    }
    Ok(Status::Done)
}
