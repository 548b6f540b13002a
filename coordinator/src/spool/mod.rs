//! Spools: accepted results of one frame each, until the frame is resolved.
//!
//! The journal says how much of a spool counts, as its extent. Bytes beyond the extent were never
//! acknowledged, and are overwritten. A sealed segment never changes again. Its name is a hash that
//! the journal stores.

mod disk;
mod entry;
mod extent;
mod index;
mod store;

pub use disk::DiskSpools;
#[cfg(test)]
pub(crate) use disk::path_of;
pub use entry::{EntryError, EntryHeader, HEADER_BYTES};
pub use extent::{SEGMENT_BYTES, Segment, SpoolExtent};
pub use index::SpoolIndex;
pub use store::{SpoolEntry, SpoolError, SpoolKey, SpoolRead, SpoolReader, Spools};

#[cfg(test)]
pub(crate) mod contract;
