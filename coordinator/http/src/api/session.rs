//! Who is signed in, and the begin and end of a browser's session.

use crate::auth::{From, Signed, session};
use crate::forms::Json;
use crate::guard::is_same_origin;
use crate::problem::Problem;
use crate::state::Shared;
use crate::views::Me;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::IntoResponse;
use serde::Deserialize;
use std::time::Instant;
use utoipa::ToSchema;

/// Who is signed in.
#[utoipa::path(get, path = "/me", tag = "session", responses(
    (status = 200, body = Me), (status = 401, body = Problem)))]
pub(crate) async fn me(signed: Signed) -> axum::Json<Me> {
    axum::Json(Me::from(&signed.bearer))
}

/// The code of a link.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SignIn {
    /// What stands behind `#` in the link of `tessera web`.
    code: String,
}

/// Sign a browser in
///
/// The code works once, within two minutes. The answer sets the session's cookie.
#[utoipa::path(post, path = "/sign-in", tag = "session", request_body = SignIn, security(()),
    responses((status = 204), (status = 400, body = Problem), (status = 403, body = Problem),
        (status = 429, body = Problem)))]
pub(crate) async fn sign_in(
    State(state): State<Shared>,
    From(from): From,
    headers: HeaderMap,
    Json(form): Json<SignIn>,
) -> Result<impl IntoResponse, Problem> {
    if !is_same_origin(&state, &headers) {
        let text = "a sign-in comes from a page of this server";
        return Err(Problem::new(StatusCode::FORBIDDEN, text));
    }
    if !state.strangers.take(from.ip(), Instant::now()) {
        return Err(Problem::new(
            StatusCode::TOO_MANY_REQUESTS,
            "too many sign-ins; wait a little",
        ));
    }
    let signed = state.api.sign_in(&form.code, &from.to_string()).await?;
    let cookie = cookie(&state, &signed.token, signed.secs);
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie)]))
}

/// End the session
#[utoipa::path(post, path = "/sign-out", tag = "session", responses(
    (status = 204), (status = 401, body = Problem)))]
pub(crate) async fn sign_out(
    State(state): State<Shared>,
    _: Signed,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    if let Some(token) = session(&headers, &state.cookie) {
        state.api.sign_out(token).await?;
    }
    Ok((StatusCode::NO_CONTENT, [(header::SET_COOKIE, cookie(&state, "", 0))]))
}

pub(crate) fn cookie(state: &Shared, value: &str, secs: u64) -> String {
    let secure = if state.place.is_secure { "; Secure" } else { "" };
    let name = &state.cookie;
    format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={secs}{secure}")
}
