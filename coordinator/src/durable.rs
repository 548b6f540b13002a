//! Files that are whole or not there: temporary name, sync, rename, sync of the folder.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// Names of files in the making begin with it.
pub(crate) const TEMPORARY_PREFIX: &str = ".making-";

/// Makes the entries of a folder durable.
pub(crate) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// Gives a synced file its final name, durably. An existing file of that name is replaced.
pub(crate) fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync_folder(folder_of(to))
}

/// Writes a whole file durably under its final name; nothing of it is left on an error.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file =
        tempfile::Builder::new().prefix(TEMPORARY_PREFIX).tempfile_in(folder_of(path))?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(folder_of(path))
}

/// Bytes that may still be written to the file system of `path` by an ordinary user.
pub(crate) fn free_bytes(path: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(path)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_file(&path, b"one").unwrap();
        write_file(&path, b"two").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        assert!(write_file(&folder.path().join("no/such/folder"), b"x").is_err());
    }

    #[test]
    fn free_space_is_known() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert!(free_bytes(Path::new("/no such place")).is_err());
    }
}
