//! The store in sled: one tree, one batch a group, then `flush`, then `fdatasync` of sled's file.
//!
//! sled's own `flush` ends in `sync_file_range`, which survives a killed process but not a power
//! cut; hence the `fdatasync`. The number of commits shows a lost end; see [`super::witness`].

use super::envelope::{self, Payload};
use super::keys::{
    COUNT_KEY, SNAPSHOT_KEY, encode_token, name_of, parse_key, record_key, spool_key, token_key,
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

/// Memory that sled may use for pages, bytes.
const CACHE_BYTES: u64 = 64 << 20;
/// Keys removed in one batch: a large batch makes sled hold much memory.
const REMOVE_BATCH: usize = 256;
/// How long sled may take to let go of a store that this process has closed.
const LOCK_WITHIN: Duration = Duration::from_secs(10);

/// A key, and its value or what is wrong with it.
pub(super) type Entry = (Vec<u8>, Result<Vec<u8>, String>);

/// A store in a data folder.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    db: sled::Db,
    /// sled's file, opened once more: a sync of any descriptor syncs the file.
    file: File,
    large: LargeValues,
    sync: bool,
    /// Commits so far, of this store's whole life.
    commits: u64,
    witness: Witness,
    /// Commits that the witness had seen when the store was opened.
    witnessed: u64,
}

impl Journal {
    /// Opens or makes the store of a data folder. `sync` false leaves out the `fdatasync`: for a
    /// store that goes away with its process.
    pub fn open(folder: &DataFolder, sync: bool) -> Result<Self, StoreError> {
        let path = folder.sled();
        let db = open_sled(&path)?;
        let file_path = path.join("db");
        let io = |source| StoreError::Io { path: file_path.clone(), source };
        let file = File::options().write(true).open(&file_path).map_err(io)?;
        // sled makes files and folders, and syncs none of them: a store that is new must last as
        // what is put into it does.
        File::open(path.join("conf")).and_then(|conf| conf.sync_all()).map_err(io)?;
        file.sync_all().map_err(io)?;
        files::sync_folder(&path).map_err(io)?;
        files::sync_folder(folder.root()).map_err(io)?;
        let witness_path = folder.witness();
        let (witness, witnessed) = Witness::open(&witness_path)
            .map_err(|source| StoreError::Io { path: witness_path, source })?;
        let large = LargeValues::new(folder.records());
        let mut journal = Self { path, db, file, large, sync, commits: 0, witness, witnessed };
        // Damage to the count is told by `load`, with everything else.
        journal.commits = journal.count().unwrap_or(0);
        Ok(journal)
    }

    /// The number of commits as the journal has it; 0 where it was written before they were
    /// counted.
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

    /// What is wrong where the journal ends before what was made durable.
    pub(super) fn lost_end(&self) -> Option<String> {
        (self.commits < self.witnessed).then(|| {
            format!(
                "its end is lost: it tells of {} commits, and {} were made durable",
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

    /// Every key with its value, or with what is wrong with it.
    pub(super) fn entries(&self) -> impl Iterator<Item = Result<Entry, StoreError>> + '_ {
        self.db.iter().map(|entry| {
            let (key, sealed) = entry.map_err(self.sled_failed())?;
            let value = envelope::open(&key, &sealed).and_then(|payload| self.large.read(payload));
            Ok((key.to_vec(), value))
        })
    }

    /// Puts values in as a backup has them, durably, as one commit.
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

    /// Makes a batch durable, with its number.
    fn finish(&mut self, mut batch: sled::Batch) -> Result<(), StoreError> {
        let count = self.commits + 1;
        self.insert(&mut batch, COUNT_KEY, &count.to_le_bytes())?;
        self.apply(batch)?;
        self.commits = count;
        if let Err(error) = self.witness.tell(count) {
            // It has seen less than there is, which it may.
            tracing::warn!(%error, "the journal's witness cannot be told");
        }
        Ok(())
    }

    /// Files of large values that no value names; 0 where that cannot be told, because a value is
    /// damaged.
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

    /// Removes what a snapshot has made needless. A crash in between leaves records that the next
    /// load skips.
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

    /// Large values that the journal names. What a damaged value names is unknown, so that there is
    /// no answer then.
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
        // The snapshot stands for them; `tidy` removes them.
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

/// Opens sled. It answers some damage by a panic; whoever starts a coordinator gets an error
/// instead. A store that this process has just closed keeps sled's lock until sled's own threads
/// have let go; the folder's lock, which is held, says that nobody else has it.
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

/// sled wraps the lock's error in a text.
fn is_locked(error: &sled::Error) -> bool {
    matches!(error, sled::Error::Io(source) if source.to_string().contains("could not acquire \
        lock"))
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
