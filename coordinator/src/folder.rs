//! The coordinator's data folder: its parts, its lock and its format version. Owns no content.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use tessera_transport::files;

/// Version of the folder's layout, and of everything in it that has no separate version.
pub const FORMAT_VERSION: u32 = 1;
const FORMAT_FILE: &str = "format";
const LOCK_FILE: &str = "lock";
/// Text of the format file while a backup is being restored.
const UNFINISHED: &str = "being restored\n";

/// Why a folder cannot be used as a data folder.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// Another process uses the folder.
    #[error("data folder `{path}` is in use: a coordinator runs on it")]
    InUse {
        /// Path of the folder.
        path: PathBuf,
    },
    /// Another version wrote the folder.
    #[error(
        "data folder `{path}` has format `{found}`, this build reads {FORMAT_VERSION}; use the \
            build that wrote it"
    )]
    Format {
        /// Path of the folder.
        path: PathBuf,
        /// Content of the format file.
        found: String,
    },
    /// The folder is not a data folder.
    #[error(
        "`{path}` is not empty and not a data folder of a coordinator; give an empty or a new \
         folder"
    )]
    Foreign {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A backup can only be restored into an empty folder.
    #[error("`{path}` is not empty; a backup is restored into an empty or a new folder")]
    NotEmpty {
        /// Path of the folder.
        path: PathBuf,
    },
    /// A restore was interrupted.
    #[error(
        "a backup was not restored to its end in `{path}`; empty the folder, and restore it again"
    )]
    Unfinished {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The folder does not exist.
    #[error("there is no data folder at `{path}`")]
    Absent {
        /// Path of the folder.
        path: PathBuf,
    },
    /// The file system returned an error.
    #[error("data folder `{path}` cannot be used")]
    Io {
        /// Path of the file or folder.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
}

/// A locked data folder. The lock is released with this value, or at the end of the process.
#[derive(Debug)]
pub struct DataFolder {
    root: PathBuf,
    /// None if the folder is only read, and no coordinator has ever locked it.
    _lock: Option<File>,
}

impl DataFolder {
    /// Opens and locks the folder. Makes it if it is absent or empty.
    pub fn open(root: &Path) -> Result<Self, FolderError> {
        let failed = |path: &Path| {
            let path = path.to_path_buf();
            move |source| FolderError::Io { path, source }
        };
        files::create_private_folder(root).map_err(failed(root))?;
        let fresh = is_fresh(root).map_err(failed(root))?;
        if !fresh && !root.join(FORMAT_FILE).exists() {
            return Err(FolderError::Foreign { path: root.to_path_buf() });
        }
        let lock = lock(root)?;
        if fresh {
            let text = format!("{FORMAT_VERSION}\n");
            files::write_atomically(
                &root.join(FORMAT_FILE),
                text.as_bytes(),
                files::Access::Secret,
            )
            .map_err(failed(root))?;
        }
        let folder = Self { root: root.to_path_buf(), _lock: Some(lock) };
        files::make_private(root).map_err(failed(root))?;
        folder.check_format()?;
        folder.make_parts()?;
        folder.clear_temporary().map_err(failed(&root.join("tmp")))?;
        Ok(folder)
    }

    fn make_parts(&self) -> Result<(), FolderError> {
        for part in ["blobs", "partial", "spool", "records", "sled", "tmp"] {
            let path = self.root.join(part);
            let made = files::create_private_folder(&path);
            made.and_then(|()| files::make_private(&path))
                .map_err(|source| FolderError::Io { path, source })?;
        }
        self.sync()
    }

    /// Locks an existing folder only to read it: nothing in it is made or deleted, and the file
    /// system may be read-only.
    pub fn inspect(root: &Path) -> Result<Self, FolderError> {
        if !root.join(FORMAT_FILE).is_file() {
            return Err(FolderError::Absent { path: root.to_path_buf() });
        }
        let folder = Self { root: root.to_path_buf(), _lock: lock_to_read(root)? };
        folder.check_format()?;
        Ok(folder)
    }

    /// Makes a data folder for a restore. Nothing else opens it until [`Self::finish_restore`] has
    /// been called.
    pub fn begin_restore(root: &Path) -> Result<Self, FolderError> {
        let failed = |source| FolderError::Io { path: root.to_path_buf(), source };
        files::create_private_folder(root).map_err(failed)?;
        files::make_private(root).map_err(failed)?;
        if !is_fresh(root).map_err(failed)? {
            return Err(FolderError::NotEmpty { path: root.to_path_buf() });
        }
        let folder = Self { root: root.to_path_buf(), _lock: Some(lock(root)?) };
        let marker = root.join(FORMAT_FILE);
        files::write_atomically(&marker, UNFINISHED.as_bytes(), files::Access::Secret)
            .map_err(failed)?;
        folder.make_parts()?;
        Ok(folder)
    }

    /// Marks the restored folder as complete. It is an ordinary data folder from then on.
    pub fn finish_restore(self) -> Result<(), FolderError> {
        let path = self.root.join(FORMAT_FILE);
        let written = files::write_atomically(
            &path,
            format!("{FORMAT_VERSION}\n").as_bytes(),
            files::Access::Secret,
        );
        written.map_err(|source| FolderError::Io { path, source })
    }

    /// Opens and locks an existing folder.
    pub fn open_existing(root: &Path) -> Result<Self, FolderError> {
        if !root.join(FORMAT_FILE).is_file() {
            return Err(FolderError::Absent { path: root.to_path_buf() });
        }
        Self::open(root)
    }

    fn check_format(&self) -> Result<(), FolderError> {
        let path = self.root.join(FORMAT_FILE);
        let text =
            std::fs::read_to_string(&path).map_err(|source| FolderError::Io { path, source })?;
        if text.trim() == FORMAT_VERSION.to_string() {
            return Ok(());
        }
        if text == UNFINISHED {
            return Err(FolderError::Unfinished { path: self.root.clone() });
        }
        let found: String = text.trim().chars().take(32).collect();
        Err(FolderError::Format { path: self.root.clone(), found })
    }

    /// Deletes the unfinished files of a killed process.
    fn clear_temporary(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(self.temporary())? {
            let path = entry?.path();
            if path.is_file() {
                std::fs::remove_file(path)?;
            }
        }
        for entry in std::fs::read_dir(self.partial())? {
            let entry = entry?;
            // The file of a second upload of the same blob, which cannot be resumed.
            if entry.file_name().to_string_lossy().starts_with('.') {
                std::fs::remove_file(entry.path())?;
            }
        }
        Ok(())
    }

    /// Makes the names of the folder's parts durable.
    pub fn sync(&self) -> Result<(), FolderError> {
        let synced = files::sync_folder(&self.root);
        synced.map_err(|source| FolderError::Io { path: self.root.clone(), source })
    }

    /// Path of the folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Folder of the farm's authority.
    pub fn authority(&self) -> PathBuf {
        self.root.join("authority")
    }

    /// Folder of the admin identity, which the first start makes.
    pub fn admin(&self) -> PathBuf {
        self.root.join("admin")
    }

    /// Folder of the audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.root.join("audit")
    }

    /// Folder of the lines of jobs and nodes.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    /// File of the deny-list.
    pub fn denied(&self) -> PathBuf {
        self.root.join("access/denied.json")
    }

    /// Folder of the journal.
    pub fn sled(&self) -> PathBuf {
        self.root.join("sled")
    }

    /// Folder of files that were half made and are kept out of the way.
    pub fn aside(&self) -> PathBuf {
        self.root.join("aside")
    }

    /// Folder of the journals that were in the folder before their content went to another store.
    pub fn former(&self) -> PathBuf {
        self.root.join("former")
    }

    /// File of the farm's generation.
    pub fn generation(&self) -> PathBuf {
        self.root.join("generation")
    }

    /// File that names the store that has the state, where it is not in the folder.
    pub fn store_mark(&self) -> PathBuf {
        self.root.join("store")
    }

    /// File with the last epoch in which this folder's coordinator led a store elsewhere.
    pub fn led(&self) -> PathBuf {
        self.root.join("led")
    }

    /// File with what a store elsewhere has said to be durable.
    pub fn acknowledged(&self) -> PathBuf {
        self.root.join("acknowledged")
    }

    /// File that names the store that has the blobs, where they are not in the folder.
    pub fn blobs_mark(&self) -> PathBuf {
        self.root.join("files")
    }

    /// File that counts the durable commits of the journal.
    pub fn witness(&self) -> PathBuf {
        self.root.join("witness")
    }

    /// Folder of records and snapshots that are too large for the journal.
    pub fn records(&self) -> PathBuf {
        self.root.join("records")
    }

    /// Folder of complete blobs.
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// File that says who uploaded which blob.
    pub fn uploads(&self) -> PathBuf {
        self.root.join("uploads")
    }

    /// Folder of uploads that are not complete yet.
    pub fn partial(&self) -> PathBuf {
        self.root.join("partial")
    }

    /// Objects of results that came back from a store elsewhere. It is made with the first one.
    pub fn results(&self) -> PathBuf {
        self.root.join("results")
    }

    /// Folder of results of frames that are not resolved yet.
    pub fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    /// Folder of files that are being written. It is emptied at the start.
    pub fn temporary(&self) -> PathBuf {
        self.root.join("tmp")
    }
}

/// Returns whether a folder is empty, or has only the lock of a start that was killed before it
/// wrote the format.
fn is_fresh(root: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(root)? {
        let name = entry?.file_name();
        if name != LOCK_FILE && !name.to_string_lossy().starts_with(files::TEMPORARY_PREFIX) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn lock(root: &Path) -> Result<File, FolderError> {
    let path = root.join(LOCK_FILE);
    let failed = |source| FolderError::Io { path: path.clone(), source };
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.open(&path).map_err(failed)?;
    try_lock(file, root)
}

/// Locks a folder without writing to it.
fn lock_to_read(root: &Path) -> Result<Option<File>, FolderError> {
    let path = root.join(LOCK_FILE);
    match File::open(&path) {
        Ok(file) => try_lock(file, root).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FolderError::Io { path, source }),
    }
}

fn try_lock(file: File, root: &Path) -> Result<File, FolderError> {
    match files::lock_soon(&file) {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(FolderError::InUse { path: root.to_path_buf() }),
        Err(TryLockError::Error(source)) => {
            Err(FolderError::Io { path: root.join(LOCK_FILE), source })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_coordinators_cannot_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let first = DataFolder::open(root.path()).unwrap();
        assert!(matches!(DataFolder::open(root.path()), Err(FolderError::InUse { .. })));
        drop(first);
        DataFolder::open_existing(root.path()).unwrap();
    }

    #[test]
    fn a_folder_of_another_version_or_of_somebody_else_is_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(matches!(DataFolder::open_existing(root.path()), Err(FolderError::Absent { .. })));
        drop(DataFolder::open(root.path()).unwrap());
        std::fs::write(root.path().join(FORMAT_FILE), "77\n").unwrap();
        let error = DataFolder::open(root.path()).unwrap_err();
        assert!(matches!(&error, FolderError::Format { found, .. } if found == "77"), "{error}");

        let foreign = tempfile::tempdir().unwrap();
        std::fs::write(foreign.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(DataFolder::open(foreign.path()), Err(FolderError::Foreign { .. })));
        assert_eq!(std::fs::read_dir(foreign.path()).unwrap().count(), 1);
    }

    // promise: P8
    #[test]
    fn a_data_folder_can_be_entered_only_by_its_owner() {
        use std::os::unix::fs::PermissionsExt;
        let parent = tempfile::tempdir().unwrap();
        let root = parent.path().join("data");
        std::fs::create_dir(&root).unwrap();
        std::fs::set_permissions(&root, std::fs::Permissions::from_mode(0o777)).unwrap();
        let folder = DataFolder::open(&root).unwrap();
        for path in [root.clone(), folder.blobs(), folder.spool(), folder.sled()] {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, 0o700, "{}", path.display());
        }
    }

    #[test]
    fn half_made_files_are_cleared_at_start() {
        let root = tempfile::tempdir().unwrap();
        let left = DataFolder::open(root.path()).unwrap().temporary().join("half");
        std::fs::write(&left, "x").unwrap();
        DataFolder::open(root.path()).unwrap();
        assert!(!left.exists());
    }
}
