//! The log on standard error: full lines for services, short ones for commands.

use crate::args::Command;
use crate::node_lines::NodeLines;
use crate::table::printable_lines;
use std::fmt;
use tessera_node::log::NodeLog;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::registry::LookupSpan;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

/// Starts the log: `TESSERA_LOG`, or what suits the command. Once a process; another logger that is
/// there already stays. Returns what a node's coordinator is told of it.
pub(crate) fn init(command: &Command) -> NodeLog {
    let told = NodeLog::default();
    let usual = if command.is_service() { "info" } else { "warn" };
    let filter = EnvFilter::try_from_env("TESSERA_LOG").unwrap_or_else(|_| EnvFilter::new(usual));
    let shown = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let shown = match command.is_service() {
        true => shown.with_ansi(colours()).with_filter(filter).boxed(),
        false => shown.event_format(Plain).with_filter(filter).boxed(),
    };
    let is_node = matches!(command, Command::Node(_));
    let lines = is_node.then(|| NodeLines(told.clone()).with_filter(LevelFilter::INFO));
    // Tests in one process share the first.
    drop(tracing_subscriber::registry().with(shown).with(lines).try_init());
    told
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
