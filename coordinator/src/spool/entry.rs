//! One entry of a spool: a fixed header and the result's bytes, as they came over the wire.

use tessera_protocol::limits::RESULT_BYTES_MAX;
use tessera_protocol::{BlobHash, Epoch, UnitIndex};

/// Bytes of an entry's header.
pub const HEADER_BYTES: usize = 60;
/// Bytes of a header of version 1, which had no first sample: every result was of all samples.
const FORMER_BYTES: usize = 56;
/// First bytes of every entry; the last one is the version.
const MAGIC: [u8; 4] = *b"TSP2";
const FORMER_MAGIC: [u8; 4] = *b"TSP1";

/// What stands before a result's bytes: magic, unit (u32), epoch (u64), samples (u32), length
/// (u32), BLAKE3, first (u32), little endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryHeader {
    /// The unit of the frame.
    pub unit: UnitIndex,
    /// The lease that made it.
    pub epoch: Epoch,
    /// First of its samples, counted from the unit's first: above 0 behind a part that is in an
    /// entry before it.
    pub first: u32,
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
        bytes[24..56].copy_from_slice(&self.hash.0);
        bytes[56..].copy_from_slice(&self.first.to_le_bytes());
        bytes
    }

    /// Reads a header of this version or the former one, and says how many bytes it took; None
    /// where the bytes are none, are cut short, or name a length beyond any result's.
    pub fn from_bytes(bytes: &[u8]) -> Option<(Self, usize)> {
        let fixed = bytes.first_chunk::<FORMER_BYTES>()?;
        let word = |at: usize| {
            u32::from_le_bytes([fixed[at], fixed[at + 1], fixed[at + 2], fixed[at + 3]])
        };
        let (first, taken) = match fixed.first_chunk::<4>() {
            Some(&MAGIC) => {
                let whole = bytes.first_chunk::<HEADER_BYTES>()?;
                (u32::from_le_bytes([whole[56], whole[57], whole[58], whole[59]]), HEADER_BYTES)
            }
            Some(&FORMER_MAGIC) => (0, FORMER_BYTES),
            _ => return None,
        };
        let mut hash = [0; 32];
        hash.copy_from_slice(&fixed[24..]);
        let header = Self {
            unit: UnitIndex(word(4)),
            epoch: Epoch(u64::from(word(8)) | u64::from(word(12)) << 32),
            first,
            samples: word(16),
            length: word(20),
            hash: BlobHash(hash),
        };
        (header.length as usize <= RESULT_BYTES_MAX).then_some((header, taken))
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
        assert_eq!(EntryHeader::from_bytes(&bytes), Some((header, HEADER_BYTES)));
        assert_eq!(EntryHeader::from_bytes(&bytes[..HEADER_BYTES - 1]), None);
        assert_eq!(EntryHeader::from_bytes(&[0; HEADER_BYTES]), None);
        let huge = EntryHeader { length: u32::MAX, ..header };
        assert_eq!(EntryHeader::from_bytes(&huge.to_bytes()), None);
    }

    #[test]
    fn a_header_of_version_1_is_read_and_is_of_all_samples() {
        let header = EntryHeader {
            unit: UnitIndex(3),
            epoch: Epoch(9),
            first: 0,
            samples: 64,
            length: 5,
            hash: BlobHash([7; 32]),
        };
        let mut bytes = header.to_bytes()[..FORMER_BYTES].to_vec();
        bytes[3] = b'1';
        assert_eq!(EntryHeader::from_bytes(&bytes), Some((header, FORMER_BYTES)));
        assert_eq!(EntryHeader::from_bytes(&bytes[..FORMER_BYTES - 1]), None);
    }
}
