//! Spools: where accepted results wait, a frame each, until the frame is resolved.
//!
//! What of a spool counts is said by the journal, as its extent: bytes beyond it were never
//! acknowledged, and are overwritten. A sealed segment never changes again, and is named by a hash
//! that the journal holds.

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
