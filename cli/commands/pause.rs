//! `pause` and `resume`: stop and continue work on jobs.

use crate::args::pause::PauseArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::job_id;
use tessera_protocol::client::{Request, Response};

/// `tessera pause` and `tessera resume`.
pub(crate) async fn pause(args: PauseArgs, pause: bool) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for text in &args.jobs {
        let job = job_id::find(&farm, text).await?;
        let request = if pause { Request::Pause(job) } else { Request::Resume(job) };
        match farm.ask(&request).await? {
            Response::Done if pause => {
                eprintln!("paused {job}; `tessera resume {job}` resumes it")
            }
            Response::Done => eprintln!("resumed {job}"),
            _ => return Err(unexpected()),
        }
    }
    Ok(Status::Done)
}
