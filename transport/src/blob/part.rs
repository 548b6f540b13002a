//! A partly received blob: a growing file, the hash of its bytes so far, and a lock for its one
//! writer.

use super::{BlobError, BlobSink, STEP_BYTES, SinkError, blocking, file_error};
use crate::files::{TEMPORARY_PREFIX, folder_of};
use crate::frame::{FrameError, FrameReceiver, within};
use crate::timing::Timing;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempPath;
use tessera_protocol::BlobHash;

/// An open part file: what came of a blob, kept over interruptions. All methods may block.
#[derive(Debug)]
pub struct PartFile {
    path: PathBuf,
    hash: BlobHash,
    file: File,
    hasher: blake3::Hasher,
    held: u64,
    // Another writer has the shared part file: this one is private, and goes away unless it is
    // kept.
    private: Option<TempPath>,
}

impl PartFile {
    /// Opens the part of this blob at `path` (made if need be) and hashes what it holds already.
    /// Where it holds more than `length_max` bytes, it starts anew. Where another writer has it, a
    /// private file beside it is used.
    pub fn open(path: &Path, hash: BlobHash, length_max: u64) -> io::Result<Self> {
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
        Ok(Self { path, hash, file, hasher, held, private })
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Forgets what is held.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher = blake3::Hasher::new();
        self.held = 0;
        Ok(())
    }

    /// Removes the file.
    fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Lets go of the file, which now has another name or none.
    pub fn forget(&mut self) {
        if let Some(private) = self.private.take() {
            // The name is gone; there is nothing to remove, and an error about that says nothing.
            let _ = private.keep();
        }
    }
}

impl BlobSink for PartFile {
    fn held(&self) -> u64 {
        self.held
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all(bytes)?;
        self.hasher.update(bytes);
        self.held += bytes.len() as u64;
        Ok(())
    }

    /// Syncs a part that is whole, and checks its hash. A corrupt part is removed.
    fn finish(&mut self) -> Result<(), SinkError> {
        let found = BlobHash(*self.hasher.finalize().as_bytes());
        if found != self.hash {
            self.remove()?;
            return Err(SinkError::Corrupt { found });
        }
        Ok(self.file.sync_all()?)
    }
}

/// A sink that is written off the runtime's own threads.
pub(super) struct Filling<S>(Arc<Mutex<S>>);

impl<S> Filling<S> {
    pub(super) fn new(sink: S) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }
}

impl<S: BlobSink + 'static> Filling<S> {
    /// Does something with the sink that may block.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> io::Result<T> {
        let sink = self.0.clone();
        blocking(move || work(&mut sink.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Bytes held.
    pub(super) fn held(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).held()
    }

    /// Takes raw bytes from a stream until `length` bytes are held. What has come is written even
    /// where this fails.
    pub(super) async fn fill(
        &self,
        receiver: &mut FrameReceiver,
        (length, path): (u64, &Path),
        timing: &Timing,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), BlobError> {
        // Packets are small; files and hashes are fast with large steps.
        let mut buffer = vec![0; STEP_BYTES];
        let mut held = self.held();
        while held < length {
            let wanted = (length - held).min(STEP_BYTES as u64) as usize;
            let (count, result) = gather(receiver, &mut buffer[..wanted], timing).await;
            let written = self.with(move |sink| (sink.write(&buffer[..count]), buffer)).await;
            let (written, given_back) = written.map_err(file_error(path))?;
            written.map_err(file_error(path))?;
            buffer = given_back;
            held += count as u64;
            progress(held, length);
            result?;
        }
        Ok(())
    }

    /// Checks and syncs a blob that is whole.
    pub(super) async fn finish(&self, hash: BlobHash, path: &Path) -> Result<(), BlobError> {
        let finished = self.with(S::finish).await.map_err(file_error(path))?;
        finished.map_err(|error| match error {
            SinkError::Corrupt { found } => BlobError::Corrupt { hash, found },
            SinkError::Io(source) => file_error(path)(source),
        })
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
