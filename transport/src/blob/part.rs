//! A partly received blob: a growing file, the hash of its bytes so far, and a lock for its only
//! writer.

use super::{BlobError, BlobSink, STEP_BYTES, SinkError, blocking, file_error};
use crate::files::{TEMPORARY_PREFIX, folder_of};
use crate::stream::frame::{FrameError, FrameReceiver, within};
use crate::timing::Timing;
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tempfile::TempPath;
use tessera_protocol::BlobHash;

/// Mode of a new file before the umask is taken off.
#[cfg(unix)]
const NEW_FILE_MODE: u32 = 0o666;

/// An open part file, which keeps the received bytes of a blob over interruptions. All methods may
/// block.
#[derive(Debug)]
pub struct PartFile {
    path: PathBuf,
    hash: BlobHash,
    file: File,
    hasher: blake3::Hasher,
    held: u64,
    // The file is private if another writer has the shared part file. It is deleted unless it is
    // kept.
    private: Option<TempPath>,
}

impl PartFile {
    /// Opens or makes the part of this blob at `path`, and hashes its bytes. If it has more than
    /// `length_max` bytes, it is emptied. If another writer has it, a private file beside it is
    /// used.
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

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Discards the bytes so far.
    pub(super) fn restart(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.hasher = blake3::Hasher::new();
        self.held = 0;
        Ok(())
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> io::Result<()> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Releases the file, which has another name or none now.
    pub fn forget(&mut self) {
        if let Some(private) = self.private.take() {
            // The name is gone. There is nothing to remove, so an error does not matter.
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

    /// Syncs a complete part and checks its hash. Removes a corrupt part.
    fn finish(&mut self) -> Result<(), SinkError> {
        let found = BlobHash(*self.hasher.finalize().as_bytes());
        if found != self.hash {
            self.remove()?;
            return Err(SinkError::Corrupt { found });
        }
        Ok(self.file.sync_all()?)
    }
}

/// A sink whose blocking calls run on threads for blocking work.
pub(super) struct Filling<S>(Arc<Mutex<S>>);

impl<S> Filling<S> {
    pub(super) fn new(sink: S) -> Self {
        Self(Arc::new(Mutex::new(sink)))
    }
}

impl<S: BlobSink + 'static> Filling<S> {
    /// Runs a function on the sink that may block.
    pub(super) async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> io::Result<T> {
        let sink = self.0.clone();
        blocking(move || work(&mut sink.lock().unwrap_or_else(PoisonError::into_inner))).await
    }

    /// Returns the number of bytes so far.
    pub(super) fn held(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).held()
    }

    /// Reads raw bytes from a stream until there are `length` bytes. Received bytes are written
    /// even if this fails.
    pub(super) async fn fill(
        &self,
        receiver: &mut FrameReceiver,
        (length, path): (u64, &Path),
        timing: &Timing,
        progress: &mut (dyn FnMut(u64, u64) + Send),
    ) -> Result<(), BlobError> {
        // Packets are small, but files and hashes are faster with large steps.
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

    /// Checks and syncs a complete blob.
    pub(super) async fn finish(&self, hash: BlobHash, path: &Path) -> Result<(), BlobError> {
        let finished = self.with(S::finish).await.map_err(file_error(path))?;
        finished.map_err(|error| match error {
            SinkError::Corrupt { found } => BlobError::Corrupt { hash, found },
            SinkError::Io(source) => file_error(path)(source),
        })
    }
}

/// Fills a buffer from a stream. Returns the number of bytes, and the error if the buffer is not
/// full.
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

/// An open file, its path, and the guard of a private file.
type Claimed = (File, PathBuf, Option<TempPath>);

/// Returns the part file with its lock, or a private one.
fn claim(path: &Path) -> io::Result<Claimed> {
    loop {
        let shared =
            File::options().read(true).write(true).create(true).truncate(false).open(path)?;
        // A process that was killed while it placed the file can leave a second name of it.
        if has_other_name(&shared)? {
            std::fs::remove_file(path)?;
            continue;
        }
        match shared.try_lock() {
            // The former writer may have renamed the file between our opening and our locking.
            Ok(()) if is_at(&shared, path)? => return Ok((shared, path.to_owned(), None)),
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return private(folder_of(path)),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Makes a file for one writer. It may become the whole file, so its mode is that of any new file.
fn private(folder: &Path) -> io::Result<Claimed> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(NEW_FILE_MODE));
    }
    builder.prefix(TEMPORARY_PREFIX).suffix(".part");
    let (file, name) = builder.tempfile_in(folder)?.into_parts();
    Ok((file, name.to_path_buf(), Some(name)))
}

/// Returns whether the file has a second name, by which somebody may use it.
#[cfg(unix)]
fn has_other_name(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    Ok(file.metadata()?.nlink() > 1)
}

/// On other systems no file is placed by a second name.
#[cfg(not(unix))]
fn has_other_name(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// Returns whether this open file still has that name.
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

/// On other systems an open file cannot be renamed.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}
