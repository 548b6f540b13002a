//! One entry of a spool: a fixed header and the result's bytes, as they came over the wire.

use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::{BlobHash, Epoch, UnitIndex};

/// Bytes of an entry's header.
pub const HEADER_BYTES: usize = 56;
/// First bytes of every entry; the last one is the version.
const MAGIC: [u8; 4] = *b"TSP1";

/// What stands before a result's bytes: magic, unit (u32), epoch (u64), samples (u32), length (u32), BLAKE3, little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// The unit of the frame.
    pub unit: UnitIndex,
    /// The lease that made it.
    pub epoch: Epoch,
    /// Samples per pixel in it, or indices.
    pub samples: u32,
    /// Bytes that follow.
    pub length: u32,
    /// Their BLAKE3.
    pub hash: BlobHash,
}

impl EntryHeader {
    /// Its bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..8].copy_from_slice(&self.unit.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.0.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.samples.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.length.to_le_bytes());
        bytes[24..].copy_from_slice(&self.hash.0);
        bytes
    }

    /// Reads a header; None where the bytes are none, or name a length beyond any result's.
    pub fn from_bytes(bytes: &[u8; HEADER_BYTES]) -> Option<Self> {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut hash = [0; 32];
        hash.copy_from_slice(&bytes[24..]);
        let header = Self {
            unit: UnitIndex(word(4)),
            epoch: Epoch(u64::from(word(8)) | u64::from(word(12)) << 32),
            samples: word(16),
            length: word(20),
            hash: BlobHash(hash),
        };
        (bytes[..4] == MAGIC && header.length as usize <= RESULT_BYTES_MAX).then_some(header)
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
            samples: 64,
            length: 1000,
            hash: BlobHash::of(b"x"),
        };
        let bytes = header.to_bytes();
        assert_eq!(EntryHeader::from_bytes(&bytes), Some(header));
        assert_eq!(EntryHeader::from_bytes(&[0; HEADER_BYTES]), None);
        let huge = EntryHeader { length: u32::MAX, ..header };
        assert_eq!(EntryHeader::from_bytes(&huge.to_bytes()), None);
    }
}
