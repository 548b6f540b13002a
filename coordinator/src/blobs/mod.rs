//! Content-addressed files: any bytes under their BLAKE3. Owns their names on disk, uploads that can be resumed, and their durability.

mod put;

pub use put::BlobPut;

use crate::durable;
use crate::folder::DataFolder;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tessera_protocol::BlobHash;

/// Bytes read at once when a file is hashed.
const READ_BYTES: usize = 1 << 20;

/// Why a blob cannot be kept or read.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The file system said no.
    #[error("`{path}` cannot be used")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Other bytes than were announced.
    #[error("the bytes have the hash {found}, not {expected}; nothing was kept")]
    Hash {
        /// Announced.
        expected: BlobHash,
        /// Found.
        found: BlobHash,
    },
    /// More or fewer bytes than were announced.
    #[error("{found} bytes came, {expected} were announced")]
    Length {
        /// Announced.
        expected: u64,
        /// Came.
        found: u64,
    },
}

impl BlobError {
    /// Room on the disk would have helped.
    pub fn is_full(&self) -> bool {
        use io::ErrorKind::{QuotaExceeded, StorageFull};
        matches!(self, Self::Io { source, .. } if matches!(source.kind(), StorageFull | QuotaExceeded))
    }
}

/// The blobs of a data folder. Clones share it.
#[derive(Clone, Debug)]
pub struct Blobs {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    whole: PathBuf,
    partial: PathBuf,
    temporary: PathBuf,
    /// Uploads that own their resumable file now.
    active: Mutex<BTreeSet<BlobHash>>,
    sync: bool,
}

impl Blobs {
    /// The blobs of this folder. `sync` false leaves out the syncs, for a folder that goes away with its process.
    pub fn open(folder: &DataFolder, sync: bool) -> Self {
        let (whole, partial, temporary) = (folder.blobs(), folder.partial(), folder.temporary());
        Self { shared: Arc::new(Shared { whole, partial, temporary, active: Mutex::default(), sync }) }
    }

    fn path(&self, hash: BlobHash) -> PathBuf {
        let name = hash.to_string();
        self.shared.whole.join(&name[..2]).join(name)
    }

    /// Length in bytes of a blob that is here whole.
    pub fn length(&self, hash: BlobHash) -> Option<u64> {
        let metadata = std::fs::metadata(self.path(hash)).ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// A blob's file and length; None where it is not here.
    pub fn file(&self, hash: BlobHash) -> Result<Option<(File, u64)>, BlobError> {
        let path = self.path(hash);
        let failed = |source| BlobError::Io { path: path.clone(), source };
        match File::open(&path) {
            Ok(file) => {
                let length = file.metadata().map_err(failed)?.len();
                Ok(Some((file, length)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    /// Begins or resumes an upload. Where another upload of the same blob is under way, this one starts over in a file of its own.
    pub fn put(&self, hash: BlobHash, length: u64) -> Result<BlobPut, BlobError> {
        BlobPut::begin(self.clone(), hash, length)
    }

    /// Takes a finished file of the temporary folder over as a blob, durably; gives its name and length.
    pub fn adopt(&self, file: tempfile::NamedTempFile) -> Result<(BlobHash, u64), BlobError> {
        let path = file.path().to_path_buf();
        let failed = |source| BlobError::Io { path: path.clone(), source };
        if self.shared.sync {
            file.as_file().sync_all().map_err(failed)?;
        }
        let (hash, length) = hash_file(&path).map_err(failed)?;
        let path = file.into_temp_path();
        self.install(&path, hash)?;
        // It has its final name now, and is no temporary file any more.
        drop(path.keep());
        Ok((hash, length))
    }

    /// A file in the making, deleted unless it is adopted.
    pub fn temporary(&self) -> Result<tempfile::NamedTempFile, BlobError> {
        tempfile::NamedTempFile::new_in(&self.shared.temporary)
            .map_err(|source| BlobError::Io { path: self.shared.temporary.clone(), source })
    }

    /// Gives a synced file its final name.
    fn install(&self, from: &Path, hash: BlobHash) -> Result<(), BlobError> {
        let path = self.path(hash);
        let failed = |source| BlobError::Io { path: path.clone(), source };
        if let Some(folder) = path.parent()
            && !folder.is_dir()
        {
            std::fs::create_dir_all(folder).map_err(failed)?;
            if self.shared.sync {
                durable::sync_folder(&self.shared.whole).map_err(failed)?;
            }
        }
        if self.shared.sync {
            durable::rename_synced(from, &path).map_err(failed)
        } else {
            std::fs::rename(from, &path).map_err(failed)
        }
    }

    /// Reads a blob through: None where it is intact, else what is wrong.
    pub fn verify(&self, hash: BlobHash, length: u64) -> Option<String> {
        let path = self.path(hash);
        match hash_file(&path) {
            Err(error) => Some(format!("blob {hash}: {error}")),
            Ok((found, _)) if found != hash => Some(format!("blob {hash}: its bytes have the hash {found}")),
            Ok((_, found)) if found != length => {
                Some(format!("blob {hash}: {found} bytes where {length} were recorded"))
            }
            Ok(_) => None,
        }
    }

    fn claim(&self, hash: BlobHash) -> bool {
        self.shared.active.lock().unwrap_or_else(PoisonError::into_inner).insert(hash)
    }

    fn release(&self, hash: BlobHash) {
        self.shared.active.lock().unwrap_or_else(PoisonError::into_inner).remove(&hash);
    }
}

fn hash_file(path: &Path) -> io::Result<(BlobHash, u64)> {
    let mut file = File::open(path)?;
    let mut hasher = blake3::Hasher::new();
    hash_rest(&mut file, &mut hasher)?;
    Ok((BlobHash(*hasher.finalize().as_bytes()), hasher.count()))
}

fn hash_rest(file: &mut File, hasher: &mut blake3::Hasher) -> io::Result<()> {
    let mut buffer = vec![0; READ_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(()),
            count => hasher.update(&buffer[..count]),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn blobs() -> (tempfile::TempDir, DataFolder, Blobs) {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let blobs = Blobs::open(&folder, true);
        (root, folder, blobs)
    }

    #[test]
    fn an_upload_is_resumed_where_it_broke_off() {
        let (_root, _folder, blobs) = blobs();
        let bytes: Vec<u8> = (0..200_000u32).map(|i| (i % 251) as u8).collect();
        let hash = BlobHash::of(&bytes);
        let mut put = blobs.put(hash, bytes.len() as u64).unwrap();
        assert_eq!(put.offset(), 0);
        put.write(&bytes[..150_000]).unwrap();
        drop(put);
        assert_eq!(blobs.length(hash), None);

        let mut put = blobs.put(hash, bytes.len() as u64).unwrap();
        assert_eq!(put.offset(), 150_000);
        put.write(&bytes[150_000..]).unwrap();
        put.finish().unwrap();
        assert_eq!(blobs.length(hash), Some(bytes.len() as u64));
        let (mut file, _) = blobs.file(hash).unwrap().unwrap();
        let mut read = Vec::new();
        file.read_to_end(&mut read).unwrap();
        assert_eq!(read, bytes);
        assert_eq!(blobs.verify(hash, bytes.len() as u64), None);
    }

    #[test]
    fn other_bytes_than_announced_are_not_kept() {
        let (root, _folder, blobs) = blobs();
        let hash = BlobHash::of(b"right");
        let mut put = blobs.put(hash, 5).unwrap();
        put.write(b"wrong").unwrap();
        assert!(matches!(put.finish(), Err(BlobError::Hash { .. })));
        assert_eq!(blobs.length(hash), None);
        assert_eq!(std::fs::read_dir(root.path().join("partial")).unwrap().count(), 0);

        let mut put = blobs.put(hash, 5).unwrap();
        assert!(matches!(put.write(b"right and more"), Err(BlobError::Length { .. })));
        let put = blobs.put(BlobHash::of(b"x"), 5).unwrap();
        assert!(matches!(put.finish(), Err(BlobError::Length { found: 0, .. })));
    }

    #[test]
    fn two_uploads_of_one_blob_do_not_disturb_each_other() {
        let (root, _folder, blobs) = blobs();
        let hash = BlobHash::of(b"shared");
        let mut first = blobs.put(hash, 6).unwrap();
        first.write(b"sha").unwrap();
        let mut second = blobs.put(hash, 6).unwrap();
        assert_eq!(second.offset(), 0);
        second.write(b"shared").unwrap();
        second.finish().unwrap();
        first.write(b"red").unwrap();
        first.finish().unwrap();
        assert_eq!(blobs.verify(hash, 6), None);
        assert_eq!(std::fs::read_dir(root.path().join("partial")).unwrap().count(), 0);
        assert_eq!(std::fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
    }

    #[test]
    fn a_finished_file_is_adopted_and_damage_to_it_is_seen() {
        let (root, _folder, blobs) = blobs();
        let mut file = blobs.temporary().unwrap();
        file.write_all(b"frame").unwrap();
        let (hash, length) = blobs.adopt(file).unwrap();
        assert_eq!((hash, length), (BlobHash::of(b"frame"), 5));
        assert_eq!(blobs.verify(hash, 5), None);
        assert!(blobs.verify(hash, 6).is_some());
        std::fs::write(blobs.path(hash), b"frams").unwrap();
        assert!(blobs.verify(hash, 5).unwrap().contains("hash"));
        drop(blobs.temporary().unwrap());
        assert_eq!(std::fs::read_dir(root.path().join("tmp")).unwrap().count(), 0);
    }
}
