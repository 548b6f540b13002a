//! Pages for people: made on the server, kept fresh by small scripts that follow the farm's events.
//! Every page can be read without them, and every action is a form.

mod access;
mod actions;
mod after;
mod assets;
mod costs;
mod frame;
mod job;
mod jobs;
mod layout;
mod log;
mod nodes;
mod oidc;
mod session;
mod submit;
mod template;
mod visitor;
mod why;
mod words;

use crate::problem::Problem;
use crate::state::Shared;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, Uri, header};
use axum::response::{Redirect, Response};
use axum::routing::{get, post};

/// The routes of the pages.
pub(crate) fn router() -> Router<Shared> {
    Router::new()
        .route("/", get(|| async { Redirect::to("/jobs") }))
        .route("/sign-in", get(session::sign_in))
        .route("/sign-out", post(session::sign_out))
        .route("/oidc/begin", get(oidc::begin))
        .route("/oidc/return", get(oidc::end))
        .route("/jobs", get(jobs::page))
        .route("/jobs/change", post(actions::change_jobs))
        .route("/jobs/{job}", get(job::page))
        .route("/jobs/{job}/set", post(actions::set_job))
        .route("/jobs/{job}/frames/{frame}", get(frame::page))
        .route("/submit", get(submit::page))
        .route("/submit/template", get(template::page))
        .route("/nodes", get(nodes::page))
        .route("/nodes/{node}", get(nodes::one))
        .route("/nodes/{node}/change", post(actions::change_node))
        .route("/costs", get(costs::page))
        .route("/access", get(access::page))
        .route("/access/tokens", post(actions::create_token))
        .route("/access/revoke", post(actions::revoke_token))
        .route("/access/deny", post(actions::deny))
        .route("/access/remove", post(actions::remove_member))
        .route("/assets/{version}/{file}", get(assets::file))
        .route("/favicon.ico", get(assets::icon))
}

/// The answer to an address that is not there.
pub(crate) async fn nothing_there(uri: Uri) -> Response {
    let about = format!("There is nothing at {}.", uri.path());
    visitor::wrong(None, &Problem::not_found(about))
}

/// The answer to a page that cannot be shown now.
pub(crate) fn trouble(problem: &Problem) -> Response {
    let mut response = visitor::wrong(None, problem);
    if problem.status() == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
    }
    response
}
