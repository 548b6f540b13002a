//! Blobs: any bytes under their BLAKE3. Owns what a store of blobs must do ([`Blobs`]), and the
//! guard that keeps the sweeper from what somebody needs ([`GuardedBlobs`]).
//!
//! The trait blocks, and is called off the runtime's own threads: disks, encoders and hashing block
//! anyway, and an object store's client waits on its runtime's handle just as well.

mod disk;
mod guard;
mod marks;
mod store;
pub mod sweep;

pub use disk::DiskBlobs;
pub use guard::{GuardedBlobs, Hold};
pub(crate) use store::hash_named;
pub use store::{BlobError, BlobWriter, Blobs, Listed, Upload, UploadError};
pub use tessera_transport::BlobRead;

#[cfg(test)]
pub(crate) mod contract;
