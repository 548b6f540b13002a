//! The audit log: who did what, when, and to whom. It consists of files with lines of JSON. Each
//! line holds the hash of the line before it, and is synced before the action that it reports.
//! `api/audit_entries.rs` decides what is reported.
//!
//! The head is a separate file with number and hash of the newest entry, and is replaced after each
//! entry. The journal gets the head too. A log that ends before one of them has lost entries. A
//! store elsewhere gets the entries as well; `audit_level.rs` brings both together at a start.
//!
//! A backup copies the files as they are, even if they are damaged. Their readers judge what they
//! prove.

use crate::store::{AuditChain, AuditHead, AuditLine};
use crate::sync::lock;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use tessera_protocol::access::{LogEntry, LogReport};
use tessera_transport::files::{self, Access};

/// A file that has reached this size in bytes is followed by a new one.
const FILE_BYTES: u64 = 4 << 20;
/// Most files that are kept. At their full size they are 256 MiB, about a million entries.
const FILES_MAX: usize = 64;
/// Longest line that is read, in bytes. The texts of an entry are cut to far less.
const LINE_BYTES_MAX: u64 = 64 << 10;
/// Name of the head's file.
pub(crate) const HEAD_FILE: &str = "head";
/// Most problems that a report lists.
const PROBLEMS_MAX: usize = 20;

/// Number and hash of an entry. The next entry is chained to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) after: u64,
    pub(super) hash: String,
}

impl Head {
    /// What the journal has kept of a head.
    pub(super) fn kept(bytes: Option<&[u8]>) -> Option<Self> {
        bytes.and_then(|bytes| serde_json::from_slice(bytes).ok())
    }

    pub(super) fn origin() -> Self {
        Self { after: 0, hash: "0".repeat(64) }
    }
}

/// The files of a log at one moment. Later entries and deletions do not change it.
#[derive(Debug, Default)]
pub(crate) struct Still {
    /// Content of the head's file; None if no entry was ever written.
    pub(crate) head: Option<Vec<u8>>,
    /// Name, file and length at that moment of each file, oldest first.
    pub(crate) files: Vec<(String, File, u64)>,
}

impl Still {
    /// Opens the files of a folder that nothing appends to. A folder that does not exist is a log
    /// without entries.
    pub(crate) fn of(folder: &Path) -> io::Result<Self> {
        let absent = |error: &io::Error| error.kind() == io::ErrorKind::NotFound;
        let head = match files::read_bounded(&folder.join(HEAD_FILE), LINE_BYTES_MAX) {
            Ok(bytes) => Some(bytes),
            Err(error) if absent(&error) => None,
            Err(error) => return Err(error),
        };
        let named = match names(folder) {
            Ok(named) => named,
            Err(error) if absent(&error) => Vec::new(),
            Err(error) => return Err(error),
        };
        let open = |(number, path): (u64, PathBuf)| {
            let file = File::open(path)?;
            let length = file.metadata()?.len();
            Ok((file_name(number), file, length))
        };
        Ok(Self { head, files: named.into_iter().map(open).collect::<io::Result<_>>()? })
    }
}

/// Returns whether a file of the log can have this name.
pub(crate) fn is_name(name: &str) -> bool {
    let number = name.strip_suffix(".log").and_then(|digits| digits.parse().ok());
    name == HEAD_FILE || number.is_some_and(|number| file_name(number) == name)
}

fn file_name(number: u64) -> String {
    format!("{number:08}.log")
}

/// The log, open for new entries.
#[derive(Debug)]
pub(crate) struct Log {
    folder: PathBuf,
    state: Mutex<State>,
    /// Entries that the next one to have the file writes.
    waiting: Mutex<Vec<(LogEntry, Written)>>,
    /// The head on its way into the journal.
    head: AuditHead,
    /// Whether entries go into a store elsewhere as well.
    elsewhere: bool,
}

/// Set once an entry has been written and synced, or could not be.
type Written = Arc<OnceLock<Result<(), (io::ErrorKind, String)>>>;

#[derive(Debug)]
struct State {
    head: Head,
    /// File for the next entry; None if it begins a new file.
    file: Option<File>,
    bytes: u64,
    /// False after a failed write. The file's content is then unknown, so the next entry begins a
    /// new file.
    sound: bool,
}

impl Log {
    /// Opens the log of a folder, and makes the folder if it does not exist. `kept` is the head
    /// that the journal has, and `elsewhere` says whether a store elsewhere gets entries. Damage is
    /// reported by an entry and by every later reading, but does not prevent new entries.
    pub(crate) fn open(folder: &Path, kept: Option<&[u8]>, elsewhere: bool) -> io::Result<Self> {
        files::create_private_folder(folder)?;
        let kept = Head::kept(kept);
        let (report, end) = read(folder, 0, kept.as_ref())?;
        let log = Self {
            folder: folder.to_owned(),
            state: Mutex::new(State { head: end, file: None, bytes: 0, sound: true }),
            waiting: Mutex::default(),
            head: AuditHead::default(),
            elsewhere,
        };
        if !report.problems.is_empty() {
            let text = report.problems.join("; ");
            tracing::error!(problems = text, "the audit log is damaged; see `tessera audit`");
            log.append((0, "the coordinator"), "audit log found damaged", &text)?;
        }
        Ok(log)
    }

    /// Adds an entry, which is synced on return. Entries of several threads are written and synced
    /// together. Blocks.
    pub(crate) fn append(&self, (at, who): (u64, &str), what: &str, about: &str) -> io::Result<()> {
        let cut = |text: &str| tessera_transport::close::cut(text, 1024).to_owned();
        let (who, what, about) = (cut(who), cut(what), cut(about));
        let entry = LogEntry { n: 0, at, who, what, about, hash: String::new() };
        let written = Written::default();
        lock(&self.waiting).push((entry, written.clone()));
        let mut state = lock(&self.state);
        if let Some(outcome) = written.get() {
            // By the thread that had the file before.
            return outcome.clone().map_err(|(kind, text)| io::Error::new(kind, text));
        }
        let (entries, waiting): (Vec<LogEntry>, Vec<Written>) =
            std::mem::take(&mut *lock(&self.waiting)).into_iter().unzip();
        let outcome = self.write(&mut state, entries);
        for written in waiting {
            // Each is set once: here.
            let copy = outcome.as_ref().map_err(|error| (error.kind(), error.to_string()));
            let _ = written.set(copy.copied());
        }
        outcome
    }

    /// Writes entries and syncs them, and then the head.
    fn write(&self, state: &mut State, entries: Vec<LogEntry>) -> io::Result<()> {
        let mut head = state.head.clone();
        let (mut text, mut elsewhere) = (String::new(), Vec::new());
        for mut entry in entries {
            entry.n = head.after + 1;
            entry.hash = entry.chained_to(&head.hash);
            let line = serde_json::to_string(&entry)?;
            text += &line;
            text.push('\n');
            let before = std::mem::replace(&mut head.hash, entry.hash);
            head.after = entry.n;
            if self.elsewhere {
                elsewhere.push((entry.n, AuditLine { before, line }.to_bytes()));
            }
        }
        if state.file.is_none() || state.bytes >= FILE_BYTES || !state.sound {
            self.begin_file(state)?;
        }
        state.sound = false;
        if let Some(file) = &mut state.file {
            file.write_all(text.as_bytes())?;
            file.sync_data()?;
        }
        state.bytes += text.len() as u64;
        state.head = head;
        let head = serde_json::to_vec(&state.head)?;
        files::write_atomically(&self.folder.join(HEAD_FILE), &head, Access::Secret)?;
        self.head.set(head, elsewhere);
        state.sound = true;
        Ok(())
    }

    /// Begins the next file, whose first line names the entry before it, and deletes the oldest
    /// files.
    fn begin_file(&self, state: &mut State) -> io::Result<()> {
        let names = names(&self.folder)?;
        let number = names.last().map_or(1, |(number, _)| number + 1);
        let path = self.folder.join(file_name(number));
        let mut line = serde_json::to_string(&state.head)?;
        line.push('\n');
        files::write_atomically(&path, line.as_bytes(), Access::Secret)?;
        state.file = Some(OpenOptions::new().append(true).open(&path)?);
        (state.bytes, state.sound) = (line.len() as u64, true);
        for (_, old) in names.iter().take((names.len() + 1).saturating_sub(FILES_MAX)) {
            std::fs::remove_file(old)?;
        }
        Ok(())
    }

    /// Whether a store elsewhere gets entries. They count as written when it has them.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.elsewhere
    }

    /// Returns the head on its way into the journal.
    pub(crate) fn head(&self) -> &AuditHead {
        &self.head
    }

    /// Returns the files of the log at this moment. Blocks.
    pub(crate) fn still(&self) -> io::Result<Still> {
        let _state = lock(&self.state);
        Still::of(&self.folder)
    }

    /// Reads the whole log, checks its chain, and returns its newest entries, at most `last`.
    /// Blocks.
    pub(crate) fn report(&self, last: usize) -> io::Result<LogReport> {
        // The lock prevents new entries, so that the head and the files agree.
        let state = lock(&self.state);
        Ok(read(&self.folder, last, Some(&state.head))?.0)
    }
}

/// Checks the log of a coordinator that is not running against the head that the journal has.
/// Returns the problems. A farm without a log has none, if the journal knows of none.
pub(crate) fn check(folder: &Path, kept: Option<&[u8]>) -> io::Result<Vec<String>> {
    let kept = match kept.map(serde_json::from_slice::<Head>).transpose() {
        Ok(kept) => kept,
        Err(error) => return Ok(vec![format!("the journal's head cannot be read: {error}")]),
    };
    Ok(read(folder, 0, kept.as_ref())?.0.problems)
}

/// Checks the entries of a store elsewhere against the head that it has. Returns the problems.
pub(crate) fn check_chain(chain: AuditChain, kept: Option<&[u8]>) -> Vec<String> {
    let kept = Head::kept(kept);
    chain.conclude(kept.as_ref().map(|head| (head.after, head.hash.as_str())))
}

/// Lists the log's files by their number.
pub(super) fn names(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let number = path
            .file_name()
            .and_then(|name| name.to_str())
            .and_then(|name| name.strip_suffix(".log"));
        if let Some(number) = number.and_then(|digits| digits.parse().ok()) {
            names.push((number, path));
        }
    }
    names.sort();
    Ok(names)
}

/// What the head's file says.
enum HeadFile {
    Missing,
    Unreadable,
    Names(Head),
}

/// State of a reading of the log.
struct Reading {
    report: LogReport,
    at: Option<Head>,
    /// Entries that must be there, and who says so.
    wanted: Vec<(&'static str, Head)>,
    /// Hashes of those of them that were read.
    found: BTreeMap<u64, String>,
    keep: usize,
    newest: VecDeque<LogEntry>,
    /// Problem to report for a last line without an end.
    torn: Option<String>,
}

/// Reads a log that nothing appends to. `kept` is the head that something else than the log's
/// folder knows. Returns the report and the end of the chain.
fn read(folder: &Path, keep: usize, kept: Option<&Head>) -> io::Result<(LogReport, Head)> {
    let head = match files::read_bounded(&folder.join(HEAD_FILE), LINE_BYTES_MAX) {
        Ok(bytes) => serde_json::from_slice(&bytes).map_or(HeadFile::Unreadable, HeadFile::Names),
        Err(error) if error.kind() == io::ErrorKind::NotFound => HeadFile::Missing,
        Err(error) => return Err(error),
    };
    let mut reading = Reading {
        report: LogReport::default(),
        at: None,
        wanted: kept.map(|head| ("the journal says", head.clone())).into_iter().collect(),
        found: BTreeMap::new(),
        keep,
        newest: VecDeque::new(),
        torn: None,
    };
    if let HeadFile::Names(head) = &head {
        reading.wanted.push(("the head says", head.clone()));
    }
    let names = match names(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        names => names?,
    };
    for (_, path) in names {
        reading.file(&path)?;
    }
    Ok(reading.conclude(&head))
}

impl Reading {
    fn problem(&mut self, text: String) {
        if self.report.problems.len() < PROBLEMS_MAX {
            self.report.problems.push(text);
        }
    }

    fn file(&mut self, path: &Path) -> io::Result<()> {
        let name =
            path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut reader = BufReader::new(File::open(path)?);
        let mut line = Vec::new();
        let mut first = true;
        loop {
            line.clear();
            if io::Read::take(&mut reader, LINE_BYTES_MAX).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            if line.last() != Some(&b'\n') {
                // A crash can cut the entry that was being written and is not reported yet. The
                // next file or the head then continues from the entry before.
                self.torn = Some(format!("{name}: a line is cut"));
                return Ok(());
            }
            match std::mem::take(&mut first) {
                true => self.header(&name, &line),
                false => self.entry(&name, &line),
            }
        }
    }

    fn header(&mut self, name: &str, line: &[u8]) {
        // A cut entry that was ever complete is missing by its number.
        self.torn = None;
        match (serde_json::from_slice::<Head>(line), &self.at) {
            (Err(error), _) => {
                self.problem(format!("{name}: its beginning cannot be read: {error}"))
            }
            (Ok(header), None) => {
                self.report.first = header.after + 1;
                self.at = Some(header);
            }
            (Ok(header), Some(at)) => {
                if header != *at {
                    let text = format!(
                        "{name}: continues from entry {}, and the file before ends with entry {}: \
                            entries are gone or changed",
                        header.after, at.after
                    );
                    self.problem(text);
                }
                self.at = Some(header);
            }
        }
    }

    fn entry(&mut self, name: &str, line: &[u8]) {
        let entry: LogEntry = match serde_json::from_slice(line) {
            Ok(entry) => entry,
            Err(error) => return self.problem(format!("{name}: a line cannot be read: {error}")),
        };
        let at = self.at.clone().unwrap_or_else(Head::origin);
        if entry.n != at.after + 1 {
            self.problem(format!("{name}: entry {} follows entry {}", entry.n, at.after));
        } else if entry.hash != entry.chained_to(&at.hash) {
            self.problem(format!("{name}: entry {} was changed, or one before it", entry.n));
        }
        if self.wanted.iter().any(|(_, head)| head.after == entry.n) {
            self.found.insert(entry.n, entry.hash.clone());
        }
        self.at = Some(Head { after: entry.n, hash: entry.hash.clone() });
        self.report.entries += 1;
        if self.keep > 0 {
            if self.newest.len() >= self.keep {
                self.newest.pop_front();
            }
            self.newest.push_back(entry);
        }
    }

    fn conclude(mut self, head: &HeadFile) -> (LogReport, Head) {
        let mut end = self.at.take().unwrap_or_else(Head::origin);
        let last = end.after;
        match head {
            HeadFile::Unreadable => self.problem("the head cannot be read".into()),
            // A crash can come between the very first entry and its head.
            HeadFile::Missing if last > 1 => {
                self.problem(format!("the head is missing, and the log ends with entry {last}"));
            }
            HeadFile::Missing => {}
            HeadFile::Names(head) => {
                if let Some(torn) = self.torn.take().filter(|_| head.after < last) {
                    self.problem(torn);
                }
            }
        }
        for (who, wanted) in std::mem::take(&mut self.wanted) {
            if wanted.after > last {
                self.problem(format!(
                    "cut: it ends with entry {last}, and {who} that entry {} was written",
                    wanted.after
                ));
                if wanted.after > end.after {
                    end = wanted;
                }
            } else if wanted.after > 0
                && wanted.after >= self.report.first
                && self.found.get(&wanted.after) != Some(&wanted.hash)
            {
                let n = wanted.after;
                self.problem(format!(
                    "entry {n} is not the one of which {who} that it was written"
                ));
            }
        }
        self.report.head = end.hash.clone();
        self.report.newest = self.newest.into();
        (self.report, end)
    }
}

#[cfg(test)]
#[path = "audit_log_tests.rs"]
mod tests;
