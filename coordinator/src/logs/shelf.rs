//! The files of lines: two halves for each job and node, of which the older is replaced when the
//! newer is full. Lines of JSON are appended without a sync; damaged ones are passed over.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tessera_protocol::logs::{KeptLine, LogPage, LogQuery, LogSource, LogText, Severity};
use tessera_protocol::{Epoch, FrameNumber, JobId, NodeId, UnitIndex};
use tessera_transport::files;

/// Extensions of the two halves of a file.
const NEWER: &str = "new";
const OLDER: &str = "old";

/// How much is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Bytes of a half.
    pub(super) half_bytes: u64,
    /// Bytes of all files of jobs.
    pub(super) jobs_bytes: u64,
    /// Number of jobs that have lines.
    pub(super) jobs: usize,
    /// Number of nodes that have lines.
    pub(super) nodes: usize,
}

impl Default for Bounds {
    /// 256 KiB for each job and node; 256 MiB for all jobs, and 4,096 nodes: a gibibyte at most.
    fn default() -> Self {
        Self { half_bytes: 128 << 10, jobs_bytes: 256 << 20, jobs: 16_384, nodes: 4096 }
    }
}

/// Whose lines a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Whose {
    /// A job's, with the number of its owner.
    Job {
        /// The job.
        job: JobId,
        /// Number of the owner's identity.
        owner: u64,
    },
    /// A node's.
    Node(NodeId),
}

impl Whose {
    fn file(&self, root: &Path, half: &str) -> PathBuf {
        match self {
            Self::Job { job, owner } => root.join("jobs").join(format!("{job}.{owner}.{half}")),
            Self::Node(node) => root.join("nodes").join(format!("{node}.{half}")),
        }
    }

    /// Reads what [`Self::file`] has named, and which half it is.
    fn of_name(name: &str) -> Option<(Self, bool)> {
        let mut parts = name.split('.');
        let id = parts.next()?;
        let rest: Vec<&str> = parts.collect();
        let half = |half: &str| match half {
            NEWER => Some(true),
            OLDER => Some(false),
            _ => None,
        };
        match rest.as_slice() {
            [owner, which] => {
                let whose = Self::Job { job: id.parse().ok()?, owner: owner.parse().ok()? };
                Some((whose, half(which)?))
            }
            [which] => Some((Self::Node(id.parse().ok()?), half(which)?)),
            _ => None,
        }
    }

    fn owner(&self) -> Option<u64> {
        match self {
            Self::Job { owner, .. } => Some(*owner),
            Self::Node(_) => None,
        }
    }
}

/// A line that has no number yet.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Unnumbered {
    pub(super) at_millis: u64,
    pub(super) node: String,
    pub(super) source: LogSource,
    pub(super) severity: Severity,
    pub(super) job: Option<JobId>,
    pub(super) frame: Option<FrameNumber>,
    pub(super) unit: Option<UnitIndex>,
    pub(super) epoch: Option<Epoch>,
    pub(super) text: LogText,
}

#[derive(Serialize)]
struct Numbered<'a> {
    number: u64,
    #[serde(flatten)]
    line: &'a Unnumbered,
}

/// What is known of one file.
#[derive(Debug, Default)]
struct Entry {
    newer_bytes: u64,
    older_bytes: u64,
    /// When it was last written, in an order that goes on over restarts.
    touched: u64,
    /// Number of its newest line, once it has been read.
    last: Option<u64>,
}

/// How much there is. It is counted from the entries whenever some go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Totals {
    jobs: usize,
    nodes: usize,
    jobs_bytes: u64,
    bytes: u64,
}

impl Totals {
    fn add(&mut self, whose: &Whose, files: usize, bytes: u64) {
        self.bytes += bytes;
        match whose {
            Whose::Job { .. } => {
                self.jobs += files;
                self.jobs_bytes += bytes;
            }
            Whose::Node(_) => self.nodes += files,
        }
    }
}

/// All files.
#[derive(Debug)]
pub(super) struct Shelf {
    root: PathBuf,
    bounds: Bounds,
    entries: BTreeMap<Whose, Entry>,
    totals: Totals,
    touched: u64,
}

impl Shelf {
    /// Opens the folder, and makes it if it is absent.
    pub(super) fn open(root: &Path, bounds: Bounds) -> io::Result<Self> {
        files::create_private_folder(root)?;
        let mut found = Vec::new();
        for part in ["jobs", "nodes"] {
            let folder = root.join(part);
            files::create_private_folder(&folder)?;
            for file in std::fs::read_dir(&folder)? {
                let file = file?;
                let about = file.metadata()?;
                let name = file.file_name();
                // What has a foreign name is left alone.
                if let Some((whose, is_newer)) = name.to_str().and_then(Whose::of_name) {
                    let written = about.modified().unwrap_or(UNIX_EPOCH);
                    found.push((written, whose, is_newer, about.len()));
                }
            }
        }
        found.sort_unstable();
        let mut this = Self {
            root: root.to_path_buf(),
            bounds,
            entries: BTreeMap::new(),
            totals: Totals::default(),
            touched: 0,
        };
        for (_, whose, is_newer, bytes) in found {
            this.touched += 1;
            let entry = this.entries.entry(whose).or_default();
            entry.touched = this.touched;
            *(if is_newer { &mut entry.newer_bytes } else { &mut entry.older_bytes }) = bytes;
        }
        this.count();
        Ok(this)
    }

    /// Appends lines, and gives each its number.
    pub(super) fn append(&mut self, whose: Whose, lines: &[Unnumbered]) -> io::Result<()> {
        let mut last = self.newest(whose).unwrap_or(0);
        // Numbers also grow over the loss of a file: a reader's place stays one.
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let mut text = Vec::new();
        for line in lines {
            last = (last + 1).max(unix.as_millis() as u64);
            serde_json::to_writer(&mut text, &Numbered { number: last, line })?;
            text.push(b'\n');
        }
        self.make_room(whose, text.len() as u64)?;
        let written = write(&whose.file(&self.root, NEWER), &text);
        self.touched += 1;
        let is_new = !self.entries.contains_key(&whose);
        let entry = self.entries.entry(whose).or_default();
        entry.touched = self.touched;
        if let Ok(bytes) = written {
            let more = bytes.saturating_sub(entry.newer_bytes);
            entry.newer_bytes = bytes;
            entry.last = Some(last);
            self.totals.add(&whose, is_new.into(), more);
        }
        self.keep_bounds(whose);
        written.map(drop)
    }

    /// Returns the lines of both halves as they lie on the disk, the older ones first.
    pub(super) fn read(&self, whose: Whose) -> Vec<u8> {
        let mut text = Vec::new();
        if self.entries.contains_key(&whose) {
            for half in [OLDER, NEWER] {
                // Each half ends with a line; what cannot be read is missing.
                let most = 4 * self.bounds.half_bytes;
                if let Ok(mut half) = files::read_bounded(&whose.file(&self.root, half), most) {
                    text.append(&mut half);
                    text.push(b'\n');
                }
            }
        }
        text
    }

    /// Returns the number of the newest line, if there is one.
    pub(super) fn newest(&mut self, whose: Whose) -> Option<u64> {
        let last = self.entries.get(&whose)?.last;
        let last = last.or_else(|| entries(&self.read(whose)).map(|line| line.number).max());
        if let Some(entry) = self.entries.get_mut(&whose) {
            entry.last = last;
        }
        last
    }

    /// Drops the lines of a job.
    pub(super) fn forget(&mut self, job: JobId) {
        self.drop_those(|whose| matches!(whose, Whose::Job { job: of, .. } if *of == job));
    }

    /// Drops the lines of all other jobs.
    pub(super) fn retain(&mut self, jobs: &BTreeSet<JobId>) {
        self.drop_those(|whose| matches!(whose, Whose::Job { job, .. } if !jobs.contains(job)));
    }

    /// Returns the bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.totals.bytes
    }

    fn count(&mut self) {
        self.totals = Totals::default();
        self.entries.iter().for_each(|(whose, one)| self.totals.add(whose, 1, one.bytes()));
    }

    fn drop_those(&mut self, goes: impl Fn(&Whose) -> bool) {
        let gone: Vec<Whose> = self.entries.keys().copied().filter(goes).collect();
        gone.into_iter().for_each(|whose| self.remove(whose));
        self.count();
    }

    fn remove(&mut self, whose: Whose) {
        self.entries.remove(&whose);
        for half in [NEWER, OLDER] {
            // It may have one half only. What cannot be removed is found at the next start.
            let _ = std::fs::remove_file(whose.file(&self.root, half));
        }
    }

    /// Begins another half, if the newer one is full.
    fn make_room(&mut self, whose: Whose, bytes: u64) -> io::Result<()> {
        let Some(entry) = self.entries.get_mut(&whose) else { return Ok(()) };
        if entry.newer_bytes > 0 && entry.newer_bytes + bytes > self.bounds.half_bytes {
            let [newer, older] = [NEWER, OLDER].map(|half| whose.file(&self.root, half));
            std::fs::rename(newer, older)?;
            entry.older_bytes = std::mem::take(&mut entry.newer_bytes);
            self.count();
        }
        Ok(())
    }

    /// Removes files until all bounds are kept, but not the one that was just written. Of jobs it
    /// is the oldest of the owner who has the most, so that nobody's go for another's many.
    fn keep_bounds(&mut self, written: Whose) {
        let is_job = written.owner().is_some();
        loop {
            let (totals, bounds) = (&self.totals, &self.bounds);
            let too_many = match is_job {
                true => totals.jobs > bounds.jobs,
                false => totals.nodes > bounds.nodes,
            };
            let too_large = is_job && totals.jobs_bytes > bounds.jobs_bytes;
            if !(too_many || too_large) {
                return;
            }
            let side = || self.entries.iter().filter(|(of, _)| of.owner().is_some() == is_job);
            let mut shares: BTreeMap<Option<u64>, u64> = BTreeMap::new();
            for (of, one) in side() {
                *shares.entry(of.owner()).or_default() += if too_many { 1 } else { one.bytes() };
            }
            let most = shares.into_iter().max_by_key(|(_, share)| *share).map(|(owner, _)| owner);
            let theirs = side().filter(|(of, _)| Some(of.owner()) == most && **of != written);
            let others = side().filter(|(of, _)| **of != written);
            let oldest = |(_, one): &(&Whose, &Entry)| one.touched;
            let goes = theirs.min_by_key(oldest).or_else(|| others.min_by_key(oldest));
            let Some(goes) = goes.map(|(of, _)| *of) else { return };
            self.remove(goes);
            self.count();
        }
    }
}

impl Entry {
    fn bytes(&self) -> u64 {
        self.newer_bytes + self.older_bytes
    }
}

/// Appends to a file whole lines. Returns its length.
fn write(path: &Path, text: &[u8]) -> io::Result<u64> {
    let mut options = OpenOptions::new();
    let mut file = options.read(true).append(true).create(true).mode(0o600).open(path)?;
    let length = file.seek(SeekFrom::End(0))?;
    let mut ends = [b'\n'];
    if length > 0 {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut ends)?;
    }
    // The coordinator was killed, or the disk was full, within a line.
    let joint: &[u8] = if ends == [b'\n'] { &[] } else { b"\n" };
    file.write_all(&[joint, text].concat())?;
    Ok(length + (joint.len() + text.len()) as u64)
}

/// Returns the lines that are not damaged.
fn entries(text: &[u8]) -> impl DoubleEndedIterator<Item = KeptLine> {
    text.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok())
}

/// Returns those lines that are asked for.
pub(super) fn page(text: &[u8], query: &LogQuery) -> LogPage {
    let rows = query.rows as usize;
    let newest = entries(text).map(|line| line.number).max().unwrap_or(0);
    let Some(after) = query.after else {
        let mut lines: Vec<KeptLine> =
            entries(text).rev().filter(|line| query.takes(line)).take(rows + 1).collect();
        let more = lines.len() > rows;
        lines.truncate(rows);
        lines.reverse();
        return LogPage { lines, next: newest, more };
    };
    let is_next = |line: &KeptLine| line.number > after && query.takes(line);
    let mut lines: Vec<KeptLine> = entries(text).filter(is_next).take(rows + 1).collect();
    let more = lines.len() > rows;
    lines.truncate(rows);
    let next = match lines.last().filter(|_| more) {
        Some(last) => last.number,
        None => newest.max(after),
    };
    LogPage { lines, next, more }
}
