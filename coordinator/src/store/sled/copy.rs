//! Copies of a journal's files. sled writes when it opens a log: it zeroes what it takes for the
//! torn end, and makes a snapshot. So a log is opened first as a copy, and only `opening` opens the
//! log itself.

use super::leftovers;
use super::sled_open::{self, OpenFault};
use crate::store::StoreError;
use crate::store::envelope;
use crate::store::keys::COUNT_KEY;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tessera_transport::files;

/// Names of copies begin with this.
const PREFIX: &str = "journal-copy-";
/// Bytes that sled may write when it opens a copy: a segment of its log and a snapshot.
const SLACK_BYTES: u64 = 2 << 20;
/// Folder in which sled keeps large pages, beside its log.
const LARGE_PAGES: &str = "blobs";

/// A copy of a journal's files, opened. The files are deleted with this value.
#[derive(Debug)]
pub(super) struct OpenCopy {
    pub(super) db: sled::Db,
    /// Whether the copy has the newest intact snapshot. Otherwise sled has read the whole log.
    pub(super) with_snapshot: bool,
    /// Whether every page can be read, and no commit of the witness is missing.
    pub(super) sound: bool,
    /// Number of intact values.
    intact: u64,
    /// Declared after `db`: the files go last.
    _folder: TempDir,
}

/// Copies the journal's files to a folder below `into`, and opens the copy: with the newest intact
/// snapshot, and if that does not give a sound journal, without. Returns the better one. The files
/// themselves are only read.
pub(super) fn open(sled: &Path, witnessed: u64, into: &Path) -> Result<OpenCopy, StoreError> {
    let failed = |source| StoreError::Io { path: sled.to_path_buf(), source };
    let beside = leftovers::look(sled).map_err(failed)?;
    let mut best: Option<OpenCopy> = None;
    let mut fault = None;
    for snapshot in beside.snapshots.last().map(Some).into_iter().chain([None]) {
        let folder = copy(sled, snapshot.map(PathBuf::as_path), into)?;
        match look(folder, snapshot.is_some(), witnessed) {
            Ok(copy) if copy.sound => return Ok(copy),
            Ok(copy) if best.as_ref().is_none_or(|best| copy.intact > best.intact) => {
                best = Some(copy);
            }
            Ok(_) => {}
            // Only the disk is at fault: the same would happen to the other copy.
            Err(OpenFault::Io(source)) => return Err(no_room_or(into, 0, source)),
            Err(OpenFault::Damaged(problem)) => fault = Some(problem),
        }
    }
    best.ok_or_else(|| StoreError::Damaged {
        path: sled.to_path_buf(),
        what: "the log (`db`)".into(),
        problem: fault.unwrap_or_else(|| "it cannot be read".into()),
    })
}

/// Opens a copy and reads all of it.
fn look(folder: TempDir, with_snapshot: bool, witnessed: u64) -> Result<OpenCopy, OpenFault> {
    let db = sled_open::open(folder.path())?;
    let (mut intact, mut commits, mut whole) = (0, 0, true);
    let read = catch_unwind(AssertUnwindSafe(|| {
        for entry in db.iter() {
            let Ok((key, sealed)) = entry else {
                whole = false;
                break;
            };
            match envelope::open(&key, &sealed) {
                Ok(payload) if key == COUNT_KEY => commits = payload.count().unwrap_or(0),
                Ok(_) => {}
                Err(_) => continue,
            }
            intact += 1;
        }
    }));
    let sound = read.is_ok() && whole && commits >= witnessed;
    Ok(OpenCopy { db, with_snapshot, sound, intact, _folder: folder })
}

/// Copies the log and one snapshot. Files that sled would refuse are left out.
fn copy(sled: &Path, snapshot: Option<&Path>, into: &Path) -> Result<TempDir, StoreError> {
    let failed = |source| StoreError::Io { path: sled.to_path_buf(), source };
    let mut wanted = vec![PathBuf::from("db"), PathBuf::from("conf")];
    wanted.extend(snapshot.and_then(Path::file_name).map(PathBuf::from));
    if let Ok(pages) = std::fs::read_dir(sled.join(LARGE_PAGES)) {
        for page in pages {
            wanted.push(Path::new(LARGE_PAGES).join(page.map_err(failed)?.file_name()));
        }
    }
    let beside = leftovers::look(sled).map_err(failed)?;
    let is_left = |name: &PathBuf| {
        let path = sled.join(name);
        path.is_file() && !beside.leftovers.iter().any(|leftover| leftover.path == path)
    };
    wanted.retain(is_left);
    let mut needed = SLACK_BYTES;
    for name in &wanted {
        needed += std::fs::metadata(sled.join(name)).map_err(failed)?.len();
    }
    let full = |source| no_room_or(into, needed, source);
    let free = files::free_bytes(into).map_err(full)?;
    if free < needed {
        return Err(StoreError::NoRoomForCopy { path: into.to_path_buf(), needed });
    }
    let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(into).map_err(full)?;
    files::create_private_folder(&folder.path().join(LARGE_PAGES)).map_err(full)?;
    for name in &wanted {
        std::fs::copy(sled.join(name), folder.path().join(name)).map_err(full)?;
    }
    Ok(folder)
}

/// Says that there is no room, if that is the error.
fn no_room_or(into: &Path, needed: u64, source: io::Error) -> StoreError {
    match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            StoreError::NoRoomForCopy { path: into.to_path_buf(), needed }
        }
        _ => StoreError::Io { path: into.to_path_buf(), source },
    }
}

/// Deletes the copies that a killed process left in a folder.
pub(super) fn clear(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            std::fs::remove_dir_all(entry.path())?;
        }
    }
    Ok(())
}
