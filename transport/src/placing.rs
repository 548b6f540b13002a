//! Gives a complete file its name only where nothing has that name. Never looks first and renames
//! then: another process may come in between.

use crate::files::{folder_of, sync_folder};
use std::fs::File;
use std::io;
use std::path::Path;

/// Renames `from`, a synced file, to `to` in the same folder, and makes the name durable.
///
/// # Errors
/// [`io::ErrorKind::AlreadyExists`] if anything is at `to`, a broken link too. Then `from` stays.
pub fn place_new(from: &Path, to: &Path) -> io::Result<()> {
    let mut placed = Err(unsupported());
    // The best way that the file system knows. Only the last leaves an empty file if the process is
    // killed in between.
    for way in [rename_exclusively, link_and_unlink, claim_and_rename] {
        placed = way(from, to);
        match &placed {
            Err(error) if is_unsupported(error) => {}
            _ => break,
        }
    }
    placed?;
    sync_folder(folder_of(to))
}

/// One step, by the kernel.
#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn rename_exclusively(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn rename_exclusively(_: &Path, _: &Path) -> io::Result<()> {
    Err(unsupported())
}

/// For NFS and others that cannot rename exclusively.
fn link_and_unlink(from: &Path, to: &Path) -> io::Result<()> {
    std::fs::hard_link(from, to)?;
    // The file has its name. A second one that stays harms nobody: a part with two names is not
    // written to.
    let _ = std::fs::remove_file(from);
    Ok(())
}

/// For file systems without links: an empty file holds the name for the moment.
fn claim_and_rename(from: &Path, to: &Path) -> io::Result<()> {
    drop(File::create_new(to)?);
    std::fs::rename(from, to).inspect_err(|_| {
        // The name is free again; the error that matters is the first.
        let _ = std::fs::remove_file(to);
    })
}

fn unsupported() -> io::Error {
    io::ErrorKind::Unsupported.into()
}

/// Returns whether the file system, or the system, does not know the call. Systems answer with
/// several numbers for it, and Linux says EPERM for links on FAT.
fn is_unsupported(error: &io::Error) -> bool {
    use rustix::io::Errno;
    let number = Errno::from_io_error(error);
    error.kind() == io::ErrorKind::Unsupported
        || number.is_some_and(|number| {
            [Errno::INVAL, Errno::NOSYS, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::PERM]
                .contains(&number)
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    type Way = fn(&Path, &Path) -> io::Result<()>;
    const WAYS: [Way; 4] = [place_new, rename_exclusively, link_and_unlink, claim_and_rename];

    #[test]
    fn every_way_places_a_file_once_and_replaces_none() {
        for (index, way) in WAYS.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
            fs::write(&from, "new").unwrap();
            way(&from, &to).unwrap();
            assert_eq!((fs::read_to_string(&to).unwrap().as_str(), from.exists()), ("new", false));
            fs::write(&from, "newer").unwrap();
            let error = way(&from, &to).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "way {index}");
            assert_eq!(fs::read_to_string(&to).unwrap(), "new", "way {index}");
            assert!(from.exists(), "way {index}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn broken_links_and_folders_hold_their_names() {
        for (index, way) in WAYS.into_iter().enumerate() {
            let folder = tempfile::tempdir().unwrap();
            let [from, link, inner] =
                ["from", "link", "inner"].map(|name| folder.path().join(name));
            fs::write(&from, "new").unwrap();
            std::os::unix::fs::symlink("nowhere", &link).unwrap();
            fs::create_dir(&inner).unwrap();
            for to in [&link, &inner] {
                let error = way(&from, to).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "way {index}");
            }
            assert!(link.is_symlink() && inner.is_dir() && from.exists(), "way {index}");
        }
    }

    #[test]
    fn of_many_threads_one_places_its_file() {
        for way in WAYS {
            let folder = tempfile::tempdir().unwrap();
            let to = folder.path().join("to");
            let placed: usize = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|index| {
                        let (from, to) = (folder.path().join(format!("{index}")), to.clone());
                        fs::write(&from, format!("{index}")).unwrap();
                        scope.spawn(move || usize::from(way(&from, &to).is_ok()))
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).sum()
            });
            assert_eq!(placed, 1);
            assert_eq!(fs::read(&to).unwrap().len(), 1);
        }
    }
}
