//! `events test`: sends a test event to a target, so that an admin sees whether it arrives.

use crate::args::events::EventsCommand;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::table::printable;
use tessera_protocol::client::{Request, Response};

/// `tessera events ...`.
pub(crate) async fn run(command: EventsCommand) -> Result<Status, CliError> {
    let EventsCommand::Test(args) = command;
    let request = Request::TestTarget { target: args.name.clone() };
    match Farm::of(&args.farm)?.ask(&request).await? {
        Response::Done => {
            eprintln!("`{}` took the test event", printable(&args.name));
            Ok(Status::Done)
        }
        _ => Err(unexpected()),
    }
}
