//! `forget`: deletes jobs that have ended.

use crate::args::forget::ForgetArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use tessera_protocol::client::{Request, Response};

/// `tessera forget`.
pub(crate) async fn run(args: ForgetArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for text in &args.jobs {
        let job = job_id::find(&farm, text).await?;
        match farm.ask(&Request::Forget(job)).await? {
            Response::Done => eprintln!(
                "forgot {job}; its frames are deleted when they are older than the coordinator's \
                    --blob-grace"
            ),
            _ => return Err(unexpected()),
        }
    }
    Ok(Status::Done)
}
