//! The log on standard error: full lines for services, short ones for commands.

use crate::args::Command;
use crate::node_lines::NodeLines;
use crate::table::printable_lines;
use std::fmt;
use tessera_node::log::NodeLog;
use tessera_telemetry::{Lines, Service, Telemetry, Tracer};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// What others are told of what a command does.
pub(crate) struct Telling {
    /// A node's log, for its coordinator.
    pub(crate) node: NodeLog,
    /// Takes spans to a collector.
    pub(crate) tracer: Tracer,
    /// Takes lines to a collector.
    pub(crate) lines: Lines,
}

/// Begins to send spans and lines of a service to a collector, if the environment names one. Also
/// returns a sentence for the log, if what it asks for is not done.
pub(crate) fn telemetry(command: &Command) -> (Telemetry, Option<String>) {
    let name = match command {
        Command::Coordinator(_) => "tessera-coordinator",
        Command::Node(_) => "tessera-node",
        _ => return (Telemetry::default(), None),
    };
    let service = Service { name, version: env!("CARGO_PKG_VERSION").to_owned() };
    Telemetry::start(&service, |name| std::env::var(name).ok())
}

/// Starts the log: `TESSERA_LOG`, or what suits the command. Once a process; another logger that is
/// there already stays. Returns what others are told.
pub(crate) fn init(command: &Command, telemetry: &Telemetry) -> Telling {
    let lines = telemetry.lines.clone();
    let told = NodeLog::default();
    // The client of S3 tells of each try; what is done is said once (`coordinator/blobs-s3`).
    let usual = if command.is_service() { "info,object_store=warn" } else { "warn" };
    let filter = EnvFilter::try_from_env("TESSERA_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let shown = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let shown = match command.is_service() {
        true => shown.with_ansi(colours()).with_filter(filter).boxed(),
        false => shown.event_format(Plain).with_filter(filter).boxed(),
    };
    let is_node = matches!(command, Command::Node(_));
    let is_told = is_node || lines.is_on();
    let lines = NodeLines { told: is_node.then(|| told.clone()), lines };
    let lines = is_told.then(|| lines.with_filter(LevelFilter::INFO));
    // Tests in one process share the first.
    drop(tracing_subscriber::registry().with(shown).with(lines).try_init());
    let Telemetry { tracer, lines, .. } = telemetry;
    Telling { node: told, tracer: tracer.clone(), lines: lines.clone() }
}

/// Escape sequences are welcome on standard error.
pub(crate) fn colours() -> bool {
    use std::io::IsTerminal;
    std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// `warning: the words`, and an error's cause; nothing else.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut out: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let level = match *event.metadata().level() {
            Level::ERROR => "error",
            Level::WARN => "warning",
            Level::INFO => "info",
            _ => "debug",
        };
        let mut words = Words::default();
        event.record(&mut words);
        let text = printable_lines(&format!("{}{}", words.message, words.rest));
        writeln!(out, "{level}: {text}")
    }
}

#[derive(Default)]
struct Words {
    message: String,
    rest: String,
}

impl Visit for Words {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        match field.name() {
            "message" => self.message = format!("{value:?}"),
            "error" | "reason" | "problem" => self.rest += &format!(": {value:?}"),
            _ => {}
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.record_debug(field, &format_args!("{value}"));
    }
}
