//! The disk on which blobs are put together before they are whole: uploads that continue after an
//! interruption, and files whose hash is known at their end. Every store of blobs has one.

use super::store::UploadError;
use crate::folder::DataFolder;
use crate::sync::lock;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;
use tempfile::NamedTempFile;
use tessera_protocol::BlobHash;
use tessera_transport::{PartFile, files};

/// Folders of a data folder for what is not whole yet. Clones share them.
#[derive(Clone, Debug)]
pub struct Staging {
    partial: PathBuf,
    temporary: PathBuf,
    reserve_bytes: u64,
    /// Held while an upload begins or is deleted, so that none goes that was just taken up again.
    parts: Arc<Mutex<()>>,
}

impl Staging {
    /// The folders of a data folder. An upload is refused if it would leave fewer than
    /// `reserve_bytes` free.
    pub fn of(folder: &DataFolder, reserve_bytes: u64) -> Self {
        let (partial, temporary) = (folder.partial(), folder.temporary());
        Self { partial, temporary, reserve_bytes, parts: Arc::default() }
    }

    /// Begins a file whose hash is known at its end. It is deleted when it is dropped.
    pub fn new_file(&self) -> io::Result<NamedTempFile> {
        NamedTempFile::new_in(&self.temporary)
    }

    /// Folder of new files.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Begins an upload of `length` bytes, or continues an interrupted one.
    pub fn begin(&self, hash: BlobHash, length: u64) -> Result<PartFile, UploadError> {
        let _parts = lock(&self.parts);
        let path = self.part(hash);
        // Touch the file, so that a resumed upload does not count as an old one.
        let held = touch(&path).and_then(|()| std::fs::metadata(&path));
        let held = held.map_or(0, |metadata| metadata.len());
        let needed = length.saturating_sub(held).saturating_add(self.reserve_bytes);
        let unusable =
            |error| UploadError(format!("the coordinator's disk cannot be used: {error}"));
        if files::free_bytes(&self.partial).map_err(unusable)? < needed {
            let text = format!("the coordinator's disk has no room for {length} bytes");
            return Err(UploadError(text));
        }
        PartFile::open(&path, hash, length).map_err(unusable)
    }

    /// Whether an interrupted upload of a blob is there.
    pub fn has(&self, hash: BlobHash) -> bool {
        self.part(hash).exists()
    }

    /// Deletes the interrupted upload of a blob. Returns false if there is none.
    pub fn delete(&self, hash: BlobHash) -> bool {
        let _parts = lock(&self.parts);
        let path = self.part(hash);
        path.exists() && remove(&path)
    }

    /// Deletes interrupted uploads that were last written before this time. Returns their number.
    pub fn delete_older(&self, before: SystemTime) -> u64 {
        let _parts = lock(&self.parts);
        let parts = std::fs::read_dir(&self.partial).into_iter().flatten().flatten();
        let old = parts.filter(|part| {
            let modified = part.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| modified <= before) && remove(&part.path())
        });
        old.count() as u64
    }

    fn part(&self, hash: BlobHash) -> PathBuf {
        self.partial.join(hash.to_string())
    }
}

/// Sets the time of the last write to now.
pub(super) fn touch(path: &Path) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(SystemTime::now())
}

fn remove(path: &Path) -> bool {
    let removed = std::fs::remove_file(path);
    if let Err(error) = &removed {
        tracing::warn!(path = %path.display(), %error, "an interrupted upload cannot be deleted");
    }
    removed.is_ok()
}
