//! The contract of a spool store: append a group, read a range, seal, list, delete. One thread
//! writes. Any number of readers read the part that the journal calls durable.

use super::entry::EntryHeader;
use super::extent::SpoolExtent;
use super::key::SpoolKey;
use super::stored::{ResultObject, ResultStore};
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tessera_protocol::{BlobHash, FilmError, UnitIndex, VersionError};

/// The writing side of a spool store. Only one thread owns it. All methods may block.
///
/// The order of a commit is: [`Self::append`], [`Self::seal`], the journal, [`Self::accept`].
/// Before it is accepted, the same bytes may be written again in the same place.
pub trait Spools: Send + 'static {
    /// Appends a group durably. Returns the new extents of the changed spools.
    fn append(
        &mut self,
        group: &[SpoolEntry],
    ) -> Result<BTreeMap<SpoolKey, SpoolExtent>, SpoolError>;

    /// Seals the open part of a spool with this extent. Returns the extent with one more segment,
    /// or unchanged if nothing is open.
    fn seal(&mut self, key: SpoolKey, extent: SpoolExtent) -> Result<SpoolExtent, SpoolError>;

    /// Records that the journal has these extents.
    fn accept(&mut self, extents: BTreeMap<SpoolKey, SpoolExtent>);

    /// Records that the journal does not know these spools any more.
    fn forget(&mut self, keys: &[SpoolKey]);

    /// Deletes the bytes of spools that were forgotten.
    fn delete(&mut self, keys: &[SpoolKey]);

    /// Returns the durable spools and their extents.
    fn extents(&self) -> &BTreeMap<SpoolKey, SpoolExtent>;

    /// Returns the reading side.
    fn reader(&self) -> Arc<dyn SpoolReader>;
}

/// The reading side of a store of spools. All methods may block.
pub trait SpoolReader: Send + Sync + 'static {
    /// Opens the durable part of a spool. Fails if the spool is shorter.
    fn open(&self, key: SpoolKey, extent: &SpoolExtent) -> Result<Box<dyn SpoolRead>, SpoolError>;

    /// Lists every item of the store: its name, and its spool if it is one.
    fn list(&self) -> Result<Vec<(String, Option<SpoolKey>)>, SpoolError>;

    /// Returns the store elsewhere, if new results go to one.
    fn elsewhere(&self) -> Option<Arc<dyn ResultStore>> {
        None
    }
}

/// A spool that is open for reading. Methods may block.
pub trait SpoolRead: Send + Sync {
    /// Returns the place to name in errors.
    fn place(&self) -> PathBuf;

    /// Reads bytes from `offset` on until the buffer is full.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;

    /// Returns the bytes of a result, if they are still in memory since they were written.
    fn recent(&self, _: &EntryHeader) -> Option<Bytes> {
        None
    }
}

/// An accepted result that is being written.
#[derive(Clone, Debug)]
pub struct SpoolEntry {
    /// Spool of the result.
    pub key: SpoolKey,
    /// Header of the result.
    pub header: EntryHeader,
    /// Its bytes, or where they are.
    pub body: SpoolBody,
}

/// The bytes of a result.
#[derive(Clone, Debug)]
pub enum SpoolBody {
    /// Wire form of the film, `header.length` bytes.
    Bytes(Bytes),
    /// They are stored already, from this position of the object on.
    Stored(ResultObject, u32),
}

impl From<Bytes> for SpoolBody {
    fn from(bytes: Bytes) -> Self {
        Self::Bytes(bytes)
    }
}

impl SpoolBody {
    /// Number of bytes that are to be written.
    pub(crate) fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Stored(..) => 0,
        }
    }
}

/// Why a spool cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The file system or object store failed.
    #[error("spool `{path}` cannot be used")]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the file system.
        #[source]
        source: io::Error,
    },
    /// The spool has fewer bytes than the journal calls durable.
    #[error("spool `{path}` has {found} of {expected} bytes")]
    Short {
        /// Path of the file.
        path: PathBuf,
        /// Bytes that the file has.
        found: u64,
        /// Bytes that the journal calls durable.
        expected: u64,
    },
    /// There is no entry where one must be.
    #[error("spool `{path}` is damaged at byte {offset}")]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// Position of the entry in the file.
        offset: u64,
    },
    /// An entry has a version that this build does not read.
    #[error("spool `{path}` cannot be read at byte {offset}")]
    Version {
        /// Path of the file.
        path: PathBuf,
        /// Position of the entry in the file.
        offset: u64,
        /// The version, and the versions that this build reads.
        #[source]
        source: VersionError,
    },
    /// The bytes of an entry differ from what was written.
    #[error("unit {} in spool `{path}` has other bytes than were written", unit.0)]
    Hash {
        /// Path of the file.
        path: PathBuf,
        /// Unit of the result.
        unit: UnitIndex,
    },
    /// The bytes of a result that is elsewhere are gone.
    #[error("unit {} in spool `{path}` is gone", unit.0)]
    Gone {
        /// Address of the object.
        path: PathBuf,
        /// Unit of the result.
        unit: UnitIndex,
        /// Error of the store.
        #[source]
        source: io::Error,
    },
    /// The bytes of an entry are not a film.
    #[error("unit {} in spool `{path}` is not a film", unit.0)]
    Film {
        /// Path of the file.
        path: PathBuf,
        /// Unit of the result.
        unit: UnitIndex,
        /// Error of the decoder.
        #[source]
        source: FilmError,
    },
    /// A part of a unit does not begin at the end of the previous part.
    #[error("unit {} in spool `{path}` continues at sample {first} after {samples}", unit.0)]
    Gap {
        /// Path of the file.
        path: PathBuf,
        /// Number of the unit.
        unit: UnitIndex,
        /// First sample of the part.
        first: u32,
        /// Number of samples before it.
        samples: u32,
    },
    /// The headers of a sealed segment differ from what was sealed.
    #[error("segment {hash} of spool `{path}` has other headers than were sealed")]
    Seal {
        /// Path of the file.
        path: PathBuf,
        /// Name of the segment.
        hash: BlobHash,
    },
    /// A needed unit is missing, or is there twice.
    #[error("unit {} is {count} times in spool `{path}`, not once", unit.0)]
    Count {
        /// Path of the file.
        path: PathBuf,
        /// Number of the unit.
        unit: UnitIndex,
        /// Number of its results.
        count: u32,
    },
}

impl SpoolError {
    /// Returns the unit whose bytes are damaged or missing, if it is one, and the others can be
    /// read.
    pub fn lost_unit(&self) -> Option<UnitIndex> {
        match self {
            Self::Hash { unit, .. }
            | Self::Gone { unit, .. }
            | Self::Film { unit, .. }
            | Self::Gap { unit, .. }
            | Self::Count { unit, count: 0, .. } => Some(*unit),
            _ => None,
        }
    }
}
