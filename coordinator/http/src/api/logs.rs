//! Lines of jobs and nodes: pages of them, and a stream of those that come.

use super::jobs::id;
use crate::asking::{ask, stopping};
use crate::auth::Signed;
use crate::forms::Asked;
use crate::problem::Problem;
use crate::state::Shared;
use crate::stream::Pieces;
use crate::views::{LogPage, ServerSent};
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::IntoResponse;
use bytes::Bytes;
use serde::Deserialize;
use std::time::Duration;
use tessera_coordinator::api::Answer;
use tessera_protocol::client::{Request, Response};
use tessera_protocol::logs::{self, LogQuery, LogSource, LogTarget, Severity};
use tessera_protocol::{FrameNumber, UnitIndex};
use tokio::sync::mpsc;
use utoipa::IntoParams;

/// How often a silent stream says that it lives, and its client's rights are looked at again.
const BEAT: Duration = Duration::from_secs(15);
/// Lines of an answer, unless it is said how many.
const ROWS: u32 = 200;

/// Which lines are wanted. Without a condition, the newest.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct LogsAsked {
    /// Only those of this frame.
    pub(crate) frame: Option<u32>,
    /// Only those of this unit of the frame.
    pub(crate) unit: Option<u32>,
    /// Only what it says: `node`, `importer`, `device`, `compiler` or `finishing`.
    pub(crate) source: Option<String>,
    /// Least severity: `info` (the default), `warning` or `error`.
    pub(crate) severity: Option<String>,
    /// Only from this time on.
    pub(crate) since: Option<u64>,
    /// `next` of a page: the first lines after it, instead of the newest. 0: the oldest.
    pub(crate) after: Option<u64>,
    /// Most lines, at most 1,024; 200 if it is left out.
    pub(crate) rows: Option<u32>,
}

impl LogsAsked {
    /// The query of the coordinator.
    pub(crate) fn query(self, target: LogTarget) -> Result<LogQuery, Problem> {
        let source = self.source.as_deref().map(source).transpose()?;
        let severity = self.severity.as_deref().map(severity).transpose()?;
        Ok(LogQuery {
            target,
            frame: self.frame.map(FrameNumber),
            unit: self.unit.map(UnitIndex),
            source,
            severity: severity.unwrap_or_default(),
            since_millis: self.since.unwrap_or_default().saturating_mul(1000),
            after: self.after,
            rows: self.rows.unwrap_or(ROWS),
        })
    }
}

fn source(word: &str) -> Result<LogSource, Problem> {
    LogSource::of_name(word).ok_or_else(|| {
        let known = LogSource::ALL.map(LogSource::name).join(", ");
        Problem::form(format!("there is no source {word:?}; the sources are {known}"))
    })
}

fn severity(word: &str) -> Result<Severity, Problem> {
    Severity::of_name(word).ok_or_else(|| {
        let known = Severity::ALL.map(Severity::name).join(", ");
        Problem::form(format!("there is no severity {word:?}; the severities are {known}"))
    })
}

/// A page of lines.
pub(crate) async fn page(
    server: &Shared,
    signed: &Signed,
    query: LogQuery,
) -> Result<logs::LogPage, Problem> {
    match ask(server, signed.caller(), Request::Logs(Box::new(query))).await? {
        Response::Logs(page) => Ok(*page),
        _ => Err(stopping()),
    }
}

/// Read what nodes said of a job
///
/// The lines of nodes, scene importers, device workers and compilers that are about it, for its
/// owner and for operators. The newest 256 KiB are kept, until the job is forgotten.
#[utoipa::path(get, path = "/jobs/{job}/logs", operation_id = "job_logs", tag = "jobs",
    params(("job" = String, Path), LogsAsked),
    responses((status = 200, body = LogPage), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem)))]
pub(crate) async fn of_job(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
    Asked(asked): Asked<LogsAsked>,
) -> Result<axum::Json<LogPage>, Problem> {
    let query = asked.query(LogTarget::Job(id(&job)?))?;
    Ok(axum::Json(LogPage::from(&page(&server, &signed, query).await?)))
}

/// Read what a node said
///
/// All lines of the node, also those about jobs, for operators. The newest 256 KiB are kept.
#[utoipa::path(get, path = "/nodes/{node}/logs", operation_id = "node_logs", tag = "nodes",
    params(("node" = String, Path, description = "Id or name"), LogsAsked),
    responses((status = 200, body = LogPage), (status = 400, body = Problem),
    (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem)))]
pub(crate) async fn of_node(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
    Asked(asked): Asked<LogsAsked>,
) -> Result<axum::Json<LogPage>, Problem> {
    let query = asked.query(LogTarget::Node(node))?;
    Ok(axum::Json(LogPage::from(&page(&server, &signed, query).await?)))
}

/// Follow what nodes say of a job
///
/// Server-sent events, each with the lines of a page as `data`, first those that are asked for;
/// `Last-Event-ID` goes on after that event. It ends some seconds after the job.
#[utoipa::path(get, path = "/jobs/{job}/logs/follow", operation_id = "follow_job_logs",
    tag = "jobs", params(("job" = String, Path), LogsAsked),
    responses((status = 200, content_type = "text/event-stream", body = ServerSent),
    (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 422, body = Problem),
    (status = 503, body = Problem)))]
pub(crate) async fn follow_job(
    State(server): State<Shared>,
    signed: Signed,
    Path(job): Path<String>,
    Asked(asked): Asked<LogsAsked>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    follow(server, signed, asked.query(LogTarget::Job(id(&job)?))?, &headers).await
}

/// Follow what a node says
///
/// Server-sent events, as for a job.
#[utoipa::path(get, path = "/nodes/{node}/logs/follow", operation_id = "follow_node_logs",
    tag = "nodes", params(("node" = String, Path, description = "Id or name"), LogsAsked),
    responses((status = 200, content_type = "text/event-stream", body = ServerSent),
    (status = 400, body = Problem), (status = 401, body = Problem), (status = 403, body = Problem),
    (status = 404, body = Problem), (status = 409, body = Problem),
    (status = 422, body = Problem), (status = 503, body = Problem)))]
pub(crate) async fn follow_node(
    State(server): State<Shared>,
    signed: Signed,
    Path(node): Path<String>,
    Asked(asked): Asked<LogsAsked>,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    follow(server, signed, asked.query(LogTarget::Node(node))?, &headers).await
}

async fn follow(
    server: Shared,
    signed: Signed,
    mut query: LogQuery,
    headers: &HeaderMap,
) -> Result<impl IntoResponse + use<>, Problem> {
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok()?.parse().ok());
    query.after = last.or(query.after);
    let mut answer = server.api.answer(signed.caller(), Request::FollowLogs(Box::new(query))).await;
    let first = match answer.next().await {
        Some(Response::Logs(page)) => event(&page),
        Some(Response::Error(error)) => return Err(error.into()),
        _ => return Err(stopping()),
    };
    let (pieces, send) = Pieces::channel(None);
    let valid = move || server.api.is_valid(&signed.bearer);
    tokio::spawn(tell(answer, first, send, valid));
    Ok(pieces.live("text/event-stream"))
}

/// Sends lines until there are no more, the client is gone or has lost its rights.
async fn tell(
    mut answer: Answer,
    first: Bytes,
    send: mpsc::Sender<std::io::Result<Bytes>>,
    valid: impl Fn() -> bool,
) {
    let mut beat = tokio::time::interval(BEAT);
    let mut next = first;
    loop {
        if send.send(Ok(next)).await.is_err() {
            return;
        }
        next = tokio::select! {
            page = answer.next() => match page {
                Some(Response::Logs(page)) => event(&page),
                _ => Bytes::from_static(b"event: end\ndata: {}\n\n"),
            },
            _ = beat.tick() => match valid() {
                true => Bytes::from_static(b": alive\n\n"),
                false => return,
            },
            () = send.closed() => return,
        };
        if next.starts_with(b"event: end") {
            // The client may be gone.
            let _ = send.send(Ok(next)).await;
            return;
        }
    }
}

/// Lines as an event. JSON has no line ends.
fn event(page: &logs::LogPage) -> Bytes {
    let next = page.next;
    let data = serde_json::to_string(&LogPage::from(page)).unwrap_or_default();
    format!("id: {next}\nevent: lines\ndata: {data}\n\n").into()
}
