//! The exporters of OpenTelemetry, with what became of each batch counted.

use super::client::Client;
use super::health::Health;
use opentelemetry_otlp::{LogExporter, SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::logs::LogBatch;
use opentelemetry_sdk::trace::SpanData;
use std::sync::Arc;
use std::time::Duration;

/// Makes the exporter of spans, by the environment or for a collector at this address.
pub(super) fn spans_exporter(
    client: &Arc<Client>,
    collector: Option<&str>,
) -> Result<SpanExporter, String> {
    let mut builder = SpanExporter::builder().with_http().with_shared_http_client(client.clone());
    if let Some(address) = collector {
        builder = builder.with_endpoint(format!("{address}/v1/traces"));
    }
    builder.build().map_err(|error| error.to_string())
}

/// Makes the exporter of lines, by the environment or for a collector at this address.
pub(super) fn lines_exporter(
    client: &Arc<Client>,
    collector: Option<&str>,
) -> Result<LogExporter, String> {
    let mut builder = LogExporter::builder().with_http().with_shared_http_client(client.clone());
    if let Some(address) = collector {
        builder = builder.with_endpoint(format!("{address}/v1/logs"));
    }
    builder.build().map_err(|error| error.to_string())
}

/// An exporter, and what became of what it was given.
#[derive(Debug)]
pub(super) struct Counted<E> {
    exporter: E,
    health: Arc<Health>,
    client: Arc<Client>,
}

impl<E> Counted<E> {
    pub(super) fn new(exporter: E, health: Arc<Health>, client: Arc<Client>) -> Self {
        Self { exporter, health, client }
    }

    fn note(&self, count: usize, result: &OTelSdkResult) {
        match result {
            Ok(()) => self.health.sent(count),
            // The exporter says that something went wrong with the network, and the client what.
            Err(error) => {
                let problem = self.client.take_problem().unwrap_or_else(|| error.to_string());
                self.health.failed(count, &problem);
            }
        }
    }
}

impl opentelemetry_sdk::trace::SpanExporter for Counted<SpanExporter> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let count = batch.len();
        let result = self.exporter.export(batch).await;
        self.note(count, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}

impl opentelemetry_sdk::logs::LogExporter for Counted<LogExporter> {
    async fn export(&self, batch: LogBatch<'_>) -> OTelSdkResult {
        let count = batch.iter().count();
        let result = self.exporter.export(batch).await;
        self.note(count, &result);
        result
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
