//! Values that are too large for the journal, in files named by their BLAKE3.
//!
//! sled moves a page of more than 128 KiB to a separate file, which it never syncs. A leaf holds up
//! to 17 values before it splits. So values of at most [`INLINE_MAX`] bytes keep leaves well below
//! that size. Larger values are stored here and synced.

use crate::store::StoreError;
use crate::store::envelope::Payload;
use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use tessera_protocol::BlobHash;
use tessera_transport::files;

/// Largest value in the journal itself, in bytes. 17 × 4 KiB are 68 KiB per leaf.
pub(super) const INLINE_MAX: usize = 4096;

/// Folder of the large values.
#[derive(Debug)]
pub(super) struct LargeValues {
    root: PathBuf,
}

impl LargeValues {
    pub(super) fn new(root: PathBuf) -> Self {
        Self { root }
    }

    fn path(&self, hash: &[u8; 32]) -> PathBuf {
        self.root.join(BlobHash(*hash).to_string())
    }

    /// Stores a value: small values inline, others in a file that is durable on return.
    pub(super) fn keep(&self, bytes: &[u8]) -> Result<Payload, StoreError> {
        if bytes.len() <= INLINE_MAX {
            return Ok(Payload::Inline(bytes.to_vec()));
        }
        let hash = BlobHash::of(bytes).0;
        let path = self.path(&hash);
        files::write_atomically(&path, bytes, files::Access::Secret)
            .map_err(|source| StoreError::Io { path, source })?;
        Ok(Payload::Large(hash))
    }

    /// Reads the bytes of a value. The error describes the damage.
    pub(super) fn read(&self, payload: Payload) -> Result<Vec<u8>, String> {
        let hash = match payload {
            Payload::Inline(bytes) => return Ok(bytes),
            Payload::Large(hash) => hash,
        };
        let path = self.path(&hash);
        let bytes =
            std::fs::read(&path).map_err(|error| format!("`{}`: {error}", path.display()))?;
        if BlobHash::of(&bytes).0 != hash {
            return Err(format!("`{}` has other bytes than were written", path.display()));
        }
        Ok(bytes)
    }

    /// Deletes the files that `known` does not name.
    pub(super) fn retain(&self, known: &BTreeSet<[u8; 32]>) -> Result<(), StoreError> {
        for path in self.beside(known)? {
            std::fs::remove_file(&path).map_err(|source| StoreError::Io { path, source })?;
        }
        Ok(())
    }

    /// Counts the files that `known` does not name.
    pub(super) fn count_beside(&self, known: &BTreeSet<[u8; 32]>) -> Result<u64, StoreError> {
        Ok(self.beside(known)?.len() as u64)
    }

    fn beside(&self, known: &BTreeSet<[u8; 32]>) -> Result<Vec<PathBuf>, StoreError> {
        let failed = |source: io::Error| StoreError::Io { path: self.root.clone(), source };
        let names: BTreeSet<String> =
            known.iter().map(|hash| BlobHash(*hash).to_string()).collect();
        let mut beside = Vec::new();
        let entries = match std::fs::read_dir(&self.root) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(beside),
            Err(error) => return Err(failed(error)),
        };
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if !names.contains(&*entry.file_name().to_string_lossy()) {
                beside.push(entry.path());
            }
        }
        Ok(beside)
    }
}
