//! The note in a data folder of when its coordinator last led a store elsewhere.

use super::StoreError;
use crate::folder::DataFolder;
use tessera_transport::files;

/// Longest note, in bytes.
const LED_BYTES_MAX: u64 = 64;

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

/// Notes in the folder that its coordinator leads with this epoch. Returns whether nobody else led
/// since it last did. A folder of before the note was there has only ever been the one of its farm:
/// one that is marked as the store's.
pub fn note_lead(folder: &DataFolder, (epoch, is_marked): (i64, bool)) -> Result<bool, StoreError> {
    let continues = last_lead(folder)?.map_or(is_marked, |last| last == epoch - 1);
    let (path, text) = (folder.led(), format!("{epoch}\n"));
    files::write_atomically(&path, text.as_bytes(), files::Access::Secret)
        .map_err(|source| StoreError::Io { path, source })?;
    Ok(continues)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_continues_if_nobody_led_between() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::open(root.path()).unwrap();
        let lead = |epoch, is_marked| note_lead(&folder, (epoch, is_marked)).unwrap();
        assert!(!lead(4, false), "a new folder of a farm with a past");
        assert!(lead(5, true));
        assert_eq!(last_lead(&folder).unwrap(), Some(5));
        assert!(!lead(7, true), "another one led with epoch 6");
        assert!(lead(8, true));
        std::fs::remove_file(folder.led()).unwrap();
        assert!(lead(20, true), "a folder of before the note");
        std::fs::write(folder.led(), "x").unwrap();
        assert!(!lead(21, true));
    }
}
