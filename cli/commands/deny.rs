//! `deny` and `allow`: shut identities out of the farm, and let them in again.

use crate::args::deny::{AllowArgs, DenyArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, span, table};
use tessera_protocol::access::DeniedIdentity;
use tessera_protocol::client::{Request, Response};
use tessera_transport::validity::now_secs;

/// `tessera deny`.
pub(crate) async fn deny(args: DenyArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let Some(identity) = args.who else { return list(&farm, args.json).await };
    let request = Request::Deny { identity, reason: args.reason };
    let denied = ask(&farm, &request).await?;
    match args.json {
        true => json::print(&denied)?,
        false => denied.iter().for_each(|entry| {
            eprintln!("{} is denied; `tessera allow {}` ends that", shown(entry), entry.identity);
        }),
    }
    Ok(Status::Done)
}

/// `tessera allow`.
pub(crate) async fn allow(args: AllowArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for entry in ask(&farm, &Request::Allow { identity: args.who }).await? {
        eprintln!("{} is allowed again", shown(&entry));
    }
    Ok(Status::Done)
}

async fn list(farm: &Farm, as_json: bool) -> Result<Status, CliError> {
    let denied = ask(farm, &Request::Denied).await?;
    if as_json {
        json::print(&denied)?;
        return Ok(Status::Done);
    }
    if denied.is_empty() {
        eprintln!("no identity is denied");
        return Ok(Status::Done);
    }
    let now = now_secs();
    let row = |entry: &DeniedIdentity| {
        let id = format!("#{}", entry.number);
        let texts = [&id, &entry.identity, &entry.name, &entry.by].map(|text| printable(text));
        let ago = format!("{} ago", span(now.saturating_sub(entry.at)));
        [texts.to_vec(), vec![ago, printable(&entry.reason)]].concat()
    };
    let rows: Vec<_> = denied.iter().map(row).collect();
    json::line(table(&["ID", "IDENTITY", "NAME", "BY", "SINCE", "REASON"], &rows).trim_end())?;
    Ok(Status::Done)
}

async fn ask(farm: &Farm, request: &Request) -> Result<Vec<DeniedIdentity>, CliError> {
    match farm.ask(request).await? {
        Response::Denied(denied) => Ok(denied),
        _ => Err(unexpected()),
    }
}

fn shown(entry: &DeniedIdentity) -> String {
    match entry.name.as_str() {
        "" => printable(&entry.identity),
        name => format!("{} ({})", printable(&entry.identity), printable(name)),
    }
}
