//! Files laid out in a folder of their own, for a look at a scene or a template before it is
//! submitted.

use super::answer::Api;
use super::caller::Caller;
use super::context::blocking;
use super::jobs::{check_files, check_named};
use super::roles::BLOB_PUT;
use crate::blobs::{Blobs, GuardedBlobs};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tessera_protocol::client::RequestError;
use tessera_protocol::job::{AssetFile, RawJobSpec, is_confined_path};
use tessera_protocol::limits::SCENE_FILES_MAX;
use tessera_protocol::{BlobHash, JobSpec};
use tessera_transport::files::free_bytes;

/// Most bytes of a scene that is laid out: its files are copied.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// Files under their own paths in a folder that goes with this value.
#[derive(Debug)]
pub struct StagedFiles(tempfile::TempDir);

impl StagedFiles {
    /// The folder.
    pub fn folder(&self) -> &Path {
        self.0.path()
    }
}

/// A checked job, and its files.
#[derive(Debug)]
pub struct Staged {
    files: StagedFiles,
    spec: JobSpec,
}

impl Staged {
    /// The folder.
    pub fn folder(&self) -> &Path {
        self.files.folder()
    }

    /// The job.
    pub fn spec(&self) -> &JobSpec {
        &self.spec
    }
}

impl Api {
    /// Checks a job as if it were submitted, and lays its files out. Who may submit it may look at
    /// it.
    ///
    /// # Errors
    /// As for submitting; and where the files are too large to be laid out here.
    pub async fn stage(&self, caller: &Caller, spec: RawJobSpec) -> Result<Staged, RequestError> {
        let blobs = self.blobs_for(caller, BLOB_PUT)?.clone();
        let spec = spec.check().map_err(|error| RequestError::Invalid(error.to_string()))?;
        blocking(move || {
            let spec = check_files(&blobs, spec)?;
            let files = spec.kind.render().map_or(&[][..], |render| &render.files);
            let files = lay_out(&blobs, files)?;
            Ok(Staged { files, spec })
        })
        .await?
    }

    /// Lays out files that were uploaded, each under its path. Who may submit may do so.
    ///
    /// # Errors
    /// Where a path leaves the folder or is there twice, a file was not uploaded, or all are too
    /// large to be laid out here.
    pub async fn stage_files(
        &self,
        caller: &Caller,
        files: Vec<AssetFile>,
    ) -> Result<StagedFiles, RequestError> {
        let blobs = self.blobs_for(caller, BLOB_PUT)?.clone();
        check_paths(&files).map_err(RequestError::Invalid)?;
        blocking(move || {
            let named = files.iter().map(|file| (file.path.as_str(), file.hash, file.length));
            check_named(&blobs, named.collect())?;
            lay_out(&blobs, &files)
        })
        .await?
    }
}

fn check_paths(files: &[AssetFile]) -> Result<(), String> {
    if files.len() > SCENE_FILES_MAX {
        return Err(format!("{} files are more than {SCENE_FILES_MAX}", files.len()));
    }
    let mut seen = BTreeSet::new();
    for AssetFile { path, .. } in files {
        if !is_confined_path(path) {
            return Err(format!("file {path:?}: the path has to stay in the template's folder"));
        }
        if !seen.insert(path.as_str()) {
            return Err(format!("file {path:?} is there twice"));
        }
    }
    Ok(())
}

fn lay_out(blobs: &GuardedBlobs, files: &[AssetFile]) -> Result<StagedFiles, RequestError> {
    let unusable =
        |error: io::Error| RequestError::Unavailable(format!("no room to look: {error}"));
    let folder = tempfile::Builder::new().prefix("tessera-scene-").tempdir().map_err(unusable)?;
    let total = files.iter().fold(0u64, |sum, file| sum.saturating_add(file.length));
    if total > BYTES_MAX {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        return Err(RequestError::Invalid(format!(
            "the files have {} MiB, and up to {} MiB are looked at here; `tessera inspect` and \
             `tessera submit` read more on your machine",
            mib(total),
            mib(BYTES_MAX)
        )));
    }
    let free = free_bytes(folder.path()).map_err(unusable)?;
    if free / 2 < total {
        return Err(unusable(io::ErrorKind::StorageFull.into()));
    }
    for file in files {
        // A checked path is relative, and climbs nowhere.
        copy(blobs, file.hash, &folder.path().join(&file.path))?;
    }
    Ok(StagedFiles(folder))
}

fn copy(blobs: &GuardedBlobs, hash: BlobHash, place: &Path) -> Result<(), RequestError> {
    let failed = |error: io::Error| RequestError::Unavailable(format!("blob {hash}: {error}"));
    let opened = blobs.open(hash).map_err(|error| RequestError::Unavailable(error.to_string()))?;
    let mut blob = opened.ok_or_else(|| failed(io::ErrorKind::NotFound.into()))?;
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    let mut out = File::create_new(place).map_err(failed)?;
    let (mut piece, mut at) = (vec![0; PIECE_BYTES], 0);
    loop {
        let count = blob.read_at(at, &mut piece).map_err(failed)?;
        if count == 0 {
            return Ok(());
        }
        out.write_all(&piece[..count]).map_err(failed)?;
        at += count as u64;
    }
}
