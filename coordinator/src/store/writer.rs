//! The only thread that writes to the store. It collects a group of commits, appends results,
//! syncs, commits, and then answers the callers.

use super::commit::Commit;
use super::queue::{Message, QueueEnd, StoreQueue, queue};
use super::spool_changes;
use super::{AuditHead, Changes, LeadCheck, Store, StoreError};
use crate::meters::StoreMeters;
use crate::spool::{SEGMENT_BYTES, SpoolExtent, SpoolKey, Spools};
use crate::sync::lock;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_protocol::{FrameNumber, JobId};
use tessera_transport::files;
use tokio::sync::Notify;

/// Most commits in one group. With more, sled holds too much memory.
const GROUP_MAX: usize = 256;
/// Approximate limit for the bytes of results in one group. It bounds how long the first commit of
/// a group waits.
const GROUP_BYTES_MAX: usize = 64 << 20;
/// Pause before a group is tried again after the disk was full.
const FULL_PAUSE: Duration = Duration::from_millis(500);
/// How often a store without commits is asked whether it can still take one.
const CHECK_EVERY: Duration = Duration::from_secs(1);
/// Pause between two warnings about the same full disk.
const WARN_PAUSE: Duration = Duration::from_secs(30);

/// Limits of the writer.
#[derive(Clone, Debug)]
pub struct WriterLimits {
    /// Data folder. The writer watches the free space of its file system.
    pub root: PathBuf,
    /// Bytes that must stay free. sled does not survive a full disk.
    pub reserve_bytes: u64,
    /// Least time from the end of one group of results to the next, unless there is something in it
    /// that somebody waits for: results that come in quick succession share a sync. A result that
    /// comes alone is written at once.
    pub results_pause: Duration,
}

/// Handle of the writer thread.
#[derive(Debug)]
pub struct StoreWriter {
    queue: StoreQueue,
    shared: Arc<Shared>,
    limits: WriterLimits,
    leading: Option<LeadCheck>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    full: AtomicBool,
    stop: AtomicBool,
    extents: Mutex<BTreeMap<SpoolKey, SpoolExtent>>,
    /// Number of readers of spools. No spool is deleted while there is one.
    holds: AtomicUsize,
    failure: Mutex<Option<StoreError>>,
    failed: Notify,
    audit_head: OnceLock<AuditHead>,
    meters: StoreMeters,
}

/// While this value exists, no spool is deleted.
#[derive(Debug)]
pub struct SpoolHold(Arc<Shared>);

impl Drop for SpoolHold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::SeqCst);
    }
}

impl StoreWriter {
    /// Keeps the files of spools until the guard is dropped, including spools that the journal
    /// forgets in the meantime.
    pub fn hold_spools(&self) -> SpoolHold {
        self.shared.holds.fetch_add(1, Ordering::SeqCst);
        SpoolHold(self.shared.clone())
    }

    /// Starts the thread that writes to the store.
    pub fn start(
        store: impl Store,
        spools: impl Spools,
        limits: WriterLimits,
    ) -> Result<Self, StoreError> {
        let (queue, receiver) = queue();
        let leading = store.leading();
        let shared = Arc::new(Shared::default());
        *lock(&shared.extents) = spools.extents().clone();
        let path = limits.root.clone();
        let watched = limits.clone();
        let shared_with = shared.clone();
        let mut writer = Writer {
            store,
            spools,
            limits,
            shared: shared_with,
            receiver,
            later: Vec::new(),
            written: None,
            stopping: false,
        };
        let thread = std::thread::Builder::new()
            .name("tessera-store".into())
            .spawn(move || writer.run())
            .map_err(|source| StoreError::Io { path, source })?;
        Ok(Self { queue, shared, limits: watched, leading, thread: Mutex::new(Some(thread)) })
    }

    /// Adds the head of the audit log to every commit, from now on.
    pub fn keep_audit_head(&self, head: AuditHead) {
        // There is one log.
        let _ = self.shared.audit_head.set(head);
    }

    /// Returns the queue for commits.
    pub fn queue(&self) -> StoreQueue {
        self.queue.clone()
    }

    /// Fails if this process leads the store no more: what it knows may be old.
    pub(crate) fn check_lead(&self) -> Result<(), StoreError> {
        self.leading.as_ref().map_or(Ok(()), LeadCheck::check)
    }

    /// Returns whether the disk is full: commits wait, and the coordinator should accept nothing
    /// new.
    pub fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// Returns whether a small new commit could be made durable now, judging by the free space.
    /// Asks the file system.
    pub fn has_room(&self) -> bool {
        !self.is_full()
            && files::free_bytes(&self.limits.root)
                .is_ok_and(|free| free >= self.limits.reserve_bytes)
    }

    /// Returns every spool.
    pub fn spools(&self) -> Vec<SpoolKey> {
        lock(&self.shared.extents).keys().copied().collect()
    }

    /// Returns the bytes of all spools.
    pub(crate) fn spool_bytes(&self) -> u64 {
        lock(&self.shared.extents).values().map(|extent| extent.length).sum()
    }

    /// Returns what the thread has counted.
    pub(crate) fn meters(&self) -> &StoreMeters {
        &self.shared.meters
    }

    /// Returns the spools of a job.
    pub fn spools_of(&self, job: JobId) -> Vec<SpoolKey> {
        let (first, last) = (FrameNumber(0), FrameNumber(u32::MAX));
        let range = SpoolKey { job, frame: first }..=SpoolKey { job, frame: last };
        lock(&self.shared.extents).range(range).map(|(key, _)| *key).collect()
    }

    /// Returns the durable extent of a spool.
    pub fn spool_extent(&self, key: SpoolKey) -> Option<SpoolExtent> {
        lock(&self.shared.extents).get(&key).cloned()
    }

    /// Takes the error that ended the thread, if there is one.
    pub fn take_failure(&self) -> Option<StoreError> {
        lock(&self.shared.failure).take()
    }

    /// Waits until the thread has ended with an error, which [`Self::take_failure`] has. For one
    /// who waits. Cancel-safe.
    pub(crate) async fn failed(&self) {
        self.shared.failed.notified().await;
    }

    /// Writes the commits that were sent, unless the disk is full, and ends the thread. Blocks. A
    /// repeated call is harmless.
    pub fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
        self.queue.stop();
        if let Some(thread) = lock(&self.thread).take()
            && thread.join().is_err()
        {
            tracing::error!("the store's thread has panicked");
        }
    }
}

struct Writer<S, P> {
    store: S,
    spools: P,
    limits: WriterLimits,
    shared: Arc<Shared>,
    receiver: QueueEnd,
    /// Spools to delete when no reader holds them. Those that are left at the end are deleted at
    /// the next start.
    later: Vec<SpoolKey>,
    /// When the group before this one was written.
    written: Option<Instant>,
    stopping: bool,
}

impl<S: Store, P: Spools> Writer<S, P> {
    fn run(&mut self) {
        match self.write_all().and_then(|()| self.store.close()) {
            Ok(()) | Err(StoreError::Stopped) => {}
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "the store has failed");
                *lock(&self.shared.failure) = Some(error);
                self.shared.failed.notify_one();
            }
        }
    }

    /// Writes every commit, until the end.
    fn write_all(&mut self) -> Result<(), StoreError> {
        while !self.stopping
            && let Some(first) = self.next()?
        {
            let group = self.collect(first);
            self.write_when_possible(&group)?;
            let now = Instant::now();
            self.written = Some(now);
            self.shared.meters.note_group(group.iter().map(|commit| now - commit.made));
            for commit in group {
                if let Some(inspect) = commit.inspect {
                    let _ = inspect.send(self.store.load());
                }
                // The caller may no longer wait for the answer.
                let _ = commit.done.send(());
            }
        }
        Ok(())
    }

    /// Waits for a commit. None at the end. Fails if the store can take no more.
    fn next(&self) -> Result<Option<Commit>, StoreError> {
        loop {
            match self.receiver.next(CHECK_EVERY) {
                Some(Message::Commit(commit)) => return Ok(Some(*commit)),
                Some(Message::Stop) => return Ok(None),
                None => self.store.check()?,
            }
        }
    }

    /// Collects the first commit and those that are already in the queue, and those that come soon
    /// if nobody waits for what it has. A commit that removes spools ends its group. Otherwise
    /// results of a later commit for a spool with the same key would be deleted with it.
    fn collect(&mut self, first: Commit) -> Vec<Commit> {
        let until = self.written.map(|at| at + self.limits.results_pause);
        let mut can_wait = first.can_wait();
        let mut group = vec![first];
        let mut bytes = 0;
        while let Some(last) = group.last() {
            bytes += last.results.iter().map(|entry| entry.body.length()).sum::<usize>();
            let ends =
                !last.finished.is_empty() || last.snapshot.is_some() || last.inspect.is_some();
            if ends || group.len() >= GROUP_MAX || bytes >= GROUP_BYTES_MAX {
                break;
            }
            match self.receiver.take() {
                Some(Message::Commit(commit)) => {
                    can_wait &= commit.can_wait();
                    group.push(*commit);
                }
                Some(Message::Stop) => {
                    self.stopping = true;
                    break;
                }
                None => match until {
                    Some(until) if can_wait && Instant::now() < until => {
                        self.receiver.wait_for_urgent(until);
                    }
                    _ => break,
                },
            }
        }
        group
    }

    /// Writes a group and waits while the disk is full. The core already counts on the group, so it
    /// must become durable before anything after it.
    fn write_when_possible(&mut self, group: &[Commit]) -> Result<(), StoreError> {
        let mut warned: Option<Instant> = None;
        loop {
            let error = match self.write(group) {
                Ok(()) => {
                    self.shared.full.store(false, Ordering::Relaxed);
                    return Ok(());
                }
                Err(error) if is_full(&error) => error,
                Err(error) => return Err(error),
            };
            self.shared.full.store(true, Ordering::Relaxed);
            if warned.is_none_or(|at| at.elapsed() >= WARN_PAUSE) {
                let error = &error as &dyn std::error::Error;
                tracing::error!(
                    error,
                    "disk is full: results wait, and nothing new is accepted, until there is room"
                );
                warned = Some(Instant::now());
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                return Err(StoreError::Stopped);
            }
            std::thread::sleep(FULL_PAUSE);
        }
    }

    fn write(&mut self, group: &[Commit]) -> Result<(), StoreError> {
        self.check_room(group)?;
        let mut changes = Changes::default();
        let mut results = Vec::new();
        for commit in group {
            changes.records.extend(commit.records.iter().cloned());
            results.extend(commit.results.iter().cloned());
            changes.tokens.extend(commit.token.clone());
            changes.members.extend(commit.members.iter().cloned());
            changes.files.extend(commit.files.iter().cloned());
            changes.snapshot = commit.snapshot.clone().or(changes.snapshot);
        }
        let mut extents = self.spools.append(&results)?;
        self.seal(group, &mut extents)?;
        let finished: Vec<SpoolKey> =
            group.iter().flat_map(|commit| commit.finished.clone()).collect();
        spool_changes::add(&mut changes, self.spools.extents(), (&extents, &finished));
        let head = self.shared.audit_head.get();
        let waiting = head.map(AuditHead::waiting).unwrap_or_default();
        (changes.audit_head, changes.audit) = (waiting.head.clone(), waiting.entries.clone());
        self.store.commit(&changes)?;
        head.inspect(|head| head.kept(&waiting));
        self.spools.accept(extents);
        self.spools.forget(&finished);
        self.later.extend(finished);
        // A frame that was opened again while somebody read has results of its own there by now.
        let known = self.spools.extents();
        self.later.retain(|key| !known.contains_key(key));
        if self.shared.holds.load(Ordering::SeqCst) == 0 {
            self.spools.delete(&std::mem::take(&mut self.later));
        }
        lock(&self.shared.extents).clone_from(self.spools.extents());
        Ok(())
    }

    /// Seals the spools that have all their results, and those that have reached the size of a
    /// segment.
    fn seal(
        &mut self,
        group: &[Commit],
        extents: &mut BTreeMap<SpoolKey, SpoolExtent>,
    ) -> Result<(), StoreError> {
        let grown = extents.iter().filter(|(_, extent)| extent.open_length() >= SEGMENT_BYTES);
        let mut keys: Vec<SpoolKey> = grown.map(|(key, _)| *key).collect();
        keys.extend(group.iter().flat_map(|commit| &commit.sealed));
        for key in keys {
            let extent = extents.get(&key).or_else(|| self.spools.extents().get(&key));
            if let Some(extent) = extent.filter(|extent| extent.open_length() > 0).cloned() {
                extents.insert(key, self.spools.seal(key, extent)?);
            }
        }
        Ok(())
    }

    fn check_room(&self, group: &[Commit]) -> Result<(), StoreError> {
        let path = self.limits.root.clone();
        let free = files::free_bytes(&path)
            .map_err(|source| StoreError::Io { path: path.clone(), source })?;
        let bytes = |commit: &Commit| {
            let records: usize = commit.records.iter().map(|(_, bytes)| bytes.len()).sum();
            let results: usize = commit.results.iter().map(|entry| entry.body.length()).sum();
            records + results + commit.snapshot.as_ref().map_or(0, |(_, bytes)| bytes.len())
        };
        let group: usize = group.iter().map(bytes).sum();
        let needed = self.limits.reserve_bytes.saturating_add(group as u64);
        if free < needed { Err(StoreError::Full { path, free, needed }) } else { Ok(()) }
    }
}

/// Returns whether an error was caused by a full disk, before the journal was changed.
fn is_full(error: &StoreError) -> bool {
    use crate::spool::SpoolError;
    match error {
        StoreError::Full { .. } => true,
        StoreError::Spool(SpoolError::Io { source, .. }) | StoreError::Io { source, .. } => {
            matches!(
                source.kind(),
                std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded
            )
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
