//! Blobs as files of the data folder: their names and their durability.

use super::staging::{Staging, touch};
use super::store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
use crate::folder::DataFolder;
use crate::spool::{FolderResults, ResultObject, ResultStore, SpoolKey};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use tempfile::NamedTempFile;
use tessera_protocol::BlobHash;
use tessera_transport::client::hash_file;
use tessera_transport::files;
use tessera_transport::{BlobRead, BlobSink, PartFile, SinkError};

/// The blobs of a data folder. Clones share it.
#[derive(Clone, Debug)]
pub struct DiskBlobs {
    whole: PathBuf,
    results: PathBuf,
    staging: Staging,
}

impl DiskBlobs {
    /// Opens the blobs of a data folder. An upload is refused if it would leave fewer than
    /// `reserve_bytes` free.
    pub fn open(folder: &DataFolder, reserve_bytes: u64) -> Self {
        let staging = Staging::of(folder, reserve_bytes);
        Self { whole: folder.blobs(), results: folder.results(), staging }
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
        let file = self.staging.new_file();
        let file = file.map_err(BlobError::at(self.staging.temporary().display()))?;
        Ok(Box::new(NewBlob { file, blobs: self.clone() }))
    }

    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError> {
        let part = self.staging.begin(hash, length)?;
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
        self.path(hash).exists() || self.staging.has(hash)
    }

    fn delete_upload(&self, hash: BlobHash) -> bool {
        self.staging.delete(hash)
    }

    fn adopt(
        &self,
        (_, object): (SpoolKey, ResultObject),
        _: (BlobHash, u64),
    ) -> Result<(), BlobError> {
        Err(BlobError::at(object)(io::ErrorKind::Unsupported.into()))
    }

    fn results(&self) -> Arc<dyn ResultStore> {
        Arc::new(FolderResults::new(self.results.clone()))
    }

    fn delete_uploads(&self, before: SystemTime) -> u64 {
        self.staging.delete_older(before)
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

#[cfg(test)]
mod tests;
