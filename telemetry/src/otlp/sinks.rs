//! Between who offers and who sends: queues that are never waited for.

use super::convert::{line_into, span_data};
use super::health::Health;
use crate::{Line, Sink, Span};
use opentelemetry::Context;
use opentelemetry::logs::{Logger as _, LoggerProvider as _};
use opentelemetry_sdk::logs::{SdkLogger, SdkLoggerProvider};
use opentelemetry_sdk::trace::{BatchSpanProcessor, SpanProcessor};
use std::sync::Arc;

/// Takes spans.
pub(super) struct SpanSink {
    processor: Arc<BatchSpanProcessor>,
    health: Arc<Health>,
}

impl SpanSink {
    pub(super) fn new(processor: Arc<BatchSpanProcessor>, health: Arc<Health>) -> Self {
        Self { processor, health }
    }
}

impl Sink<Span> for SpanSink {
    fn offer(&self, span: Span) -> bool {
        let entered = self.health.enter();
        if entered {
            self.processor.on_end(span_data(span));
        }
        entered
    }
}

/// Takes lines.
pub(super) struct LineSink {
    logger: SdkLogger,
    health: Arc<Health>,
}

impl LineSink {
    pub(super) fn new(provider: &SdkLoggerProvider, health: Arc<Health>) -> Self {
        Self { logger: provider.logger("tessera"), health }
    }
}

impl Sink<Line> for LineSink {
    fn offer(&self, line: Line) -> bool {
        // What the threads that send say of sending is not sent, or it would never end.
        if Context::is_current_telemetry_suppressed() {
            return false;
        }
        let entered = self.health.enter();
        if entered {
            let mut record = self.logger.create_log_record();
            line_into(line, &mut record);
            self.logger.emit(record);
        }
        entered
    }
}
