//! Requests about tokens for HTTP and the list of all tokens. The lowest role has been checked.

use super::caller::Caller;
use super::context::Context;
use super::naming::{find, is_own_admin};
use super::roles;
use crate::access::bearers::{Bearing, summary};
use tessera_protocol::access::{ApiTokenScope, TOKEN_PAGE_MAX};
use tessera_protocol::client::{RequestError, Response, Role};
use tessera_transport::member::{ADMIN_NAME, ADMIN_NUMBER};
use tessera_transport::{PeerIdentity, TokenRecord, TokenUse};

/// Longest life of a token in seconds: one year.
const TTL_SECS_MAX: u64 = 31_536_000;

/// Makes a link that signs a browser in as the caller.
pub(super) fn link(context: &Context, caller: &Caller) -> Result<Response, RequestError> {
    let Some(base) = context.web.base.get() else {
        let text = "this coordinator serves no pages: it runs with --http off";
        return Err(RequestError::Unavailable(text.to_owned()));
    };
    let code = context.web.links.make(caller.identity(), context.clock.now().secs())?;
    Ok(Response::WebLink(format!("{base}/sign-in#{code}")))
}

/// Makes a token for programs, for the caller or, by an admin, for another member.
pub(super) async fn create_api_token(
    context: &Context,
    caller: &Caller,
    scope: ApiTokenScope,
) -> Result<Response, RequestError> {
    context.room()?;
    let ApiTokenScope { role, owner, ttl_secs } = scope;
    if !(1..=TTL_SECS_MAX).contains(&ttl_secs) {
        let text = format!("ttl of {ttl_secs} s is not in 1 s to a year ({TTL_SECS_MAX} s)");
        return Err(RequestError::Invalid(text));
    }
    let peer = match owner.as_deref() {
        None => caller.identity().clone(),
        Some(text) => member(context, caller, text)?,
    };
    if peer.number != caller.identity().number {
        roles::check(caller, Role::Admin)?;
    }
    let role = role.unwrap_or(peer.role);
    if !peer.role.covers(role) || peer.node.is_some() {
        let text = format!("a token for {peer} cannot have the role {role}, which is not below it");
        return Err(RequestError::Invalid(text));
    }
    let purpose = TokenUse::Api(peer.number);
    let (peer, by) = (PeerIdentity { role, ..peer }, caller.to_string());
    let now = context.clock.now().secs();
    let token =
        context.web.bearers.create(Bearing { peer, purpose, secs: ttl_secs, by }, now).await?;
    tracing::info!(%role, by = %caller, "API token created");
    Ok(Response::Token(token.to_string()))
}

/// Finds the person that a text names.
fn member(context: &Context, caller: &Caller, text: &str) -> Result<PeerIdentity, RequestError> {
    if text == caller.name() {
        return Ok(caller.identity().clone());
    }
    let (role, name, number) = match is_own_admin(text) {
        true => (Role::Admin, ADMIN_NAME.to_owned(), ADMIN_NUMBER),
        false => {
            let member = find(context, text)?;
            (member.role, member.name, member.number)
        }
    };
    let person = PeerIdentity::new(role, &name, None);
    person.map(|peer| peer.numbered(number)).map_err(|_| {
        RequestError::Invalid(format!("{text:?} is a node; only people have tokens for HTTP"))
    })
}

/// Returns one page of tokens: all for admins, for others those that act for them.
pub(super) async fn tokens(context: &Context, caller: &Caller, from: u32) -> Response {
    let records = visible(context, caller).await;
    let page = records.iter().skip(from as usize).take(TOKEN_PAGE_MAX);
    Response::Tokens(page.map(summary).collect())
}

/// Revokes the token whose id begins with `id`, durably. What joined with it stays valid.
pub(super) async fn revoke(
    context: &Context,
    caller: &Caller,
    id: &str,
) -> Result<Response, RequestError> {
    context.room()?;
    let records = visible(context, caller).await;
    let mut found = records.iter().filter(|record| !id.is_empty() && record.id().starts_with(id));
    let record = match (found.next(), found.next()) {
        (Some(record), None) => record,
        (None, _) => return Err(RequestError::NotFound(format!("there is no token {id:?}"))),
        _ => return Err(RequestError::Invalid(format!("several tokens begin with {id:?}"))),
    };
    match record.purpose {
        TokenUse::Join => context.ledger.revoke(record.hash).await?,
        TokenUse::Api(_) | TokenUse::Session(_) => context.web.bearers.end(record.hash).await?,
    }
    tracing::info!(token = record.id(), role = %record.role, by = %caller, "token revoked");
    Ok(Response::Done)
}

/// The tokens that a caller sees, in the order of their ids.
async fn visible(context: &Context, caller: &Caller) -> Vec<TokenRecord> {
    let now = context.clock.now().secs();
    if !caller.role().covers(Role::Admin) {
        return context.web.bearers.list(Some(caller.identity().number), now);
    }
    let mut records = context.ledger.list(now).await;
    records.extend(context.web.bearers.list(None, now));
    records.sort_by_key(|record| record.hash);
    records
}
