//! Lines of logs in JSON.

use serde::Serialize;
use tessera_protocol::logs;
use utoipa::ToSchema;

/// Lines that are kept, the oldest first.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LogPage {
    /// The lines.
    pub(crate) lines: Vec<LogLine>,
    /// What to give as `after` for the lines after these.
    pub(crate) next: u64,
    /// Whether there are more lines now: after these or, where the newest were asked for, before.
    pub(crate) more: bool,
}

/// A line. Its text has no control characters.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct LogLine {
    /// Number of the line. It grows, and has gaps.
    pub(crate) number: u64,
    /// Milliseconds since the Unix epoch.
    pub(crate) at_millis: u64,
    /// Name of the node that says it.
    pub(crate) node: String,
    /// Who says it there: `node`, `importer`, `device`, `compiler` or `finishing`.
    pub(crate) source: &'static str,
    /// How much it matters: `info`, `warning` or `error`.
    pub(crate) severity: &'static str,
    /// Job that it is about.
    pub(crate) job: Option<String>,
    /// Frame that it is about.
    pub(crate) frame: Option<u32>,
    /// Unit that it is about.
    pub(crate) unit: Option<u32>,
    /// Epoch of the attempt that it is about.
    pub(crate) epoch: Option<u64>,
    /// What is said.
    pub(crate) text: String,
}

impl From<&logs::LogPage> for LogPage {
    fn from(page: &logs::LogPage) -> Self {
        let logs::LogPage { lines, next, more } = page;
        Self { lines: lines.iter().map(LogLine::from).collect(), next: *next, more: *more }
    }
}

impl From<&logs::KeptLine> for LogLine {
    fn from(line: &logs::KeptLine) -> Self {
        Self {
            number: line.number,
            at_millis: line.at_millis,
            node: line.node.clone(),
            source: line.source.name(),
            severity: line.severity.name(),
            job: line.job.map(|job| job.to_string()),
            frame: line.frame.map(|frame| frame.0),
            unit: line.unit.map(|unit| unit.0),
            epoch: line.epoch.map(|epoch| epoch.0),
            text: line.text.as_str().to_owned(),
        }
    }
}
