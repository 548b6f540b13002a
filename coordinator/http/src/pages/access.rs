//! Who may use the farm: one's own tokens and, for admins, everybody's, members, denials and the
//! audit log.

use super::layout::{self, may};
use super::visitor::{Failed, Visitor};
use super::words::{ago, now, span};
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::State;
use maud::{Markup, html};
use tessera_protocol::access::{DeniedIdentity, LogReport, MemberSummary, TokenSummary};
use tessera_protocol::client::{Request, Response, Role};

/// Entries of the audit log on the page.
const ENTRIES: u32 = 100;

/// `/access`.
pub(super) async fn page(State(server): State<Shared>, visitor: Visitor) -> Result<Markup, Failed> {
    let signed = &visitor.0;
    let body = all(&server, signed, None).await.map_err(visitor.fails())?;
    Ok(layout::page(Some(signed), "Access", &body))
}

/// The page's content; `token` was just made, and is shown this once.
pub(super) async fn all(
    server: &Shared,
    signed: &Signed,
    token: Option<&str>,
) -> Result<Markup, Problem> {
    let admin = may(signed, Role::Admin);
    let tokens = match ask(server, signed.caller(), Request::Tokens { from: 0 }).await? {
        Response::Tokens(tokens) => tokens,
        _ => return Err(stopping()),
    };
    let members = match may(signed, Role::Operator) {
        true => Some(members(server, signed).await?),
        false => None,
    };
    let (denied, log) = match admin {
        true => (Some(denied(server, signed).await?), Some(log(server, signed).await?)),
        false => (None, None),
    };
    Ok(html! {
        h1 { "Access" }
        @if let Some(token) = token {
            div.made role="status" {
                p { "This token is shown only now. Copy it to where it is used." }
                pre tabindex="0" { code { (token) } }
            }
        }
        (make(signed))
        (token_table(&tokens))
        @if let Some(members) = &members { (member_table(members, admin)) }
        @if let Some(denied) = &denied { (denied_table(denied)) }
        @if let Some(log) = &log { (log_table(log)) }
    })
}

async fn members(server: &Shared, signed: &Signed) -> Result<Vec<MemberSummary>, Problem> {
    match ask(server, signed.caller(), Request::Members { from: 0 }).await? {
        Response::Members(members) => Ok(members),
        _ => Err(stopping()),
    }
}

async fn denied(server: &Shared, signed: &Signed) -> Result<Vec<DeniedIdentity>, Problem> {
    match ask(server, signed.caller(), Request::Denied).await? {
        Response::Denied(denied) => Ok(denied),
        _ => Err(stopping()),
    }
}

async fn log(server: &Shared, signed: &Signed) -> Result<LogReport, Problem> {
    match ask(server, signed.caller(), Request::Log { last: ENTRIES }).await? {
        Response::Log(report) => Ok(report),
        _ => Err(stopping()),
    }
}

/// The forms that make tokens.
fn make(signed: &Signed) -> Markup {
    let roles = |least: Role| {
        let mine = signed.caller().role();
        Role::ALL
            .into_iter()
            .filter(move |role| mine.covers(*role) || (*role == Role::Node && mine.covers(least)))
    };
    html! {
        h2 { "Tokens" }
        form.set method="post" action="/access/tokens" {
            input type="hidden" name="kind" value="api";
            label { "For a program, with the role "
                select name="role" {
                    @for role in roles(Role::Admin).filter(|role| *role != Role::Node) {
                        option value=(role) selected[role == signed.caller().role()] { (role) }
                    }
                }
            }
            (life())
            button { "Make a token" }
        }
        @if may(signed, Role::Operator) {
            form.set method="post" action="/access/tokens" {
                input type="hidden" name="kind" value="join";
                label { "To join as "
                    select name="role" {
                        @if may(signed, Role::Admin) {
                            @for role in Role::ALL { option value=(role) { (role) } }
                        } @else {
                            option value="node" { "node" }
                        }
                    }
                }
                label { "named (empty: any) " input name="name"; }
                label { "in the pool (nodes) " input name="pool"; }
                label { "uses " input type="number" name="uses" min="1" max="10000" value="1"; }
                (life())
                button { "Make a token" }
            }
        }
    }
}

fn life() -> Markup {
    html! {
        label { "for "
            select name="ttl_secs" {
                option value="3600" { "an hour" }
                option value="86400" selected { "a day" }
                option value="604800" { "a week" }
                option value="2592000" { "30 days" }
                option value="31536000" { "a year" }
            }
        }
    }
}

fn token_table(tokens: &[TokenSummary]) -> Markup {
    html! {
        @if tokens.is_empty() { p.empty { "There are no tokens." } } @else {
            div.wide tabindex="0" role="region" aria-label="Tokens" {
                table {
                    thead { tr {
                        th scope="col" { "Token" } th scope="col" { "Kind" }
                        th scope="col" { "Role" } th scope="col" { "For" }
                        th.number scope="col" { "Uses left" } th scope="col" { "Ends in" }
                        th scope="col" { "Made by" } td {}
                    } }
                    tbody { @for token in tokens {
                        tr {
                            th scope="row" { code { (token.id) } }
                            td { (token.kind.name()) }
                            td { (token.role) }
                            td { bdi { (token.name.as_deref().or(token.pool.as_deref())
                                .unwrap_or("–")) } }
                            td.number { (token.uses_left) " of " (token.uses) }
                            td { (span(token.expires_at.saturating_sub(now()))) }
                            td { bdi { (token.made_by) } }
                            td { form method="post" action="/access/revoke" data-confirm="" {
                                input type="hidden" name="id" value=(token.id);
                                button.quiet name="change" value="revoke"
                                    aria-label={ "Revoke " (token.id) } { "Revoke" }
                            } }
                        }
                    } }
                }
            }
        }
    }
}

fn member_table(members: &[MemberSummary], admin: bool) -> Markup {
    html! {
        h2 { "Members" }
        div.wide tabindex="0" role="region" aria-label="Members" {
            table {
                thead { tr {
                    th scope="col" { "Name" } th.number scope="col" { "#" }
                    th scope="col" { "Role" }
                    th scope="col" { "Enrolled" } th scope="col" { "Note" }
                    @if admin { td {} }
                } }
                tbody { @for member in members {
                    tr {
                        th scope="row" { bdi { (member.name) } }
                        td.number { (member.number) }
                        td { (member.role) }
                        td { (ago(member.enrolled_at)) }
                        td {
                            @if member.denied { "denied " }
                            bdi { (member.note) }
                            @if let Some(provider) = &member.provider {
                                "signs in at " bdi { (provider) }
                            }
                        }
                        @if admin { td { (member_forms(member)) } }
                    }
                } }
            }
        }
    }
}

fn member_forms(member: &MemberSummary) -> Markup {
    let who = format!("#{}", member.number);
    html! {
        @if !member.denied {
            form.inline method="post" action="/access/deny" data-confirm="" {
                input type="hidden" name="identity" value=(who);
                label { "reason " input name="reason"; }
                button.quiet name="change" value="deny" aria-label={ "Deny " (member.name) }
                    { "Deny" }
            }
        }
        form.inline method="post" action="/access/remove" data-confirm="" {
            input type="hidden" name="member" value=(who);
            button.quiet name="change" value="remove"
                aria-label={ "Take the name away from " (member.name) } { "Take the name away" }
        }
    }
}

fn denied_table(denied: &[DeniedIdentity]) -> Markup {
    html! {
        @if !denied.is_empty() {
            h2 { "Denied" }
            div.wide tabindex="0" role="region" aria-label="Denied" {
                table {
                    thead { tr {
                        th scope="col" { "Identity" } th scope="col" { "When" }
                        th scope="col" { "By" } th scope="col" { "Reason" } td {}
                    } }
                    tbody { @for entry in denied {
                        tr {
                            th scope="row" { bdi { (entry.identity) } " " bdi { (entry.name) } }
                            td { (ago(entry.at)) }
                            td { bdi { (entry.by) } }
                            td { bdi { (entry.reason) } }
                            td { form method="post" action="/access/deny" {
                                input type="hidden" name="identity"
                                    value={ "#" (entry.number) };
                                button.quiet name="change" value="allow"
                                    aria-label={ "Allow " (entry.identity) } { "Allow again" }
                            } }
                        }
                    } }
                }
            }
        }
    }
}

fn log_table(log: &LogReport) -> Markup {
    html! {
        h2 { "Audit log" }
        @for problem in &log.problems { p.problem { (problem) } }
        p.hint { (log.entries) " entries; the newest has the hash " code { (log.head) } }
        div.wide tabindex="0" role="region" aria-label="Audit log" {
            table {
                thead { tr {
                    th.number scope="col" { "#" } th scope="col" { "When" } th scope="col" { "Who" }
                    th scope="col" { "What" } th scope="col" { "About" }
                } }
                tbody { @for entry in log.newest.iter().rev() {
                    tr {
                        td.number { (entry.n) }
                        td { (ago(entry.at)) }
                        td { bdi { (entry.who) } }
                        td { (entry.what) }
                        td { bdi { (entry.about) } }
                    }
                } }
            }
        }
    }
}
