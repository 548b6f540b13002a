//! Reading and writing of blobs, with a check of the caller's role.

use super::answer::Api;
use super::caller::Caller;
use super::context::blocking;
use super::roles::{self, BLOB_GET, BLOB_PUT};
use super::shares::OwnBlobs;
use crate::blobs::{BlobRead, Blobs, GuardedBlobs, Upload, UploadError};
use crate::driver::{BlobQuestion, Event};
use tessera_protocol::client::RequestError;
use tessera_protocol::{BlobHash, FrameNumber, JobId};

/// Refusal of a blob that is no file of the frame that the caller names, and of no own job.
const NOT_YOURS: &str = "scene files, kernels and inputs are read by the owner of their job and by \
    operators; the files of a finished frame are read by everybody, with its job and number";

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
    /// Opens a blob for reading; None if the coordinator does not have it. `of` is the finished
    /// frame that has it as a file.
    pub async fn get_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
        of: Option<(JobId, FrameNumber)>,
    ) -> Result<Option<Box<dyn BlobRead>>, RequestError> {
        self.may_get_blob(caller, hash, of).await?;
        let context = self.context.clone();
        let opened = blocking(move || context.blobs.open(hash)).await?;
        opened.map_err(|error| RequestError::Unavailable(error.to_string()))
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

    /// Checks that the caller is allowed to read a blob, for a transport that streams it itself.
    /// Everybody reads the files of finished frames. Scene files, kernels and inputs are for the
    /// owners of their jobs and for operators. The answer does not tell whether the blob exists.
    pub(crate) async fn may_get_blob(
        &self,
        caller: &Caller,
        hash: BlobHash,
        of: Option<(JobId, FrameNumber)>,
    ) -> Result<(), RequestError> {
        self.blobs_for(caller, BLOB_GET)?;
        let caller = roles::owner(caller);
        match self
            .context
            .send(|reply| Event::AboutBlobs(BlobQuestion::MayRead { hash, of, caller, reply }))
            .await?
        {
            true => Ok(()),
            false => Err(RequestError::NotAllowed(NOT_YOURS.to_owned())),
        }
    }

    pub(super) fn blobs_for(
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
