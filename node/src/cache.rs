//! The cache of scene files: blobs on disk by their hash, with a limit in bytes. The blob that was
//! unused for the longest time is removed first. Owns the files and their checks; does not fetch.
//!
//! A blob's file name is its hash in hex. A blob that is still arriving has `.part` after it, and
//! is continued from there.

use crate::disk::remove_if_there;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tessera_protocol::BlobHash;

/// Why a blob cannot be stored or used.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// The disk returned an error.
    #[error("cannot use `{path}`")]
    Disk {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
    /// The received bytes have another hash.
    #[error("bytes that arrived for blob {wanted} have hash {found}; they were thrown away")]
    Foreign {
        /// Hash of the requested blob.
        wanted: BlobHash,
        /// Hash of the received bytes.
        found: BlobHash,
    },
}

/// A blob that is completely in the cache.
#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u64,
    /// Grows with every use. The blob with the smallest value is removed first.
    used: u64,
    /// Whether its bytes were compared with its hash since this process started.
    checked: bool,
}

#[derive(Debug, Default)]
struct Index {
    entries: BTreeMap<BlobHash, Entry>,
    clock: u64,
}

impl Index {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn bytes(&self) -> u64 {
        self.entries.values().map(|entry| entry.bytes).sum()
    }

    /// Returns the blob that was unused for the longest time and is not `kept`.
    fn oldest_but(&self, kept: BlobHash) -> Option<BlobHash> {
        let others = self.entries.iter().filter(|(hash, _)| **hash != kept);
        others.min_by_key(|(_, entry)| entry.used).map(|(hash, _)| *hash)
    }
}

/// Scene files on disk.
#[derive(Debug)]
pub struct BlobCache {
    folder: PathBuf,
    bytes_max: u64,
    index: Mutex<Index>,
}

impl BlobCache {
    /// Opens the cache in `folder`. The order of removal survives a restart.
    pub fn open(folder: &Path, bytes_max: u64) -> Result<Self, CacheError> {
        let disk = |source| CacheError::Disk { path: folder.to_owned(), source };
        let mut found: Vec<(SystemTime, BlobHash, u64)> = Vec::new();
        for entry in fs::read_dir(folder).map_err(disk)? {
            let entry = entry.map_err(disk)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.strip_suffix(".part").is_some_and(|stem| hash_from_hex(stem).is_some()) {
                continue;
            }
            let metadata = entry.metadata().map_err(disk)?;
            match hash_from_hex(&name) {
                Some(hash) if metadata.is_file() => {
                    found.push((
                        metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                        hash,
                        metadata.len(),
                    ));
                }
                _ => {
                    tracing::warn!(file = %entry.path().display(), "foreign file in the cache is \
                        kept")
                }
            }
        }
        found.sort_unstable();
        let mut index = Index::default();
        for (_, hash, bytes) in found {
            let used = index.tick();
            index.entries.insert(hash, Entry { bytes, used, checked: false });
        }
        let cache = Self { folder: folder.to_owned(), bytes_max, index: Mutex::new(index) };
        cache.evict(None)?;
        Ok(cache)
    }

    /// Puts the blob at `target` (which must not exist) as a hard link, or as a copy if links do
    /// not work. Returns false if the cache does not have the blob. The first use since the start
    /// compares the bytes with the hash and deletes a damaged blob.
    pub fn place(&self, hash: BlobHash, target: &Path) -> Result<bool, CacheError> {
        let path = self.path(hash);
        let Some(entry) = self.index().entries.get(&hash).copied() else { return Ok(false) };
        if !entry.checked {
            let rotten = match hash_of_file(&path) {
                Ok(found) => found != hash,
                Err(error) if error.kind() == io::ErrorKind::NotFound => true,
                Err(source) => return Err(CacheError::Disk { path, source }),
            };
            if rotten {
                tracing::warn!(blob = %hash, "cached file no longer has its hash; it will be \
                    fetched again");
                self.forget(hash)?;
                return Ok(false);
            }
        }
        if fs::hard_link(&path, target).is_err() {
            fs::copy(&path, target)
                .map_err(|source| CacheError::Disk { path: target.to_owned(), source })?;
        }
        // The file's time keeps the order of removal over a restart. If it cannot be set, only that
        // order suffers.
        let _ = File::open(&path).and_then(|file| file.set_modified(SystemTime::now()));
        let mut index = self.index();
        let used = index.tick();
        if let Some(entry) = index.entries.get_mut(&hash) {
            (entry.used, entry.checked) = (used, true);
        }
        Ok(true)
    }

    /// Returns the file for the arriving bytes of a blob, which an earlier attempt may have left,
    /// and that of the complete blob.
    pub(crate) fn places(&self, hash: BlobHash) -> (PathBuf, PathBuf) {
        let path = self.path(hash);
        (path.with_extension("part"), path)
    }

    /// Accepts a blob whose file has arrived in its place and was checked, and makes room.
    pub(crate) fn adopt(&self, hash: BlobHash, bytes: u64) -> Result<(), CacheError> {
        let mut index = self.index();
        let used = index.tick();
        index.entries.insert(hash, Entry { bytes, used, checked: true });
        drop(index);
        self.evict(Some(hash))
    }

    /// Returns the size of all complete blobs in bytes.
    pub fn bytes(&self) -> u64 {
        self.index().bytes()
    }

    /// Removes the longest unused blobs until the limit holds. A new blob stays even if it is
    /// larger than the whole cache, because it is about to be used.
    fn evict(&self, just_came: Option<BlobHash>) -> Result<(), CacheError> {
        loop {
            let oldest = {
                let index = self.index();
                if index.bytes() <= self.bytes_max {
                    return Ok(());
                }
                match just_came {
                    Some(kept) => index.oldest_but(kept),
                    None => index
                        .entries
                        .iter()
                        .min_by_key(|(_, entry)| entry.used)
                        .map(|(hash, _)| *hash),
                }
            };
            let Some(oldest) = oldest else { return Ok(()) };
            tracing::debug!(blob = %oldest, "evicted from the cache");
            self.forget(oldest)?;
        }
    }

    fn forget(&self, hash: BlobHash) -> Result<(), CacheError> {
        self.index().entries.remove(&hash);
        let path = self.path(hash);
        remove_if_there(&path).map_err(|source| CacheError::Disk { path, source })
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, hash: BlobHash) -> PathBuf {
        self.folder.join(hash.to_string())
    }
}

fn hash_of_file(path: &Path) -> io::Result<BlobHash> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok(BlobHash(*hasher.finalize().as_bytes()))
}

fn hash_from_hex(text: &str) -> Option<BlobHash> {
    let hash = BlobHash(*blake3::Hash::from_hex(text).ok()?.as_bytes());
    (hash.to_string() == text).then_some(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrive(cache: &BlobCache, bytes: &[u8]) -> BlobHash {
        let hash = BlobHash::of(bytes);
        fs::write(cache.places(hash).1, bytes).unwrap();
        cache.adopt(hash, bytes.len() as u64).unwrap();
        hash
    }

    fn place(cache: &BlobCache, hash: BlobHash) -> Option<Vec<u8>> {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        cache.place(hash, &target).unwrap().then(|| fs::read(target).unwrap())
    }

    #[test]
    fn the_least_recently_used_blob_is_evicted_first() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BlobCache::open(folder.path(), 10).unwrap();
        let (a, b) = (arrive(&cache, b"aaaa"), arrive(&cache, b"bbbb"));
        assert_eq!(place(&cache, a).unwrap(), b"aaaa");
        let c = arrive(&cache, b"cccc");
        assert_eq!(place(&cache, b), None);
        assert_eq!(place(&cache, a).unwrap(), b"aaaa");
        assert_eq!(place(&cache, c).unwrap(), b"cccc");
        assert_eq!(cache.bytes(), 8);
    }

    #[test]
    fn blobs_and_their_bound_survive_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BlobCache::open(folder.path(), 100).unwrap();
        let (a, b) = (arrive(&cache, b"aaaa"), arrive(&cache, b"bbbb"));
        File::open(folder.path().join(a.to_string()))
            .unwrap()
            .set_modified(SystemTime::UNIX_EPOCH)
            .unwrap();
        drop(cache);
        let cache = BlobCache::open(folder.path(), 7).unwrap();
        assert_eq!(place(&cache, a), None);
        assert_eq!(place(&cache, b).unwrap(), b"bbbb");
    }

    #[test]
    fn corrupted_blobs_on_disk_are_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let hash = arrive(&BlobCache::open(folder.path(), 100).unwrap(), b"fresh");
        fs::write(folder.path().join(hash.to_string()), b"roten").unwrap();
        let cache = BlobCache::open(folder.path(), 100).unwrap();
        assert_eq!(place(&cache, hash), None);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn an_unfinished_blob_is_no_blob_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let hash = BlobHash::of(b"whole blob");
        let (part, _) = BlobCache::open(folder.path(), 100).unwrap().places(hash);
        fs::write(&part, b"whole").unwrap();
        let cache = BlobCache::open(folder.path(), 100).unwrap();
        assert_eq!(place(&cache, hash), None);
        assert_eq!(fs::read(part).unwrap(), b"whole");
    }

    #[test]
    fn an_oversized_blob_is_kept_until_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let cache = BlobCache::open(folder.path(), 3).unwrap();
        let large = arrive(&cache, b"too large");
        assert_eq!(place(&cache, large).unwrap(), b"too large");
        let small = arrive(&cache, b"ok");
        assert_eq!(place(&cache, large), None);
        assert_eq!(place(&cache, small).unwrap(), b"ok");
    }
}
