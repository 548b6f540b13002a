//! Blobs: any bytes, named by their BLAKE3. Owns the contract of a blob store ([`Blobs`]), and the
//! guard that protects needed blobs from the sweeper ([`GuardedBlobs`]).
//!
//! The trait blocks and is called on threads for blocking work. Disks, encoders and hashing block
//! anyway, and the client of an object store can wait on its runtime's handle.

mod disk;
mod guard;
mod marks;
mod store;
pub mod sweep;

pub use disk::DiskBlobs;
pub use guard::{GuardedBlobs, Hold};
pub use store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
pub use tessera_transport::{BlobRead, BlobSink, SinkError};

#[cfg(test)]
pub(crate) mod contract;
