//! What a finishing unit reads, as it arrives: parts in a file, with their places. Owns the form of
//! a part: its place (a tile, or a band) and its length, u32 each, little endian, and its bytes.

use crate::{Films, FinishError};
use std::fs::File;
use tessera_protocol::TileSums;

/// The inputs of a finishing unit.
#[derive(Debug)]
pub struct Inputs {
    file: File,
}

/// Returns what stands before a part's bytes.
pub fn write_part_head(place: u32, length: u32) -> [u8; 8] {
    let mut head = [0; 8];
    head[..4].copy_from_slice(&place.to_le_bytes());
    head[4..].copy_from_slice(&length.to_le_bytes());
    head
}

impl Inputs {
    /// Looks at the parts of a file. There must be `parts` of them in `bytes` bytes, the length of
    /// the file; each is at most as long as a result.
    pub fn open(file: File, parts: u32, bytes: u64) -> Result<Self, FinishError> {
        let _ = (parts, bytes);
        Ok(Self { file })
    }
}

impl Films for Inputs {
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError> {
        let _ = (tile, &self.file);
        unimplemented!()
    }
}
