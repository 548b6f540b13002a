//! Backups: one file that holds a farm as it was at one moment, and its restore. Owns the choice of
//! the content; `archive` owns the format.
//!
//! The content is the journal, the spools of unfinished frames, the files of open jobs, every
//! finished frame and the audit log, each with its checksum. A backup that is made from the data
//! folder also has the farm's keys and the deny-list. Blobs that no job names and interrupted
//! uploads are left out.

mod archive;
mod restore;
mod stored;

pub use archive::{ArchiveError, BackupSummary, verify};
pub use restore::{RestoreError, restore};

use crate::access::audit_log::{HEAD_FILE, Still};
use crate::blobs::{BlobRead, Blobs, DiskPlace};
use crate::folder::DataFolder;
use crate::fsck::{AuditError, Places, decode};
use crate::spool::{SpoolKey, SpoolRead};
use crate::store::keys::{extent_value, spool_of};
use crate::store::{JournalReader, Loaded, StoreError, values_of};
use archive::{ArchiveWriter, Kind};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;
use stored::StoredSpool;
use tessera_core::{Core, Moment, Settings};
use tessera_protocol::BlobHash;

/// Size of one piece that is sent, in bytes.
pub const PIECE_BYTES: usize = 256 << 10;
/// Largest key file in bytes. A certificate chain has a few KiB.
const KEY_BYTES_MAX: u64 = 1 << 20;
/// Name of the audit log in errors.
const AUDIT_LOG: &str = "the audit log";

/// Why a backup cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder or its journal cannot be read.
    #[error(transparent)]
    Source(#[from] AuditError),
    /// The journal is not consistent.
    #[error("the farm cannot be read: {0}; `tessera fsck` says more")]
    Farm(String),
    /// A file of the farm cannot be read, or does not match its name.
    #[error("{what} cannot be backed up: {problem}; `tessera fsck` says more")]
    Part {
        /// Part that failed.
        what: String,
        /// Description of the fault.
        problem: String,
    },
    /// The backup cannot be written.
    #[error("backup cannot be written")]
    Write(#[source] io::Error),
}

impl From<crate::folder::FolderError> for BackupError {
    fn from(error: crate::folder::FolderError) -> Self {
        Self::Source(error.into())
    }
}

impl From<StoreError> for BackupError {
    fn from(error: StoreError) -> Self {
        Self::Source(error.into())
    }
}

/// Writes the first part of a backup: its first bytes, and the keys and deny-list of a data folder,
/// if one is given. The rest comes from a coordinator or from [`backup_stopped`].
pub fn begin(data: Option<&Path>, out: &mut impl Write) -> Result<(), BackupError> {
    let mut archive = ArchiveWriter::begin(out).map_err(BackupError::Write)?;
    for folder in data
        .iter()
        .flat_map(|data| ["authority", "admin", "access"].map(|name| (name, data.join(name))))
    {
        let (name, path) = folder;
        let part =
            |error: io::Error| BackupError::Part { what: name.into(), problem: error.to_string() };
        let mut files: Vec<_> = match std::fs::read_dir(&path) {
            Ok(files) => files.collect::<Result<_, _>>().map_err(part)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(part(error)),
        };
        files.sort_by_key(std::fs::DirEntry::file_name);
        for file in files.into_iter().filter(|file| file.path().is_file()) {
            let mut bytes = Vec::new();
            let opened = File::open(file.path()).map_err(part)?;
            opened.take(KEY_BYTES_MAX).read_to_end(&mut bytes).map_err(part)?;
            let name = format!("{name}/{}", file.file_name().to_string_lossy());
            archive.bytes(Kind::Key, &name, &bytes).map_err(BackupError::Write)?;
        }
    }
    Ok(())
}

/// Writes the rest of a backup from a data folder whose coordinator is not running.
pub fn backup_stopped(data: &Path, out: &mut impl Write) -> Result<(), BackupError> {
    let folder = DataFolder::inspect(data)?;
    let loaded = JournalReader::inspect(&folder)?.load()?;
    let log = Still::of(&folder.audit_log()).map_err(|error| part(AUDIT_LOG, &error))?;
    let places = Places::of(&folder, &DiskPlace).map_err(AuditError::Blobs)?;
    write(&loaded, &places, log, out)
}

/// Writes everything except the keys.
pub(crate) fn write(
    loaded: &Loaded,
    places: &Places,
    log: Still,
    out: &mut impl Write,
) -> Result<(), BackupError> {
    let (parts, records) = decode(loaded).map_err(BackupError::Farm)?;
    let core = Core::replay(Settings::default(), parts, records, Moment(0))
        .map_err(|error| BackupError::Farm(error.to_string()))?;
    let mut archive = ArchiveWriter::go_on(out);
    let is_stored =
        |key: &SpoolKey| loaded.spools.get(key).is_some_and(|extent| !extent.stored.is_empty());
    let stored: Vec<SpoolKey> = loaded.spools.keys().copied().filter(is_stored).collect();
    let stored = stored.into_iter().filter(|key| is_needed(&core, *key));
    let opened = stored.map(|key| {
        let opened = StoredSpool::of(loaded, &*places.spools, key);
        opened.map_err(|error| part(&format!("spool {key}"), &error))
    });
    let stored = opened.collect::<Result<Vec<StoredSpool>, BackupError>>()?;
    let values = values_of(loaded)
        .filter(|(key, _)| spool_of(key).is_none_or(|spool| !is_stored(&spool)))
        .chain(stored.iter().map(|spool| extent_value(spool.key, spool.length)));
    for (key, value) in values {
        let name: String = key.iter().map(|byte| format!("{byte:02x}")).collect();
        archive.bytes(Kind::Value, &name, &value).map_err(BackupError::Write)?;
    }
    let on_disk = loaded.spools.iter().filter(|(key, _)| !is_stored(key));
    for (key, extent) in on_disk.filter(|(key, _)| is_needed(&core, **key)) {
        let what = format!("spool {key}");
        let spool = places.spools.open(*key, extent).map_err(|error| part(&what, &error))?;
        let mut bytes = SpoolBytes { spool, at: 0, length: extent.length };
        archive
            .file(Kind::Spool, &spool_name(*key), extent.length, &mut bytes)
            .map_err(|error| broken(&what, error))?;
    }
    for mut spool in stored {
        let (name, length) = (spool_name(spool.key), spool.length);
        let what = format!("spool {}", spool.key);
        archive
            .file(Kind::Spool, &name, length, &mut spool)
            .map_err(|error| broken(&what, error))?;
    }
    let named: BTreeSet<BlobHash> = core.named_blobs().into_iter().collect();
    for hash in named {
        write_blob(&mut archive, &*places.blobs, hash)?;
    }
    write_log(&mut archive, log)?;
    archive.end().map_err(BackupError::Write)
}

/// Returns the name of a spool in a backup.
fn spool_name(key: SpoolKey) -> String {
    format!("{}/{}", key.job, key.frame.0)
}

fn write_log<W: Write>(archive: &mut ArchiveWriter<W>, log: Still) -> Result<(), BackupError> {
    if let Some(head) = log.head {
        archive.bytes(Kind::Log, HEAD_FILE, &head).map_err(BackupError::Write)?;
    }
    for (name, file, length) in log.files {
        let written = archive.file(Kind::Log, &name, length, &mut file.take(length));
        written.map_err(|error| broken(AUDIT_LOG, error))?;
    }
    Ok(())
}

/// Returns whether a spool is needed. A finished frame needs none, even if a crash has left it one.
fn is_needed(core: &Core, key: SpoolKey) -> bool {
    let open = core.job_summary(key.job).is_some_and(|summary| !summary.state.is_final());
    open && core.committed_units(key.job, key.frame).is_some()
}

fn write_blob<W: Write>(
    archive: &mut ArchiveWriter<W>,
    blobs: &dyn Blobs,
    hash: BlobHash,
) -> Result<(), BackupError> {
    let what = format!("blob {hash}");
    let blob = blobs.open(hash).map_err(|error| part(&what, &error.source))?;
    let blob = blob.ok_or_else(|| part(&what, &"it is not there"))?;
    let length = blob.length();
    let mut bytes = BlobBytes { blob, at: 0 }.take(length);
    let found = archive.file(Kind::Blob, &hash.to_string(), length, &mut bytes);
    let found = found.map_err(|error| broken(&what, error))?;
    match found == hash {
        true => Ok(()),
        false => Err(part(&what, &format!("its bytes have the hash {found}"))),
    }
}

/// Reads the bytes of a blob in order.
struct BlobBytes {
    blob: Box<dyn BlobRead>,
    at: u64,
}

impl Read for BlobBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.blob.read_at(self.at, buffer)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// Reads the durable bytes of a spool in order.
struct SpoolBytes {
    spool: Box<dyn SpoolRead>,
    at: u64,
    length: u64,
}

impl Read for SpoolBytes {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let count = buffer.len().min(left);
        self.spool.read_exact_at(self.at, &mut buffer[..count])?;
        self.at += count as u64;
        Ok(count)
    }
}

fn part(what: &str, problem: &dyn std::fmt::Display) -> BackupError {
    BackupError::Part { what: what.to_owned(), problem: problem.to_string() }
}

/// Converts an error. A file that ends early is a fault of the farm; every other error is a fault
/// of the backup.
fn broken(what: &str, error: io::Error) -> BackupError {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => part(what, &"it is cut short"),
        _ => BackupError::Write(error),
    }
}

#[cfg(test)]
mod tests;
