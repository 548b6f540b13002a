//! The bodies and queries of requests: bounded, timed, and refused by field.

use crate::problem::Problem;
use axum::body::Body;
use axum::extract::{FromRequest, FromRequestParts, Query, Request};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use http_body_util::{BodyExt, Limited};
use serde::de::DeserializeOwned;
use std::time::Duration;
use tessera_protocol::limits::MESSAGE_BYTES_MAX;

/// Longest time for a body of JSON.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// A body of JSON that is an object, at most as large as a message of the protocol.
#[derive(Debug)]
pub(crate) struct Json<T>(pub(crate) T);

/// A body of JSON that is a list, in the same bounds.
#[derive(Debug)]
pub(crate) struct JsonList<T>(pub(crate) Vec<T>);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Json<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        // A list of the fields' values would be read as the object itself.
        read(request, b'{').await.map(Self)
    }
}

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for JsonList<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        read(request, b'[').await.map(Self)
    }
}

/// Reads JSON that begins with this byte.
async fn read<T: DeserializeOwned>(request: Request, first: u8) -> Result<T, Problem> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let is_json = kind.and_then(|kind| kind.to_str().ok()).is_some_and(|kind| {
        kind.split(';').next().unwrap_or_default().trim() == "application/json"
    });
    if !is_json {
        let text = "the body must be JSON: Content-Type: application/json";
        return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text));
    }
    let bytes = whole(request.into_body()).await?;
    if bytes.trim_ascii_start().first() != Some(&first) {
        let what = if first == b'{' { "an object" } else { "a list" };
        return Err(Problem::form(format!("the body is not as expected: it must be {what}")));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| Problem::form(format!("the body is not as expected: {error}")))
}

/// Reads a body, bounded in length and time.
async fn whole(body: Body) -> Result<bytes::Bytes, Problem> {
    let limited = Limited::new(body, MESSAGE_BYTES_MAX).collect();
    match tokio::time::timeout(BODY_WITHIN, limited).await {
        Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body took too long")),
        Ok(Err(_)) => Err(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is cut, or longer than {MESSAGE_BYTES_MAX} bytes"),
        )),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
    }
}

/// The query of an address.
#[derive(Debug)]
pub(crate) struct Asked<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for Asked<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(asked)| Self(asked)).map_err(|error| Problem::form(error.body_text()))
    }
}
