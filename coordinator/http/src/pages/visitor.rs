//! Who looks at a page, and what they see where something goes wrong.

use super::layout;
use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::FromRequestParts;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use maud::html;

/// A page about what went wrong.
pub(super) fn wrong(signed: Option<&Signed>, problem: &Problem) -> Response {
    let status = problem.status();
    let title = status.canonical_reason().unwrap_or("Something is wrong");
    let body = html! {
        h1 { (title) }
        p.problem role="alert" { (problem.detail()) }
        p { a href="/jobs" { "To the jobs" } }
    };
    (status, layout::page(signed, title, &body)).into_response()
}

/// A problem as a page.
pub(crate) struct Failed(pub(crate) Option<Signed>, pub(crate) Problem);

impl IntoResponse for Failed {
    fn into_response(self) -> Response {
        wrong(self.0.as_ref(), &self.1)
    }
}

/// Somebody who is signed in. Others are led to the page that says how to sign in.
pub(crate) struct Visitor(pub(crate) Signed);

impl FromRequestParts<Shared> for Visitor {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &Shared) -> Result<Self, Response> {
        Signed::from_request_parts(parts, state).await.map(Self).map_err(|problem| {
            match problem.status() {
                StatusCode::UNAUTHORIZED => Redirect::to("/sign-in").into_response(),
                _ => wrong(None, &problem),
            }
        })
    }
}

impl Visitor {
    /// Says what went wrong, to this visitor.
    pub(crate) fn fails(&self) -> impl FnOnce(Problem) -> Failed + use<> {
        let signed = self.0.clone();
        move |problem| Failed(Some(signed), problem)
    }
}
