//! Requests about members: who holds which name, and which of two copies counts. The lowest role
//! has been checked.

use super::caller::Caller;
use super::context::{Context, blocking, unavailable};
use super::naming::find;
use crate::access::members::summary;
use crate::driver::Ask;
use tessera_protocol::access::{DeniedIdentity, Keep};
use tessera_protocol::client::{RequestError, Response, Role};
use tessera_transport::member::MemberRecord;
use tessera_transport::validity::now_secs;
use tokio::sync::oneshot;

/// Returns one page of members.
pub(super) fn list(context: &Context, from: u32) -> Response {
    let denied = |number| context.access.denial_of(number).is_some();
    Response::Members(context.access.members.list(from, denied))
}

/// Decides which of two copies of an identity counts.
pub(super) async fn keep(
    context: &Context,
    caller: &Caller,
    text: &str,
    keep: Keep,
) -> Result<Response, RequestError> {
    context.room()?;
    let member = find(context, text)?;
    let needed = if member.role.covers(Role::Operator) { Role::Admin } else { Role::Operator };
    super::roles::check(caller, needed)?;
    let Some(durable) = context.access.members.keep(member.number, keep) else {
        let text = format!("there is only one copy of the identity of {}", member.who());
        return Err(RequestError::Invalid(text));
    };
    settled(context, member.number, durable).await
}

/// Takes a name away from its holder.
pub(super) async fn remove(
    context: &Context,
    caller: &Caller,
    text: &str,
) -> Result<Response, RequestError> {
    context.room()?;
    let member = find(context, text)?;
    let number = member.number;
    if member.login.is_some() {
        bar(context, caller, &member).await?;
    }
    let before = summary(&member, context.access.denial_of(number).is_some());
    let removed =
        context.access.members.change(number, |member| member.removed_at = Some(now_secs()));
    let Some(((), durable)) = removed else {
        return Err(RequestError::NotFound(format!("nobody holds the name {text:?}")));
    };
    context.access.sweep(now_secs());
    durable.await.map_err(|_| unavailable("the coordinator is stopping"))?;
    tracing::warn!(name = before.name, number, "a name was taken away");
    if let Some(node) = member.node {
        let why = format!("its name was taken away by `{}`", caller.name());
        context.ask(Ask::RetireNode { node, why }).await?;
    }
    Ok(Response::Members(vec![before]))
}

/// Denies somebody who signs in by a provider: without that, the next sign-in would bring them
/// back.
async fn bar(
    context: &Context,
    caller: &Caller,
    member: &MemberRecord,
) -> Result<(), RequestError> {
    let entry = DeniedIdentity {
        identity: format!("#{}", member.number),
        number: member.number,
        name: String::new(),
        by: caller.to_string(),
        at: now_secs(),
        reason: format!("the name {} was taken away", member.name),
    };
    let (access, number) = (context.access.clone(), member.number);
    let barred = blocking(move || access.deny(number, Some(entry))).await?;
    barred.map(drop).map_err(unavailable)
}

/// Closes what no longer counts, and answers with the member once the change is durable.
async fn settled(
    context: &Context,
    number: u64,
    durable: oneshot::Receiver<()>,
) -> Result<Response, RequestError> {
    context.access.sweep(now_secs());
    durable.await.map_err(|_| unavailable("the coordinator is stopping"))?;
    let member = find(context, &format!("#{number}"))?;
    let denied = context.access.denial_of(number).is_some();
    Ok(Response::Members(vec![summary(&member, denied)]))
}
