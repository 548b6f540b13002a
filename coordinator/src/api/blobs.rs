//! Blobs in and out, with their roles checked.

use super::answer::Api;
use super::caller::Caller;
use super::roles::{self, BLOB_GET, BLOB_PUT};
use crate::blobs::{BlobRead, Blobs, GuardedBlobs, Upload, UploadError};
use tessera_protocol::BlobHash;
use tessera_protocol::client::RequestError;

/// Why a blob is not taken.
#[derive(Debug, thiserror::Error)]
pub enum BlobPutError {
    /// The caller may not, or the coordinator cannot.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no room, or the store fails.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

/// What an offered blob needs.
pub enum BlobPut {
    /// Nothing: it is here.
    Held,
    /// Its bytes, from `Upload::held` on.
    From(Box<Upload>),
}

impl Api {
    /// A blob to read; None where it is not here. Blocks.
    pub fn get_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
    ) -> Result<Option<Box<dyn BlobRead>>, RequestError> {
        self.blobs_for(caller, BLOB_GET)?
            .open(hash)
            .map_err(|error| RequestError::Unavailable(error.to_string()))
    }

    /// Takes a blob that a caller offers, of this length in bytes. Blocks.
    pub fn put_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
        length: u64,
    ) -> Result<BlobPut, BlobPutError> {
        let blobs = self.blobs_for(caller, BLOB_PUT)?;
        if blobs.claim(hash).is_some() {
            return Ok(BlobPut::Held);
        }
        Ok(BlobPut::From(blobs.upload(hash, length)?))
    }

    /// Fails unless the caller may read blobs: for a door that streams them itself.
    pub(crate) fn may_get_blobs(&self, caller: &Caller) -> Result<(), RequestError> {
        self.blobs_for(caller, BLOB_GET).map(drop)
    }

    /// Fails unless the caller may give blobs: for a door that streams them itself.
    pub(crate) fn may_put_blobs(&self, caller: &Caller) -> Result<(), RequestError> {
        self.blobs_for(caller, BLOB_PUT).map(drop)
    }

    fn blobs_for(
        &self,
        caller: &Caller,
        needed: tessera_protocol::client::Role,
    ) -> Result<&GuardedBlobs, RequestError> {
        let admitted = self.context.access.admits(caller.identity());
        admitted.map_err(RequestError::NotAllowed)?;
        roles::check(caller, needed)?;
        Ok(&self.context.blobs)
    }
}
