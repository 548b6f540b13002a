//! Restoring a backup into an empty folder. Every command refuses the folder until the restore is
//! complete.

use super::archive::{ArchiveError, ArchiveReader, BackupSummary, EntryHead, Kind, verify};
use crate::access::audit_log::{self, Log};
use crate::blobs::{BlobError, Blobs, DiskBlobs};
use crate::folder::{DataFolder, FolderError};
use crate::fsck::decode;
use crate::spool::{DiskSpools, SpoolKey};
use crate::store::{Changes, Journal, Store, StoreError};
use std::fs::File;
use std::io::{self, BufReader};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;
use tessera_core::{Core, Moment, Record, Settings};
use tessera_protocol::{Epoch, FrameNumber};
use tessera_transport::files;
use tessera_transport::generation;
use tessera_transport::validity::now_secs;

/// Largest value of the journal that is taken from a backup, in bytes. A snapshot of a thousand
/// million units is 128 MiB.
const VALUE_BYTES_MAX: u64 = 1 << 30;
/// Largest key file in bytes.
const KEY_BYTES_MAX: u64 = 1 << 20;
/// Largest file of the audit log in bytes. The log begins a new file at a quarter of this size.
const LOG_FILE_BYTES_MAX: u64 = 16 << 20;
/// Values that are put into the journal at once.
const VALUES_AT_ONCE: usize = 256;
/// Epochs that are skipped. The farm may have continued after the backup. Results that its nodes
/// still hold from then must not count as answers to leases of the restored farm. A farm that
/// leases a million units per second uses this many epochs in twelve days.
const EPOCHS_PASSED_OVER: u64 = 1 << 40;

/// Why a backup was not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The file is not a complete backup. The folder was not touched, unless the file changed
    /// during the restore.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// An entry has a name that no backup contains.
    #[error("entry `{0}` of the backup has no place in a data folder")]
    Name(String),
    /// The folder cannot be used.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The journal cannot be written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A blob cannot be written.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A file cannot be written.
    #[error("the data folder cannot be written")]
    Write(#[source] io::Error),
    /// The journal in the backup is not consistent.
    #[error("the journal in the backup contradicts itself: {0}")]
    Journal(String),
}

/// Restores a backup durably into `data`, which must be empty or absent.
pub fn restore(backup: &Path, data: &Path) -> Result<BackupSummary, RestoreError> {
    verify(backup)?;
    let folder = DataFolder::begin_restore(data)?;
    let file = File::open(backup).map_err(ArchiveError::Read)?;
    let mut reader = ArchiveReader::begin(BufReader::new(file))?;
    let mut target = Target {
        journal: Journal::open(&folder, true)?,
        blobs: DiskBlobs::open(&folder, 0),
        values: Vec::new(),
        folder,
    };
    while let Some(entry) = reader.next()? {
        target.take(&mut reader, entry)?;
    }
    let summary = reader.summary();
    target.finish(&summary)?;
    Ok(summary)
}

struct Target {
    folder: DataFolder,
    journal: Journal,
    blobs: DiskBlobs,
    /// Values of the journal that are not written yet.
    values: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Target {
    fn take(
        &mut self,
        reader: &mut ArchiveReader<BufReader<File>>,
        entry: EntryHead,
    ) -> Result<(), RestoreError> {
        let wrong = || RestoreError::Name(entry.name.clone());
        match entry.kind {
            Kind::Key => {
                let (folder, name) = key_name(&entry.name)
                    .filter(|_| entry.length <= KEY_BYTES_MAX)
                    .ok_or_else(wrong)?;
                let path = self.folder.root().join(folder);
                let mut bytes = Vec::new();
                reader.read(entry, &mut bytes)?;
                write_secret(&path, &name, &bytes).map_err(RestoreError::Write)?;
            }
            Kind::Log => {
                let folder = self.folder.audit_log();
                let name = entry.name.clone();
                if !audit_log::is_name(&name) || entry.length > LOG_FILE_BYTES_MAX {
                    return Err(wrong());
                }
                let mut bytes = Vec::new();
                reader.read(entry, &mut bytes)?;
                write_secret(&folder, &name, &bytes).map_err(RestoreError::Write)?;
            }
            Kind::Value => {
                let key = unhex(&entry.name)
                    .filter(|_| entry.length <= VALUE_BYTES_MAX)
                    .ok_or_else(wrong)?;
                let mut value = Vec::new();
                reader.read(entry, &mut value)?;
                self.values.push((key, value));
                if self.values.len() >= VALUES_AT_ONCE {
                    self.journal.put(&std::mem::take(&mut self.values))?;
                }
            }
            Kind::Spool => {
                let key = spool_key(&entry.name).ok_or_else(wrong)?;
                let root = self.folder.spool();
                let mut file = DiskSpools::create(&root, key).map_err(RestoreError::Write)?;
                reader.read(entry, &mut file)?;
                DiskSpools::sync_new(&root, key, &file).map_err(RestoreError::Write)?;
            }
            Kind::Blob => {
                let hash = entry.name.parse().map_err(|_| wrong())?;
                let mut writer = self.blobs.writer()?;
                reader.read(entry, &mut writer)?;
                let (found, _) = writer.finish()?;
                if found != hash {
                    return Err(RestoreError::Journal(format!("blob {hash} has the hash {found}")));
                }
            }
            Kind::End => {}
        }
        Ok(())
    }

    /// Writes the last values, the skipped epochs, an entry in the audit log, and the mark that the
    /// folder is complete.
    fn finish(mut self, summary: &BackupSummary) -> Result<(), RestoreError> {
        self.journal.put(&std::mem::take(&mut self.values))?;
        let loaded = self.journal.load()?;
        let (parts, records) = decode(&loaded).map_err(RestoreError::Journal)?;
        let newest = loaded.records.last().map(|(sequence, _)| *sequence);
        let newest =
            newest.or(loaded.snapshot.as_ref().map(|(sequence, _)| *sequence)).unwrap_or(0);
        let core = Core::replay(Settings::default(), parts, records, Moment(0))
            .map_err(|error| RestoreError::Journal(error.to_string()))?;
        let up_to = Epoch(core.epochs_reserved().0.saturating_add(EPOCHS_PASSED_OVER));
        let record = Record::EpochsReserved { up_to };
        let bytes = record.to_bytes().map_err(|error| RestoreError::Journal(error.to_string()))?;
        self.journal
            .commit(&Changes { records: vec![(newest + 1, bytes)], ..Changes::default() })?;
        files::sync_folder(&self.folder.spool()).map_err(RestoreError::Write)?;
        // Newer than the coordinator that the backup is of, however often that one was started.
        generation::raise(&self.folder.generation(), true).map_err(RestoreError::Write)?;
        drop(self.journal);
        let kept = loaded.audit_head.as_deref();
        let log = Log::open(&self.folder.audit_log(), kept, false).map_err(RestoreError::Write)?;
        let about = format!("{} values of the journal, {} blobs", summary.values, summary.blobs);
        log.append((now_secs(), "owner of the folder"), "farm restored from a backup", &about)
            .map_err(RestoreError::Write)?;
        Ok(self.folder.finish_restore()?)
    }
}

/// Splits the name of a key file. There are two folders, and no name can lead to another one.
fn key_name(name: &str) -> Option<(&str, String)> {
    let (folder, file) = name.split_once('/')?;
    let plain = file.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'));
    let good = ["authority", "admin", "access"].contains(&folder)
        && plain
        && !file.is_empty()
        && !file.starts_with('.');
    good.then(|| (folder, file.to_owned()))
}

/// Writes a file that only its owner can read, even if an older file was readable.
fn write_secret(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write;
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o700))?;
    let mut file = std::fs::OpenOptions::new()
        .create_new(true)
        .write(true)
        .mode(0o600)
        .open(folder.join(name))?;
    file.write_all(bytes)?;
    file.sync_all()?;
    files::sync_folder(folder)
}

fn spool_key(name: &str) -> Option<SpoolKey> {
    let (job, frame) = name.split_once('/')?;
    Some(SpoolKey { job: job.parse().ok()?, frame: FrameNumber(frame.parse().ok()?) })
}

fn unhex(name: &str) -> Option<Vec<u8>> {
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let pairs = name.as_bytes().chunks(2);
    pairs.map(|pair| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?)).collect()
}
