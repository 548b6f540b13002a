//! `/metrics` for Prometheus: read from the coordinator when it is asked for, so that a farm that
//! nobody watches counts nothing for it.

pub(crate) mod counts;
mod farm;
mod nodes;
mod page;
mod process;
mod targets;

use crate::auth::Signed;
use crate::problem::Problem;
use crate::state::Shared;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use page::Page;
use process::Process;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;
use tessera_coordinator::api::{Figures, Standing};

/// OpenMetrics, which Prometheus asks for first.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The route of the metrics.
pub(crate) fn router() -> Router<Shared> {
    Router::new().route("/metrics", get(metrics))
}

/// Counts each request by its answer.
pub(crate) async fn count(State(server): State<Shared>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    server.counts.note(response.status());
    response
}

/// Everything that one answer says.
#[derive(Debug)]
struct Scrape {
    figures: Figures,
    process: Process,
    standing: Option<Standing>,
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> std::fmt::Result {
        let mut page = Page::new(&mut encoder);
        process::about(&mut page, &self.figures)?;
        process::standing(&mut page, self.standing.as_ref())?;
        farm::jobs(&mut page, &self.figures)?;
        farm::failures(&mut page, &self.figures)?;
        nodes::nodes(&mut page, &self.figures.present.nodes)?;
        nodes::devices(&mut page, &self.figures.present.nodes)?;
        process::store(&mut page, &self.figures)?;
        targets::targets(&mut page, &self.figures.targets)?;
        process::doors(&mut page, &self.figures, &self.process)
    }
}

/// Shows the farm to Prometheus. For everybody who may see the farm, with a token for programs.
async fn metrics(
    State(server): State<Shared>,
    signed: Signed,
    headers: HeaderMap,
) -> Result<impl IntoResponse, Problem> {
    let figures = server.api.figures(signed.caller()).await?;
    let process =
        Process { requests: server.counts.requests(), event_streams: server.hub.listeners() };
    let standing = server.api.standing();
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Scrape { figures, process, standing }));
    let mut body = String::new();
    let (kind, encoded) = match takes_open_metrics(&headers) {
        true => (OPEN_METRICS, text::encode(&mut body, &registry)),
        false => (prometheus_text::CONTENT_TYPE, prometheus_text::encode(&mut body, &registry)),
    };
    encoded.map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("metrics: {error}"))
    })?;
    Ok(([(header::CONTENT_TYPE, kind)], body))
}

/// Whether a client does not ask for Prometheus's older form alone, as `promtool` needs it.
fn takes_open_metrics(headers: &HeaderMap) -> bool {
    let accept = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok());
    accept.is_none_or(|accept| {
        accept.contains("application/openmetrics-text") || !accept.contains("text/plain")
    })
}
