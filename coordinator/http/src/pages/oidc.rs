//! Signing in by an identity provider, for people: the way there and the way back.

use super::layout;
use super::visitor::wrong;
use crate::api::session::cookie;
use crate::auth::{From, session};
use crate::oidc::{Oidc, Refusal, Returned, TICKET_SECS};
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{AppendHeaders, IntoResponse, Redirect, Response};
use maud::{Markup, html};
use std::time::Instant;

/// What the sign-in page has for a provider.
pub(super) fn button(oidc: &Oidc) -> Markup {
    let problem = oidc.look();
    html! {
        div.narrow.provider {
            p { a.button href="/oidc/begin" rel="nofollow" { "Sign in with " (oidc.host()) } }
            @if let Some(problem) = problem {
                p.problem role="status" {
                    (oidc.host()) " does not answer as it should: " (problem)
                }
            }
        }
    }
}

/// Sends a browser to the provider.
pub(super) async fn begin(
    State(state): State<Shared>,
    From(from): From,
    headers: HeaderMap,
) -> Response {
    let Some(oidc) = &state.oidc else { return none_here() };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    if !state.place.is_base(host) {
        // The provider sends people back to the base, where a cookie of this name is not seen.
        return Redirect::to(&format!("{}/oidc/begin", state.place.base)).into_response();
    }
    if !state.strangers.take(from.ip(), Instant::now()) {
        return too_many();
    }
    match oidc.begin().await {
        Ok((ticket, address)) => {
            let ticket = ticket_cookie(&state, &ticket, TICKET_SECS);
            ([(header::SET_COOKIE, ticket)], Redirect::to(&address)).into_response()
        }
        Err(refusal) => failed(&state, oidc, &refusal),
    }
}

/// Takes a browser that comes back.
pub(super) async fn end(
    State(state): State<Shared>,
    From(from): From,
    headers: HeaderMap,
    returned: Result<Query<Returned>, QueryRejection>,
) -> Response {
    let Some(oidc) = &state.oidc else { return none_here() };
    if !state.strangers.take(from.ip(), Instant::now()) {
        return too_many();
    }
    let name = ticket_name(&state);
    let ended = match returned {
        Ok(Query(returned)) => oidc.end((session(&headers, &name), from.ip()), returned).await,
        Err(_) => Err(Refusal::Refused("the address is not one of a provider".to_owned())),
    };
    let address = from.ip().to_string();
    let person = match ended {
        Ok(person) => person,
        Err(refusal) => {
            let (Refusal::Refused(text) | Refusal::Unavailable(text)) = &refusal;
            state.api.refused_sign_in(&address, format!("by {}: {text}", oidc.host())).await;
            return failed(&state, oidc, &refusal);
        }
    };
    match state.api.sign_in_vouched(&person, &address).await {
        Ok(signed) => {
            let cookies = AppendHeaders([
                (header::SET_COOKIE, cookie(&state, &signed.token, signed.secs)),
                (header::SET_COOKIE, ticket_cookie(&state, "", 0)),
            ]);
            (cookies, Redirect::to("/jobs")).into_response()
        }
        Err(error) => refused(&state, oidc, &Problem::from(error)),
    }
}

/// A page that says why somebody is not signed in.
fn failed(state: &Shared, oidc: &Oidc, refusal: &Refusal) -> Response {
    let problem = match refusal {
        Refusal::Refused(text) => Problem::new(StatusCode::FORBIDDEN, text.as_str()),
        Refusal::Unavailable(text) => Problem::new(StatusCode::SERVICE_UNAVAILABLE, text.as_str()),
    };
    refused(state, oidc, &problem)
}

fn refused(state: &Shared, oidc: &Oidc, problem: &Problem) -> Response {
    let body = html! {
        h1 { "Not signed in" }
        p.problem role="alert" { (problem.detail()) }
        p { a href="/oidc/begin" rel="nofollow" { "Sign in with " (oidc.host()) " again" } }
        p { a href="/sign-in" { "Other ways to sign in" } }
    };
    let page = layout::page(None, "Not signed in", &body);
    let ticket = [(header::SET_COOKIE, ticket_cookie(state, "", 0))];
    (problem.status(), ticket, page).into_response()
}

fn none_here() -> Response {
    wrong(None, &Problem::not_found("Nobody signs in by a provider here: --oidc names one."))
}

fn too_many() -> Response {
    let text = "too many sign-ins; wait a little";
    wrong(None, &Problem::new(StatusCode::TOO_MANY_REQUESTS, text))
}

/// Name of the cookie with the ticket of a sign-in.
fn ticket_name(state: &Shared) -> String {
    format!("{}-oidc", state.cookie)
}

/// The ticket as a cookie. It is sent where the provider leads the browser back (`Lax`).
fn ticket_cookie(state: &Shared, value: &str, secs: u64) -> String {
    let cookie = cookie(state, value, secs);
    cookie.replacen(&state.cookie, &ticket_name(state), 1)
}
