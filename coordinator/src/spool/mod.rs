//! Spools: accepted results of one frame each, until the frame is resolved.
//!
//! The journal says how much of a spool counts, as its extent. Bytes beyond the extent were never
//! acknowledged, and are overwritten. A sealed segment never changes again. Its name is a hash that
//! the journal stores. Where the farm's files are in a store elsewhere, results are objects there,
//! and the journal says which objects have them.

mod disk;
mod entry;
mod extent;
mod farm;
mod folder;
mod index;
mod key;
mod reading;
mod recent;
mod store;
mod stored;

pub use disk::DiskSpools;
#[cfg(test)]
pub(crate) use disk::path_of;
pub use entry::{EntryError, EntryHeader, HEADER_BYTES};
pub use extent::{SEGMENT_BYTES, Segment, SpoolExtent};
pub use farm::{FarmSpools, FrameObject, add_objects, objects_in, unknown_objects};
pub use folder::FolderResults;
pub use index::SpoolIndex;
pub use key::SpoolKey;
pub use store::{SpoolBody, SpoolEntry, SpoolError, SpoolRead, SpoolReader, Spools};
pub use stored::{AddressFor, ResultObject, ResultStore, StoredResults, maker_of};

#[cfg(test)]
pub(crate) mod contract;
