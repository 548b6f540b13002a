//! Requests about tokens and denied identities. The roles have been checked.

use super::caller::Caller;
use super::context::{Context, blocking, unavailable};
use super::shares;
use crate::access::{ADMIN_NAME, Subject};
use crate::driver::Question;
use std::time::Duration;
use tessera_core::Owner;
use tessera_protocol::NodeId;
use tessera_protocol::access::{AuthorityStatus, DeniedIdentity, LOG_PAGE_MAX, TokenScope};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::limits::REASON_MAX;
use tessera_transport::Authority;
use tessera_transport::close::cut;
use tessera_transport::validity::{GRACE_MAX, LIFE_MAX, now_secs};

pub(super) async fn create_token(
    context: &Context,
    caller: &Caller,
    scope: TokenScope,
) -> Result<Response, RequestError> {
    context.room()?;
    let (now, role) = (context.clock.now().secs(), scope.role);
    let token =
        context.ledger.create(&context.access.authority(), scope, &caller.to_string(), now).await?;
    tracing::info!(%role, by = %caller, "token created");
    Ok(Response::Token(token.to_string()))
}

pub(super) async fn revoke_token(
    context: &Context,
    caller: &Caller,
    id: &str,
) -> Result<Response, RequestError> {
    context.room()?;
    let token = context.ledger.revoke(id).await?;
    tracing::info!(token = token.id, role = %token.role, by = %caller, "token revoked");
    Ok(Response::Done)
}

/// Denies an identity for a reason; None allows it again.
pub(super) async fn deny(
    context: &Context,
    caller: &Caller,
    identity: &str,
    reason: Option<String>,
) -> Result<Response, RequestError> {
    context.room()?;
    let (subject, name) = find(context, identity).await?;
    if reason.is_some() {
        let own = Subject::of(caller.identity()) == subject;
        // The coordinator renews this identity itself, so the owner of the data folder is never
        // shut out of the farm.
        if own || subject == Subject::User(ADMIN_NAME.to_owned()) {
            let who = if own {
                "yourself: another admin can"
            } else {
                "the data folder's own admin, the last one there is"
            };
            return Err(RequestError::NotAllowed(format!("you cannot deny {who}")));
        }
    }
    let entry = DeniedIdentity {
        identity: subject.to_string(),
        name,
        by: caller.to_string(),
        at: now_secs(),
        reason: cut(reason.as_deref().unwrap_or_default(), REASON_MAX).to_owned(),
    };
    let (access, new) = (context.access.clone(), reason.is_some().then(|| entry.clone()));
    let person = match &subject {
        Subject::User(name) if reason.is_some() => Some(Owner::named(name)),
        _ => None,
    };
    let there = blocking(move || access.deny(subject, new)).await?;
    let there = there.map_err(unavailable)?;
    if reason.is_none() && !there {
        return Err(RequestError::NotFound(format!("{} is not denied", entry.identity)));
    }
    tracing::warn!(identity = entry.identity, denied = reason.is_some(), by = %caller, "deny-list \
        changed");
    if let Some(person) = person {
        // Jobs and frames stay until somebody sweeps them.
        shares::sweep_files(context, &person, Vec::new()).await?;
    }
    Ok(Response::Denied(vec![entry]))
}

/// Checks the chain of the audit log and returns its newest entries.
pub(super) async fn log(context: &Context, last: u32) -> Result<Response, RequestError> {
    let (log, last) = (context.access.log.clone(), (last as usize).min(LOG_PAGE_MAX));
    let report = blocking(move || log.report(last)).await?;
    let unreadable =
        |error| RequestError::Unavailable(format!("the audit log cannot be read: {error}"));
    report.map(Response::Log).map_err(unreadable)
}

/// Returns the authority's state.
pub(super) fn authority(authority: &Authority) -> Response {
    let pin = authority.pin().0.iter().map(|byte| format!("{byte:02x}")).collect();
    Response::Authority(AuthorityStatus { pin, former_until: authority.former_until() })
}

/// Replaces the authority by a new one.
pub(super) async fn rotate(
    context: &Context,
    caller: &Caller,
    overlap_secs: Option<u64>,
) -> Result<Response, RequestError> {
    context.room()?;
    let longest = (LIFE_MAX + GRACE_MAX).as_secs();
    if overlap_secs.is_some_and(|secs| secs > longest) {
        return Err(RequestError::Invalid(format!(
            "an overlap of more than {longest} s outlives every certificate"
        )));
    }
    let access = context.access.clone();
    let rotated = blocking(move || access.rotate(overlap_secs.map(Duration::from_secs))).await?;
    let new = rotated.map_err(unavailable)?;
    let serving = context.access.tell_doors(&new);
    serving.map_err(|error| unavailable(format!("{error}; restart the coordinator")))?;
    tracing::warn!(by = %caller, until = new.former_until(), "authority rotated");
    Ok(authority(&new))
}

/// Finds the identity that a text names, and the name if it is a node.
async fn find(context: &Context, text: &str) -> Result<(Subject, String), RequestError> {
    let (kind, name) = match text.split_once(':') {
        Some((kind @ ("node" | "user"), name)) => (kind, name),
        _ => ("", text),
    };
    let Response::Nodes(nodes) = context.question(Question::Nodes).await? else {
        return Err(RequestError::Unavailable("the nodes cannot be listed".into()));
    };
    let id: Option<NodeId> = name.parse().ok();
    let mut named = nodes.iter().filter(|node| Some(node.node) == id || node.name == name);
    match (kind, named.next(), named.next(), id) {
        ("user", ..) => {}
        (_, Some(_), Some(_), _) => {
            let text = format!("several nodes are called {name:?}; name one by its id");
            return Err(RequestError::Invalid(text));
        }
        (_, Some(node), None, _) => return Ok((Subject::Node(node.node), node.name.clone())),
        (_, None, _, Some(id)) => return Ok((Subject::Node(id), String::new())),
        ("node", ..) => {
            return Err(RequestError::NotFound(format!("no node is called {name:?}; give its id")));
        }
        _ => {}
    }
    let subject = format!("user:{name}").parse();
    let subject =
        subject.map_err(|()| RequestError::Invalid(format!("{name:?} is not a valid name")))?;
    Ok((subject, String::new()))
}
