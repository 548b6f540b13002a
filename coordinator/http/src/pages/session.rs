//! Signing in and out, for people.

use super::assets::address;
use super::visitor::Visitor;
use super::{layout, oidc};
use crate::auth::session;
use crate::state::Shared;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Redirect, Response};
use maud::{Markup, html};

/// How to sign in. A link has its code behind `#`, where no server and no log sees it; a script
/// takes it from there.
pub(super) async fn sign_in(State(state): State<Shared>) -> Markup {
    let body = html! {
        h1 { "Sign in" }
        @if let Some(oidc) = &state.oidc { (oidc::button(oidc)) }
        form #sign-in.narrow method="post" action="/api/v1/sign-in" {
            p {
                @if state.oidc.is_some() { "Or run" } @else { "Run" }
                " this on a machine that has an identity of the farm, and open the link that it \
                 prints:"
            }
            pre { code { "tessera web" } }
            label for="code" { "Code of a link (what stands behind #)" }
            input #code name="code" autocomplete="off" spellcheck="false" required;
            button { "Sign in" }
            p.problem #problem role="alert" hidden {}
        }
        noscript { p.problem { "Signing in needs JavaScript in this browser." } }
        script type="module" src=(address("sign-in.js")) {}
    };
    layout::page(None, "Sign in", &body)
}

/// Ends the session.
pub(super) async fn sign_out(
    State(state): State<Shared>,
    _: Visitor,
    headers: HeaderMap,
) -> Response {
    if let Some(token) = session(&headers, &state.cookie)
        && let Err(error) = state.api.sign_out(token).await
    {
        tracing::warn!(%error, "a session stays until it expires");
    }
    let cookie = crate::api::session::cookie(&state, "", 0);
    ([(header::SET_COOKIE, cookie)], Redirect::to("/sign-in")).into_response()
}
