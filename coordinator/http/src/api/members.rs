//! Tokens, members, denied identities and the audit log.

use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::{Asked, Json};
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::{Denied, LogReport, Member, Token};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use tessera_protocol::access::{ApiTokenScope, Keep, TokenScope};
use tessera_protocol::client::{Request, Response, Role};
use utoipa::{IntoParams, ToSchema};

/// Where a page begins.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct From {
    /// Position of the first item.
    #[serde(default)]
    from: u32,
}

/// List tokens
///
/// Admins see all, others those that act for themselves. At most 1,000 at a time.
#[utoipa::path(get, path = "/tokens", tag = "access", params(From), responses(
    (status = 200, body = Vec<Token>), (status = 400, body = Problem),
    (status = 401, body = Problem)))]
pub(crate) async fn tokens(
    State(server): State<Shared>,
    signed: Signed,
    Asked(From { from }): Asked<From>,
) -> Result<axum::Json<Vec<Token>>, Problem> {
    match ask(&server, signed.caller(), Request::Tokens { from }).await? {
        Response::Tokens(tokens) => Ok(axum::Json(tokens.iter().map(Token::from).collect())),
        _ => Err(stopping()),
    }
}

/// What a join token gives.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TokenForm {
    /// `node`, `viewer`, `artist`, `operator` or `admin`.
    role: String,
    /// The pool that a node joins.
    pool: Option<String>,
    /// The name that the bearer must have.
    name: Option<String>,
    /// Seconds until the token expires, up to a year; a day if it is left out.
    #[serde(default = "a_day")]
    ttl_secs: u64,
    /// How often the token can be used.
    #[serde(default = "once")]
    uses: u32,
    /// Whether the bearer may take a name that somebody holds. Needs a name.
    #[serde(default)]
    replace: bool,
}

/// What an API token gives.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ApiTokenForm {
    /// Most that the bearer may do; what the owner may, if it is left out.
    role: Option<String>,
    /// Whom the bearer acts for: name or `#` and number; who asks, if it is left out.
    owner: Option<String>,
    /// Seconds until the token expires, up to a year; a day if it is left out.
    #[serde(default = "a_day")]
    ttl_secs: u64,
}

fn a_day() -> u64 {
    86_400
}

fn once() -> u32 {
    1
}

fn role(text: &str) -> Result<Role, Problem> {
    text.parse().map_err(|error| Problem::form(format!("{error}")))
}

/// A token that was created. It is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Created {
    /// The token's text.
    token: String,
}

fn created(response: Response) -> Result<(StatusCode, axum::Json<Created>), Problem> {
    match response {
        Response::Token(token) => Ok((StatusCode::CREATED, axum::Json(Created { token }))),
        _ => Err(stopping()),
    }
}

/// Create a join token
///
/// A machine or a person joins the farm with it.
#[utoipa::path(post, path = "/tokens", tag = "access", request_body = TokenForm, responses(
    (status = 201, body = Created), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn create_token(
    State(server): State<Shared>,
    signed: Signed,
    Json(form): Json<TokenForm>,
) -> Result<(StatusCode, axum::Json<Created>), Problem> {
    let TokenForm { role: of, pool, name, ttl_secs, uses, replace } = form;
    let scope = TokenScope { role: role(&of)?, pool, name, ttl_secs, uses, replace };
    created(ask(&server, signed.caller(), Request::CreateToken(scope)).await?)
}

/// Create an API token
///
/// A program makes requests of this API with it.
#[utoipa::path(post, path = "/tokens/api", tag = "access", request_body = ApiTokenForm, responses(
    (status = 201, body = Created), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn create_api_token(
    State(server): State<Shared>,
    signed: Signed,
    Json(form): Json<ApiTokenForm>,
) -> Result<(StatusCode, axum::Json<Created>), Problem> {
    let ApiTokenForm { role: of, owner, ttl_secs } = form;
    let role = of.as_deref().map(role).transpose()?;
    let request = Request::CreateApiToken(ApiTokenScope { role, owner, ttl_secs });
    created(ask(&server, signed.caller(), request).await?)
}

/// Revoke a token
#[utoipa::path(delete, path = "/tokens/{token}", tag = "access",
    params(("token" = String, Path, description = "Id, or its beginning")),
    responses((status = 204), (status = 401, body = Problem), (status = 404, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn revoke_token(
    State(server): State<Shared>,
    signed: Signed,
    Path(token): Path<String>,
) -> Result<StatusCode, Problem> {
    ask(&server, signed.caller(), Request::RevokeToken { id: token }).await?;
    Ok(StatusCode::NO_CONTENT)
}

fn listed(response: Response) -> Result<Vec<Member>, Problem> {
    match response {
        Response::Members(members) => Ok(members.iter().map(Member::from).collect()),
        _ => Err(stopping()),
    }
}

fn first(response: Response) -> Result<axum::Json<Member>, Problem> {
    listed(response)?.into_iter().next().map(axum::Json).ok_or_else(stopping)
}

/// List members
///
/// Who holds a name of the farm, by number. At most 1,000 at a time.
#[utoipa::path(get, path = "/members", tag = "access", params(From), responses(
    (status = 200, body = Vec<Member>), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn members(
    State(server): State<Shared>,
    signed: Signed,
    Asked(From { from }): Asked<From>,
) -> Result<axum::Json<Vec<Member>>, Problem> {
    let answer = ask(&server, signed.caller(), Request::Members { from }).await?;
    listed(answer).map(axum::Json)
}

/// Take a name away from its holder
#[utoipa::path(delete, path = "/members/{member}", tag = "access",
    params(("member" = String, Path, description = "Name, node id, or # and number")),
    responses((status = 200, body = Member), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn remove_member(
    State(server): State<Shared>,
    signed: Signed,
    Path(member): Path<String>,
) -> Result<axum::Json<Member>, Problem> {
    first(ask(&server, signed.caller(), Request::RemoveMember { member }).await?)
}

/// Which of two copies of an identity is trusted.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepForm {
    /// The copy to trust.
    keep: Copy,
}

/// One of two copies of an identity.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Copy {
    /// The one with the newer certificate.
    Newer,
    /// The one that came with the older certificate.
    Older,
}

/// Decide which of two copies of an identity counts
#[utoipa::path(post, path = "/members/{member}/keep", tag = "access",
    params(("member" = String, Path, description = "Name, node id, or # and number")),
    request_body = KeepForm, responses((status = 200, body = Member),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn keep_member(
    State(server): State<Shared>,
    signed: Signed,
    Path(member): Path<String>,
    Json(KeepForm { keep }): Json<KeepForm>,
) -> Result<axum::Json<Member>, Problem> {
    let keep = match keep {
        Copy::Newer => Keep::Newer,
        Copy::Older => Keep::Older,
    };
    first(ask(&server, signed.caller(), Request::KeepMember { member, keep }).await?)
}

fn denials(response: Response) -> Result<Vec<Denied>, Problem> {
    match response {
        Response::Denied(denied) => Ok(denied.iter().map(Denied::from).collect()),
        _ => Err(stopping()),
    }
}

/// List denied identities
#[utoipa::path(get, path = "/denied", tag = "access", responses(
    (status = 200, body = Vec<Denied>), (status = 401, body = Problem),
    (status = 403, body = Problem)))]
pub(crate) async fn denied(
    State(server): State<Shared>,
    signed: Signed,
) -> Result<axum::Json<Vec<Denied>>, Problem> {
    denials(ask(&server, signed.caller(), Request::Denied).await?).map(axum::Json)
}

/// Why somebody is denied.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DenyForm {
    /// Reason, for people who ask later.
    #[serde(default)]
    reason: String,
}

/// Shut an identity out at once
#[utoipa::path(put, path = "/denied/{identity}", tag = "access",
    params(("identity" = String, Path, description = "node:NAME, user:NAME, or # and number")),
    request_body = DenyForm, responses((status = 200, body = Vec<Denied>),
    (status = 400, body = Problem), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn deny(
    State(server): State<Shared>,
    signed: Signed,
    Path(identity): Path<String>,
    Json(DenyForm { reason }): Json<DenyForm>,
) -> Result<axum::Json<Vec<Denied>>, Problem> {
    let answer = ask(&server, signed.caller(), Request::Deny { identity, reason }).await?;
    denials(answer).map(axum::Json)
}

/// Let a denied identity in again
#[utoipa::path(delete, path = "/denied/{identity}", tag = "access",
    params(("identity" = String, Path, description = "node:NAME, user:NAME, or # and number")),
    responses((status = 200, body = Vec<Denied>), (status = 401, body = Problem),
    (status = 403, body = Problem), (status = 404, body = Problem)))]
pub(crate) async fn allow(
    State(server): State<Shared>,
    signed: Signed,
    Path(identity): Path<String>,
) -> Result<axum::Json<Vec<Denied>>, Problem> {
    denials(ask(&server, signed.caller(), Request::Allow { identity }).await?).map(axum::Json)
}

/// How much of the audit log is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct Last {
    /// Number of entries, at most 1,000.
    #[serde(default = "hundred")]
    last: u32,
}

fn hundred() -> u32 {
    100
}

/// Read the audit log
///
/// Checks its chain and shows the newest entries.
#[utoipa::path(get, path = "/audit-log", tag = "access", params(Last), responses(
    (status = 200, body = LogReport), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem)))]
pub(crate) async fn audit_log(
    State(server): State<Shared>,
    signed: Signed,
    Asked(Last { last }): Asked<Last>,
) -> Result<axum::Json<LogReport>, Problem> {
    match ask(&server, signed.caller(), Request::Log { last }).await? {
        Response::Log(report) => Ok(axum::Json(LogReport::from(report))),
        _ => Err(stopping()),
    }
}
