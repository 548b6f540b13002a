//! A line of a log, and who takes it.

use crate::tracer::Sink;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;
use tessera_protocol::logs::{LogAbout, LogSource, Severity};

/// A line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// When it was said.
    pub at: SystemTime,
    /// How much it matters.
    pub severity: Severity,
    /// What is said.
    pub text: String,
    /// What it is about.
    pub about: LogAbout,
    /// Name of the node that said it to its coordinator; None for a line of this process.
    pub node: Option<String>,
    /// Who said it.
    pub source: Option<LogSource>,
}

/// Takes lines, or nothing. Clones share it.
#[derive(Clone, Default)]
pub struct Lines(Option<Arc<dyn Sink<Line>>>);

impl Lines {
    /// Takes lines into a sink.
    pub fn into_sink(sink: Arc<dyn Sink<Line>>) -> Self {
        Self(Some(sink))
    }

    /// Whether lines are wanted at all.
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Offers a line, which is made only if lines are wanted. It never waits.
    pub fn offer(&self, line: impl FnOnce() -> Line) {
        if let Some(sink) = &self.0 {
            // What does not fit is counted by the sink.
            let _ = sink.offer(line());
        }
    }
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Lines").field(&self.is_on()).finish()
    }
}
