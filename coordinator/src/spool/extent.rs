//! The durable part of a spool: what is on the disk, and what is in a store elsewhere. The journal
//! has it.

use super::entry::EntryHeader;
use super::stored::StoredResults;
use std::sync::Arc;
use tessera_protocol::BlobHash;

/// Size in bytes at which the open part of a spool is sealed.
pub const SEGMENT_BYTES: u64 = 64 << 20;
/// Bytes of a segment's length and hash.
const SEGMENT_FORM_BYTES: usize = 8 + 32;

/// A part of a spool that never changes again. Its name is the BLAKE3 of its entries' headers, and
/// each header contains the BLAKE3 of its bytes. So the name stands for every byte, and sealing
/// does not hash results again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Name of the segment.
    pub hash: BlobHash,
    /// Length of the segment in bytes.
    pub length: u64,
}

/// The durable part of a spool: on the disk, consecutive sealed segments and then the open part;
/// elsewhere, objects. A frame has both only where the place of results was changed meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpoolExtent {
    /// Length of everything on the disk, in bytes.
    pub length: u64,
    /// Segments at the beginning of that.
    pub sealed: Vec<Segment>,
    /// Results in objects elsewhere, by number. The journal has a value for each.
    pub stored: Vec<Arc<StoredResults>>,
}

impl SpoolExtent {
    /// Creates an extent without sealed segments.
    pub fn open(length: u64) -> Self {
        Self { length, ..Self::default() }
    }

    /// Whether it has nothing.
    pub fn is_empty(&self) -> bool {
        self.length == 0 && self.stored.is_empty()
    }

    /// Number of the next object.
    pub(crate) fn next_number(&self) -> u32 {
        self.stored.last().map_or(0, |last| last.number + 1)
    }

    /// Adds an object at its place among the others.
    pub(crate) fn add_stored(&mut self, stored: Arc<StoredResults>) {
        let at = self.stored.partition_point(|other| other.number < stored.number);
        self.stored.insert(at, stored);
    }

    /// Returns the number of sealed bytes.
    pub fn sealed_length(&self) -> u64 {
        self.sealed.iter().map(|segment| segment.length).sum()
    }

    /// Returns the number of bytes that are not sealed.
    pub fn open_length(&self) -> u64 {
        self.length.saturating_sub(self.sealed_length())
    }

    /// Encodes what is on the disk, for the journal: the length, then each segment's length and
    /// hash, little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = self.length.to_le_bytes().to_vec();
        for segment in &self.sealed {
            bytes.extend_from_slice(&segment.length.to_le_bytes());
            bytes.extend_from_slice(&segment.hash.0);
        }
        bytes
    }

    /// Decodes [`Self::to_bytes`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or("a spool's extent is cut")?;
        let (segments, more) = rest.as_chunks::<SEGMENT_FORM_BYTES>();
        if !more.is_empty() {
            return Err("a spool's segment is cut".into());
        }
        let read = |bytes: &[u8; SEGMENT_FORM_BYTES]| {
            let (mut length, mut hash) = ([0; 8], [0; 32]);
            length.copy_from_slice(&bytes[..8]);
            hash.copy_from_slice(&bytes[8..]);
            Segment { length: u64::from_le_bytes(length), hash: BlobHash(hash) }
        };
        let extent = Self {
            length: u64::from_le_bytes(*length),
            sealed: segments.iter().map(read).collect(),
            stored: Vec::new(),
        };
        let sealed = extent.sealed.iter().try_fold(0u64, |sum, one| sum.checked_add(one.length));
        match sealed {
            Some(sealed) if sealed <= extent.length => Ok(extent),
            _ => Err("a spool's segments are longer than the spool".into()),
        }
    }
}

/// Computes the name of a segment.
#[derive(Clone, Debug, Default)]
pub(super) struct SegmentName(blake3::Hasher);

impl SegmentName {
    /// Adds the next entry.
    pub(super) fn add(&mut self, header: &EntryHeader) {
        self.0.update(&header.to_bytes());
    }

    /// Returns the name of a segment with the entries so far.
    pub(super) fn hash(&self) -> BlobHash {
        BlobHash(*self.0.finalize().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extent_survives_its_bytes_and_impossible_ones_are_refused() {
        let segment = Segment { hash: BlobHash::of(b"headers"), length: 100 };
        let sealed = vec![segment, segment];
        let extent = SpoolExtent { length: 250, sealed, ..SpoolExtent::default() };
        assert_eq!((extent.sealed_length(), extent.open_length()), (200, 50));
        let bytes = extent.to_bytes();
        assert_eq!(SpoolExtent::from_bytes(&bytes).unwrap(), extent);
        assert_eq!(SpoolExtent::from_bytes(&bytes[..8]).unwrap(), SpoolExtent::open(250));
        assert!(SpoolExtent::from_bytes(&bytes[..7]).is_err());
        assert!(SpoolExtent::from_bytes(&bytes[..bytes.len() - 1]).is_err());
        let short = SpoolExtent { length: 199, ..extent.clone() };
        assert!(SpoolExtent::from_bytes(&short.to_bytes()).is_err());
        let huge = Segment { length: u64::MAX, ..segment };
        let huge = SpoolExtent { length: 9, sealed: vec![huge, segment], ..extent };
        assert!(SpoolExtent::from_bytes(&huge.to_bytes()).is_err());
    }
}
