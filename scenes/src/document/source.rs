//! Reads the files of one scene, each inside its folder and within the limits. Does not interpret
//! the content.

use crate::document::budget::Budget;
use crate::document::uri;
use crate::error::SceneError;
use crate::options::Limits;
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A scene's folder and its main file.
pub(crate) struct Source<'a> {
    dir: &'a Path,
    /// Path of the main file within `dir`.
    pub(crate) main: String,
    /// Limits.
    pub(crate) limits: &'a Limits,
    /// Memory that may still be allocated.
    pub(crate) budget: Arc<Budget>,
    bytes_read: Cell<u64>,
}

impl<'a> Source<'a> {
    /// Creates the source for the scene `main` in `dir`.
    pub(crate) fn new(dir: &'a Path, main: &str, limits: &'a Limits) -> Result<Self, SceneError> {
        let main = confined(main, main)?;
        let budget = Arc::new(Budget::new(limits));
        Ok(Self { dir, main, limits, budget, bytes_read: Cell::new(0) })
    }

    /// Returns the path within `dir` of a file that the main file names relative to itself.
    pub(crate) fn beside_main(&self, relative: &str) -> String {
        match self.main.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{relative}"),
            None => relative.to_string(),
        }
    }

    /// Returns the full path of a path within `dir`.
    pub(crate) fn locate(&self, file: &str) -> PathBuf {
        self.dir.join(file)
    }

    /// Reads the main file, which may be a link that a person named.
    pub(crate) fn read_main(&self) -> Result<Vec<u8>, SceneError> {
        self.read_at(self.locate(&self.main), &self.main)
    }

    /// Opens the main file, and returns its length, which is within the limits.
    pub(crate) fn open_main(&self) -> Result<(File, u64), SceneError> {
        let path = self.locate(&self.main);
        let wrong = |source| SceneError::Read { path: path.clone(), source };
        let file = open_regular(&path).map_err(wrong)?;
        let (bytes, limit) = (file.metadata().map_err(wrong)?.len(), self.limits.file_bytes);
        match bytes <= limit.min(self.limits.total_bytes) {
            true => Ok((file, bytes)),
            false => Err(SceneError::FileTooLarge { file: self.main.clone(), bytes, limit }),
        }
    }

    /// Reads a file with a confined path.
    pub(crate) fn read(&self, file: &str) -> Result<Vec<u8>, SceneError> {
        let path = self.locate(file);
        let wrong = |source| SceneError::Read { path: path.clone(), source };
        let real = path.canonicalize().map_err(wrong)?;
        if !real.starts_with(self.dir.canonicalize().map_err(wrong)?) {
            let problem =
                "is a link that leads out of the scene's folder; copy the file into it".into();
            return Err(SceneError::Uri {
                file: self.main.clone(),
                path: "(link)".into(),
                uri: file.into(),
                problem,
            });
        }
        self.read_at(real, file)
    }

    /// Reads a file anywhere, for paths that the caller trusts. Errors call it `file`.
    pub(crate) fn read_at(&self, path: PathBuf, file: &str) -> Result<Vec<u8>, SceneError> {
        let wrong = |source| SceneError::Read { path: path.clone(), source };
        let handle = open_regular(&path).map_err(wrong)?;
        let metadata = handle.metadata().map_err(wrong)?;
        let left = self.limits.total_bytes.saturating_sub(self.bytes_read.get());
        let limit = self.limits.file_bytes.min(left);
        if metadata.len() > limit {
            return Err(SceneError::FileTooLarge {
                file: file.into(),
                bytes: metadata.len(),
                limit,
            });
        }
        self.budget.spend(metadata.len(), 1, file, "(the file)")?;
        let mut bytes = Vec::with_capacity(metadata.len() as usize);
        handle.take(limit + 1).read_to_end(&mut bytes).map_err(wrong)?;
        if bytes.len() as u64 > limit {
            return Err(SceneError::FileTooLarge {
                file: file.into(),
                bytes: bytes.len() as u64,
                limit,
            });
        }
        self.bytes_read.set(self.bytes_read.get() + bytes.len() as u64);
        Ok(bytes)
    }
}

/// Opens a regular file. Pipes, devices and sockets may never end, or never begin.
pub(crate) fn open_regular(path: &Path) -> std::io::Result<File> {
    let irregular = || std::io::Error::other("it is not a regular file");
    // Check before opening, since opening a pipe waits for its writer. Check again afterwards,
    // since it may be another file by then.
    let found = std::fs::metadata(path)?;
    if found.is_dir() {
        return Err(std::io::Error::other("it is a folder"));
    }
    if !found.is_file() {
        return Err(irregular());
    }
    let file = OpenOptions::new().read(true).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(irregular()) }
}

/// Checks that a path from a person or a job stays inside the scene's folder.
pub(crate) fn confined(file: &str, path: &str) -> Result<String, SceneError> {
    uri::confine(path).map_err(|problem| SceneError::Uri {
        file: file.into(),
        path: "(path)".into(),
        uri: uri::shown(path),
        problem,
    })
}
