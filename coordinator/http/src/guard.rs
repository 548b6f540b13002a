//! What holds for every request and answer: the Host header, and the headers that keep browsers
//! from doing what a page does not need.

use crate::problem::Problem;
use crate::state::Shared;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// What pages may load: nothing but what this server has. Scripts and styles are files.
const CONTENT_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' blob: data:; connect-src 'self'; worker-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";
/// A year of TLS only, for browsers that came over TLS.
const STRICT_TRANSPORT: &str = "max-age=31536000";

/// Refuses requests that were meant for another name, and adds the headers of every answer.
pub(crate) async fn guard(State(state): State<Shared>, request: Request, next: Next) -> Response {
    let mut response = match is_ours(&state, &request) {
        true => next.run(request).await,
        // A page elsewhere whose name leads here (DNS rebinding) ends here.
        false => Problem::new(
            StatusCode::MISDIRECTED_REQUEST,
            format!("this server is {}, and the Host header names another one", state.place.base),
        )
        .into_response(),
    };
    let headers = response.headers_mut();
    let fixed = [
        (header::CONTENT_SECURITY_POLICY, CONTENT_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // With `no-referrer`, browsers hide the origin of our own forms too.
        (header::REFERRER_POLICY, "same-origin"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ];
    for (name, value) in fixed {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if state.place.is_secure {
        let value = HeaderValue::from_static(STRICT_TRANSPORT);
        headers.insert(header::STRICT_TRANSPORT_SECURITY, value);
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the request's Host, which must be there once, is one of ours.
fn is_ours(state: &Shared, request: &Request) -> bool {
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let named = request.uri().authority();
    state.place.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host))
        && named.is_none_or(|named| named.as_str().eq_ignore_ascii_case(host))
}

/// Whether a browser says that a page of ours makes this request. Only then does a cookie count for
/// a change.
pub(crate) fn is_same_origin(state: &Shared, headers: &HeaderMap) -> bool {
    let origin = headers.get(header::ORIGIN).and_then(|origin| origin.to_str().ok());
    let scheme = if state.place.is_secure { "https" } else { "http" };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(&format!("{scheme}://{host}")))
}
