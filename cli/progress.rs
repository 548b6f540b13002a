//! Progress on standard error: bars with rate and time left on a terminal, occasional lines
//! elsewhere, nothing when quiet.

use crate::table::{bytes, count, printable};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tessera_protocol::JobKind;
use tessera_protocol::client::Progress;
use tessera_protocol::status::JobSummary;

/// Least time between two lines where there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Who sees progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Audience {
    /// No output: quiet.
    Quiet,
    /// A log or a pipe.
    Log,
    /// A person.
    Terminal,
}

impl Audience {
    /// Standard error's.
    pub(crate) fn of_stderr(quiet: bool) -> Self {
        match (quiet, std::io::stderr().is_terminal()) {
            (true, _) => Self::Quiet,
            (false, true) => Self::Terminal,
            (false, false) => Self::Log,
        }
    }

    fn bar(self, length: u64, template: &str) -> ProgressBar {
        if self != Self::Terminal {
            return ProgressBar::hidden();
        }
        let bar =
            ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr_with_hz(10));
        // The templates are constants of this file; a test parses them.
        let style =
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
        bar.with_style(style.progress_chars("━╸ "))
    }
}

const UPLOAD: &str = "uploading  {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
const DOWNLOAD: &str =
    "fetching   {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left  {msg}";
const COPY: &str = "copying    {bar:32} {bytes}/{total_bytes}  {bytes_per_sec}  {eta} left";
const JOB: &str = "{prefix:9}  {bar:32} {percent:>3} %  {msg}";

/// Present activity of the farm for a job, for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Frames of a scene.
    Rendering,
    /// A kernel over a domain.
    Computing,
}

impl Doing {
    /// By the kind of the job.
    pub(crate) fn of(kind: &JobKind) -> Self {
        if kind.compute().is_some() { Self::Computing } else { Self::Rendering }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Rendering => "rendering",
            Self::Computing => "computing",
        }
    }

    /// Returns the word for the counted things.
    fn counted(self) -> &'static str {
        match self {
            Self::Rendering => "samples",
            Self::Computing => "indices",
        }
    }
}

/// The upload of a scene's files.
#[derive(Debug)]
pub(crate) struct Uploads {
    audience: Audience,
    bar: ProgressBar,
    sent: u64,
}

impl Uploads {
    pub(crate) fn new(audience: Audience) -> Self {
        Self { audience, bar: ProgressBar::hidden(), sent: 0 }
    }

    /// So many bytes are to be sent, from now on.
    pub(crate) fn begin(&mut self, bytes: u64) {
        self.sent = 0;
        self.bar = if bytes > 0 { self.audience.bar(bytes, UPLOAD) } else { ProgressBar::hidden() };
    }

    /// So many have been.
    pub(crate) fn set(&mut self, sent: u64) {
        self.sent = sent;
        self.bar.set_position(sent);
    }

    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    pub(crate) fn end(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The fetch of frame files.
#[derive(Debug)]
pub(crate) struct Downloads {
    bar: ProgressBar,
    /// Bytes of the files before this one.
    before: u64,
}

impl Downloads {
    /// So many bytes in all.
    pub(crate) fn new(audience: Audience, bytes: u64) -> Self {
        Self { bar: audience.bar(bytes, DOWNLOAD), before: 0 }
    }

    pub(crate) fn begin(&self, name: &str) {
        self.bar.set_message(printable(name));
    }

    /// So many bytes of the file are here.
    pub(crate) fn set(&self, held: u64) {
        self.bar.set_position(self.before + held);
    }

    /// The file is here, whole.
    pub(crate) fn advance(&mut self, length: u64) {
        self.before += length;
        self.set(0);
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// The copy of a farm's files to another place, by several threads.
#[derive(Debug)]
pub(crate) struct Copying {
    audience: Audience,
    bar: ProgressBar,
    said_at: Mutex<Instant>,
}

impl Copying {
    /// How much it is, is known with the first file.
    pub(crate) fn begin(audience: Audience) -> Self {
        Self { audience, bar: audience.bar(0, COPY), said_at: Mutex::new(Instant::now()) }
    }

    /// So many bytes of all are there.
    pub(crate) fn update(&self, done: u64, all: u64) {
        self.bar.set_length(all);
        self.bar.set_position(done);
        let mut said_at = self.said_at.lock().unwrap_or_else(PoisonError::into_inner);
        if self.audience == Audience::Log && said_at.elapsed() >= LINE_EVERY {
            *said_at = Instant::now();
            eprintln!("copying  {} of {}", bytes(done), bytes(all));
        }
    }

    pub(crate) fn end(&self) {
        self.bar.finish_and_clear();
    }
}

/// A job on its way.
#[derive(Debug)]
pub(crate) struct JobProgress {
    audience: Audience,
    doing: Doing,
    bar: Option<ProgressBar>,
    /// Moment and samples of the first news, for the rate.
    first: Option<(Instant, u64)>,
    said_at: Option<Instant>,
}

impl JobProgress {
    pub(crate) fn new(audience: Audience, doing: Doing) -> Self {
        Self { audience, doing, bar: None, first: None, said_at: None }
    }

    /// Shows a change.
    pub(crate) fn show(&mut self, progress: &Progress) {
        let summary = &progress.summary;
        let now = Instant::now();
        let (since, before) = *self.first.get_or_insert((now, summary.samples_committed));
        let secs = (now - since).as_secs_f64();
        let rate = (summary.samples_committed.saturating_sub(before)) as f64 / secs.max(1e-3);
        let words = words(summary, self.doing, if secs > 0.5 { rate } else { 0.0 });
        let doing = self.doing.word();
        match self.audience {
            Audience::Quiet => {}
            Audience::Terminal => {
                let new = || self.audience.bar(summary.units, JOB).with_prefix(doing);
                let bar = self.bar.get_or_insert_with(new);
                // Rounds add units.
                bar.set_length(summary.units);
                bar.set_position(summary.units_committed);
                bar.set_message(words);
            }
            Audience::Log => {
                let is_due = self.said_at.is_none_or(|at| now - at >= LINE_EVERY);
                if is_due && !summary.state.is_final() {
                    self.said_at = Some(now);
                    eprintln!(
                        "{doing}  {}/{} units  {words}",
                        summary.units_committed, summary.units
                    );
                }
            }
        }
    }

    /// Shows a line above the bar, whoever sees the progress.
    pub(crate) fn say(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    /// Takes the bar away.
    pub(crate) fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// Frames, rate, time left, and why it waits.
fn words(summary: &JobSummary, doing: Doing, rate: f64) -> String {
    let mut parts = Vec::new();
    if summary.frames > 1 {
        parts.push(format!("frame {}/{}", summary.frames_done, summary.frames));
    }
    if rate > 0.0 {
        parts.push(format!("{}{}/s", count(rate), doing.counted()));
    }
    if let Some(secs) = summary.left_secs {
        parts.push(format!("{} left", indicatif::HumanDuration(Duration::from_secs(secs))));
    }
    if !summary.note.is_empty() {
        parts.push(printable(&summary.note));
    }
    parts.join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_sound() {
        for template in [UPLOAD, DOWNLOAD, COPY, JOB] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
