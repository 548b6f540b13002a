//! Reading and writing of blobs, with a check of the caller's role.

use super::answer::Api;
use super::caller::Caller;
use super::roles::{self, BLOB_GET, BLOB_PUT};
use super::shares::OwnBlobs;
use crate::blobs::{BlobRead, Blobs, GuardedBlobs, Upload, UploadError};
use tessera_protocol::BlobHash;
use tessera_protocol::client::RequestError;

/// Why a blob is not accepted.
#[derive(Debug, thiserror::Error)]
pub enum BlobPutError {
    /// The caller does not have the right, or the coordinator cannot do it.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// There is no room, or the store failed.
    #[error(transparent)]
    Upload(#[from] UploadError),
}

/// The bytes that an offered blob needs.
pub enum BlobPut {
    /// No bytes: the coordinator already has the blob.
    Held,
    /// The bytes from `Upload::held` on.
    From(Box<Upload>),
}

impl Api {
    /// Opens a blob for reading; None if the coordinator does not have it. Blocks.
    pub fn get_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
    ) -> Result<Option<Box<dyn BlobRead>>, RequestError> {
        self.blobs_for(caller, BLOB_GET)?
            .open(hash)
            .map_err(|error| RequestError::Unavailable(error.to_string()))
    }

    /// Begins the upload of a blob with this length in bytes. Blocks.
    pub fn put_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
        length: u64,
    ) -> Result<BlobPut, BlobPutError> {
        let blobs = self.own_blobs(caller)?;
        if self.context.blobs.claim(hash).is_some() {
            return Ok(BlobPut::Held);
        }
        Ok(BlobPut::From(blobs.upload(hash, length).map_err(UploadError)?))
    }

    /// Returns the blobs as this caller uploads them, if the caller may.
    pub(crate) fn own_blobs(&self, caller: &Caller) -> Result<OwnBlobs, RequestError> {
        let blobs = self.blobs_for(caller, BLOB_PUT)?.clone();
        let context = &self.context;
        Ok(OwnBlobs {
            blobs,
            uploads: context.uploads.clone(),
            limit: context.upload_limit.clone(),
            events: context.events.clone(),
            owner: caller.owner(),
        })
    }

    /// Checks that the caller is allowed to read blobs, for a transport that streams them itself.
    pub(crate) fn may_get_blobs(&self, caller: &Caller) -> Result<(), RequestError> {
        self.blobs_for(caller, BLOB_GET).map(drop)
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
