//! Writes small files completely and synced, or not at all. Does not know their content.

use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// Who can read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Only the owner can read it: mode 0600.
    Secret,
    /// Everyone can read it: mode 0644.
    Public,
}

/// Beginning of the names of temporary files.
pub const TEMPORARY_PREFIX: &str = ".tessera-";

/// Writes a file completely, and makes its name durable. The folder must exist.
pub fn write_atomically(path: &Path, bytes: &[u8], access: Access) -> io::Result<()> {
    write_whole(path, &[bytes], access)?;
    sync_folder(folder_of(path))
}

/// Writes `parts` one after another to a file: first under a temporary name in the same folder,
/// then synced, then renamed. A reader sees the old bytes or the new ones. The name is not synced,
/// so after a power cut the file may be missing, but never incomplete. After an error nothing is
/// left.
pub fn write_whole(path: &Path, parts: &[&[u8]], access: Access) -> io::Result<()> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = if access == Access::Secret { 0o600 } else { 0o644 };
        builder.permissions(std::fs::Permissions::from_mode(mode));
    }
    let mut file = builder.prefix(TEMPORARY_PREFIX).tempfile_in(folder_of(path))?;
    for part in parts {
        file.write_all(part)?;
    }
    file.as_file().sync_data()?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Gives a complete, synced file its final name and syncs the folder, so that the name survives a
/// power cut.
pub fn rename_synced(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::rename(from, to)?;
    sync_folder(folder_of(to))
}

/// Makes a folder (and its parents) that only its owner can enter: mode 0700 if it did not exist.
pub fn create_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Reads a small file. A file above `limit` bytes is an error.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    File::open(path)?.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!("larger than {limit} bytes"),
        ));
    }
    Ok(bytes)
}

/// Reads a small file with a key. Refuses a file that everybody on this machine can read or change.
pub fn read_secret(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        /// Rights of everybody who is neither the owner nor in the file's group.
        const OTHERS: u32 = 0o007;
        let mode = std::fs::metadata(path)?.permissions().mode() & 0o777;
        if mode & OTHERS != 0 {
            let text = format!(
                "it has a key, and everybody on this machine can read or change it (mode \
                 {mode:04o}); `chmod 600 {}` if nobody else has had access, and replace the key \
                 otherwise",
                path.display()
            );
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
        }
    }
    read_bounded(path, limit)
}

/// Takes the rights of group and others off a folder. Leaves a folder of somebody else as it is.
pub fn make_private(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder)?.permissions().mode();
        if mode & 0o077 != 0 {
            let private = std::fs::Permissions::from_mode(mode & 0o700);
            match std::fs::set_permissions(folder, private) {
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                result => return result,
            }
        }
    }
    Ok(())
}

/// How long a lock is waited for.
const LOCK_WAIT: Duration = Duration::from_millis(500);

/// Locks a file for this process alone, or finds within half a second that another one has it. A
/// process that has just ended, or a child of it that has not yet become another program, keeps a
/// lock for moments.
pub fn lock_soon(file: &File) -> Result<(), TryLockError> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if begun.elapsed() < LOCK_WAIT => {
                std::thread::sleep(Duration::from_millis(10));
            }
            outcome => return outcome,
        }
    }
}

/// Returns the folder of a path; `.` for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Makes the entries of a folder durable, after names were made or changed in it.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Not every system can open a folder for syncing. Where it is possible, the rename must reach
    // the disk.
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Returns how many bytes an ordinary user can still write to the file system of `path`.
pub fn free_bytes(path: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(path)?;
    Ok(answer.f_bavail.saturating_mul(answer.f_frsize))
}

/// Returns the size of the file system of `path` in bytes.
pub fn total_bytes(path: &Path) -> io::Result<u64> {
    let answer = rustix::fs::statvfs(path)?;
    Ok(answer.f_blocks.saturating_mul(answer.f_frsize))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_nothing_else_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        write_atomically(&path, b"one", Access::Secret).unwrap();
        write_whole(&path, &[b"t", b"wo"], Access::Secret).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"two");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
        let absent = folder.path().join("no/such/folder");
        assert!(write_atomically(&absent, b"x", Access::Public).is_err());
    }

    #[test]
    fn a_file_that_cannot_get_its_name_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::create_dir(&path).unwrap();
        assert!(write_whole(&path, &[b"one"], Access::Secret).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn keys_that_everybody_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        write_atomically(&path, b"key", Access::Secret).unwrap();
        assert_eq!(read_secret(&path, 10).unwrap(), b"key");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = read_secret(&path, 10).unwrap_err().to_string();
        assert!(error.contains("mode 0644") && error.contains("chmod 600"), "{error}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        assert_eq!(read_secret(&path, 10).unwrap(), b"key");
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        make_private(folder.path()).unwrap();
        let mode = std::fs::metadata(folder.path()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[test]
    fn free_space_is_known() {
        assert!(free_bytes(Path::new("/")).unwrap() > 0);
        assert!(free_bytes(Path::new("/no such place")).is_err());
    }
}
