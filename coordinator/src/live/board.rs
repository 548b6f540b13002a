//! What is watched and the live tiles that are kept of it. Those who watch read from here as fast
//! as they can: a slow one misses what had to go meanwhile, and nobody waits for it.

use super::meters::Outcome;
use super::subject::Subject;
use crate::sync::lock;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tessera_protocol::client::RequestError;
use tessera_protocol::live::{LiveTile, WATCHED_MAX, Watched};
use tessera_protocol::{FrameNumber, JobId};
use tokio::sync::{Notify, watch};

/// Most frames and jobs that one person watches at a time.
const PER_PERSON_MAX: usize = 16;
/// Most bytes of live tiles that are kept: a 4K frame in tiles of 64 pixels has 48 MiB of them.
const KEPT_BYTES_MAX: usize = 64 << 20;
/// How long a frame is still watched when nobody does, so that a page that is loaded again finds
/// what was there.
const LINGER: Duration = Duration::from_secs(15);

/// Bounds of a board.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Most bytes that are kept.
    pub(super) bytes: usize,
    /// Most subjects in all.
    pub(super) subjects: usize,
    /// Most subjects of one person.
    pub(super) per_person: usize,
    /// How long a subject stays without a watcher.
    pub(super) linger: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            bytes: KEPT_BYTES_MAX,
            subjects: WATCHED_MAX,
            per_person: PER_PERSON_MAX,
            linger: LINGER,
        }
    }
}

/// All that is watched.
#[derive(Debug, Default)]
pub(crate) struct Board {
    bounds: Bounds,
    inner: Mutex<Inner>,
    stirred: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    subjects: BTreeMap<Watched, Subject>,
    /// Number of watchers of each person, by the number of the identity.
    persons: BTreeMap<u64, usize>,
    /// Bytes of all that is kept.
    bytes: usize,
    /// Number of the newest live tile.
    newest: u64,
    is_closed: bool,
}

impl Board {
    /// A board with other bounds.
    #[cfg(test)]
    pub(super) fn with(bounds: Bounds) -> Arc<Self> {
        Arc::new(Self { bounds, ..Self::default() })
    }

    /// Begins to watch, for a person with this number.
    pub(crate) fn watch(
        self: &Arc<Self>,
        what: Watched,
        person: u64,
    ) -> Result<Watcher, RequestError> {
        let mut inner = lock(&self.inner);
        let theirs = inner.persons.get(&person).copied().unwrap_or(0);
        if theirs >= self.bounds.per_person {
            let most = self.bounds.per_person;
            return Err(RequestError::Unavailable(format!(
                "{most} frames and jobs are watched live for you, and no more are taken of one \
                 user; close some pages, or wait"
            )));
        }
        let is_new = !inner.subjects.contains_key(&what);
        if is_new && inner.subjects.len() >= self.bounds.subjects && !inner.make_room() {
            let most = self.bounds.subjects;
            return Err(RequestError::Unavailable(format!(
                "{most} frames and jobs are watched live, and no more are taken; try later"
            )));
        }
        *inner.persons.entry(person).or_default() += 1;
        let subject = inner.subjects.entry(what).or_insert_with(Subject::new);
        let former = if subject.is_over { subject.bytes } else { 0 };
        if subject.is_over {
            // It goes on: a frame is rendered again.
            subject.clear();
            subject.is_over = false;
        }
        subject.watchers += 1;
        subject.left = None;
        let changed = subject.changes();
        inner.bytes -= former;
        drop(inner);
        self.stirred.notify_one();
        Ok(Watcher { board: self.clone(), what, person, seen: 0, changed })
    }

    /// Waits until what is watched may have changed.
    pub(super) async fn stirred(&self) {
        self.stirred.notified().await;
    }

    /// Returns all that nodes are to send live tiles of.
    pub(super) fn watched(&self) -> Vec<Watched> {
        let inner = lock(&self.inner);
        let open = inner.subjects.iter().filter(|(_, subject)| !subject.is_over);
        open.map(|(what, _)| *what).collect()
    }

    /// Forgets what nobody has watched for a while. Returns when it is to be called again.
    pub(super) fn expire(&self, now: Instant) -> Option<Instant> {
        let mut inner = lock(&self.inner);
        let linger = self.bounds.linger;
        inner.retain(|subject| {
            subject.watchers > 0 || subject.left.is_some_and(|left| left + linger > now)
        });
        inner.subjects.values().filter_map(|subject| subject.left).map(|left| left + linger).min()
    }

    /// Returns whether somebody watches a frame.
    pub(crate) fn has(&self, job: JobId, frame: FrameNumber) -> bool {
        let inner = lock(&self.inner);
        subjects_of(job, frame)
            .iter()
            .any(|what| inner.subjects.get(what).is_some_and(|subject| !subject.is_over))
    }

    /// Passes a live tile on to all who watch its frame.
    pub(crate) fn pass(&self, tile: LiveTile) -> Outcome {
        let unit = tile.lease.unit;
        let tile = Arc::new(tile);
        let mut guard = lock(&self.inner);
        let inner = &mut *guard;
        inner.newest += 1;
        let (number, mut outcome) = (inner.newest, Outcome::Unwatched);
        for what in subjects_of(unit.job, unit.frame) {
            let subject = inner.subjects.get_mut(&what).filter(|subject| !subject.is_over);
            let Some(subject) = subject else { continue };
            let before = subject.bytes;
            outcome = subject.keep(number, &tile);
            inner.bytes = inner.bytes + subject.bytes - before;
            subject.tell();
        }
        while inner.bytes > self.bounds.bytes && inner.drop_one() {}
        outcome
    }

    /// Ends what is watched of a frame: it is finished, or has failed.
    pub(crate) fn end_frame(&self, job: JobId, frame: FrameNumber) {
        self.end(|what| what.job == job && what.frame == Some(frame));
    }

    /// Ends what is watched of a job.
    pub(crate) fn end_job(&self, job: JobId) {
        self.end(|what| what.job == job);
    }

    /// Ends everything, because the coordinator stops.
    pub(crate) fn close(&self) {
        lock(&self.inner).is_closed = true;
        self.end(|_| true);
    }

    fn end(&self, ends: impl Fn(&Watched) -> bool) {
        let mut inner = lock(&self.inner);
        let over = inner.subjects.iter_mut().filter(|(what, _)| ends(what));
        let mut count = 0;
        for (_, subject) in over {
            subject.is_over = true;
            subject.tell();
            count += 1;
        }
        inner.retain(|subject| !subject.is_over || subject.watchers > 0);
        if count > 0 {
            self.stirred.notify_one();
        }
    }

    /// Returns how many frames and jobs are watched, and the bytes that are kept of them.
    pub(crate) fn size(&self) -> (usize, usize) {
        let inner = lock(&self.inner);
        (inner.subjects.len(), inner.bytes)
    }
}

/// Returns what a frame is watched by.
fn subjects_of(job: JobId, frame: FrameNumber) -> [Watched; 2] {
    [Some(frame), None].map(|frame| Watched { job, frame })
}

impl Inner {
    /// Drops subjects, with what is kept of them.
    fn retain(&mut self, stays: impl Fn(&Subject) -> bool) {
        let bytes = &mut self.bytes;
        self.subjects.retain(|_, subject| {
            let stays = stays(subject);
            if !stays {
                *bytes -= subject.bytes;
            }
            stays
        });
    }

    /// Drops the subject that nobody has watched for the longest time; false if all are watched.
    fn make_room(&mut self) -> bool {
        let unwatched = self.subjects.iter().filter_map(|(what, one)| Some((one.left?, *what)));
        let Some((_, what)) = unwatched.min() else { return false };
        if let Some(subject) = self.subjects.remove(&what) {
            self.bytes -= subject.bytes;
        }
        true
    }

    /// Drops the oldest live tile of the subject that has the most, so that those that have little
    /// lose nothing.
    fn drop_one(&mut self) -> bool {
        let largest = self.subjects.values_mut().max_by_key(|subject| subject.bytes);
        let dropped = largest.map_or(0, Subject::drop_oldest);
        self.bytes -= dropped;
        dropped > 0
    }
}

/// Somebody who watches. Dropping this value ends it.
#[derive(Debug)]
pub(crate) struct Watcher {
    board: Arc<Board>,
    what: Watched,
    person: u64,
    /// Number of the newest live tile that was read.
    seen: u64,
    changed: watch::Receiver<()>,
}

impl Watcher {
    /// Returns the next live tile, first those that are kept; None once the frame or job is over.
    /// Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<Arc<LiveTile>> {
        loop {
            {
                let inner = lock(&self.board.inner);
                let subject = inner.subjects.get(&self.what)?;
                self.changed.mark_unchanged();
                if let Some((number, tile)) = subject.after(self.seen) {
                    self.seen = number;
                    return Some(tile);
                }
                if subject.is_over || inner.is_closed {
                    return None;
                }
            }
            self.changed.changed().await.ok()?;
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut inner = lock(&self.board.inner);
        if let Some(count) = inner.persons.get_mut(&self.person) {
            *count -= 1;
            if *count == 0 {
                inner.persons.remove(&self.person);
            }
        }
        if let Some(subject) = inner.subjects.get_mut(&self.what) {
            subject.watchers -= 1;
            if subject.watchers == 0 {
                subject.left = Some(Instant::now());
            }
        }
        inner.retain(|subject| !subject.is_over || subject.watchers > 0);
        drop(inner);
        self.board.stirred.notify_one();
    }
}
