//! The lines that wait, within bounds, and the counts of those that were left out. Pure: the time
//! is an argument.

use std::collections::{BTreeMap, VecDeque};
use tessera_protocol::JobId;
use tessera_protocol::logs::{
    LINES_MAX, LogAbout, LogLine, LogLines, LogSource, LogText, Severity,
};

/// Most lines that wait: 1,024 of 1 KiB are a mebibyte.
const WAITING_MAX: usize = 1024;
/// Lines that may be said at once.
const AT_ONCE: u64 = 1000;
/// Milliseconds for each further one: 20 lines a second.
const EVERY_MILLIS: u64 = 50;
/// Most jobs whose lines that were left out are counted apart.
const COUNTED_MAX: usize = 64;

/// Lines that wait to be sent.
#[derive(Debug)]
pub(super) struct Book {
    waiting: VecDeque<LogLine>,
    /// Lines that may still be said.
    left: u64,
    filled_at: u64,
    /// Lines that were left out, by what they were about, with the time of the newest.
    left_out: BTreeMap<Option<JobId>, (u64, LogAbout)>,
    /// When the last line came, by the node's clock.
    newest_millis: u64,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            waiting: VecDeque::new(),
            left: AT_ONCE,
            filled_at: 0,
            left_out: BTreeMap::new(),
            newest_millis: 0,
        }
    }
}

impl Book {
    /// Adds a line, or counts it.
    pub(super) fn add(&mut self, line: LogLine, now: u64) {
        self.newest_millis = line.at_millis;
        if !self.take(now) {
            return self.leave_out(line.about, 1);
        }
        if self.waiting.len() >= WAITING_MAX {
            // The newest lines say most about what is wrong now.
            if let Some(oldest) = self.waiting.pop_front() {
                self.leave_out(oldest.about, 1);
            }
        }
        self.waiting.push_back(line);
    }

    /// Counts lines that are left out.
    pub(super) fn leave_out(&mut self, about: LogAbout, count: u64) {
        let told_apart =
            self.left_out.len() < COUNTED_MAX || self.left_out.contains_key(&about.job());
        let about = if told_apart { about } else { LogAbout::Node };
        if count > 0 {
            self.left_out.entry(about.job()).or_insert((0, about)).0 += count;
        }
    }

    /// Returns the oldest lines, and then how many were left out, once there is room for saying so.
    pub(super) fn oldest(&mut self, now: u64) -> LogLines {
        if self.waiting.len() < LINES_MAX && !self.left_out.is_empty() {
            self.refill(now);
            for (_, (count, about)) in std::mem::take(&mut self.left_out) {
                let lines = if count == 1 { "line was" } else { "lines were" };
                let text = format!("{count} {lines} left out here: they came too fast");
                self.waiting.push_back(LogLine {
                    at_millis: self.newest_millis,
                    source: LogSource::Node,
                    severity: Severity::Warning,
                    about,
                    text: LogText::new(&text),
                });
            }
        }
        LogLines(self.waiting.iter().take(LINES_MAX).cloned().collect())
    }

    /// Drops lines that were sent. Some of them may have been left out meanwhile.
    pub(super) fn drop_oldest(&mut self, sent: &LogLines) {
        for line in &sent.0 {
            if self.waiting.front() == Some(line) {
                self.waiting.pop_front();
            }
        }
    }

    fn refill(&mut self, now: u64) {
        let more = now.saturating_sub(self.filled_at) / EVERY_MILLIS;
        self.left = self.left.saturating_add(more).min(AT_ONCE);
        self.filled_at += more * EVERY_MILLIS;
    }

    fn take(&mut self, now: u64) -> bool {
        self.refill(now);
        let there = self.left > 0;
        self.left -= u64::from(there);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(number: u64, about: LogAbout) -> LogLine {
        LogLine {
            at_millis: number,
            source: LogSource::Node,
            severity: Severity::Info,
            about,
            text: LogText::new(&number.to_string()),
        }
    }

    fn drain(book: &mut Book, now: u64) -> Vec<LogLine> {
        let mut all = Vec::new();
        loop {
            let lines = book.oldest(now);
            if lines.0.is_empty() {
                return all;
            }
            book.drop_oldest(&lines);
            all.extend(lines.0);
        }
    }

    // promise: P8
    #[test]
    fn a_flood_of_lines_is_cut_and_counted() {
        let (mut book, job) = (Book::default(), JobId::new());
        for number in 0..100_000 {
            book.add(line(number, LogAbout::Job(job)), number / 10);
        }
        assert!(book.waiting.len() <= WAITING_MAX);
        let all = drain(&mut book, 10_000);
        let told = all.last().map(|line| (line.about, line.text.as_str().to_owned()));
        // 1,000 at once and 20 a second in ten seconds are 1,200; those beyond 1,024 had to go.
        let expected = "98976 lines were left out here: they came too fast".to_owned();
        assert_eq!(told, Some((LogAbout::Job(job), expected)));
        assert_eq!(all.len(), WAITING_MAX + 1);
        book.add(line(1, LogAbout::Node), 60_000);
        assert_eq!(drain(&mut book, 60_000).len(), 1, "later lines are taken again");
    }

    // promise: P8
    #[test]
    fn counts_of_many_jobs_need_bounded_memory() {
        let mut book = Book::default();
        for number in 0..10_000 {
            book.add(line(number, LogAbout::Job(JobId::new())), 0);
        }
        assert!(book.left_out.len() <= COUNTED_MAX + 1);
        let all = drain(&mut book, 0);
        assert!(all.len() <= AT_ONCE as usize + COUNTED_MAX + 1);
    }

    #[test]
    fn lines_that_were_dropped_while_sent_are_not_dropped_twice() {
        let mut book = Book::default();
        (0..3).for_each(|number| book.add(line(number, LogAbout::Node), 0));
        let sent = book.oldest(0);
        book.waiting.pop_front();
        book.add(line(3, LogAbout::Node), 0);
        book.drop_oldest(&LogLines(sent.0[1..].to_vec()));
        assert_eq!(drain(&mut book, 0), [line(3, LogAbout::Node)]);
    }
}
