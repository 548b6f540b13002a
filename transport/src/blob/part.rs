//! A partly received blob: a growing file, the hash of its bytes so far, and a lock for its one
//! writer.

use super::{BlobError, STEP_BYTES, blocking, file_error};
use crate::files::{TEMPORARY_PREFIX, folder_of};
use crate::frame::{FrameError, FrameReceiver, within};
use crate::timing::Timing;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use tempfile::TempPath;
use tessera_protocol::BlobHash;
use tokio::io::AsyncWriteExt;

/// An open part file.
pub(super) struct Part {
    path: PathBuf,
    file: tokio::fs::File,
    hasher: blake3::Hasher,
    held: u64,
    // Another writer has the shared part file: this one is private, and goes away unless it is
    // kept.
    private: Option<TempPath>,
}

impl Part {
    /// Opens the part at `path` (made if need be) and hashes what it holds already. Where it holds
    /// more than `length_max` bytes, it starts anew. Where another writer has it, a private file
    /// beside it is used.
    pub(super) async fn open(path: &Path, length_max: u64) -> Result<Self, BlobError> {
        let owned = path.to_owned();
        let opened =
            blocking(move || open_blocking(&owned, length_max)).await.and_then(|result| result);
        opened.map_err(file_error(path))
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// The file's path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets what is held.
    pub(super) async fn restart(&mut self) -> Result<(), BlobError> {
        use tokio::io::AsyncSeekExt;
        self.file.set_len(0).await.map_err(file_error(&self.path))?;
        self.file.seek(SeekFrom::Start(0)).await.map_err(file_error(&self.path))?;
        self.hasher = blake3::Hasher::new();
        self.held = 0;
        Ok(())
    }

    /// Takes raw bytes from a stream until `length` bytes are held. What has come is on file even
    /// where this fails.
    pub(super) async fn fill(
        &mut self,
        receiver: &mut FrameReceiver,
        length: u64,
        timing: &Timing,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), BlobError> {
        // Packets are small; files and hashes are fast with large steps.
        let mut buffer = vec![0; STEP_BYTES];
        while self.held < length {
            let wanted = (length - self.held).min(STEP_BYTES as u64) as usize;
            let (count, result) = gather(receiver, &mut buffer[..wanted], timing).await;
            self.append(&buffer[..count]).await?;
            progress(self.held, length);
            result?;
        }
        Ok(())
    }

    async fn append(&mut self, bytes: &[u8]) -> Result<(), BlobError> {
        let written = async {
            self.file.write_all(bytes).await?;
            // tokio's file writes behind our back; an error may show only here.
            self.file.flush().await
        };
        written.await.map_err(file_error(&self.path))?;
        self.hasher.update(bytes);
        self.held += bytes.len() as u64;
        Ok(())
    }

    /// Syncs a part that is whole, and checks its hash. A corrupt part is removed.
    pub(super) async fn check(&mut self, hash: BlobHash) -> Result<(), BlobError> {
        let found = BlobHash(*self.hasher.finalize().as_bytes());
        if found != hash {
            self.remove().await?;
            return Err(BlobError::Corrupt { hash, found });
        }
        self.file.sync_all().await.map_err(file_error(&self.path))
    }

    /// Removes the file.
    async fn remove(&mut self) -> Result<(), BlobError> {
        match tokio::fs::remove_file(&self.path).await {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(file_error(&self.path)(error))
            }
            _ => Ok(()),
        }
    }

    /// Lets go of the file, which now has another name or none.
    pub(super) fn forget(self) {
        if let Some(private) = self.private {
            // The name is gone; there is nothing to remove, and an error about that says nothing.
            let _ = private.keep();
        }
    }
}

/// Fills a buffer from a stream: the bytes that came, and why they are fewer than asked for.
async fn gather(
    receiver: &mut FrameReceiver,
    buffer: &mut [u8],
    timing: &Timing,
) -> (usize, Result<(), FrameError>) {
    let mut count = 0;
    while count < buffer.len() {
        match within(timing.answer, receiver.receive_into(&mut buffer[count..])).await {
            Ok(Some(more)) => count += more,
            Ok(None) => return (count, Err(FrameError::Cut)),
            Err(error) => return (count, Err(error)),
        }
    }
    (count, Ok(()))
}

/// The part file with its lock, or a private one: file, path, and the private one's guard.
fn claim(path: &Path) -> io::Result<(File, PathBuf, Option<TempPath>)> {
    loop {
        let shared =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        match shared.try_lock() {
            // The former writer may have given the file its final name between our opening and our
            // locking.
            Ok(()) if is_at(&shared, path)? => return Ok((shared, path.to_owned(), None)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut builder = tempfile::Builder::new();
                let (file, name) = builder
                    .prefix(TEMPORARY_PREFIX)
                    .suffix(".part")
                    .tempfile_in(folder_of(path))?
                    .into_parts();
                return Ok((file, name.to_path_buf(), Some(name)));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Is this open file still the one of that name?
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let id = |metadata: std::fs::Metadata| (metadata.dev(), metadata.ino());
    match std::fs::metadata(path) {
        Ok(named) => Ok(id(named) == id(file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere an open file cannot be renamed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}

fn open_blocking(path: &Path, length_max: u64) -> io::Result<Part> {
    let (mut file, path, private) = claim(path)?;
    if file.metadata()?.len() > length_max {
        file.set_len(0)?;
    }
    let (mut hasher, mut held) = (blake3::Hasher::new(), 0);
    let mut buffer = vec![0; STEP_BYTES];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            count => {
                hasher.update(&buffer[..count]);
                held += count as u64;
            }
        }
    }
    file.seek(SeekFrom::Start(held))?;
    Ok(Part { path, file: tokio::fs::File::from_std(file), hasher, held, private })
}
