//! One entry of a spool: a fixed header, and the result's bytes as they arrived.

use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::{BlobHash, Epoch, UnitIndex, VersionError};

/// Length of an entry's header in bytes.
pub const HEADER_BYTES: usize = 60;
/// First bytes of every entry. The version follows.
const MAGIC: [u8; 3] = *b"TSP";
/// Version of the header and of the bytes after it.
const VERSION: u8 = 1;

/// Why bytes are not a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// The bytes are cut short, are not a header, or name a length that no result has.
    #[error("not the header of a result")]
    Damaged,
    /// Another build wrote the entry in a version that this build does not read.
    #[error(transparent)]
    Version(#[from] VersionError),
}

/// Header of a result: magic, version (u8), unit (u32), epoch (u64), samples (u32), length (u32),
/// BLAKE3, first (u32), all little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// Number of the unit within the frame.
    pub unit: UnitIndex,
    /// Lease that made the result.
    pub epoch: Epoch,
    /// First sample, counted from the unit's first sample. It is above 0 after an earlier part.
    pub first: u32,
    /// Samples per pixel in the result, or number of indices.
    pub samples: u32,
    /// Number of bytes that follow.
    pub length: u32,
    /// BLAKE3 of these bytes.
    pub hash: BlobHash,
}

impl EntryHeader {
    /// Encodes the header.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..3].copy_from_slice(&MAGIC);
        bytes[3] = VERSION;
        bytes[4..8].copy_from_slice(&self.unit.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.samples.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..56].copy_from_slice(&self.hash.0);
        bytes[56..].copy_from_slice(&self.first.to_le_bytes());
        bytes
    }

    /// Decodes a header.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EntryError> {
        let fixed = bytes.first_chunk::<HEADER_BYTES>().ok_or(EntryError::Damaged)?;
        if fixed[..3] != MAGIC {
            return Err(EntryError::Damaged);
        }
        let reads = (VERSION.into(), VERSION.into());
        VersionError::check("spool entry", fixed[3].into(), reads)?;
        let word = |at: usize| {
            u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let mut hash = [0; 32];
        hash.copy_from_slice(&fixed[24..56]);
        let header = Self {
            unit: UnitIndex(word(4)),
            epoch: Epoch(u64::from(word(8)) | u64::from(word(12)) << 32),
            first: word(56),
            samples: word(16),
            length: word(20),
            hash: BlobHash(hash),
        };
        match header.length as usize <= RESULT_BYTES_MAX {
            true => Ok(header),
            false => Err(EntryError::Damaged),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_bytes_and_foreign_ones_are_refused() {
        let header = EntryHeader {
            unit: UnitIndex(0x0102_0304),
            epoch: Epoch(0x1122_3344_5566_7788),
            first: 16,
            samples: 64,
            length: 1000,
            hash: BlobHash::of(b"x"),
        };
        let bytes = header.to_bytes();
        assert_eq!(EntryHeader::from_bytes(&bytes), Ok(header));
        let damaged = Err(EntryError::Damaged);
        assert_eq!(EntryHeader::from_bytes(&bytes[..HEADER_BYTES - 1]), damaged);
        assert_eq!(EntryHeader::from_bytes(&[0; HEADER_BYTES]), damaged);
        let huge = EntryHeader { length: u32::MAX, ..header };
        assert_eq!(EntryHeader::from_bytes(&huge.to_bytes()), damaged);
        for version in [0, 2, 255] {
            let mut other = bytes;
            other[3] = version;
            let error = EntryHeader::from_bytes(&other).unwrap_err().to_string();
            let expected =
                format!("spool entry has version {version}, and this build reads version 1;");
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}
