//! The note in a data folder of when its coordinator last led a store elsewhere.

use super::{Purpose, StoreError};
use crate::folder::DataFolder;
use std::path::Path;
use tessera_transport::files;

/// Longest note, in bytes.
const LED_BYTES_MAX: u64 = 64;

/// Whether nobody led between a folder's coordinator and now, so that the folder's spools are the
/// right ones: it led last in the lead before this one. A folder of before the note was there has
/// only ever been the one of its farm: one that is marked as the store's.
pub fn leads_on(last: Option<i64>, before: i64, is_marked: bool) -> bool {
    last.map_or(is_marked, |last| last == before)
}

/// Returns the epoch in which the folder's coordinator last led; None if it never did, or an older
/// build did not note it.
pub fn last_lead(folder: &DataFolder) -> Result<Option<i64>, StoreError> {
    let path = folder.led();
    match files::read_bounded(&path, LED_BYTES_MAX) {
        // What is no number is of no lead.
        Ok(bytes) => Ok(Some(String::from_utf8_lossy(&bytes).trim().parse().unwrap_or(-1))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(StoreError::Io { path, source }),
    }
}

/// Notes in the folder that its coordinator leads with this epoch, after the lead `before`. Returns
/// whether nobody else led since it last did; if somebody did, the folder's spools are void, and
/// are removed before the note is there: a start that is killed after it finds none.
///
/// A store that is filled from the folder gets what that has.
pub fn note_lead(
    folder: &DataFolder,
    (epoch, before, is_marked): (i64, i64, bool),
    purpose: Purpose,
) -> Result<bool, StoreError> {
    let continues = purpose == Purpose::CopyTo || leads_on(last_lead(folder)?, before, is_marked);
    if !continues {
        clear(&folder.spool())?;
    }
    let (path, text) = (folder.led(), format!("{epoch}\n"));
    files::write_atomically(&path, text.as_bytes(), files::Access::Secret)
        .map_err(|source| StoreError::Io { path, source })?;
    Ok(continues)
}

/// Notes in a folder without a mark that its coordinator has never led the store.
pub(crate) fn note_no_lead(folder: &DataFolder) -> Result<(), StoreError> {
    let path = folder.led();
    files::write_atomically(&path, b"-1\n", files::Access::Secret)
        .map_err(|source| StoreError::Io { path, source })
}

/// Removes everything in a folder, durably.
fn clear(folder: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::Io { path: folder.to_path_buf(), source };
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let removed = match path.is_dir() {
            true => std::fs::remove_dir_all(&path),
            false => std::fs::remove_file(&path),
        };
        removed.map_err(failed)?;
    }
    files::sync_folder(folder).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_continues_if_nobody_led_between() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let lead = |epoch: i64, is_marked| {
            note_lead(&folder, (epoch, epoch - 1, is_marked), Purpose::Run).unwrap()
        };
        assert!(!lead(4, false), "a new folder of a farm with a past");
        let spool = folder.spool().join("job");
        std::fs::create_dir(&spool).unwrap();
        assert!(lead(5, true) && spool.exists());
        assert_eq!(last_lead(&folder).unwrap(), Some(5));
        assert!(note_lead(&folder, (1, 0, false), Purpose::CopyTo).unwrap() && spool.exists());
        assert!(lead(2, true) && spool.exists());
        assert!(!lead(7, true), "another one led with epochs 3 to 6");
        assert!(!spool.exists(), "it is void");
        assert!(lead(8, true));
        std::fs::remove_file(folder.led()).unwrap();
        assert!(lead(20, true), "a folder of before the note");
        std::fs::write(folder.led(), "x").unwrap();
        assert!(!lead(21, true));
        note_no_lead(&folder).unwrap();
        assert!(!lead(1, true), "it has only followed");
    }
}
