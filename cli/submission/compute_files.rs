//! The files of a compute job on this machine, and how its options are taken apart.

use super::send::Sources;
use crate::error::{CliError, Status};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::NamedTempFile;
use tessera_protocol::BlobHash;
use tessera_transport::client::hash_file;

/// Files of a compute job on this machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct ComputeFiles {
    files: Vec<(BlobHash, u64, PathBuf)>,
    /// A kernel that was compiled here, until it is sent.
    pub(super) compiled: Option<Arc<NamedTempFile>>,
}

impl ComputeFiles {
    pub(super) fn add(&mut self, hash: BlobHash, length: u64, path: &Path) {
        self.files.push((hash, length, path.to_owned()));
    }

    /// Adds those of a kernel.
    pub(super) fn add_all(&mut self, of_kernel: &Self) {
        self.files.extend(of_kernel.files.iter().cloned());
        self.compiled.clone_from(&of_kernel.compiled);
    }
}

impl Sources for ComputeFiles {
    fn hashes(&self) -> Vec<BlobHash> {
        self.files.iter().map(|(hash, ..)| *hash).collect()
    }

    fn source(&self, hash: BlobHash) -> Option<(u64, &Path)> {
        let found = self.files.iter().find(|(of, ..)| *of == hash)?;
        Some((found.1, &found.2))
    }
}

pub(super) fn usage(text: impl Into<String>) -> CliError {
    CliError::new(Status::Usage, text.into())
}

pub(super) fn hashed(path: &Path) -> Result<(BlobHash, u64), CliError> {
    hash_file(path).map_err(|error| CliError::from(error).context(format!("`{}`", path.display())))
}

pub(super) fn split<'a>(
    option: &'static str,
    text: &'a str,
) -> Result<(&'a str, &'a str), CliError> {
    text.split_once('=')
        .ok_or_else(|| usage(format!("--{option}: `{text}` is not of the form NAME=VALUE")))
}
