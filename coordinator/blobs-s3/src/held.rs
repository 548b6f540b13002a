//! What is known of a bucket's blobs: their names, lengths and uses. Asks the service for the rest.

use crate::failure::Failure;
use crate::objects::Objects;
use crate::used::Known;
use bytes::Bytes;
use object_store::ObjectMeta;
use object_store::path::Path as Key;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;
use tessera_coordinator::blobs::BlobError;
use tessera_protocol::BlobHash;

/// Names of blobs begin with this, below the prefix.
pub(crate) const BLOBS: &str = "blobs";
/// Names of uses begin with this.
pub(crate) const USED: &str = "used";

/// The blobs of a bucket, and what this process knows of them. Clones share both.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) objects: Objects,
    known: Arc<Mutex<Known>>,
}

impl Held {
    pub(crate) fn new(objects: Objects) -> Self {
        Self { objects, known: Arc::default() }
    }

    pub(crate) fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn key(&self, below: &str, hash: BlobHash) -> Key {
        self.objects.key(&format!("{below}/{hash}"))
    }

    pub(crate) fn failed(&self, hash: BlobHash) -> impl FnOnce(Failure) -> BlobError {
        let place = self.key(BLOBS, hash).to_string();
        move |failure| BlobError { place, source: failure.into_io() }
    }

    /// Returns the length of a blob in bytes; None if it is absent.
    pub(crate) fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError> {
        if let Some(length) = self.known().length(hash) {
            return Ok(Some(length));
        }
        let found = self.objects.head(self.key(BLOBS, hash)).map_err(self.failed(hash))?;
        let length = found.map(|object| object.size);
        if let Some(length) = length {
            self.known().there(hash, length);
        }
        Ok(length)
    }

    /// Stores a file whose bytes have this hash.
    pub(crate) fn store(
        &self,
        hash: BlobHash,
        (path, length): (&Path, u64),
    ) -> Result<(), BlobError> {
        let stored = self.objects.put_file(self.key(BLOBS, hash), path, length);
        let stored = stored.map_err(self.failed(hash))?;
        self.known().there(hash, length);
        match stored {
            true => self.known().wrote_use(hash, SystemTime::now()),
            false => self.write_use(hash)?,
        }
        Ok(())
    }

    pub(crate) fn write_use(&self, hash: BlobHash) -> Result<(), BlobError> {
        let written = self.objects.put_small(self.key(USED, hash), Bytes::new(), false);
        written.map_err(self.failed(hash))?;
        self.known().wrote_use(hash, SystemTime::now());
        Ok(())
    }

    /// Returns when a blob was last stored or used; None if it is absent.
    pub(crate) fn last_use(&self, hash: BlobHash) -> Result<Option<SystemTime>, Failure> {
        let Some(blob) = self.objects.head(self.key(BLOBS, hash))? else { return Ok(None) };
        let used = self.objects.head(self.key(USED, hash))?.map(|used| modified(&used));
        Ok(Some(modified(&blob)).max(used).max(self.known().last_use(hash)))
    }
}

pub(crate) fn modified(object: &ObjectMeta) -> SystemTime {
    object.last_modified.into()
}
