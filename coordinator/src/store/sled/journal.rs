//! The store in sled: one tree, and one batch per group. After the batch come sled's `flush` and an
//! `fdatasync` of its file.
//!
//! sled's own `flush` ends in `sync_file_range`, which survives a killed process but not a power
//! cut. The `fdatasync` makes the data survive both. The number of commits shows a lost end; see
//! [`super::witness`].

use super::envelope::{self, Payload};
use super::keys::{
    COUNT_KEY, SNAPSHOT_KEY, encode_member, encode_token, member_key, name_of, parse_key,
    record_key, spool_key, token_key,
};
use super::large::LargeValues;
use super::witness::Witness;
use crate::folder::DataFolder;
use crate::store::{Changes, Loaded, Sequence, Store, StoreError};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tessera_transport::files;

/// Memory that sled may use for pages, in bytes.
const CACHE_BYTES: u64 = 64 << 20;
/// Keys removed in one batch. With larger batches sled holds much memory.
const REMOVE_BATCH: usize = 256;
/// Longest time that sled needs to release a store that this process has closed.
const LOCK_WITHIN: Duration = Duration::from_secs(10);

/// A key and its value, or a description of the damage.
pub(super) type Entry = (Vec<u8>, Result<Vec<u8>, String>);

/// A store in a data folder.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    db: sled::Db,
    /// A second descriptor of sled's file. A sync of any descriptor syncs the file.
    file: File,
    large: LargeValues,
    sync: bool,
    /// Number of commits since the store was made.
    commits: u64,
    witness: Witness,
    /// Number of commits that the witness had counted when the store was opened.
    witnessed: u64,
}

impl Journal {
    /// Opens or makes the store of a data folder. If `sync` is false, the `fdatasync` is left out,
    /// for stores that end with their process.
    pub fn open(folder: &DataFolder, sync: bool) -> Result<Self, StoreError> {
        let path = folder.sled();
        let db = open_sled(&path)?;
        let file_path = path.join("db");
        let io = |source| StoreError::Io { path: file_path.clone(), source };
        let file = File::options().write(true).open(&file_path).map_err(io)?;
        // sled does not sync the files and folders that it makes. A new store must be as durable as
        // the values in it.
        File::open(path.join("conf")).and_then(|conf| conf.sync_all()).map_err(io)?;
        file.sync_all().map_err(io)?;
        files::sync_folder(&path).map_err(io)?;
        files::sync_folder(folder.root()).map_err(io)?;
        let witness_path = folder.witness();
        let (witness, witnessed) = Witness::open(&witness_path)
            .map_err(|source| StoreError::Io { path: witness_path, source })?;
        let large = LargeValues::new(folder.records());
        let mut journal = Self { path, db, file, large, sync, commits: 0, witness, witnessed };
        // `load` reports a damaged count together with all other damage.
        journal.commits = journal.count().unwrap_or(0);
        Ok(journal)
    }

    /// Reads the number of commits; 0 for a journal that was written before commits were counted.
    fn count(&self) -> Result<u64, StoreError> {
        let Some(sealed) = self.db.get(COUNT_KEY).map_err(self.sled_failed())? else {
            return Ok(0);
        };
        let bytes = envelope::open(COUNT_KEY, &sealed)
            .and_then(|payload| self.large.read(payload))
            .map_err(|problem| self.damaged(COUNT_KEY, problem))?;
        let bytes = <[u8; 8]>::try_from(bytes)
            .map_err(|_| self.damaged(COUNT_KEY, "it has eight bytes"))?;
        Ok(u64::from_le_bytes(bytes))
    }

    /// Describes the loss if the journal ends before its last durable commit.
    pub(super) fn lost_end(&self) -> Option<String> {
        (self.commits < self.witnessed).then(|| {
            format!(
                "its end is lost: it has {} commits, but {} were made durable",
                self.commits, self.witnessed
            )
        })
    }

    fn sled_failed(&self) -> impl Fn(sled::Error) -> StoreError {
        let path = self.path.clone();
        move |source| StoreError::Sled { path: path.clone(), source }
    }

    fn damaged(&self, key: &[u8], problem: impl Into<String>) -> StoreError {
        StoreError::Damaged { path: self.path.clone(), what: name_of(key), problem: problem.into() }
    }

    /// Returns every key with its value, or with a description of the damage.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry, StoreError>> + '_ {
        self.db.iter().map(|entry| {
            let (key, sealed) = entry.map_err(self.sled_failed())?;
            let value = envelope::open(&key, &sealed).and_then(|payload| self.large.read(payload));
            Ok((key.to_vec(), value))
        })
    }

    /// Adds the values of a backup, durably, as one commit.
    pub fn put(&mut self, values: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in values {
            if parse_key(key).is_none() || key == COUNT_KEY {
                return Err(self.damaged(key, "no such kind of key"));
            }
            self.insert(&mut batch, key, value)?;
        }
        self.finish(batch)
    }

    /// Makes a batch durable, together with the new number of commits.
    fn finish(&mut self, mut batch: sled::Batch) -> Result<(), StoreError> {
        let count = self.commits + 1;
        self.insert(&mut batch, COUNT_KEY, &count.to_le_bytes())?;
        self.apply(batch)?;
        self.commits = count;
        if let Err(error) = self.witness.tell(count) {
            // The count of the witness is now too low, which is allowed.
            tracing::warn!(%error, "the journal's witness cannot be updated");
        }
        Ok(())
    }

    /// Counts the files of large values that no value names. Returns 0 if a damaged value makes
    /// this unknown.
    pub(super) fn unnamed(&self) -> Result<u64, StoreError> {
        self.named().map_or(Ok(0), |named| self.large.count_beside(&named))
    }

    fn snapshot(&self) -> Result<Option<(Sequence, Vec<u8>)>, StoreError> {
        let Some(sealed) = self.db.get(SNAPSHOT_KEY).map_err(self.sled_failed())? else {
            return Ok(None);
        };
        let bytes = envelope::open(SNAPSHOT_KEY, &sealed)
            .and_then(|payload| self.large.read(payload))
            .map_err(|problem| self.damaged(SNAPSHOT_KEY, problem))?;
        let Some((sequence, bytes)) = bytes.split_first_chunk::<8>() else {
            return Err(self.damaged(SNAPSHOT_KEY, "it is cut short"));
        };
        Ok(Some((Sequence::from_le_bytes(*sequence), bytes.to_vec())))
    }

    fn insert(&self, batch: &mut sled::Batch, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let payload = self.large.keep(value)?;
        batch.insert(key, envelope::seal(key, &payload));
        Ok(())
    }

    fn apply(&self, batch: sled::Batch) -> Result<(), StoreError> {
        self.db.apply_batch(batch).map_err(self.sled_failed())?;
        self.db.flush().map_err(self.sled_failed())?;
        if self.sync {
            let path = self.path.join("db");
            self.file.sync_data().map_err(|source| StoreError::Io { path, source })?;
        }
        Ok(())
    }

    /// Removes the records that a snapshot replaces. After a crash in between, the next load skips
    /// the remaining ones.
    fn compact(&self, upto: Sequence) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        for key in self.db.range(record_key(0)..=record_key(upto)).keys() {
            keys.push(key.map_err(self.sled_failed())?);
        }
        for slice in keys.chunks(REMOVE_BATCH) {
            let mut batch = sled::Batch::default();
            slice.iter().for_each(|key| batch.remove(key));
            self.apply(batch)?;
        }
        self.forget_unnamed()
    }

    fn forget_unnamed(&self) -> Result<(), StoreError> {
        self.large.retain(&self.named()?)
    }

    /// Returns the large values that the journal names. Fails if a value is damaged, because it is
    /// then unknown what that value names.
    fn named(&self) -> Result<BTreeSet<[u8; 32]>, StoreError> {
        let mut named = BTreeSet::new();
        for entry in self.db.iter() {
            let (key, sealed) = entry.map_err(self.sled_failed())?;
            match envelope::open(&key, &sealed) {
                Ok(Payload::Large(hash)) => drop(named.insert(hash)),
                Ok(Payload::Inline(_)) => {}
                Err(problem) => return Err(self.damaged(&key, problem)),
            }
        }
        Ok(named)
    }
}

impl Store for Journal {
    fn load(&self) -> Result<Loaded, StoreError> {
        self.count()?;
        if let Some(problem) = self.lost_end() {
            let what = "the journal".into();
            return Err(StoreError::Damaged { path: self.path.clone(), what, problem });
        }
        let mut loaded = Loaded { snapshot: self.snapshot()?, ..Loaded::default() };
        let after = loaded.snapshot.as_ref().map_or(0, |(sequence, _)| *sequence);
        for entry in self.entries() {
            let (key, value) = entry?;
            value
                .and_then(|value| loaded.take(&key, value))
                .map_err(|problem| self.damaged(&key, problem))?;
        }
        // The snapshot replaces these records; `tidy` removes them.
        loaded.records.retain(|(sequence, _)| *sequence > after);
        for (index, (sequence, _)) in loaded.records.iter().enumerate() {
            let expected = after + 1 + index as u64;
            if *sequence != expected {
                return Err(self.damaged(&record_key(expected), "it is missing"));
            }
        }
        Ok(loaded)
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        self.compact(self.snapshot()?.map_or(0, |(sequence, _)| sequence))
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (sequence, bytes) in &changes.records {
            self.insert(&mut batch, &record_key(*sequence), bytes)?;
        }
        for (spool, extent) in &changes.spools {
            let key = spool_key(*spool);
            match extent {
                Some(extent) => self.insert(&mut batch, &key, &extent.to_bytes())?,
                None => batch.remove(&key[..]),
            }
        }
        for (hash, state) in &changes.tokens {
            let key = token_key(hash);
            match state {
                Some(state) => self.insert(&mut batch, &key, &encode_token(state))?,
                None => batch.remove(&key[..]),
            }
        }
        for (number, member) in &changes.members {
            let key = member_key(*number);
            match member {
                Some(member) => self.insert(&mut batch, &key, &encode_member(member))?,
                None => batch.remove(&key[..]),
            }
        }
        if let Some((sequence, bytes)) = &changes.snapshot {
            let mut value = sequence.to_le_bytes().to_vec();
            value.extend_from_slice(bytes);
            self.insert(&mut batch, SNAPSHOT_KEY, &value)?;
        }
        self.finish(batch)?;
        match &changes.snapshot {
            Some((sequence, _)) => self.compact(*sequence),
            None => Ok(()),
        }
    }
}

/// Opens sled and turns its panics about damage into errors. sled's threads may still hold the lock
/// of a store that this process has just closed. The folder's lock shows that no other process has
/// the store, so it is safe to wait.
fn open_sled(path: &Path) -> Result<sled::Db, StoreError> {
    let begun = Instant::now();
    loop {
        let config =
            sled::Config::new().path(path).flush_every_ms(None).cache_capacity(CACHE_BYTES);
        match std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| config.open())) {
            Ok(Ok(db)) => return Ok(db),
            Ok(Err(source)) if begun.elapsed() < LOCK_WITHIN && is_locked(&source) => {
                std::thread::sleep(Duration::from_millis(10));
            }
            Ok(Err(source)) => return Err(StoreError::Sled { path: path.to_path_buf(), source }),
            Err(_) => {
                return Err(StoreError::Damaged {
                    path: path.to_path_buf(),
                    what: "the journal's file".into(),
                    problem: "sled cannot read it".into(),
                });
            }
        }
    }
}

/// sled wraps the error of the lock in a text.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(source) if source.to_string().contains("could not acquire \
        lock"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
