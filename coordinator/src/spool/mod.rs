//! Spools: one append-only file a frame, where accepted results wait until the frame is resolved.
//!
//! What of a spool counts is said by the journal, as a length: bytes beyond it were never
//! acknowledged, and are overwritten.

mod disk;
mod entry;
mod index;

pub use disk::SpoolFiles;
pub use entry::{EntryError, EntryHeader, HEADER_BYTES};
pub use index::SpoolIndex;

use bytes::Bytes;
use std::io;
use std::path::{Path, PathBuf};
use tessera_protocol::{FilmError, FrameNumber, JobId, UnitIndex, VersionError};

/// Which spool: a frame of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpoolKey {
    /// The job.
    pub job: JobId,
    /// The frame of the job.
    pub frame: FrameNumber,
}

impl SpoolKey {
    /// Where the spool stands below the spool folder.
    pub fn path(&self, root: &Path) -> PathBuf {
        root.join(self.job.to_string()).join(format!("{:07}.sums", self.frame.0))
    }
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
    /// The file system said no.
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
    /// An entry's bytes are no film.
    #[error("unit {} in spool `{path}` is no film", unit.0)]
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
