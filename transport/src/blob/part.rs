//! A partly received blob: a growing file, the hash of its bytes so far, and a lock for its only
//! writer.

use super::{BlobSink, SinkError};
use crate::files::{TEMPORARY_PREFIX, folder_of};
use std::fs::{File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use tempfile::TempPath;
use tessera_protocol::BlobHash;

/// Bytes that are read at once when a part is hashed.
const READ_BYTES: usize = 1 << 20;
/// Written bytes after which they begin to go to the disk.
const SYNC_BYTES: u64 = 64 << 20;
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
    durability: Durability,
    // Bytes that were written since the last flush to the disk began, and that flush.
    unsynced: u64,
    syncing: Option<JoinHandle<io::Result<()>>>,
}

/// Whether a complete part survives a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Durability {
    /// It is synced before it counts as complete.
    Synced,
    /// The system writes it when it likes.
    Unsynced,
}

impl PartFile {
    /// Opens or makes the part of this blob at `path`, and hashes its bytes. If it has more than
    /// `length_max` bytes, it is emptied. If another writer has it, a private file beside it is
    /// used.
    pub fn open(path: &Path, hash: BlobHash, length_max: u64) -> io::Result<Self> {
        Self::open_as(path, hash, length_max, Durability::Synced)
    }

    /// Opens a part as [`Self::open`] does, with this durability.
    pub(super) fn open_as(
        path: &Path,
        hash: BlobHash,
        length_max: u64,
        durability: Durability,
    ) -> io::Result<Self> {
        let (mut file, path, private) = claim(path)?;
        if file.metadata()?.len() > length_max {
            file.set_len(0)?;
        }
        let (mut hasher, mut held) = (blake3::Hasher::new(), 0);
        let mut buffer = vec![0; READ_BYTES];
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
        let (unsynced, syncing) = (0, None);
        Ok(Self { path, hash, file, hasher, held, private, durability, unsynced, syncing })
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

impl PartFile {
    /// Begins to flush what was written to the disk, if that is much and no flush is running. So
    /// the disk works while bytes arrive, and the end has little left to wait for.
    fn sync_early(&mut self) -> io::Result<()> {
        let idle = self.syncing.as_ref().is_none_or(JoinHandle::is_finished);
        if self.durability == Durability::Unsynced || self.unsynced < SYNC_BYTES || !idle {
            return Ok(());
        }
        self.synced()?;
        // Opened anew, since a copy of our own would keep the lock after us.
        let file = File::open(&self.path)?;
        let thread = std::thread::Builder::new().name("sync".to_owned());
        self.syncing = Some(thread.spawn(move || file.sync_data())?);
        self.unsynced = 0;
        Ok(())
    }

    /// Waits for the running flush.
    fn synced(&mut self) -> io::Result<()> {
        let Some(syncing) = self.syncing.take() else { return Ok(()) };
        syncing.join().map_err(|_| io::Error::other("flushing a file to the disk failed"))?
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
        self.unsynced += bytes.len() as u64;
        self.sync_early()
    }

    /// Syncs a complete part and checks its hash. Removes a corrupt part.
    fn finish(&mut self) -> Result<(), SinkError> {
        let found = BlobHash(*self.hasher.finalize().as_bytes());
        if found != self.hash {
            self.remove()?;
            return Err(SinkError::Corrupt { found });
        }
        self.synced()?;
        match self.durability {
            Durability::Synced => Ok(self.file.sync_all()?),
            Durability::Unsynced => Ok(()),
        }
    }
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
