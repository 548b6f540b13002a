//! Blobs: any bytes, named by their BLAKE3. Owns the contract of a blob store ([`Blobs`]), that of
//! its place ([`BlobPlace`]), and the guard that protects needed blobs from the sweeper
//! ([`GuardedBlobs`]).
//!
//! The trait blocks and is called on threads for blocking work. Disks, encoders and hashing block
//! anyway, and the client of an object store can wait on its runtime's handle.

mod disk;
mod guard;
mod marks;
mod migrate;
mod place;
mod staging;
mod store;
pub mod sweep;

pub use disk::DiskBlobs;
pub use guard::{GuardedBlobs, Hold};
pub use migrate::{BlobMigration, BlobMigrationError, migrate};
pub use place::{BlobMark, BlobPlace, BlobPlaceError, DiskPlace};
pub use staging::Staging;
pub use store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
pub use tessera_transport::{BlobRead, BlobSink, SinkError};
