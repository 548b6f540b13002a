//! Lines of nodes: who may say which, and the files that keep them, within bounds. The core, the
//! journal and the way of a commit know nothing of them.

mod follow;
mod meters;
mod rates;
mod sayable;
mod shelf;
#[cfg(test)]
mod tests;

use crate::sync::lock;
pub(crate) use follow::Follow;
pub(crate) use meters::{LogMeters, Outcome};
use rates::Rates;
pub(crate) use sayable::Sayable;
pub(crate) use shelf::Whose;
use shelf::{Shelf, Unnumbered};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tessera_protocol::logs::{
    LogAbout, LogLine, LogLines, LogPage, LogQuery, LogSource, LogText, Severity,
};
use tessera_protocol::{JobId, NodeId};
use tessera_telemetry::{Line, Lines};
use tokio::sync::watch;

/// Most messages that wait to be written: 128 of 64 KiB are 8 MiB.
const WAITING_MAX: usize = 128;
/// Longest time before now that a line of a node can be of: it may have been without a session.
const OLDEST: Duration = Duration::from_secs(24 * 3600);

/// Something for the thread that writes.
enum Order {
    /// Lines, each with whose they are.
    Keep(Vec<(Vec<Whose>, Unnumbered)>),
    /// A job is no more.
    Forget(JobId),
    /// These are all jobs.
    Retain(BTreeSet<JobId>),
    /// Nothing follows.
    Stop,
}

/// The lines of all jobs and nodes. Clones share them.
#[derive(Clone)]
pub(crate) struct Logs(Arc<Inner>);

struct Inner {
    shelf: Mutex<Shelf>,
    rates: Mutex<Rates>,
    start: Instant,
    queue: SyncSender<Order>,
    writer: Mutex<Option<JoinHandle<()>>>,
    grew: watch::Sender<u64>,
    meters: LogMeters,
    /// Takes them to a collector, beside the files.
    lines: Lines,
}

impl Logs {
    /// Opens the folder, and begins to write.
    pub(crate) fn open(folder: &Path, lines: Lines) -> io::Result<Self> {
        let (queue, orders) = sync_channel(WAITING_MAX);
        let this = Self(Arc::new(Inner {
            shelf: Mutex::new(Shelf::open(folder, shelf::Bounds::default())?),
            rates: Mutex::default(),
            start: Instant::now(),
            queue,
            writer: Mutex::default(),
            grew: watch::Sender::new(0),
            meters: LogMeters::default(),
            lines,
        }));
        let inner = Arc::downgrade(&this.0);
        let write = move || write(&orders, || inner.upgrade());
        let thread = std::thread::Builder::new().name("logs".to_owned()).spawn(write)?;
        *lock(&this.0.writer) = Some(thread);
        Ok(this)
    }

    /// Takes the lines of a node, as far as it may say them. It never waits: what comes too fast,
    /// or is not the node's to say, is counted. Returns whether the node says too much.
    pub(crate) fn take(&self, node: (NodeId, &str), may: &Sayable, lines: LogLines) -> bool {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let elapsed = self.0.start.elapsed().as_millis() as u64;
        let (mut kept, mut too_many) = (Vec::new(), false);
        for line in lines.0 {
            if !lock(&self.0.rates).take(node.0, elapsed) {
                too_many = true;
                self.0.meters.note(Outcome::TooMany);
                continue;
            }
            let Some(owner) = may.owner_of(&line.about) else {
                self.0.meters.note(Outcome::Foreign);
                continue;
            };
            self.0.lines.offer(|| said(node.1, &line));
            kept.push(addressed(node, owner, line, unix));
        }
        if let Some(count) = lock(&self.0.rates).due(node.0, elapsed) {
            kept.push(addressed(node, None, left_out(count, unix), unix));
        }
        if !kept.is_empty() {
            let count = kept.len() as u64;
            if let Err(TrySendError::Full(_)) = self.0.queue.try_send(Order::Keep(kept)) {
                self.0.meters.note_many(Outcome::Busy, count);
            }
        }
        too_many
    }

    /// Drops the lines of a job that is no more, soon.
    pub(crate) fn forget(&self, job: JobId) {
        // If it is full, the next start drops them.
        let _ = self.0.queue.try_send(Order::Forget(job));
    }

    /// Drops the lines of jobs that are no more, soon.
    pub(crate) fn retain(&self, jobs: BTreeSet<JobId>) {
        let _ = self.0.queue.try_send(Order::Retain(jobs));
    }

    /// Returns a page of lines. It reads the disk.
    pub(crate) fn page(&self, whose: Whose, query: &LogQuery) -> LogPage {
        let text = lock(&self.0.shelf).read(whose);
        shelf::page(&text, query)
    }

    /// Returns the number of the newest line, if there is one.
    pub(crate) fn newest(&self, whose: Whose) -> Option<u64> {
        lock(&self.0.shelf).newest(whose)
    }

    /// Returns what tells that there are further lines of anybody.
    pub(crate) fn grew(&self) -> watch::Receiver<u64> {
        self.0.grew.subscribe()
    }

    /// Returns the lines so far, by what became of them.
    pub(crate) fn counts(&self) -> Vec<(&'static str, u64)> {
        self.0.meters.counts()
    }

    /// Returns the bytes of all files.
    pub(crate) fn bytes(&self) -> u64 {
        lock(&self.0.shelf).bytes()
    }

    /// Waits until what waits is written. Nothing is written after that.
    pub(crate) fn stop(&self) {
        let _ = self.0.queue.send(Order::Stop);
        if let Some(thread) = lock(&self.0.writer).take() {
            // A thread that has panicked writes nothing either.
            let _ = thread.join();
        }
    }
}

/// Says how many lines of a node were left out here.
fn left_out(count: u64, unix: Duration) -> LogLine {
    let lines = if count == 1 { "line was" } else { "lines were" };
    LogLine {
        at_millis: unix.as_millis() as u64,
        source: LogSource::Node,
        severity: Severity::Warning,
        about: LogAbout::Node,
        text: LogText::new(&format!("{count} {lines} left out: the node says too much")),
    }
}

/// Returns a line as a collector takes it.
fn said(node: &str, line: &LogLine) -> Line {
    Line {
        at: UNIX_EPOCH + Duration::from_millis(line.at_millis),
        severity: line.severity,
        text: line.text.as_str().to_owned(),
        about: line.about,
        node: Some(node.to_owned()),
        source: Some(line.source),
    }
}

/// Returns a line with whose it is: the node's, and the job's that it is about.
fn addressed(
    (node, name): (NodeId, &str),
    owner: Option<u64>,
    line: LogLine,
    unix: Duration,
) -> (Vec<Whose>, Unnumbered) {
    let mut whose = vec![Whose::Node(node)];
    whose.extend(line.about.job().zip(owner).map(|(job, owner)| Whose::Job { job, owner }));
    let now = unix.as_millis() as u64;
    let earliest = now.saturating_sub(OLDEST.as_millis() as u64);
    let lease = line.about.lease();
    let line = Unnumbered {
        at_millis: line.at_millis.clamp(earliest, now),
        node: name.to_owned(),
        source: line.source,
        severity: line.severity,
        job: line.about.job(),
        frame: line.about.frame(),
        unit: lease.map(|lease| lease.unit.unit),
        epoch: lease.map(|lease| lease.epoch),
        text: line.text,
    };
    (whose, line)
}

/// Writes until it is told to stop, or nobody can tell it anything any more.
fn write(orders: &Receiver<Order>, inner: impl Fn() -> Option<Arc<Inner>>) {
    let mut is_failing = false;
    while let Ok(order) = orders.recv() {
        let Some(inner) = inner() else { return };
        match order {
            Order::Keep(lines) => {
                let count = lines.len() as u64;
                let written = keep(&inner.shelf, lines);
                match &written {
                    Ok(()) => inner.meters.note_many(Outcome::Kept, count),
                    Err(error) => {
                        inner.meters.note_many(Outcome::Unwritten, count);
                        if !is_failing {
                            tracing::warn!(%error, "lines of nodes cannot be kept");
                        }
                    }
                }
                is_failing = written.is_err();
                inner.grew.send_modify(|count| *count += 1);
            }
            Order::Forget(job) => lock(&inner.shelf).forget(job),
            Order::Retain(jobs) => lock(&inner.shelf).retain(&jobs),
            Order::Stop => return,
        }
    }
}

/// Appends lines, those of one file together.
fn keep(shelf: &Mutex<Shelf>, lines: Vec<(Vec<Whose>, Unnumbered)>) -> io::Result<()> {
    let mut files: Vec<(Whose, Vec<Unnumbered>)> = Vec::new();
    for (whose, line) in lines {
        for one in whose {
            match files.iter_mut().find(|(of, _)| *of == one) {
                Some((_, lines)) => lines.push(line.clone()),
                None => files.push((one, vec![line.clone()])),
            }
        }
    }
    let mut result = Ok(());
    for (whose, lines) in files {
        // Readers wait for one file at most.
        let written = lock(shelf).append(whose, &lines);
        result = result.and(written);
    }
    result
}

impl std::fmt::Debug for Logs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Logs").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}
