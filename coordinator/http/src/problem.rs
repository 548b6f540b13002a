//! Why a request was not done, as problem details (RFC 9457).

use crate::views::JobName;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tessera_protocol::client::RequestError;
use utoipa::ToSchema;

/// Why a request was not done.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct Problem {
    /// Always `about:blank`: the status says what kind of problem it is.
    #[serde(rename = "type")]
    kind: &'static str,
    /// Name of the status.
    title: String,
    /// HTTP status.
    status: u16,
    /// What was wrong, where, and what to do about it.
    detail: String,
    /// Jobs that a text means, where it means several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs: Vec<JobName>,
}

impl Problem {
    /// Creates a problem.
    pub(crate) fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or_default().to_owned();
        Self {
            kind: "about:blank",
            title,
            status: status.as_u16(),
            detail: detail.into(),
            jobs: Vec::new(),
        }
    }

    /// A request whose form is wrong.
    pub(crate) fn form(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, detail)
    }

    /// Something that is not there.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, detail)
    }

    /// Nobody is signed in.
    pub(crate) fn unknown(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, detail)
    }

    /// The same, with more to say.
    pub(crate) fn with_end(mut self, text: &str) -> Self {
        self.detail = format!("{}; {text}", self.detail);
        self
    }

    /// The text for people.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The status.
    pub(crate) fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl From<RequestError> for Problem {
    fn from(error: RequestError) -> Self {
        let status = match &error {
            RequestError::NotFound(_) => StatusCode::NOT_FOUND,
            RequestError::NotAllowed(_) => StatusCode::FORBIDDEN,
            RequestError::Invalid(_) => StatusCode::UNPROCESSABLE_ENTITY,
            RequestError::Unavailable(_) => StatusCode::SERVICE_UNAVAILABLE,
            RequestError::Ambiguous { .. } | RequestError::SeveralNodes(_) => StatusCode::CONFLICT,
        };
        let mut problem = Self::new(status, error.to_string());
        if let RequestError::Ambiguous { jobs, .. } = error {
            problem.jobs = jobs.iter().map(JobName::from).collect();
        }
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status();
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        let json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, json);
        match status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}

/// The coordinator ends, or gave an answer that is none to this request.
pub(crate) fn stopping() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, "the coordinator is stopping")
}
