//! Lines of logs: what a node and its children say, sent beside the work as well as may be; and how
//! people ask for the lines that are kept.

use crate::ids::{Epoch, FrameNumber, JobId, Lease, UnitIndex};
use crate::names::{is_control, printable};
use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

/// Longest text of a line in bytes. Longer ones are cut, and end with [`CUT`].
pub const LINE_BYTES_MAX: usize = 1024;
/// Most lines of one message.
pub const LINES_MAX: usize = 64;
/// Longest message with lines: 64 × (1024 + 64) bytes, and their number.
pub const LINES_MESSAGE_MAX: usize = LINES_MAX * (LINE_BYTES_MAX + 64) + 16;
/// Most lines of one answer: 1024 × 1.3 KiB.
pub const LOG_PAGE_MAX: u32 = 1024;
/// Longest name or id of a node in a question.
const NODE_TEXT_MAX: usize = 256;
/// End of a text that was cut.
pub const CUT: &str = "…";

/// Who says a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogSource {
    /// The node itself.
    Node,
    /// The process that reads scenes, or what prepares frames of them.
    Importer,
    /// A device and its worker process.
    Device,
    /// The compiler of users' kernels.
    Compiler,
    /// What makes the files of finished frames.
    Finishing,
}

impl LogSource {
    /// Every source.
    pub const ALL: [Self; 5] =
        [Self::Node, Self::Importer, Self::Device, Self::Compiler, Self::Finishing];

    /// Returns the name, as people read and write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Importer => "importer",
            Self::Device => "device",
            Self::Compiler => "compiler",
            Self::Finishing => "finishing",
        }
    }

    /// Returns the source of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|source| source.name() == name)
    }
}

/// How much a line matters; the greatest last.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Tells what happens.
    #[default]
    Info,
    /// Something is not as it should be, and the work goes on.
    Warning,
    /// Something has failed.
    Error,
}

impl Severity {
    /// Every severity, the least first.
    pub const ALL: [Self; 3] = [Self::Info, Self::Warning, Self::Error];

    /// Returns the name, as people read and write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }

    /// Returns the severity of this name.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|severity| severity.name() == name)
    }
}

/// What a line is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum LogAbout {
    /// The node alone.
    Node,
    /// A job.
    Job(JobId),
    /// A frame of a job.
    Frame {
        /// Job of the frame.
        job: JobId,
        /// Number of the frame.
        frame: FrameNumber,
    },
    /// An attempt of a unit.
    Unit(Lease),
}

impl LogAbout {
    /// Returns the job that the line is about.
    pub fn job(&self) -> Option<JobId> {
        match self {
            Self::Node => None,
            Self::Job(job) | Self::Frame { job, .. } => Some(*job),
            Self::Unit(lease) => Some(lease.unit.job),
        }
    }

    /// Returns the frame that the line is about.
    pub fn frame(&self) -> Option<FrameNumber> {
        match self {
            Self::Node | Self::Job(_) => None,
            Self::Frame { frame, .. } => Some(*frame),
            Self::Unit(lease) => Some(lease.unit.frame),
        }
    }

    /// Returns the attempt that the line is about.
    pub fn lease(&self) -> Option<Lease> {
        match self {
            Self::Unit(lease) => Some(*lease),
            Self::Node | Self::Job(_) | Self::Frame { .. } => None,
        }
    }
}

/// Text of a line: one line, without control characters or marks of writing direction, and at most
/// [`LINE_BYTES_MAX`] bytes. What was there instead of them is shown as `\u{1b}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct LogText(String);

impl LogText {
    /// Makes the text of a line from any text.
    pub fn new(text: &str) -> Self {
        // Escapes only make a text longer, so what is beyond the limit is never shown.
        let start = &text[..text.floor_char_boundary(LINE_BYTES_MAX + 1)];
        let shown = match start.chars().any(is_control) {
            true => Cow::Owned(printable(start)),
            false => Cow::Borrowed(start),
        };
        if shown.len() <= LINE_BYTES_MAX && start.len() == text.len() {
            return Self(shown.into_owned());
        }
        let end = shown.floor_char_boundary(LINE_BYTES_MAX - CUT.len());
        Self(format!("{}{CUT}", &shown[..end]))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for LogText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Reads a text, and makes it one of a line whatever it was.
struct TextVisitor;

impl Visitor<'_> for TextVisitor {
    type Value = LogText;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a line of at most 1 KiB")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<LogText, E> {
        match text.len() <= LINE_BYTES_MAX {
            true => Ok(LogText::new(text)),
            false => Err(E::invalid_length(text.len(), &self)),
        }
    }
}

/// A line as a node sends it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// Milliseconds since the Unix epoch, by the node's clock.
    pub at_millis: u64,
    /// Who says it.
    pub source: LogSource,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about.
    pub about: LogAbout,
    /// What is said.
    pub text: LogText,
}

/// Lines of a node, in the order in which they were said.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLines(pub Vec<LogLine>);

impl LogLines {
    /// Checks the number of lines. `Err` holds it.
    pub fn check(&self) -> Result<(), usize> {
        if self.0.len() <= LINES_MAX { Ok(()) } else { Err(self.0.len()) }
    }
}

/// Whose lines are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum LogTarget {
    /// Those of a job, of all nodes.
    Job(JobId),
    /// Those of a node, by its id or name.
    Node(String),
}

/// Which lines are asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogQuery {
    /// Whose lines.
    pub target: LogTarget,
    /// Only those of this frame.
    pub frame: Option<FrameNumber>,
    /// Only those of this unit of the frame.
    pub unit: Option<UnitIndex>,
    /// Only those that this source says.
    pub source: Option<LogSource>,
    /// Only those that matter as much or more.
    pub severity: Severity,
    /// Only those from this moment on, in milliseconds since the Unix epoch.
    pub since_millis: u64,
    /// Number of a line: the first lines after it are wanted. None: the newest.
    pub after: Option<u64>,
    /// Most lines, at most [`LOG_PAGE_MAX`].
    pub rows: u32,
}

impl LogQuery {
    /// Asks for the newest lines of a job or a node.
    pub fn newest(target: LogTarget, rows: u32) -> Self {
        Self {
            target,
            frame: None,
            unit: None,
            source: None,
            severity: Severity::Info,
            since_millis: 0,
            after: None,
            rows,
        }
    }

    /// Checks the bounds. `Err` says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if self.rows == 0 || self.rows > LOG_PAGE_MAX {
            return Err(format!("{} lines are not in 1 to {LOG_PAGE_MAX}", self.rows));
        }
        if self.unit.is_some() && self.frame.is_none() {
            return Err("a unit is one of a frame: name the frame too".to_owned());
        }
        match &self.target {
            LogTarget::Node(text) if text.len() > NODE_TEXT_MAX => {
                Err("the name of the node is too long".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Returns whether a line is one of those that are asked for, apart from its number.
    pub fn takes(&self, line: &KeptLine) -> bool {
        self.frame.is_none_or(|frame| line.frame == Some(frame))
            && self.unit.is_none_or(|unit| line.unit == Some(unit))
            && self.source.is_none_or(|source| line.source == source)
            && line.severity >= self.severity
            && line.at_millis >= self.since_millis
    }
}

/// A line that is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptLine {
    /// Number of the line. It grows, and has gaps where lines are about something else.
    pub number: u64,
    /// Milliseconds since the Unix epoch.
    pub at_millis: u64,
    /// Name of the node that says it.
    pub node: String,
    /// Who says it there.
    pub source: LogSource,
    /// How much it matters.
    pub severity: Severity,
    /// Job that it is about.
    pub job: Option<JobId>,
    /// Frame that it is about.
    pub frame: Option<FrameNumber>,
    /// Unit that it is about.
    pub unit: Option<UnitIndex>,
    /// Epoch of the attempt that it is about.
    pub epoch: Option<Epoch>,
    /// What is said.
    pub text: LogText,
}

/// Lines that are kept, the oldest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPage {
    /// The lines.
    pub lines: Vec<KeptLine>,
    /// Number to ask from on for what comes after these lines.
    pub next: u64,
    /// Whether there are more lines now, after these or, where the newest were asked for, before.
    pub more: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{decode, encode};

    #[test]
    fn a_line_has_no_character_that_takes_over_a_terminal() {
        let text = LogText::new("a\u{1b}[31m\r\nb\u{202e}c\u{9b}d\u{2028}e\u{7f}\tf");
        assert_eq!(text.as_str(), "a\\u{1b}[31m  b\\u{202e}c\\u{9b}d\\u{2028}e\\u{7f} f");
        assert_eq!(LogText::new(text.as_str()), text, "it stays as it is");
    }

    #[test]
    fn a_long_line_is_cut_at_a_character() {
        for text in ["x".repeat(5000), "\u{1b}".repeat(5000), "ü".repeat(5000), "€".repeat(342)]
        {
            let cut = LogText::new(&text);
            assert!(cut.as_str().len() <= LINE_BYTES_MAX && cut.as_str().ends_with(CUT));
            assert_eq!(LogText::new(cut.as_str()), cut);
        }
        let whole = "x".repeat(LINE_BYTES_MAX);
        assert_eq!(LogText::new(&whole).as_str(), whole);
    }

    #[test]
    fn what_a_peer_sends_is_made_safe_or_refused() {
        let wild = encode(&"a\u{1b}b").unwrap();
        assert_eq!(decode::<LogText>(&wild).unwrap().as_str(), "a\\u{1b}b");
        let long = encode(&"x".repeat(LINE_BYTES_MAX + 1)).unwrap();
        assert!(decode::<LogText>(&long).is_err());
        let read = serde_json::from_str::<LogText>("\"a\\u202eb\"").unwrap();
        assert_eq!(read.as_str(), "a\\u{202e}b");
    }

    #[test]
    fn a_question_has_bounds() {
        let newest = |rows| LogQuery::newest(LogTarget::Job(JobId::new()), rows);
        assert_eq!(newest(LOG_PAGE_MAX).check(), Ok(()));
        assert!(newest(0).check().is_err() && newest(LOG_PAGE_MAX + 1).check().is_err());
        let unit = LogQuery { unit: Some(UnitIndex(1)), ..newest(1) };
        assert!(unit.check().is_err());
        assert!(LogQuery { frame: Some(FrameNumber(1)), ..unit }.check().is_ok());
        let node = LogQuery::newest(LogTarget::Node("x".repeat(1000)), 1);
        assert!(node.check().is_err());
    }

    #[test]
    fn names_of_sources_and_severities_are_read_again() {
        assert!(LogSource::ALL.iter().all(|one| LogSource::of_name(one.name()) == Some(*one)));
        assert!(Severity::ALL.iter().all(|one| Severity::of_name(one.name()) == Some(*one)));
        assert_eq!((LogSource::of_name("x"), Severity::of_name("x")), (None, None));
    }
}
