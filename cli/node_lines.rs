//! What a service logs, as lines with what they are about: a node's for its coordinator, and all
//! for a collector.

use std::fmt::{self, Write as _};
use std::time::SystemTime;
use tessera_node::log::{NodeLog, Said};
use tessera_protocol::logs::{LogAbout, LogSource, LogText, Severity};
use tessera_protocol::{Epoch, FrameNumber, JobId, Lease, UnitIndex, UnitKey};
use tessera_telemetry::{Line, Lines};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Events of these crates are told, and no others.
const CRATES: &str = "tessera";

/// Tells what its program logs.
pub(crate) struct NodeLines {
    /// A node's log, for its coordinator.
    pub(crate) told: Option<NodeLog>,
    /// Lines for a collector.
    pub(crate) lines: Lines,
}

impl<S> Layer<S> for NodeLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(About(fields.about()));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let metadata = event.metadata();
        if !metadata.target().starts_with(CRATES) {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let about = match fields.about() {
            LogAbout::Node => around(event, &context),
            about => about,
        };
        let source = fields.source.unwrap_or_else(|| source_of(metadata));
        let severity = fields.severity.unwrap_or_else(|| severity_of(metadata));
        let text = format!("{}{}", fields.message, fields.rest);
        self.lines.offer(|| Line {
            at: SystemTime::now(),
            severity,
            text: LogText::new(&text).as_str().to_owned(),
            about,
            node: None,
            source: self.told.is_some().then_some(source),
        });
        if let Some(told) = &self.told {
            let device = fields.device.as_deref();
            told.say(&Said { source, severity, about, device, text: &text });
        }
    }
}

/// What everything in a span is about.
struct About(LogAbout);

/// Returns what the innermost span is about that says it.
fn around<S>(event: &Event<'_>, context: &Context<'_, S>) -> LogAbout
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    let spans = context.event_scope(event).into_iter().flatten();
    let mut about = spans.filter_map(|span| span.extensions().get().map(|About(about)| *about));
    about.find(|about| *about != LogAbout::Node).unwrap_or(LogAbout::Node)
}

fn severity_of(metadata: &Metadata<'_>) -> Severity {
    match *metadata.level() {
        Level::ERROR => Severity::Error,
        Level::WARN => Severity::Warning,
        _ => Severity::Info,
    }
}

/// Who says something, by the module that logs it.
fn source_of(metadata: &Metadata<'_>) -> LogSource {
    let target = metadata.target();
    let of = |module: &str| target.starts_with(module);
    match () {
        () if of("tessera_node::import") || of("tessera_node::scene") => LogSource::Importer,
        () if of("tessera_node::device") || of("tessera_kernels") => LogSource::Device,
        () if of("tessera_nvrtc") || of("tessera_node::compute") => LogSource::Compiler,
        () if of("tessera_finishing") || of("tessera_node::piece") => LogSource::Finishing,
        () => LogSource::Node,
    }
}

/// Fields of an event or a span: those that say what it is about, and the others as text.
#[derive(Default)]
struct Fields {
    message: String,
    rest: String,
    job: Option<JobId>,
    frame: Option<FrameNumber>,
    lease: Option<Lease>,
    source: Option<LogSource>,
    severity: Option<Severity>,
    device: Option<String>,
}

impl Fields {
    fn about(&self) -> LogAbout {
        match (self.lease, self.job, self.frame) {
            (Some(lease), ..) => LogAbout::Unit(lease),
            (None, Some(job), Some(frame)) => LogAbout::Frame { job, frame },
            (None, Some(job), None) => LogAbout::Job(job),
            (None, None, _) => LogAbout::Node,
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        let known = match field.name() {
            "message" => {
                value.clone_into(&mut self.message);
                true
            }
            "job" => value.parse().map(|job| self.job = Some(job)).is_ok(),
            "frame" => frame_of(value).map(|frame| self.frame = Some(frame)).is_some(),
            "lease" => lease_of(value).map(|lease| self.lease = Some(lease)).is_some(),
            "source" => LogSource::of_name(value).map(|who| self.source = Some(who)).is_some(),
            "severity" => Severity::of_name(value).map(|one| self.severity = Some(one)).is_some(),
            "device" => {
                self.device = Some(value.to_owned());
                false
            }
            // What an event says in one field is said after the message, as on standard error.
            "reason" | "error" | "problem" => {
                // Writing to a string does not fail.
                let _ = write!(self.rest, ": {value}");
                true
            }
            _ => false,
        };
        if !known {
            let _ = write!(self.rest, " {}={value}", field.name());
        }
    }
}

/// Reads what the `Display` of a frame's number writes.
fn frame_of(text: &str) -> Option<FrameNumber> {
    text.strip_prefix('f')?.parse().ok().map(FrameNumber)
}

/// Reads what the `Display` of a lease writes.
fn lease_of(text: &str) -> Option<Lease> {
    let (unit, epoch) = text.split_once('@')?;
    let mut parts = unit.split('/');
    let job = parts.next()?.parse().ok()?;
    let frame = frame_of(parts.next()?)?;
    let unit = UnitIndex(parts.next()?.strip_prefix('u')?.parse().ok()?);
    let epoch = Epoch(epoch.strip_prefix('e')?.parse().ok()?);
    Some(Lease { unit: UnitKey { job, frame, unit }, epoch })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    fn lease() -> Lease {
        let unit = UnitKey { job: JobId::new(), frame: FrameNumber(123_456), unit: UnitIndex(7) };
        Lease { unit, epoch: Epoch(u64::MAX) }
    }

    /// What was told while `work` logged.
    fn told(work: impl FnOnce()) -> Vec<(LogSource, Severity, LogAbout, String)> {
        let log = NodeLog::default();
        let lines = NodeLines { told: Some(log.clone()), lines: Lines::default() };
        let subscriber = tracing_subscriber::registry().with(lines);
        tracing::subscriber::with_default(subscriber, work);
        let lines = log.waiting();
        let line = |line: &tessera_protocol::logs::LogLine| {
            (line.source, line.severity, line.about, line.text.as_str().to_owned())
        };
        lines.0.iter().map(line).collect()
    }

    #[test]
    fn what_a_lease_writes_is_read_again() {
        for lease in [lease(), Lease { epoch: Epoch(0), ..lease() }] {
            assert_eq!(lease_of(&lease.to_string()), Some(lease));
        }
        for wrong in ["", "a@b", "x/f1/u1@e1", "f0001/u00001@e1"] {
            assert_eq!(lease_of(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_event_becomes_a_line_with_what_it_is_about() {
        let (lease, job) = (lease(), JobId::new());
        let lines = told(|| {
            let reason = "it does\nnot compile";
            tracing::warn!(target: "tessera_node::shell", %lease, source = "compiler",
                severity = "error", reason, "unit failed");
            tracing::info!(target: "tessera_node::import::process", %job, left = 3, "said");
            tracing::error!(target: "quinn", "not ours");
        });
        let unit = LogAbout::Unit(lease);
        let (compiler, importer) = (LogSource::Compiler, LogSource::Importer);
        assert_eq!(
            lines,
            [
                (compiler, Severity::Error, unit, "unit failed: it does".to_owned()),
                (compiler, Severity::Error, unit, "not compile".to_owned()),
                (importer, Severity::Info, LogAbout::Job(job), "said left=3".to_owned()),
            ]
        );
    }

    #[test]
    fn what_a_span_is_about_counts_for_its_events() {
        let (job, frame) = (JobId::new(), FrameNumber(7));
        let lines = told(|| {
            let span = tracing::info_span!(target: "tessera_node", "frame", %job, %frame);
            span.in_scope(|| {
                let inner = tracing::info_span!(target: "tessera_node", "inner", step = 1);
                inner.in_scope(|| tracing::warn!(target: "tessera_node::scene", "a warning"));
            });
        });
        assert_eq!(lines[0].2, LogAbout::Frame { job, frame });
        assert_eq!((lines[0].0, lines[0].3.as_str()), (LogSource::Importer, "a warning"));
    }
}
