//! A job's files laid out in a folder of their own, for a look at its scene before it is submitted.

use super::answer::Api;
use super::caller::Caller;
use super::context::blocking;
use super::jobs::check_files;
use super::roles::BLOB_PUT;
use crate::blobs::{Blobs, GuardedBlobs};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use tessera_protocol::client::RequestError;
use tessera_protocol::job::RawJobSpec;
use tessera_protocol::{BlobHash, JobSpec};
use tessera_transport::files;

/// Most bytes of a scene that is laid out: its files are copied.
const BYTES_MAX: u64 = 1 << 30;
/// Bytes that are copied at once.
const PIECE_BYTES: usize = 1 << 20;

/// A checked job, and its files under their own paths in a folder that goes with this value.
#[derive(Debug)]
pub struct Staged {
    folder: tempfile::TempDir,
    spec: JobSpec,
}

impl Staged {
    /// The folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
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
        blocking(move || lay_out(&blobs, check_files(&blobs, spec)?)).await?
    }
}

fn lay_out(blobs: &GuardedBlobs, spec: JobSpec) -> Result<Staged, RequestError> {
    let unusable =
        |error: io::Error| RequestError::Unavailable(format!("no room to look: {error}"));
    let folder = tempfile::Builder::new().prefix("tessera-scene-").tempdir().map_err(unusable)?;
    if let Some(render) = spec.kind.render() {
        let total = render.files.iter().fold(0u64, |sum, file| sum.saturating_add(file.length));
        if total > BYTES_MAX {
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(RequestError::Invalid(format!(
                "the scene has {} MiB, and up to {} MiB are looked at here; \
                 `tessera inspect` reads larger ones on your machine",
                mib(total),
                mib(BYTES_MAX)
            )));
        }
        let free = files::free_bytes(folder.path()).map_err(unusable)?;
        if free / 2 < total {
            return Err(unusable(io::ErrorKind::StorageFull.into()));
        }
        for file in &render.files {
            // A checked path is relative, and climbs nowhere.
            let place = folder.path().join(&file.path);
            copy(blobs, file.hash, &place)?;
        }
    }
    Ok(Staged { folder, spec })
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
