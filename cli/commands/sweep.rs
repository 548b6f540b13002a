//! `sweep`: deletes everything that a user has on a farm.

use crate::args::sweep::SweepArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{bytes, counted};
use tessera_protocol::client::{Request, Response};

/// `tessera sweep`.
pub(crate) async fn run(args: SweepArgs) -> Result<Status, CliError> {
    let request = Request::Sweep { owner: args.owner.clone(), dry_run: args.dry_run };
    let Response::Swept(swept) = Farm::of(&args.farm)?.ask(&request).await? else {
        return Err(unexpected());
    };
    if args.json {
        json::print(&swept)?;
        return Ok(Status::Done);
    }
    let would = if args.dry_run { "would be deleted" } else { "deleted" };
    eprintln!(
        "{} of `{}` {would} ({} of them cancelled), {} ({}), and {} ({})",
        counted(swept.jobs_forgotten, "job"),
        args.owner,
        swept.jobs_cancelled,
        counted(swept.frames, "finished frame"),
        bytes(swept.frame_bytes),
        counted(swept.files, "uploaded file"),
        bytes(swept.file_bytes),
    );
    Ok(Status::Done)
}
