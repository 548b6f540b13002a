//! The opening of the journal for writing, guarded against what sled does at it.
//!
//! A process that is killed here, or a full disk, leaves files behind which sled then refuses for
//! ever; and sled drops, and zeroes, everything after the first damaged message of its log. So the
//! files that sled left half made are set aside first. Then a copy of the log is opened, read to
//! its end and compared with the witness. The log itself is opened only if its copy is sound. A
//! journal that is refused has not been changed.

use super::copy;
use super::leftovers;
use super::reader::JournalReader;
use super::sled_open::{self, OpenFault};
use crate::folder::DataFolder;
use crate::store::StoreError;
use std::path::Path;

/// Opens or makes the journal's sled. `witnessed` commits were made durable.
pub(super) fn open(folder: &DataFolder, witnessed: u64) -> Result<sled::Db, StoreError> {
    let path = folder.sled();
    copy::clear(&folder.temporary())
        .map_err(|source| StoreError::Io { path: folder.temporary(), source })?;
    let failed = |source| StoreError::Io { path: path.clone(), source };
    let beside = leftovers::look(&path).map_err(failed)?;
    for leftover in &beside.leftovers {
        set_aside(folder, &leftover.path, leftover.problem)?;
    }
    let length = std::fs::metadata(path.join("db")).map_or(0, |file| file.len());
    if length > 0 || witnessed > 0 {
        let copy = copy::open(&path, witnessed, &folder.temporary())?;
        if !copy.sound {
            let reader = JournalReader::of(copy, folder, witnessed);
            return Err(reader.what_is_wrong());
        }
        let rebuilt = !copy.with_snapshot;
        drop(copy);
        // Only the log gave a sound journal. The snapshot contradicts it.
        for snapshot in beside.snapshots.iter().filter(|_| rebuilt) {
            set_aside(folder, snapshot, "sled's snapshot does not fit its log")?;
        }
    }
    sled_open::open(&path).map_err(|fault| match fault {
        OpenFault::Io(source) => opening_failed(&path, source),
        OpenFault::Damaged(problem) => {
            StoreError::Damaged { path: path.clone(), what: "the log (`db`)".into(), problem }
        }
    })
}

fn opening_failed(path: &Path, source: std::io::Error) -> StoreError {
    let path = path.to_path_buf();
    match source.kind() {
        std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
            StoreError::NoRoomToOpen { path }
        }
        _ => StoreError::Io { path, source },
    }
}

fn set_aside(folder: &DataFolder, file: &Path, problem: &str) -> Result<(), StoreError> {
    let to = leftovers::set_aside(file, &folder.aside())
        .map_err(|source| opening_failed(file, source))?;
    let (file, to) = (file.display(), to.display());
    tracing::warn!(%file, problem, kept = %to, "set aside; the journal is read from its log");
    Ok(())
}
