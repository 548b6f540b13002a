//! The way to a collector: batches by OpenTelemetry's own processors and exporters, over HTTP.

mod client;
mod convert;
mod exporters;
mod health;
mod sinks;
#[cfg(test)]
mod tests;

use crate::{Lines, Service, Settings, Tracer};
use client::Client;
use exporters::{Counted, lines_exporter, spans_exporter};
use health::{Health, WAITING_MAX};
use opentelemetry::KeyValue;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::logs::{BatchLogProcessor, LogProcessor, SdkLoggerProvider};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanProcessor};
use opentelemetry_sdk::{logs, trace};
use sinks::{LineSink, SpanSink};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long a batch is filled.
const BATCH_WITHIN: Duration = Duration::from_secs(1);
/// How long the end may take.
const END_WITHIN: Duration = Duration::from_secs(2);

/// What sends. It has threads of its own.
#[derive(Debug)]
pub(crate) struct Running {
    spans: Option<(Arc<BatchSpanProcessor>, Arc<Health>)>,
    lines: Option<(SdkLoggerProvider, Arc<Health>)>,
    runtime: Runtime,
}

/// Begins to send, to a collector at this address or, as usual, to those of the environment.
pub(crate) fn start(
    settings: Settings,
    service: &Service,
    collector: Option<&str>,
) -> Result<(Tracer, Lines, Running), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("otlp")
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    let client = Arc::new(Client::new(runtime.handle().clone())?);
    let resource = resource(service);
    let mut running = Running { spans: None, lines: None, runtime };
    let mut tracer = Tracer::default();
    if let Some(share) = settings.traces {
        let health = Arc::new(Health::new("spans"));
        let exporter = spans_exporter(&client, collector)?;
        let exporter = Counted::new(exporter, health.clone(), client.clone());
        let config = trace::BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_MAX)
            .with_scheduled_delay(BATCH_WITHIN)
            .build();
        let mut processor = BatchSpanProcessor::new(exporter, config);
        processor.set_resource(&resource);
        let processor = Arc::new(processor);
        let sink = SpanSink::new(processor.clone(), health.clone());
        tracer = Tracer::into_sink(share, Arc::new(sink));
        running.spans = Some((processor, health));
    }
    let mut lines = Lines::default();
    if settings.logs {
        let health = Arc::new(Health::new("lines"));
        let exporter = lines_exporter(&client, collector)?;
        let exporter = Counted::new(exporter, health.clone(), client);
        let config = logs::BatchConfigBuilder::default()
            .with_max_queue_size(WAITING_MAX)
            .with_scheduled_delay(BATCH_WITHIN)
            .build();
        let mut processor = BatchLogProcessor::builder(exporter).with_batch_config(config).build();
        processor.set_resource(&resource);
        let provider = SdkLoggerProvider::builder()
            .with_resource(resource)
            .with_log_processor(processor)
            .build();
        lines = Lines::into_sink(Arc::new(LineSink::new(&provider, health.clone())));
        running.lines = Some((provider, health));
    }
    Ok((tracer, lines, running))
}

impl Running {
    /// Sends what waits, and ends within [`END_WITHIN`].
    pub(crate) fn finish(self) {
        let Self { spans, lines, runtime } = self;
        // Both at once: a collector that does not answer costs the time once.
        std::thread::scope(|scope| {
            if let Some((processor, health)) = &spans {
                scope.spawn(move || {
                    // Its error is what `health` has counted.
                    let _ = processor.shutdown_with_timeout(END_WITHIN);
                    health.conclude();
                });
            }
            if let Some((provider, health)) = &lines {
                let _ = provider.shutdown_with_timeout(END_WITHIN);
                health.conclude();
            }
        });
        runtime.shutdown_background();
    }
}

/// Who sends, as a collector shows it. What the environment says comes first.
fn resource(service: &Service) -> Resource {
    let from_environment = Resource::builder().build();
    let has = |name: &'static str| from_environment.get(&name.into()).is_some();
    let is_named = from_environment
        .get(&"service.name".into())
        .is_some_and(|name| !name.as_str().starts_with("unknown_service"));
    let mut builder = Resource::builder();
    if !is_named {
        builder = builder.with_service_name(service.name);
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let ours = [
        ("service.version", service.version.clone()),
        ("service.instance.id", uuid::Uuid::new_v4().to_string()),
        ("host.name", host.trim().to_owned()),
    ];
    for (name, value) in ours {
        if !has(name) && !value.is_empty() {
            builder = builder.with_attribute(KeyValue::new(name, value));
        }
    }
    builder.build()
}
