//! Spans and lines of logs for a collector: what they are, which of them are wanted, and with the
//! feature `otlp` how they are sent. Whoever makes them never waits, and they decide nothing.
//!
//! ```text
//! coordinator, node, http ─ span, line ─► Tracer, Lines ─ bounded queue ⇒ exporter ─► collector
//! ```

mod line;
#[cfg(feature = "otlp")]
mod otlp;
mod outcome;
mod settings;
mod share;
mod span;
mod telemetry;
mod tracer;

pub use line::{Line, Lines};
pub use outcome::Outcome;
pub use settings::{Service, Settings, Unusable};
pub use share::Share;
pub use span::{Span, SpanId, TraceId, Value};
pub use telemetry::Telemetry;
pub use tracer::{ANSWERS_BURST, ANSWERS_PER_SECOND, SPANS_BURST, SPANS_PER_SECOND, Sink, Tracer};
