//! `members list`, `members keep` and `members remove`.

use crate::args::farm::ListArgs;
use crate::args::members::{KeepArgs, MembersCommand, RemoveArgs};
use crate::client::{Farm, unexpected};
use crate::error::{CliError, Status};
use crate::json;
use crate::table::{printable, span, table};
use tessera_protocol::access::{Keep, MEMBER_PAGE_MAX, MemberSummary};
use tessera_protocol::client::{Request, Response};
use tessera_transport::validity::now_secs;

/// `tessera members …`.
pub(crate) async fn run(command: MembersCommand) -> Result<Status, CliError> {
    match command {
        MembersCommand::List(args) => list(args).await,
        MembersCommand::Keep(args) => keep(args).await,
        MembersCommand::Remove(args) => remove(args).await,
    }
}

async fn list(args: ListArgs) -> Result<Status, CliError> {
    let farm = Farm::of(&args.farm)?;
    let mut members: Vec<MemberSummary> = Vec::new();
    loop {
        let from = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let page = ask(&farm, &Request::Members { from }).await?;
        let more = page.len() >= MEMBER_PAGE_MAX;
        members.extend(page);
        if !more {
            break;
        }
    }
    if args.json {
        json::print(&members)?;
        return Ok(Status::Done);
    }
    if members.is_empty() {
        eprintln!("no members; `tessera token create --role ROLE` makes a token for one");
        return Ok(Status::Done);
    }
    let now = now_secs();
    let rows: Vec<_> = members.iter().map(|member| row(member, now)).collect();
    let head = ["ID", "NAME", "ROLE", "NODE", "ENROLLED", "CERTIFICATE", "STATE"];
    json::line(table(&head, &rows).trim_end())?;
    for member in members.iter().filter(|member| !member.note.is_empty()) {
        tracing::warn!(
            "{} #{}: {}",
            printable(&member.name),
            member.number,
            printable(&member.note)
        );
    }
    Ok(Status::Done)
}

fn row(member: &MemberSummary, now: u64) -> Vec<String> {
    let left = match member.expires_at.saturating_sub(now) {
        0 => format!("ended {} ago", span(now.saturating_sub(member.expires_at))),
        left if member.provider.is_some() => format!("signed in for {}", span(left)),
        left => format!("{} for {}", member.issued, span(left)),
    };
    let state = match (member.note.is_empty(), member.denied) {
        (_, true) => "denied",
        (false, false) => "two copies",
        (true, false) => "ok",
    };
    vec![
        format!("#{}", member.number),
        printable(&member.name),
        member.role.to_string(),
        member.node.map_or_else(|| "-".to_owned(), |node| node.to_string()),
        format!("{} ago", span(now.saturating_sub(member.enrolled_at))),
        left,
        state.to_owned(),
    ]
}

async fn keep(args: KeepArgs) -> Result<Status, CliError> {
    let keep = if args.newer { Keep::Newer } else { Keep::Older };
    let request = Request::KeepMember { member: args.who, keep };
    let kept = ask(&Farm::of(&args.farm)?, &request).await?;
    if args.json {
        json::print(&kept)?;
        return Ok(Status::Done);
    }
    for member in kept {
        eprintln!("{} #{} counts again; the other copy is out", member.name, member.number);
    }
    Ok(Status::Done)
}

async fn remove(args: RemoveArgs) -> Result<Status, CliError> {
    let request = Request::RemoveMember { member: args.who };
    let removed = ask(&Farm::of(&args.farm)?, &request).await?;
    if args.json {
        json::print(&removed)?;
        return Ok(Status::Done);
    }
    for member in removed {
        eprintln!(
            "{} #{} is no member any more, and the name is free",
            printable(&member.name),
            member.number
        );
    }
    Ok(Status::Done)
}

async fn ask(farm: &Farm, request: &Request) -> Result<Vec<MemberSummary>, CliError> {
    match farm.ask(request).await? {
        Response::Members(members) => Ok(members),
        _ => Err(unexpected()),
    }
}
