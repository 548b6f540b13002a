//! `authority show` and `authority rotate`.

use crate::args::authority::AuthorityCommand;
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::span;
use tessera_protocol::access::AuthorityStatus;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::utc::utc;
use tessera_transport::validity::now_secs;

/// `tessera authority …`.
pub(crate) async fn run(command: AuthorityCommand) -> Result<Status, CliError> {
    let (args, request, as_json) = match command {
        AuthorityCommand::Show(args) => (args.farm, Request::Authority, args.json),
        AuthorityCommand::Rotate(args) => {
            (args.farm, Request::RotateAuthority { overlap_secs: args.overlap }, args.json)
        }
    };
    let Response::Authority(status) = Farm::of(&args)?.ask(&request).await? else {
        return Err(unexpected());
    };
    match as_json {
        true => json::print(&status)?,
        false => json::line(&describe(&status))?,
    }
    Ok(Status::Done)
}

fn describe(status: &AuthorityStatus) -> String {
    let former = match status.former_until {
        None => "no other is trusted".to_owned(),
        Some(until) => {
            let left = span(until.saturating_sub(now_secs()));
            format!("the former one is trusted until {}, {left} more", utc(until))
        }
    };
    format!("authority {}\n{former}", status.pin)
}
