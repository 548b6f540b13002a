//! A bucket as a store of blobs.

use crate::failure::Failure;
use crate::held::{BLOBS, Held, USED, modified};
use crate::objects::Objects;
use crate::reading::Reading;
use crate::results::{S3Results, key_of};
use crate::writing::{NewBlob, Part};
use object_store::path::Path as Key;
use object_store::signer::Method;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;
use tessera_coordinator::blobs::{
    BlobError, BlobRead, BlobWriter, Blobs, Listed, Staging, Upload, UploadError,
};
use tessera_coordinator::spool::{ResultObject, ResultStore, SpoolKey};
use tessera_protocol::BlobHash;

/// The blobs of a bucket. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct S3Blobs {
    held: Held,
    staging: Staging,
}

impl S3Blobs {
    pub(crate) fn new(objects: Objects, staging: Staging) -> Self {
        Self { held: Held::new(objects), staging }
    }
}

/// Returns the blob that an object's name stands for.
fn hash_of(key: &Key) -> Option<BlobHash> {
    let name = key.filename()?;
    name.parse().ok().filter(|hash: &BlobHash| hash.to_string() == name)
}

impl Blobs for S3Blobs {
    fn length(&self, hash: BlobHash) -> Result<Option<u64>, BlobError> {
        self.held.length(hash)
    }

    fn open(&self, hash: BlobHash) -> Result<Option<Box<dyn BlobRead>>, BlobError> {
        let Some(length) = self.length(hash)? else { return Ok(None) };
        tracing::debug!(%hash, length, "a file is read by way of the coordinator");
        let held = self.held.clone();
        let what = (held.objects.clone(), held.key(BLOBS, hash), length);
        Ok(Some(Box::new(Reading::new(what, move || held.known().gone(hash)))))
    }

    fn writer(&self) -> Result<Box<dyn BlobWriter>, BlobError> {
        let file = self.staging.new_file();
        let file = file.map_err(BlobError::at(self.staging.temporary().display()))?;
        Ok(Box::new(NewBlob { file, held: self.held.clone() }))
    }

    fn upload(&self, hash: BlobHash, length: u64) -> Result<Box<Upload>, UploadError> {
        let part = self.staging.begin(hash, length)?;
        Ok(Box::new(Part { part, hash, held: self.held.clone() }))
    }

    fn list(&self, visit: &mut dyn FnMut(Listed)) -> Result<(), BlobError> {
        self.held.known().tidy(SystemTime::now());
        let failed =
            |failure: Failure| BlobError { place: BLOBS.into(), source: failure.into_io() };
        let mut used = HashMap::new();
        let listed = self.held.objects.list(USED, &mut |object| {
            used.extend(hash_of(&object.location).map(|hash| (hash, modified(&object))));
        });
        listed.map_err(failed)?;
        let listed = self.held.objects.list(BLOBS, &mut |object| {
            let hash = hash_of(&object.location);
            let last = hash
                .and_then(|hash| used.get(&hash).copied().max(self.held.known().last_use(hash)));
            if let Some(hash) = hash {
                self.held.known().listed(hash, object.size);
            }
            visit(Listed {
                name: object.location.to_string(),
                hash,
                length: object.size,
                modified: Some(modified(&object)).max(last),
            });
        });
        listed.map_err(failed)
    }

    fn delete(&self, hash: BlobHash) -> Result<bool, BlobError> {
        let there = self
            .held
            .objects
            .head(self.held.key(BLOBS, hash))
            .map_err(self.held.failed(hash))?
            .is_some();
        self.held.known().gone(hash);
        if there {
            self.held.objects.delete(self.held.key(BLOBS, hash)).map_err(self.held.failed(hash))?;
        }
        self.held.objects.delete(self.held.key(USED, hash)).map_err(self.held.failed(hash))?;
        Ok(there)
    }

    fn delete_if_older(&self, hash: BlobHash, than: SystemTime) -> Result<bool, BlobError> {
        let last = self.held.last_use(hash).map_err(self.held.failed(hash))?;
        if last.is_some_and(|last| last <= than) { self.delete(hash) } else { Ok(false) }
    }

    fn refresh(&self, hash: BlobHash) -> Result<(), BlobError> {
        if self.length(hash)?.is_none() {
            let source = std::io::Error::from(std::io::ErrorKind::NotFound);
            return Err(BlobError { place: self.held.key(BLOBS, hash).to_string(), source });
        }
        let must_write = self.held.known().note_use(hash, SystemTime::now());
        if must_write { self.held.write_use(hash) } else { Ok(()) }
    }

    fn is_kept(&self, hash: BlobHash) -> bool {
        self.length(hash).is_ok_and(|length| length.is_some()) || self.staging.has(hash)
    }

    fn adopt(
        &self,
        (frame, object): (SpoolKey, ResultObject),
        (hash, length): (BlobHash, u64),
    ) -> Result<(), BlobError> {
        let from = key_of(&self.held.objects, frame, object);
        let copied = self.held.objects.copy(from, self.held.key(BLOBS, hash));
        copied.map_err(self.held.failed(hash))?;
        self.held.known().there(hash, length);
        self.held.known().wrote_use(hash, SystemTime::now());
        Ok(())
    }

    fn results(&self) -> Arc<dyn ResultStore> {
        Arc::new(S3Results::new(self.held.objects.clone()))
    }

    fn is_far(&self) -> bool {
        true
    }

    fn elsewhere(&self, hash: BlobHash, here: bool) -> Option<(String, u64)> {
        let length = self.held.length(hash).ok()??;
        Some((self.held.objects.signed(Method::GET, self.held.key(BLOBS, hash), here)?, length))
    }

    fn delete_upload(&self, hash: BlobHash) -> bool {
        self.staging.delete(hash)
    }

    fn delete_uploads(&self, before: SystemTime) -> u64 {
        self.staging.delete_older(before)
    }
}
