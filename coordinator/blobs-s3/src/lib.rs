//! The coordinator's blobs on an object store that speaks S3. A blob is an object named by its
//! BLAKE3, stored once and never changed. Decides nothing of the farm.
//!
//! Two services of the store are needed: a put that fails where an object is (`If-None-Match`), and
//! that what was put is read by the next request. Both are looked at when the store is opened.

mod address;
mod connector;
mod credentials;
mod failure;
mod held;
mod objects;
mod place;
mod reading;
mod results;
mod store;
mod used;
mod writing;

pub use address::{AddressError, BlobAddress};
pub use credentials::{CredentialError, Credentials};
pub use place::{BucketSetup, S3Place};
