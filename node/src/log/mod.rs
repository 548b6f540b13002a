//! The lines that this node and its children say, on their way to the coordinator: bounded, and
//! with what they are about. Sends nothing itself; see `shell/logs.rs`.

mod at_work;
mod book;

use crate::device::CancelToken;
use at_work::AtWork;
use book::Book;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tessera_protocol::Lease;
use tessera_protocol::logs::{LogAbout, LogLine, LogLines, LogSource, LogText, Severity};
use tokio::sync::Notify;

/// Most lines that one text is parted into. A compiler says more only of what it cannot read.
const LINES_OF_TEXT_MAX: usize = 200;

/// Something that was said.
#[derive(Clone, Debug)]
pub struct Said<'a> {
    /// Who says it.
    pub source: LogSource,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about, as far as is known.
    pub about: LogAbout,
    /// Slot of the device that it is of. What the device works on is then what it is about.
    pub device: Option<&'a str>,
    /// The text, of one or several lines.
    pub text: &'a str,
}

/// The lines of one node that were not sent yet. Clones share them.
#[derive(Clone, Debug)]
pub struct NodeLog(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    start: Instant,
    book: Mutex<Book>,
    at_work: Mutex<AtWork>,
    there: Notify,
}

impl Default for NodeLog {
    fn default() -> Self {
        Self(Arc::new(Inner {
            start: Instant::now(),
            book: Mutex::default(),
            at_work: Mutex::default(),
            there: Notify::new(),
        }))
    }
}

impl NodeLog {
    /// Adds what was said, a line for each of its lines. It never waits: what comes too fast, or
    /// does not fit while there is no session, is counted and left out.
    pub fn say(&self, said: &Said<'_>) {
        let at_work = || said.device.and_then(|slot| locked(&self.0.at_work).of(slot));
        let about = match said.about {
            LogAbout::Node => at_work().map_or(LogAbout::Node, LogAbout::Unit),
            about => about,
        };
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.0.start.elapsed().as_millis() as u64;
        let mut book = locked(&self.0.book);
        let mut texts = said.text.lines().map(str::trim_end).filter(|text| !text.is_empty());
        for text in texts.by_ref().take(LINES_OF_TEXT_MAX) {
            let line = LogLine {
                at_millis: unix.as_millis() as u64,
                source: said.source,
                severity: said.severity,
                about,
                text: LogText::new(text),
            };
            book.add(line, now);
        }
        book.leave_out(about, texts.count() as u64);
        drop(book);
        self.0.there.notify_one();
    }

    /// Notes that a device was given a unit.
    pub(crate) fn given(&self, slot: &str, lease: Lease, cancel: &CancelToken) {
        locked(&self.0.at_work).given(slot, lease, cancel);
    }

    /// Notes that a device has ended a unit.
    pub(crate) fn ended(&self, lease: Lease) {
        locked(&self.0.at_work).ended(lease);
    }

    /// Returns the oldest lines that wait.
    pub fn waiting(&self) -> LogLines {
        locked(&self.0.book).oldest(self.0.start.elapsed().as_millis() as u64)
    }

    /// Waits for lines, and returns the oldest of them. They stay until [`Self::sent`].
    pub(crate) async fn wait(&self) -> LogLines {
        loop {
            let there = self.0.there.notified();
            let lines = self.waiting();
            if !lines.0.is_empty() {
                return lines;
            }
            there.await;
        }
    }

    /// Drops the oldest lines, because they were sent.
    pub(crate) fn sent(&self, lines: &LogLines) {
        locked(&self.0.book).drop_oldest(lines);
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_protocol::{Epoch, FrameNumber, JobId, UnitIndex, UnitKey};

    fn said<'a>(device: Option<&'a str>, text: &'a str) -> Said<'a> {
        let (source, severity, about) = (LogSource::Device, Severity::Warning, LogAbout::Node);
        Said { source, severity, about, device, text }
    }

    fn lease(unit: u32) -> Lease {
        let unit = UnitKey { job: JobId::new(), frame: FrameNumber(1), unit: UnitIndex(unit) };
        Lease { unit, epoch: Epoch(1) }
    }

    #[tokio::test]
    async fn a_text_becomes_lines_that_stay_until_sent() {
        let log = NodeLog::default();
        log.say(&said(None, "a\u{1b}\r\n\n  b\n"));
        let lines = log.wait().await;
        let texts: Vec<&str> = lines.0.iter().map(|line| line.text.as_str()).collect();
        assert_eq!(texts, ["a\\u{1b}", "  b"]);
        assert_eq!(log.wait().await, lines, "they were not sent");
        log.say(&said(None, "c"));
        log.sent(&lines);
        assert_eq!(log.wait().await.0.len(), 1);
    }

    #[tokio::test]
    async fn a_line_of_a_device_is_about_the_unit_it_works_on() {
        let log = NodeLog::default();
        let (first, second) = (lease(1), lease(2));
        let tokens = [CancelToken::default(), CancelToken::default()];
        log.given("cuda:0", first, &tokens[0]);
        log.given("cuda:0", second, &tokens[1]);
        log.say(&said(Some("cuda:0"), "before"));
        assert!(tokens[0].begin());
        log.say(&said(Some("cuda:0"), "of the first"));
        log.say(&said(Some("cuda:1"), "of another device"));
        assert!(tokens[1].begin());
        log.say(&said(Some("cuda:0"), "of the second"));
        log.ended(first);
        log.ended(second);
        log.say(&said(Some("cuda:0"), "after"));
        let about: Vec<LogAbout> = log.wait().await.0.iter().map(|line| line.about).collect();
        let (node, unit) = (LogAbout::Node, LogAbout::Unit);
        assert_eq!(about, [node, unit(first), node, unit(second), node]);
    }

    #[tokio::test]
    async fn a_text_of_too_many_lines_says_how_many_are_missing() {
        let log = NodeLog::default();
        log.say(&said(None, &"x\n".repeat(LINES_OF_TEXT_MAX + 7)));
        let mut all = Vec::new();
        while all.len() <= LINES_OF_TEXT_MAX {
            let lines = log.wait().await;
            log.sent(&lines);
            all.extend(lines.0);
        }
        let last = all.last().expect("there are lines");
        assert_eq!(last.text.as_str(), "7 lines were left out here: they came too fast");
    }
}
