//! Results of frames in work as objects of the bucket, those of a frame below its job and number.

use crate::failure::Failure;
use crate::objects::Objects;
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::signer::Method;
use std::io;
use tessera_coordinator::spool::{AddressFor, ResultObject, ResultStore, SpoolKey};
use tessera_protocol::FrameNumber;

/// Names of results begin with this, below the prefix.
const RESULTS: &str = "results";

/// The results of a bucket.
#[derive(Clone, Debug)]
pub(crate) struct S3Results(Objects);

impl S3Results {
    pub(crate) fn new(objects: Objects) -> Self {
        Self(objects)
    }

    fn key(&self, frame: SpoolKey, object: ResultObject) -> Key {
        key_of(&self.0, frame, object)
    }
}

/// Returns the name of an object of results.
pub(crate) fn key_of(objects: &Objects, frame: SpoolKey, object: ResultObject) -> Key {
    objects.key(&format!("{}/{object}", below(frame)))
}

/// What the names of a frame's objects begin with.
fn below(frame: SpoolKey) -> String {
    format!("{RESULTS}/{}/{}", frame.job, frame.frame.0)
}

/// Returns the frame of an object.
fn frame_of(key: &Key) -> Option<SpoolKey> {
    let parts: Vec<_> = key.parts().collect();
    let [.., job, frame, _] = parts.as_slice() else { return None };
    let frame = FrameNumber(frame.as_ref().parse().ok()?);
    Some(SpoolKey { job: job.as_ref().parse().ok()?, frame })
}

impl ResultStore for S3Results {
    fn put(&self, frame: SpoolKey, object: ResultObject, bytes: Vec<Bytes>) -> io::Result<()> {
        self.0.put_pieces(self.key(frame, object), bytes).map_err(Failure::into_io)
    }

    fn read_exact_at(
        &self,
        frame: SpoolKey,
        object: ResultObject,
        (at, buffer): (u64, &mut [u8]),
    ) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let read = self.0.range(self.key(frame, object), at..at + buffer.len() as u64);
        let bytes = read.map_err(|failure| match failure.is_absent() {
            true => io::Error::from(io::ErrorKind::NotFound),
            false => failure.into_io(),
        })?;
        match bytes.len() == buffer.len() {
            true => buffer.copy_from_slice(&bytes),
            false => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
        Ok(())
    }

    fn address(
        &self,
        frame: SpoolKey,
        object: ResultObject,
        (purpose, here): (AddressFor, bool),
    ) -> Option<String> {
        let method = match purpose {
            AddressFor::Reading => Method::GET,
            AddressFor::Writing => Method::PUT,
        };
        self.0.signed(method, self.key(frame, object), here)
    }

    fn copy(&self, frame: SpoolKey, from: ResultObject, to: ResultObject) -> io::Result<()> {
        self.0.copy(self.key(frame, from), self.key(frame, to)).map_err(Failure::into_io)
    }

    fn forget(&self, objects: &[(SpoolKey, ResultObject)]) {
        let keys = objects.iter().map(|(frame, object)| self.key(*frame, *object));
        self.0.forget(keys.collect());
    }

    fn objects(&self) -> io::Result<Vec<(SpoolKey, ResultObject)>> {
        let mut found = Vec::new();
        let listed = self.0.list(RESULTS, &mut |listed| {
            let name = listed.location.filename().unwrap_or_default();
            // One that is too long was never taken, and is to be deleted all the same.
            let length = listed.size.min(u32::MAX.into());
            let object = ResultObject::parse(name, length);
            found.extend(frame_of(&listed.location).zip(object));
        });
        listed.map_err(Failure::into_io)?;
        Ok(found)
    }
}
