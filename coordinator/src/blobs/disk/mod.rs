//! Blobs as files of the data folder: their names, their durability, and uploads that continue
//! after an interruption.

use super::store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
use crate::folder::DataFolder;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::NamedTempFile;
use tessera_protocol::BlobHash;
use tessera_transport::files;
use tessera_transport::{BlobRead, BlobSink, PartFile, SinkError};

/// Bytes that are read at once when a file is hashed.
const READ_BYTES: usize = 1 << 20;

/// The blobs of a data folder. Clones share it.
#[derive(Clone, Debug)]
pub struct DiskBlobs {
    whole: PathBuf,
    partial: PathBuf,
    temporary: PathBuf,
    reserve_bytes: u64,
}

impl DiskBlobs {
    /// Opens the blobs of a data folder. An upload is refused if it would leave fewer than
    /// `reserve_bytes` free.
    pub fn open(folder: &DataFolder, reserve_bytes: u64) -> Self {
        let (whole, partial, temporary) = (folder.blobs(), folder.partial(), folder.temporary());
        Self { whole, partial, temporary, reserve_bytes }
    }

    pub(crate) fn path(&self, hash: BlobHash) -> PathBuf {
        let name = hash.to_string();
        self.whole.join(&name[..2]).join(name)
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
        touch(from)?;
        files::rename_synced(from, &path)
    }
}

impl Blobs for DiskBlobs {
    fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError> {
        let path = self.path(hash);
        match std::fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => Ok(Some(metadata.len())),
            Ok(_) => Err(BlobError::at(path.display())(io::Error::other("it is not a file"))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BlobError::at(path.display())(error)),
        }
    }

    fn open(&self, hash: BlobHash) -> Result<Option<Box<dyn BlobRead>>, BlobError> {
        let path = self.path(hash);
        match File::open(&path) {
            Ok(file) => Ok(Some(Box::new(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(BlobError::at(path.display())(error)),
        }
    }

    fn writer(&self) -> Result<Box<dyn BlobWriter>, BlobError> {
        let file = NamedTempFile::new_in(&self.temporary);
        let file = file.map_err(BlobError::at(self.temporary.display()))?;
        Ok(Box::new(NewBlob { file, blobs: self.clone() }))
    }

    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError> {
        let path = self.partial.join(hash.to_string());
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
        let part = PartFile::open(&path, hash, length).map_err(unusable)?;
        Ok(Box::new(Part { part, hash, blobs: self.clone() }))
    }

    fn list(&self, visit: &mut dyn FnMut(Listed)) -> Result<(), BlobError> {
        let folders = std::fs::read_dir(&self.whole);
        for folder in folders.map_err(BlobError::at(self.whole.display()))?.flatten() {
            for file in std::fs::read_dir(folder.path()).into_iter().flatten().flatten() {
                let name = file.file_name();
                let hash = name.to_str().and_then(|name| name.parse().ok());
                let metadata = file.metadata();
                visit(Listed {
                    name: file.path().display().to_string(),
                    hash: hash.filter(|hash| self.path(*hash) == file.path()),
                    length: metadata.as_ref().map_or(0, std::fs::Metadata::len),
                    modified: metadata.and_then(|metadata| metadata.modified()).ok(),
                });
            }
        }
        Ok(())
    }

    fn delete(&self, hash: BlobHash) -> Result<bool, BlobError> {
        let path = self.path(hash);
        match std::fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(BlobError::at(path.display())(error)),
        }
    }

    fn delete_if_older(&self, hash: BlobHash, than: SystemTime) -> Result<bool, BlobError> {
        let modified = std::fs::metadata(self.path(hash)).and_then(|metadata| metadata.modified());
        if modified.is_ok_and(|modified| modified <= than) { self.delete(hash) } else { Ok(false) }
    }

    fn refresh(&self, hash: BlobHash) -> Result<(), BlobError> {
        let path = self.path(hash);
        touch(&path).map_err(BlobError::at(path.display()))
    }

    fn is_kept(&self, hash: BlobHash) -> bool {
        self.path(hash).exists() || self.partial.join(hash.to_string()).exists()
    }

    fn delete_upload(&self, hash: BlobHash) -> bool {
        let path = self.partial.join(hash.to_string());
        path.exists() && remove(&path)
    }

    fn delete_uploads(&self, before: SystemTime) -> u64 {
        let parts = std::fs::read_dir(&self.partial).into_iter().flatten().flatten();
        let old = parts.filter(|part| {
            let modified = part.metadata().and_then(|metadata| metadata.modified());
            modified.is_ok_and(|modified| modified <= before) && remove(&part.path())
        });
        old.count() as u64
    }
}

/// A temporary file that gets its name from its bytes at the end.
struct NewBlob {
    file: NamedTempFile,
    blobs: DiskBlobs,
}

impl Write for NewBlob {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewBlob {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

impl BlobWriter for NewBlob {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), BlobError> {
        let path = self.file.path().to_path_buf();
        let finished = (|| {
            self.file.as_file().sync_all()?;
            let (hash, length) = hash_file(&path)?;
            self.blobs.install(&path, hash)?;
            // The file has its final name now, and must not be deleted as a temporary file.
            self.file.into_temp_path().keep().map_err(|error| error.error)?;
            Ok((hash, length))
        })();
        finished.map_err(BlobError::at(path.display()))
    }
}

/// An upload in its partial file.
struct Part {
    part: PartFile,
    hash: BlobHash,
    blobs: DiskBlobs,
}

impl BlobSink for Part {
    fn held(&self) -> u64 {
        self.part.held()
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.part.write(bytes)
    }

    fn finish(&mut self) -> Result<(), SinkError> {
        self.part.finish()?;
        self.blobs.install(self.part.path(), self.hash)?;
        self.part.forget();
        Ok(())
    }
}

/// Sets the time of the last write to now.
fn touch(path: &Path) -> io::Result<()> {
    File::options().append(true).open(path)?.set_modified(SystemTime::now())
}

fn remove(path: &Path) -> bool {
    let removed = std::fs::remove_file(path);
    if let Err(error) = &removed {
        tracing::warn!(path = %path.display(), %error, "an interrupted upload cannot be deleted");
    }
    removed.is_ok()
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
mod tests;
