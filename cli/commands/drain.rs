//! `drain` and `undrain`: give a node no new work, or work again.

use crate::args::drain::DrainArgs;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use tessera_protocol::client::{Request, Response};

/// `tessera drain` and `tessera undrain`.
pub(crate) async fn drain(args: DrainArgs, drain: bool) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    match farm.ask(&Request::Drain { node: args.node.clone(), drain }).await? {
        Response::Done if drain => eprintln!("{} gets no new work", args.node),
        Response::Done => eprintln!("{} gets work again", args.node),
        _ => return Err(unexpected()),
    }
    Ok(Status::Done)
}
