//! Our spans and lines in OpenTelemetry's form.

use crate::{Line, Span, SpanId, TraceId, Value};
use opentelemetry::logs::{AnyValue, LogRecord, Severity};
use opentelemetry::trace::{SpanContext, SpanKind, Status, TraceFlags, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};
use std::time::SystemTime;
use tessera_protocol::logs;

impl From<Value> for opentelemetry::Value {
    fn from(value: Value) -> Self {
        match value {
            Value::Text(text) => text.into(),
            Value::Count(count) => count.into(),
            Value::Measure(measure) => measure.into(),
        }
    }
}

fn trace_of(id: TraceId) -> opentelemetry::TraceId {
    opentelemetry::TraceId::from_bytes(id.0)
}

fn span_of(id: SpanId) -> opentelemetry::SpanId {
    opentelemetry::SpanId::from_bytes(id.0)
}

/// A span as it is sent.
pub(super) fn span_data(span: Span) -> SpanData {
    let (trace, id, flags) = (trace_of(span.trace), span_of(span.id), TraceFlags::SAMPLED);
    let key_value = |(name, value): (&'static str, Value)| KeyValue::new(name, value);
    SpanData {
        span_context: SpanContext::new(trace, id, flags, false, TraceState::NONE),
        parent_span_id: span.parent.map_or(opentelemetry::SpanId::INVALID, span_of),
        parent_span_is_remote: false,
        span_kind: if span.is_answer { SpanKind::Server } else { SpanKind::Internal },
        name: span.name,
        start_time: span.from,
        end_time: span.to,
        attributes: span.attributes.into_iter().map(key_value).collect(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: span.problem.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder("tessera").build(),
    }
}

/// Writes a line into a record. It is shown beside the span that it is about.
pub(super) fn line_into(line: Line, record: &mut impl LogRecord) {
    let (number, text) = match line.severity {
        logs::Severity::Info => (Severity::Info, "INFO"),
        logs::Severity::Warning => (Severity::Warn, "WARN"),
        logs::Severity::Error => (Severity::Error, "ERROR"),
    };
    record.set_timestamp(line.at);
    record.set_observed_timestamp(SystemTime::now());
    record.set_severity_number(number);
    record.set_severity_text(text);
    record.set_body(AnyValue::String(line.text.into()));
    if let Some(job) = line.about.job() {
        record.add_attribute("tessera.job", job.to_string());
        if let Some(frame) = line.about.frame() {
            record.add_attribute("tessera.frame", i64::from(frame.0));
            let span = match line.about.lease() {
                Some(lease) => SpanId::of_attempt(lease),
                None => SpanId::of_frame(job, frame),
            };
            let trace = trace_of(TraceId::of_frame(job, frame));
            record.set_trace_context(trace, span_of(span), Some(TraceFlags::SAMPLED));
        }
    }
    if let Some(lease) = line.about.lease() {
        record.add_attribute("tessera.unit", i64::from(lease.unit.unit.0));
        record.add_attribute("tessera.attempt", i64::try_from(lease.epoch.0).unwrap_or(i64::MAX));
    }
    if let Some(node) = line.node {
        record.add_attribute("tessera.node", node);
    }
    if let Some(source) = line.source {
        record.add_attribute("tessera.source", source.name());
    }
}
