//! Requests about tokens and denied identities. The roles have been checked.

use super::caller::Caller;
use super::context::{Context, blocking, unavailable};
use super::naming::{find, is_own_admin};
use super::shares;
use std::time::Duration;
use tessera_core::Owner;
use tessera_protocol::access::{AuthorityStatus, DeniedIdentity, LOG_PAGE_MAX, TokenScope};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::limits::REASON_MAX;
use tessera_transport::close::cut;
use tessera_transport::member::MemberRecord;
use tessera_transport::validity::{GRACE_MAX, LIFE_MAX, now_secs};
use tessera_transport::{Authority, AuthorityError};

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

/// Denies an identity for a reason; None allows it again.
pub(super) async fn deny(
    context: &Context,
    caller: &Caller,
    identity: &str,
    reason: Option<String>,
) -> Result<Response, RequestError> {
    context.room()?;
    let number = match find(context, identity) {
        Ok(member) => member.number,
        // The coordinator renews this identity itself, so the owner of the data folder is never
        // shut out of the farm.
        Err(_) if is_own_admin(identity) => {
            let text = "you cannot deny the data folder's own admin, the last one there is";
            return Err(RequestError::NotAllowed(text.to_owned()));
        }
        Err(error) => match context.access.denied().iter().find(|entry| is(entry, identity)) {
            Some(entry) => entry.number,
            None => return Err(error),
        },
    };
    if reason.is_some() && caller.identity().number == number {
        let text = "you cannot deny yourself: another admin can";
        return Err(RequestError::NotAllowed(text.to_owned()));
    }
    let entry = entry_of(context, caller, (number, identity), reason.as_deref());
    let (access, new) = (context.access.clone(), reason.is_some().then(|| entry.clone()));
    let there = blocking(move || access.deny(number, new)).await?;
    let there = there.map_err(unavailable)?;
    if reason.is_none() && !there {
        return Err(RequestError::NotFound(format!("{} is not denied", entry.identity)));
    }
    tracing::warn!(identity = entry.identity, denied = reason.is_some(), by = %caller, "deny-list \
        changed");
    if reason.is_some() {
        // Jobs and frames stay until somebody sweeps them.
        let owner = Owner::new(number, &entry.identity);
        shares::sweep_files(context, &owner, Vec::new()).await?;
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
    let new = rotated.map_err(|error| match error {
        // It is not the farm that cannot answer: asking again soon would not help.
        AuthorityError::Rotating(_) => RequestError::Invalid(error.to_string()),
        error => unavailable(error),
    })?;
    let serving = context.access.tell_doors(&new);
    serving.map_err(|error| unavailable(format!("{error}; restart the coordinator")))?;
    tracing::warn!(by = %caller, until = new.former_until(), "authority rotated");
    Ok(authority(&new))
}

/// Whether a text names the identity of this entry, whose name may have been taken away.
fn is(entry: &DeniedIdentity, text: &str) -> bool {
    entry.identity == text || text == format!("#{}", entry.number)
}

/// The entry of the deny-list for an identity, or the one that is there.
fn entry_of(
    context: &Context,
    caller: &Caller,
    (number, text): (u64, &str),
    reason: Option<&str>,
) -> DeniedIdentity {
    let held = context.access.members.find(&format!("#{number}"));
    let (identity, name) = match held {
        Some(MemberRecord { node: Some(node), name, .. }) => (format!("node:{node}"), name),
        Some(MemberRecord { name, .. }) => (format!("user:{name}"), String::new()),
        None => (text.to_owned(), String::new()),
    };
    DeniedIdentity {
        identity,
        number,
        name,
        by: caller.to_string(),
        at: now_secs(),
        reason: cut(reason.unwrap_or_default(), REASON_MAX).to_owned(),
    }
}
