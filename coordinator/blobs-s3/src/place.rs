//! A bucket as a place that a coordinator opens: sees that it is of this farm, and that it does
//! what is needed.

use crate::address::BlobAddress;
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::objects::Objects;
use crate::store::S3Blobs;
use bytes::Bytes;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tessera_coordinator::blobs::{BlobMark, BlobPlace, BlobPlaceError, Blobs, Staging};
use tessera_coordinator::folder::DataFolder;
use tessera_coordinator::store::Purpose;
use uuid::Uuid;

/// Object that says whose blobs these are.
const FARM: &str = "farm";
/// Longest such object that is read, in bytes.
const FARM_BYTES_MAX: u64 = 200;
/// What follows the id while nobody works with the store yet.
const UNFINISHED: &str = " is not in use yet";

/// End of the name of a bucket of AWS that is kept in one zone (S3 Express).
const ONE_ZONE: &str = "--x-s3";

/// What can be seen of a place of blobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketSetup {
    /// Time of a question and its answer.
    pub round_trip: Duration,
    /// Whether a farm has its files there.
    pub has_farm: bool,
    /// Whether its name says that all copies are in one zone.
    pub is_of_one_zone: bool,
}

/// A place of blobs in a bucket.
#[derive(Debug)]
pub struct S3Place {
    address: BlobAddress,
    credentials: Credentials,
}

/// Whose the blobs are.
#[derive(Clone, Copy)]
struct Farm {
    id: Uuid,
    /// Nobody works with them yet.
    is_new: bool,
}

impl S3Place {
    /// The blobs at an address, as who has these credentials.
    pub fn new(address: BlobAddress, credentials: Credentials) -> Self {
        Self { address, credentials }
    }

    fn store(&self) -> String {
        self.address.to_string()
    }

    /// Looks at the bucket, and changes nothing. Blocks.
    pub fn setup(&self) -> Result<BucketSetup, BlobPlaceError> {
        let objects = self.objects()?;
        let asked = Instant::now();
        let farm = self.farm(&objects)?;
        let round_trip = asked.elapsed();
        if farm.is_none() {
            // A bucket that is not there has no such object either.
            let listed = objects.list(FARM, &mut |_| ());
            listed.map_err(|failure| self.failed("it cannot be listed", failure))?;
        }
        let is_of_one_zone = self.address.bucket.ends_with(ONE_ZONE);
        Ok(BucketSetup { round_trip, has_farm: farm.is_some(), is_of_one_zone })
    }

    fn failed(&self, problem: &str, failure: Failure) -> BlobPlaceError {
        let (store, problem) = (self.store(), problem.to_owned());
        let hint = failure.hint();
        BlobPlaceError::Service { store, problem, hint, source: Some(Box::new(failure)) }
    }

    fn unfit(&self, problem: &str, hint: &'static str) -> BlobPlaceError {
        let (store, problem) = (self.store(), problem.to_owned());
        BlobPlaceError::Service { store, problem, hint: Some(hint), source: None }
    }

    fn objects(&self) -> Result<Objects, BlobPlaceError> {
        Objects::new(&self.address, &self.credentials).map_err(|problem| {
            let store = self.store();
            BlobPlaceError::Service { store, problem, hint: None, source: None }
        })
    }

    /// Reads whose the blobs are; None if nobody's.
    fn farm(&self, objects: &Objects) -> Result<Option<Farm>, BlobPlaceError> {
        let read = objects.small(objects.key(FARM), FARM_BYTES_MAX);
        let Some(bytes) = read.map_err(|failure| self.failed("it cannot be read", failure))? else {
            return Ok(None);
        };
        let text = String::from_utf8_lossy(&bytes);
        let line = text.trim_end();
        let (id, is_new) = match line.strip_suffix(UNFINISHED) {
            Some(id) => (id, true),
            None => (line, false),
        };
        match Uuid::parse_str(id) {
            Ok(id) => Ok(Some(Farm { id, is_new })),
            Err(_) => Err(self.unfit(
                "its object `farm` does not name a farm",
                "give a bucket or a prefix that nothing else uses",
            )),
        }
    }

    fn write(&self, objects: &Objects, farm: Farm, new: bool) -> Result<bool, BlobPlaceError> {
        let end = if farm.is_new { UNFINISHED } else { "" };
        let text = format!("{}{end}\n", farm.id);
        let written = objects.put_small(objects.key(FARM), Bytes::from(text), new);
        written.map_err(|failure| self.failed("it cannot be written", failure))
    }

    /// Returns whose the blobs are. A store of nobody becomes this farm's, which does not work with
    /// it yet.
    fn claim(
        &self,
        objects: &Objects,
        folder: &DataFolder,
        purpose: Purpose,
    ) -> Result<Farm, BlobPlaceError> {
        let found = self.farm(objects)?;
        if found.is_none() && purpose == Purpose::CopyFrom {
            return Err(self.unfit("it has no files of a farm", "see that the address is right"));
        }
        let farm = found.unwrap_or_else(|| Farm { id: Uuid::new_v4(), is_new: true });
        let store = self.store();
        BlobMark::check(folder, (farm.id, farm.is_new), (&store, purpose))?;
        if found.is_none() && !self.write(objects, farm, true)? {
            return Err(self.unfit("another coordinator begins to use it", "start one of them"));
        }
        // The service must keep what is there: a second one is refused.
        if purpose != Purpose::CopyFrom && self.write(objects, farm, true)? {
            return Err(self.unfit(
                "it puts an object where one is (`If-None-Match` is not heeded)",
                "use a service with conditional writes",
            ));
        }
        Ok(farm)
    }

    /// Makes the folder and the store belong to each other.
    fn join(
        &self,
        objects: &Objects,
        folder: &DataFolder,
        farm: Farm,
    ) -> Result<(), BlobPlaceError> {
        let mark = BlobMark { id: farm.id, address: self.store() };
        if BlobMark::read(folder)? != Some(mark.clone()) {
            mark.write(folder)?;
        }
        if farm.is_new {
            self.write(objects, Farm { is_new: false, ..farm }, false)?;
        }
        Ok(())
    }
}

impl BlobPlace for S3Place {
    fn describe(&self, _: &DataFolder) -> String {
        self.store()
    }

    fn open(
        &self,
        folder: &DataFolder,
        purpose: Purpose,
        reserve_bytes: u64,
    ) -> Result<Arc<dyn Blobs>, BlobPlaceError> {
        let objects = self.objects()?;
        let farm = self.claim(&objects, folder, purpose)?;
        if purpose == Purpose::Run {
            self.join(&objects, folder, farm)?;
        }
        Ok(Arc::new(S3Blobs::new(objects, Staging::of(folder, reserve_bytes))))
    }

    fn inspect(&self, folder: &DataFolder) -> Result<Arc<dyn Blobs>, BlobPlaceError> {
        let objects = self.objects()?;
        self.claim(&objects, folder, Purpose::CopyFrom)?;
        Ok(Arc::new(S3Blobs::new(objects, Staging::of(folder, 0))))
    }

    fn adopt(&self, folder: &DataFolder) -> Result<(), BlobPlaceError> {
        let objects = self.objects()?;
        match self.farm(&objects)? {
            Some(farm) => self.join(&objects, folder, farm),
            None => Err(self.unfit("it has no files of a farm", "copy them again")),
        }
    }

    /// What is there stays; who owns the bucket may delete it.
    fn leave(&self, _: &DataFolder) -> Result<(), BlobPlaceError> {
        Ok(())
    }
}
