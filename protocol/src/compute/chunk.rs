//! A chunk's result on the wire: values or partial results as bytes, shuffled by the width of a
//! value and compressed with zstd.
//!
//! Layout: `"TCHK"`, u8 format version, u8 width of a value, u16 zero, u32 indices, u32 bytes
//! (little endian), then the compressed bytes.

use crate::VersionError;
use crate::limits::{RESULT_BYTES_MAX, STEPPED_BYTES_MAX};
use serde::{Deserialize, Serialize};
use std::io::Read;

const MAGIC: [u8; 4] = *b"TCHK";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 16;

/// Result of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkValues {
    /// Number of indices in the chunk.
    pub count: u32,
    /// Width by which the bytes are shuffled: bytes of a value, 1 to 16; 1 for partial results.
    pub width: u8,
    /// The values, index by index, and channel by channel within an index. For a reduction, one
    /// partial result for each channel.
    pub bytes: Vec<u8>,
}

/// Size that a chunk's result must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChunkShape {
    /// Number of indices in the chunk.
    pub count: u32,
    /// Length of the values or partial results in bytes.
    pub bytes: u32,
}

/// Why bytes cannot be decoded as a chunk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChunkError {
    /// The bytes are not a chunk, or are cut short.
    #[error("not a chunk of values")]
    Foreign,
    /// Another build wrote the chunk in a version that this build does not read.
    #[error(transparent)]
    Version(#[from] VersionError),
    /// A number in the header is out of range.
    #[error("chunk header is out of range: {0}")]
    Header(String),
    /// The bytes do not decompress to the header's length.
    #[error("chunk of values is damaged")]
    Damaged,
}

impl ChunkValues {
    /// Returns the size of the result.
    pub fn shape(&self) -> ChunkShape {
        ChunkShape { count: self.count, bytes: self.bytes.len() as u32 }
    }

    /// Returns whether the bytes begin like a chunk.
    pub fn is_chunk(bytes: &[u8]) -> bool {
        bytes.starts_with(&MAGIC)
    }

    /// Encodes the result for the wire.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.bytes.len() / 2);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, self.width, 0, 0]);
        bytes.extend_from_slice(&self.count.to_le_bytes());
        bytes.extend_from_slice(&(self.bytes.len() as u32).to_le_bytes());
        let planes = zstd::bulk::compress(&shuffle(&self.bytes, usize::from(self.width)), 1)
            .expect("zstd compresses any bytes into a buffer that it sizes itself");
        bytes.extend_from_slice(&planes);
        bytes
    }

    /// Decodes a result. Allocates no more than the header's checked length needs.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ChunkError> {
        let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(ChunkError::Foreign)?;
        if !Self::is_chunk(bytes) || bytes.len() > RESULT_BYTES_MAX {
            return Err(ChunkError::Foreign);
        }
        VersionError::check("chunk", header[4].into(), (VERSION.into(), VERSION.into()))?;
        let word = |at: usize| {
            u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let (width, count, length) = (header[5], word(8), word(12));
        let whole = usize::from(width.max(1));
        if !(1..=16).contains(&width)
            || u64::from(length) > STEPPED_BYTES_MAX
            || !(length as usize).is_multiple_of(whole)
        {
            return Err(ChunkError::Header(format!(
                "{count} indices in {length} bytes by {width}"
            )));
        }
        // Memory grows with what comes out, so that a claimed length alone takes none.
        let mut planes = Vec::new();
        zstd::stream::read::Decoder::with_buffer(&bytes[HEADER_BYTES..])
            .and_then(|decoder| decoder.take(u64::from(length) + 1).read_to_end(&mut planes))
            .map_err(|_| ChunkError::Damaged)?;
        if planes.len() != length as usize {
            return Err(ChunkError::Damaged);
        }
        Ok(Self { count, width, bytes: unshuffle(&planes, whole) })
    }
}

/// Puts byte 0 of all values first, then byte 1 of all values, and so on. Similar bytes become
/// neighbours and compress better.
fn shuffle(bytes: &[u8], width: usize) -> Vec<u8> {
    let count = bytes.len() / width.max(1);
    let mut planes = Vec::with_capacity(bytes.len());
    for byte in 0..width {
        planes.extend((0..count).map(|value| bytes[value * width + byte]));
    }
    planes
}

fn unshuffle(planes: &[u8], width: usize) -> Vec<u8> {
    let count = planes.len() / width;
    let mut bytes = vec![0; planes.len()];
    for (byte, plane) in planes.chunks_exact(count.max(1)).enumerate() {
        for (value, source) in plane.iter().enumerate() {
            bytes[value * width + byte] = *source;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk(width: u8) -> ChunkValues {
        ChunkValues { count: 30, width, bytes: (0..240).collect() }
    }

    #[test]
    fn a_chunk_survives_the_wire() {
        for width in [1, 4, 8] {
            assert_eq!(ChunkValues::from_bytes(&chunk(width).to_bytes()), Ok(chunk(width)));
        }
        let empty = ChunkValues { count: 0, width: 4, bytes: vec![] };
        assert_eq!(ChunkValues::from_bytes(&empty.to_bytes()), Ok(empty));
    }

    #[test]
    fn damage_is_seen() {
        let bytes = chunk(4).to_bytes();
        assert_eq!(ChunkValues::from_bytes(&bytes[..10]), Err(ChunkError::Foreign));
        assert_eq!(ChunkValues::from_bytes(&bytes[..bytes.len() - 1]), Err(ChunkError::Damaged));
        let with = |at: usize, value: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            ChunkValues::from_bytes(&bytes)
        };
        assert!(matches!(with(4, 2), Err(ChunkError::Version(error)) if error.found == 2));
        assert!(matches!(with(5, 0), Err(ChunkError::Header(_))));
        assert!(matches!(with(5, 9), Err(ChunkError::Header(_))));
        assert!(matches!(with(15, 0xff), Err(ChunkError::Header(_))));
        assert_eq!(with(12, 232), Err(ChunkError::Damaged));
    }
}
