//! `deny` and `allow`: shut identities out of the farm, and let them in again.

use crate::args::deny::{AllowArgs, DenyArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, span, table};
use tessera_protocol::access::{DeniedIdentity, LOG_PAGE_MAX, LogEntry};
use tessera_protocol::client::{Request, Response};
use tessera_transport::validity::now_secs;

/// `tessera deny`.
pub(crate) async fn deny(args: DenyArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let Some(identity) = args.who else { return list(&farm, args.json).await };
    let request = Request::Deny { identity, reason: args.reason };
    let denied = ask(&farm, &request).await?;
    for entry in &denied {
        warn_of_strangers(&farm, entry).await;
    }
    match args.json {
        true => json::print(&denied)?,
        false => denied.iter().for_each(|entry| {
            eprintln!("{} is shut out; `tessera allow {}` ends that", shown(entry), entry.identity);
        }),
    }
    Ok(Status::Done)
}

/// Warns if the audit log has no enrolment of a denied user: a name that is spelled wrongly leaves
/// the user in. Old entries of a long log are not read, so the warning then says less.
async fn warn_of_strangers(farm: &Farm, entry: &DeniedIdentity) {
    let Some(name) = entry.identity.strip_prefix("user:") else { return };
    let request = Request::Log { last: LOG_PAGE_MAX as u32 };
    // The identity is denied already; a log that cannot be read is told by `tessera audit`.
    let Ok(Response::Log(log)) = farm.ask(&request).await else { return };
    if log.newest.iter().any(|entry| is_act_of(entry, name)) {
        return;
    }
    let is_whole = log.first == 1 && log.newest.len() as u64 == log.entries;
    let when = if is_whole { "ever joined" } else { "joined lately" };
    tracing::warn!(
        "no user or node of the name `{}` has {when}; check the spelling",
        printable(name)
    );
}

/// Returns whether a user of this name, in any role, is the one who did it.
fn is_act_of(entry: &LogEntry, name: &str) -> bool {
    entry.who.split_once(' ').is_some_and(|(role, who)| role != "node" && who == name)
}

/// `tessera allow`.
pub(crate) async fn allow(args: AllowArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    for entry in ask(&farm, &Request::Allow { identity: args.who }).await? {
        eprintln!("{} may come in again", shown(&entry));
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
        let texts = [&entry.identity, &entry.name, &entry.by].map(|text| printable(text));
        let ago = format!("{} ago", span(now.saturating_sub(entry.at)));
        [texts.to_vec(), vec![ago, printable(&entry.reason)]].concat()
    };
    let rows: Vec<_> = denied.iter().map(row).collect();
    json::line(table(&["IDENTITY", "NAME", "BY", "SINCE", "REASON"], &rows).trim_end())?;
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
