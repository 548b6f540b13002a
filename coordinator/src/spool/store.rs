//! What a store of spools must do: append a group, read a range, seal, list, delete. One thread
//! writes; any number of readers read what the journal says is durable.

use super::entry::EntryHeader;
use super::extent::SpoolExtent;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use tessera_protocol::{BlobHash, FilmError, FrameNumber, JobId, UnitIndex, VersionError};

/// The writing side of a store of spools. One thread owns it; all methods may block.
///
/// The order of a commit: [`Self::append`], [`Self::seal`], then the journal, then
/// [`Self::accept`]. Until it is accepted, the same may be written again in the same place.
pub trait Spools: Send + 'static {
    /// Appends a group, durably. Gives the new extents of the spools that it touched.
    fn append(
        &mut self,
        group: &[SpoolEntry],
    ) -> Result<BTreeMap<SpoolKey, SpoolExtent>, SpoolError>;

    /// Seals the open part of a spool with this extent: the extent with one more segment, or the
    /// same where nothing is open. An object store puts the segment under its hash here.
    fn seal(&mut self, key: SpoolKey, extent: SpoolExtent) -> Result<SpoolExtent, SpoolError>;

    /// The journal has these extents now.
    fn accept(&mut self, extents: BTreeMap<SpoolKey, SpoolExtent>);

    /// The journal does not know these spools any more.
    fn forget(&mut self, keys: &[SpoolKey]);

    /// Deletes the bytes of spools that were forgotten.
    fn delete(&mut self, keys: &[SpoolKey]);

    /// Durable spools and their extents.
    fn extents(&self) -> &BTreeMap<SpoolKey, SpoolExtent>;

    /// The reading side.
    fn reader(&self) -> Arc<dyn SpoolReader>;
}

/// The reading side of a store of spools. All methods may block.
pub trait SpoolReader: Send + Sync + 'static {
    /// Opens the durable part of a spool; fails where it is shorter.
    fn open(&self, key: SpoolKey, extent: &SpoolExtent) -> Result<Box<dyn SpoolRead>, SpoolError>;

    /// Everything that stands among the spools: its name, and the spool that it is, if it is one.
    fn list(&self) -> Result<Vec<(String, Option<SpoolKey>)>, SpoolError>;
}

/// A spool, open for reading. May block.
pub trait SpoolRead: Send + Sync {
    /// What errors call it.
    fn place(&self) -> PathBuf;

    /// Fills the buffer from `offset` on.
    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()>;
}

/// Which spool: a frame of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolKey {
    /// The job.
    pub job: JobId,
    /// The frame of the job.
    pub frame: FrameNumber,
}

impl std::fmt::Display for SpoolKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.job, self.frame)
    }
}

/// An accepted result on its way to the disk.
#[derive(Clone, Debug)]
pub struct SpoolEntry {
    /// Where it goes.
    pub key: SpoolKey,
    /// What stands before it.
    pub header: EntryHeader,
    /// The film's wire form, `header.length` bytes.
    pub bytes: Bytes,
}

/// What is wrong with a spool.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The file system or object store failed.
    #[error("spool `{path}` cannot be used")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Fewer bytes than the journal says were made durable.
    #[error("spool `{path}` has {found} of {expected} bytes")]
    Short {
        /// The file.
        path: PathBuf,
        /// Bytes it has.
        found: u64,
        /// Bytes it had.
        expected: u64,
    },
    /// No entry where one must be.
    #[error("spool `{path}` is damaged at byte {offset}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
    },
    /// An entry of a version that this build does not read.
    #[error("spool `{path}` cannot be read at byte {offset}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Where.
        offset: u64,
        /// Which version, and which this build reads.
        #[source]
        source: VersionError,
    },
    /// An entry's bytes are not the ones that were written.
    #[error("unit {} in spool `{path}` has other bytes than were written", unit.0)]
    Hash {
        /// The file.
        path: PathBuf,
        /// Whose result.
        unit: UnitIndex,
    },
    /// An entry's bytes are not a film.
    #[error("unit {} in spool `{path}` is not a film", unit.0)]
    Film {
        /// The file.
        path: PathBuf,
        /// Whose result.
        unit: UnitIndex,
        /// Why not.
        #[source]
        source: FilmError,
    },
    /// A part of a unit does not begin where the one before it ends.
    #[error("unit {} in spool `{path}` goes on at sample {first} after {samples}", unit.0)]
    Gap {
        /// The file.
        path: PathBuf,
        /// Which unit.
        unit: UnitIndex,
        /// First sample of the part.
        first: u32,
        /// Samples before it.
        samples: u32,
    },
    /// A sealed segment's headers are not the ones that were sealed.
    #[error("segment {hash} of spool `{path}` has other headers than were sealed")]
    Seal {
        /// The file.
        path: PathBuf,
        /// The segment's name.
        hash: BlobHash,
    },
    /// A unit that must be there is not, or is there twice.
    #[error("unit {} stands {count} times in spool `{path}`, not once", unit.0)]
    Count {
        /// The file.
        path: PathBuf,
        /// Which unit.
        unit: UnitIndex,
        /// How often.
        count: u32,
    },
}
