//! The store in sled: one tree, and one batch per group. After the batch come sled's `flush` and an
//! `fdatasync` of its file.
//!
//! sled's own `flush` ends in `sync_file_range`, which survives a killed process but not a power
//! cut. The `fdatasync` makes the data survive both. The number of commits shows a lost end; see
//! [`super::witness`].

use super::opening;
use super::reader::JournalReader;
use super::witness::{self, Witness};
use crate::folder::DataFolder;
use crate::store::envelope;
use crate::store::keys::{COUNT_KEY, SNAPSHOT_KEY, parse_key, record_key, snapshot_value};
use crate::store::mark::StoreMark;
use crate::store::{Changes, Loaded, Sequence, Store, StoreError};
use std::fs::File;
use tessera_transport::files;

/// Keys removed in one batch. With larger batches sled holds much memory.
const REMOVE_BATCH: usize = 256;

/// A store in a data folder.
#[derive(Debug)]
pub struct Journal {
    pub(super) read: JournalReader,
    /// A second descriptor of sled's file. A sync of any descriptor syncs the file.
    file: File,
    sync: bool,
    witness: Witness,
}

impl Journal {
    /// Opens or makes the store of a data folder. If `sync` is false, the `fdatasync` is left out,
    /// for stores that end with their process.
    pub fn open(folder: &DataFolder, sync: bool) -> Result<Self, StoreError> {
        StoreMark::refuse(folder)?;
        Self::open_own(folder, sync)
    }

    /// Opens or makes the journal, also in a folder whose state is in another store.
    pub(in crate::store) fn open_own(folder: &DataFolder, sync: bool) -> Result<Self, StoreError> {
        let witness_path = folder.witness();
        let witness_failed = |source| StoreError::Io { path: witness_path.clone(), source };
        let witnessed = witness::read(&witness_path).map_err(witness_failed)?;
        let db = opening::open(folder, witnessed)?;
        let path = folder.sled();
        let file_path = path.join("db");
        let io = |source| StoreError::Io { path: file_path.clone(), source };
        let file = File::options().write(true).open(&file_path).map_err(io)?;
        // sled does not sync the files and folders that it makes. A new store must be as durable as
        // the values in it.
        File::open(path.join("conf")).and_then(|conf| conf.sync_all()).map_err(io)?;
        file.sync_all().map_err(io)?;
        files::sync_folder(&path).map_err(io)?;
        files::sync_folder(folder.root()).map_err(io)?;
        let witness = Witness::open(&witness_path).map_err(witness_failed)?;
        Ok(Self { read: JournalReader::new(db, folder, witnessed), file, sync, witness })
    }

    /// Adds the values of a backup, durably, as one commit.
    pub fn put(&mut self, values: &[(Vec<u8>, Vec<u8>)]) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (key, value) in values {
            if parse_key(key).is_none() || key == COUNT_KEY {
                return Err(self.read.damaged(key, "no such kind of key"));
            }
            self.insert(&mut batch, key, value)?;
        }
        self.finish(batch)
    }

    /// Makes a batch durable, together with the new number of commits.
    fn finish(&mut self, mut batch: sled::Batch) -> Result<(), StoreError> {
        let count = self.read.commits + 1;
        self.insert(&mut batch, COUNT_KEY, &count.to_le_bytes())?;
        self.apply(batch)?;
        self.read.commits = count;
        if let Err(error) = self.witness.tell(count) {
            // The count of the witness is now too low, which is allowed.
            tracing::warn!(%error, "the journal's witness cannot be updated");
        }
        Ok(())
    }

    fn insert(&self, batch: &mut sled::Batch, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let payload = self.read.large.keep(value)?;
        batch.insert(key, envelope::seal(key, &payload));
        Ok(())
    }

    fn apply(&self, batch: sled::Batch) -> Result<(), StoreError> {
        self.read.db.apply_batch(batch).map_err(self.read.sled_failed())?;
        self.read.db.flush().map_err(self.read.sled_failed())?;
        if self.sync {
            let path = self.read.path.join("db");
            self.file.sync_data().map_err(|source| StoreError::Io { path, source })?;
        }
        Ok(())
    }

    /// Removes the records that a snapshot replaces. After a crash in between, the next load skips
    /// the remaining ones.
    fn compact(&self, upto: Sequence) -> Result<(), StoreError> {
        let mut keys = Vec::new();
        for key in self.read.db.range(record_key(0)..=record_key(upto)).keys() {
            keys.push(key.map_err(self.read.sled_failed())?);
        }
        for slice in keys.chunks(REMOVE_BATCH) {
            let mut batch = sled::Batch::default();
            slice.iter().for_each(|key| batch.remove(key));
            self.apply(batch)?;
        }
        self.forget_unnamed()
    }

    fn forget_unnamed(&self) -> Result<(), StoreError> {
        self.read.large.retain(&self.read.named()?)
    }
}

impl Store for Journal {
    fn load(&self) -> Result<Loaded, StoreError> {
        self.read.load()
    }

    fn tidy(&mut self) -> Result<(), StoreError> {
        self.compact(self.read.snapshot()?.map_or(0, |(sequence, _)| sequence))
    }

    fn commit(&mut self, changes: &Changes) -> Result<(), StoreError> {
        let mut batch = sled::Batch::default();
        for (sequence, bytes) in &changes.records {
            self.insert(&mut batch, &record_key(*sequence), bytes)?;
        }
        for (key, value) in changes.values() {
            match value {
                Some(value) => self.insert(&mut batch, &key, &value)?,
                None => batch.remove(key),
            }
        }
        if let Some((sequence, bytes)) = &changes.snapshot {
            self.insert(&mut batch, SNAPSHOT_KEY, &snapshot_value(*sequence, bytes))?;
        }
        self.finish(batch)?;
        match &changes.snapshot {
            Some((sequence, _)) => self.compact(*sequence),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "guard_tests.rs"]
mod guard_tests;
