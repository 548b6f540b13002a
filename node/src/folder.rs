//! A node's data folder: the node's id, and the places of its files. Owns the lock that keeps a
//! second node out.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tessera_protocol::{NodeId, ProcessEpoch};
use tessera_transport::files::{
    Access, create_private_folder, lock_soon, make_private, sync_folder, write_whole,
};

/// Why a data folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another node uses the folder.
    #[error(
        "data folder `{0}` is in use by another node; stop that one, or give this one its own \
            folder"
    )]
    Locked(PathBuf),
    /// A file has other content than a node writes.
    #[error("`{path}` does not hold {expected}; move it away to start as a new node")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Content that was expected.
        expected: &'static str,
    },
    /// The disk returned an error.
    #[error("cannot use `{path}`")]
    Disk {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: io::Error,
    },
}

/// An open data folder. It is locked until it is dropped.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    node: NodeId,
    process: ProcessEpoch,
    _lock: File,
}

impl DataFolder {
    /// Opens the folder and counts one more run of its node. Makes the folder if it is missing.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        let disk = |path: &Path| {
            let path = path.to_owned();
            move |source| FolderError::Disk { path, source }
        };
        create_private_folder(root).and_then(|()| make_private(root)).map_err(disk(root))?;
        let lock_path = root.join("lock");
        let lock = File::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&lock_path)
            .map_err(disk(&lock_path))?;
        match lock_soon(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(FolderError::Locked(root.to_owned())),
            Err(TryLockError::Error(source)) => return Err(disk(&lock_path)(source)),
        }
        for name in ["identity", "cache", "outbox", "views", "inputs"] {
            let path = root.join(name);
            fs::create_dir_all(&path).map_err(disk(&path))?;
        }
        for name in ["views", "inputs"] {
            let path = root.join(name);
            clear(&path).map_err(disk(&path))?;
        }
        let node = read_or(&root.join("node"), "a node id", || NodeId(uuid::Uuid::now_v7()))?;
        let process = ProcessEpoch(read_or(&root.join("runs"), "a count of runs", || 0u64)? + 1);
        let runs = root.join("runs");
        write_whole(&runs, &[process.0.to_string().as_bytes()], Access::Secret)
            .map_err(disk(&runs))?;
        sync_folder(root).map_err(disk(root))?;
        Ok(Self { root: root.to_owned(), node, process, _lock: lock })
    }

    /// Returns the node's id, which stays the same as long as the folder is kept.
    pub fn node(&self) -> NodeId {
        self.node
    }

    /// Returns the number of this run of the node, one more than the last.
    pub fn process(&self) -> ProcessEpoch {
        self.process
    }

    /// Returns the folder of the identity.
    pub fn identity(&self) -> PathBuf {
        self.root.join("identity")
    }

    /// Returns the folder of the scene cache.
    pub(crate) fn cache(&self) -> PathBuf {
        self.root.join("cache")
    }

    /// Returns the folder of the outbox.
    pub(crate) fn outbox(&self) -> PathBuf {
        self.root.join("outbox")
    }

    /// Returns the folder for scenes while they are read. It is on the cache's file system, so that
    /// hard links work.
    pub(crate) fn views(&self) -> PathBuf {
        self.root.join("views")
    }

    /// Returns the folder for what finishing units read. Its files have no names where the system
    /// can make such files.
    pub(crate) fn inputs(&self) -> PathBuf {
        self.root.join("inputs")
    }
}

/// Removes what a killed process has left in a folder of temporary files and folders.
fn clear(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Reads the value in a small text file, or writes a new one.
fn read_or<T: std::str::FromStr + std::fmt::Display>(
    path: &Path,
    expected: &'static str,
    make: impl FnOnce() -> T,
) -> Result<T, FolderError> {
    match fs::read_to_string(path) {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| FolderError::Damaged { path: path.to_owned(), expected }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let value = make();
            write_whole(path, &[value.to_string().as_bytes()], Access::Secret)
                .map_err(|source| FolderError::Disk { path: path.to_owned(), source })?;
            Ok(value)
        }
        Err(source) => Err(FolderError::Disk { path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_keeps_its_id_and_counts_its_runs() {
        let root = tempfile::tempdir().unwrap();
        let first = DataFolder::open(root.path()).unwrap();
        let (node, process) = (first.node(), first.process());
        drop(first);
        let second = DataFolder::open(root.path()).unwrap();
        assert_eq!(second.node(), node);
        assert_eq!(second.process(), ProcessEpoch(process.0 + 1));
    }

    #[test]
    fn a_second_node_is_kept_out() {
        let root = tempfile::tempdir().unwrap();
        let _first = DataFolder::open(root.path()).unwrap();
        assert!(matches!(DataFolder::open(root.path()), Err(FolderError::Locked(_))));
    }

    #[test]
    fn what_a_killed_node_left_is_removed() {
        let root = tempfile::tempdir().unwrap();
        drop(DataFolder::open(root.path()).unwrap());
        let (file, folder) = (root.path().join("inputs/a"), root.path().join("views/b"));
        fs::write(&file, "films").unwrap();
        fs::create_dir(&folder).unwrap();
        drop(DataFolder::open(root.path()).unwrap());
        assert!(!file.exists() && !folder.exists());
    }

    #[test]
    fn a_damaged_id_is_named() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("node"), "hello").unwrap();
        let error = DataFolder::open(root.path()).unwrap_err().to_string();
        assert!(error.contains("node") && error.contains("a node id"), "{error}");
    }
}
