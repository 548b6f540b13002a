//! A span for each answer, by OpenTelemetry's names for HTTP. Who asks cannot say of which trace it
//! is: it could be put beside others' frames.

use crate::state::Shared;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, Version};
use axum::middleware::Next;
use axum::response::Response;
use std::time::SystemTime;
use tessera_telemetry::Span;

/// Follows a request until the head of its answer. Streams go on after it.
pub(crate) async fn follow(State(server): State<Shared>, request: Request, next: Next) -> Response {
    let tracer = server.api.tracer();
    if !tracer.is_on() {
        return next.run(request).await;
    }
    let begun = SystemTime::now();
    let asked = Asked {
        method: method_of(request.method()),
        route: request.extensions().get().map(|path: &MatchedPath| path.as_str().to_owned()),
        version: version_of(request.version()),
        scheme: if server.place.is_secure { "https" } else { "http" },
    };
    let response = next.run(request).await;
    let _ = tracer.offer(asked.answered(response.status(), (begun, SystemTime::now())));
    response
}

/// What was asked for, without what is somebody's: no path, query or address.
struct Asked {
    method: &'static str,
    route: Option<String>,
    version: &'static str,
    scheme: &'static str,
}

impl Asked {
    fn answered(self, status: StatusCode, time: (SystemTime, SystemTime)) -> Span {
        let name = match &self.route {
            Some(route) => format!("{} {route}", self.method),
            None => self.method.to_owned(),
        };
        let problem = status.is_server_error().then(|| status.to_string());
        let span = Span::of_answer(name, time)
            .with("http.request.method", self.method)
            .with("http.response.status_code", u32::from(status.as_u16()))
            .with("network.protocol.version", self.version)
            .with("url.scheme", self.scheme)
            .failed(problem.as_deref());
        match self.route {
            Some(route) => span.with("http.route", route),
            None => span,
        }
    }
}

/// The methods that are known; another is `_OTHER`, so that nobody makes names.
fn method_of(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::DELETE => "DELETE",
        Method::PATCH => "PATCH",
        Method::OPTIONS => "OPTIONS",
        _ => "_OTHER",
    }
}

fn version_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "1.0",
        _ => "1.1",
    }
}
