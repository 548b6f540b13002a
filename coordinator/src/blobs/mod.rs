//! Content-addressed files: any bytes under their BLAKE3. Owns their names on disk and their
//! durability; uploads and downloads are the transport's.

pub mod sweep;

use crate::folder::DataFolder;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;
use sweep::Marks;
use tessera_protocol::BlobHash;
use tessera_transport::BlobStore;
use tessera_transport::files;

/// Bytes read at once when a file is hashed.
const READ_BYTES: usize = 1 << 20;

/// Why a blob cannot be kept or read.
#[derive(Debug, thiserror::Error)]
#[error("`{path}` cannot be used")]
pub struct BlobError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// The blobs of a data folder. Clones share it.
#[derive(Clone, Debug)]
pub struct Blobs {
    whole: PathBuf,
    partial: PathBuf,
    temporary: PathBuf,
    reserve_bytes: u64,
    shared: Arc<Shared>,
}

/// What clones have in common.
#[derive(Debug, Default)]
struct Shared {
    /// Blobs that no job named when the sweeper looked. Claims and sweeps happen under it, one at a
    /// time.
    marks: Mutex<Marks>,
    holds: AtomicUsize,
}

/// Nothing is swept while it lives.
#[derive(Debug)]
pub struct Hold(Arc<Shared>);

impl Drop for Hold {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Blobs {
    /// The blobs of this folder. An upload is refused where it would leave fewer than
    /// `reserve_bytes` on the disk.
    pub fn open(folder: &DataFolder, reserve_bytes: u64) -> Self {
        let (whole, partial, temporary) = (folder.blobs(), folder.partial(), folder.temporary());
        Self { whole, partial, temporary, reserve_bytes, shared: Arc::default() }
    }

    /// Keeps every blob until the guard is dropped, named or not.
    pub fn hold(&self) -> Hold {
        self.shared.holds.fetch_add(1, Ordering::SeqCst);
        // A sweep that is under way has seen it, or is over, once the lock has been had.
        self.with_marks(|_| ());
        Hold(self.shared.clone())
    }

    pub(crate) fn is_held(&self) -> bool {
        self.shared.holds.load(Ordering::SeqCst) > 0
    }

    /// Does something that no claim and no sweep happens beside.
    pub(crate) fn with_marks<T>(&self, work: impl FnOnce(&mut Marks) -> T) -> T {
        work(&mut self.shared.marks.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Length in bytes of a blob that is here whole, and will be for the sweeper's grace from now
    /// on: whoever is told so may name it in a job.
    pub fn claim(&self, hash: BlobHash) -> Option<u64> {
        self.with_marks(|marks| {
            let length = self.length(hash)?;
            marks.remove(hash);
            if let Err(error) = touch(&self.path(hash)) {
                tracing::warn!(%hash, %error, "a blob's time cannot be set; its grace goes by the \
                    last one");
            }
            Some(length)
        })
    }

    /// Every file among the blobs, with the hash that is its name, if it is one, and its length.
    pub(crate) fn visit(&self, visit: &mut dyn FnMut(&Path, Option<BlobHash>, u64)) {
        let folders = std::fs::read_dir(&self.whole).into_iter().flatten().flatten();
        for folder in folders {
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let name = file.file_name();
                let hash = name.to_str().and_then(hash_named);
                let hash = hash.filter(|hash| self.path(*hash) == file.path());
                visit(&file.path(), hash, file.metadata().map_or(0, |metadata| metadata.len()));
            }
        }
    }

    /// A blob's file, to be read.
    pub(crate) fn open_file(&self, hash: BlobHash) -> io::Result<File> {
        File::open(self.path(hash))
    }

    /// Where uploads that are not whole stand.
    pub(crate) fn uploads(&self) -> &Path {
        &self.partial
    }

    fn path(&self, hash: BlobHash) -> PathBuf {
        let name = hash.to_string();
        self.whole.join(&name[..2]).join(name)
    }

    /// Length in bytes of a blob that is here whole.
    pub fn length(&self, hash: BlobHash) -> Option<u64> {
        let metadata = std::fs::metadata(self.path(hash)).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// A file in the making, deleted unless it is adopted.
    pub fn temporary(&self) -> Result<tempfile::NamedTempFile, BlobError> {
        tempfile::NamedTempFile::new_in(&self.temporary)
            .map_err(|source| BlobError { path: self.temporary.clone(), source })
    }

    /// Takes a finished file over as a blob, durably; gives its name and length.
    pub fn adopt(&self, file: tempfile::NamedTempFile) -> Result<(BlobHash, u64), BlobError> {
        let path = file.path().to_path_buf();
        let adopted = (|| {
            file.as_file().sync_all()?;
            let (hash, length) = hash_file(&path)?;
            self.install(&path, hash)?;
            Ok((hash, length))
        })();
        let adopted = adopted.map_err(|source| BlobError { path: path.clone(), source })?;
        // It has its final name now, and is no temporary file any more.
        file.into_temp_path().keep().map_err(|error| BlobError { path, source: error.error })?;
        Ok(adopted)
    }

    /// Gives a synced file its final name, durably.
    fn install(&self, from: &Path, hash: BlobHash) -> io::Result<()> {
        let path = self.path(hash);
        if let Some(folder) = path.parent()
            && !folder.is_dir()
        {
            std::fs::create_dir_all(folder)?;
            files::sync_folder(&self.whole)?;
        }
        self.with_marks(|marks| marks.remove(hash));
        touch(from)?;
        files::rename_synced(from, &path)
    }

    /// Reads a blob through: None where it is intact, else what is wrong.
    pub fn verify(&self, hash: BlobHash, length: u64) -> Option<String> {
        match hash_file(&self.path(hash)) {
            Err(error) => Some(format!("blob {hash}: {error}")),
            Ok((found, _)) if found != hash => {
                Some(format!("blob {hash}: its bytes have the hash {found}"))
            }
            Ok((_, found)) if found != length => {
                Some(format!("blob {hash}: {found} bytes where {length} were recorded"))
            }
            Ok(_) => None,
        }
    }
}

impl BlobStore for Blobs {
    fn find(&self, hash: BlobHash) -> io::Result<Option<PathBuf>> {
        let path = self.path(hash);
        // Where a client is told that it need not send the file, the file has to stay for the job
        // that follows.
        self.claim(hash);
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(path)),
            Ok(_) => Err(io::Error::other(format!("`{}` is no file", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn begin(&self, hash: BlobHash, length: u64) -> Result<PathBuf, String> {
        let path = self.partial.join(hash.to_string());
        // An upload that goes on is not an old one.
        let held = self.with_marks(|_| touch(&path).and_then(|()| std::fs::metadata(&path)));
        let held = held.map_or(0, |metadata| metadata.len());
        let needed = length.saturating_sub(held).saturating_add(self.reserve_bytes);
        match files::free_bytes(&self.partial) {
            Ok(free) if free >= needed => Ok(path),
            Ok(_) => Err(format!("the coordinator's disk has no room for {length} bytes")),
            Err(error) => Err(format!("the coordinator's disk cannot be used: {error}")),
        }
    }

    fn keep(&self, hash: BlobHash, file: &Path) -> io::Result<()> {
        self.install(file, hash)
    }
}

/// The hash that a file is named by.
pub(crate) fn hash_named(name: &str) -> Option<BlobHash> {
    let mut hash = [0; 32];
    let digits = name.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(digits.chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    // Lower-case digits alone: one blob has one name.
    let hash = BlobHash(hash);
    (hash.to_string() == name).then_some(hash)
}

/// Sets the time of the last write to now.
fn touch(path: &Path) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(SystemTime::now())
}

fn hash_file(path: &Path) -> io::Result<(BlobHash, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok((BlobHash(*hasher.finalize().as_bytes()), hasher.count())),
            count => hasher.update(&buffer[..count]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn blobs(reserve_bytes: u64) -> (tempfile::TempDir, Blobs) {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        (root, Blobs::open(&folder, reserve_bytes))
    }

    #[test]
    fn a_finished_file_is_adopted_and_damage_to_it_is_seen() {
        let (root, blobs) = blobs(0);
        let mut file = blobs.temporary().unwrap();
        file.write_all(b"frame").unwrap();
        let (hash, length) = blobs.adopt(file).unwrap();
        assert_eq!((hash, length), (BlobHash::of(b"frame"), 5));
        assert_eq!(blobs.length(hash), Some(5));
        assert_eq!(blobs.verify(hash, 5), None);
        assert!(blobs.verify(hash, 6).unwrap().contains("recorded"));
        std::fs::write(blobs.path(hash), b"frams").unwrap();
        assert!(blobs.verify(hash, 5).unwrap().contains("hash"));
        drop(blobs.temporary().unwrap());
        assert_eq!(std::fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn an_upload_gets_its_place_by_its_hash() {
        let (_root, blobs) = blobs(0);
        let hash = BlobHash::of(b"bytes");
        assert_eq!(blobs.find(hash).unwrap(), None);
        let part = blobs.begin(hash, 5).unwrap();
        std::fs::write(&part, b"bytes").unwrap();
        blobs.keep(hash, &part).unwrap();
        assert!(!part.exists());
        assert_eq!(std::fs::read(blobs.find(hash).unwrap().unwrap()).unwrap(), b"bytes");
    }

    #[test]
    fn an_upload_that_would_fill_the_disk_is_refused() {
        let (_root, full) = blobs(u64::MAX);
        let reason = full.begin(BlobHash::of(b"x"), 1).unwrap_err();
        assert!(reason.contains("no room"), "{reason}");
    }
}
