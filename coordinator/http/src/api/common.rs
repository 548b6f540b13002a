//! What every operation of the API can answer beside its own: said once, for the description.

use axum::http::StatusCode;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::{ContentBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder};

/// What problems are sent as.
const PROBLEM_KIND: &str = "application/problem+json";
/// Where the description has their fields.
const PROBLEM: &str = "#/components/schemas/Problem";
/// Statuses of every operation, and why.
const ALWAYS: [(&str, &str); 4] = [
    ("400", "The address, the query or a header is not as it must be."),
    ("421", "The Host header names another server."),
    ("429", "This identity or address asks too often. `Retry-After` says for how long to wait."),
    ("503", "The farm cannot answer now. `Retry-After` says for how long to wait."),
];
/// Statuses of every operation that takes a body of JSON, and why.
const WITH_JSON: [(&str, &str); 3] = [
    ("408", "The body took too long."),
    ("413", "The body is cut, or longer than a message can be."),
    ("415", "The body is not said to be JSON."),
];

/// Adds what all operations have in common.
pub(super) fn describe(described: &mut OpenApi) {
    for path in described.paths.paths.values_mut() {
        let PathItem { get, put, post, delete, patch, .. } = path;
        for operation in [get, put, post, delete, patch].into_iter().flatten() {
            complete(operation);
        }
    }
}

fn complete(operation: &mut Operation) {
    let takes_json = operation.request_body.as_ref().is_some_and(|body| match body {
        RefOr::T(body) => body.content.contains_key("application/json"),
        RefOr::Ref(_) => false,
    });
    let further = WITH_JSON.iter().filter(|_| takes_json);
    let responses = &mut operation.responses.responses;
    for (status, why) in ALWAYS.iter().chain(further) {
        responses.entry((*status).to_owned()).or_insert_with(|| RefOr::T(problem(why)));
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let status = status.parse::<StatusCode>().ok();
            let reason = status.and_then(|status| status.canonical_reason());
            response.description = reason.unwrap_or_default().to_owned();
        }
        if status.starts_with(['4', '5'])
            && let Some(content) = response.content.shift_remove("application/json")
        {
            response.content.insert(PROBLEM_KIND.to_owned(), content);
        }
    }
}

fn problem(why: &str) -> Response {
    let content = ContentBuilder::new().schema(Some(Ref::new(PROBLEM))).build();
    ResponseBuilder::new().description(why).content(PROBLEM_KIND, content).build()
}
