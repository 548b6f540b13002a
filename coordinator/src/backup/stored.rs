//! A spool with results in objects elsewhere, as the file that it would be on the disk: a backup is
//! whole without the bucket.

use crate::spool::{EntryHeader, HEADER_BYTES, SpoolError, SpoolIndex, SpoolKey, SpoolReader};
use crate::store::Loaded;
use std::io::{self, Read};

/// The results that count, each after its header, as bytes to read.
pub(super) struct StoredSpool {
    pub(super) key: SpoolKey,
    /// Number of all bytes.
    pub(super) length: u64,
    index: SpoolIndex,
    /// Units whose results are not read yet, the next one last.
    left: Vec<EntryHeader>,
    /// The result that is being read, with its header, and how much of it was.
    present: (Vec<u8>, usize),
}

impl StoredSpool {
    /// Looks up the results of a spool. Reads none of them.
    pub(super) fn of(
        loaded: &Loaded,
        spools: &dyn SpoolReader,
        key: SpoolKey,
    ) -> Result<Self, SpoolError> {
        let extent = loaded.spools.get(&key).cloned().unwrap_or_default();
        let index = SpoolIndex::read(spools, key, &extent)?;
        let mut left: Vec<EntryHeader> = index.headers().copied().collect();
        left.reverse();
        let bytes = |header: &EntryHeader| HEADER_BYTES as u64 + u64::from(header.length);
        let length = left.iter().map(bytes).sum();
        Ok(Self { key, length, index, left, present: (Vec::new(), 0) })
    }
}

impl Read for StoredSpool {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.present.1 == self.present.0.len() {
            let Some(header) = self.left.pop() else { return Ok(0) };
            let bytes = self.index.bytes_of(&header).map_err(io::Error::other)?;
            self.present = ([&header.to_bytes()[..], &bytes].concat(), 0);
        }
        let (bytes, at) = &mut self.present;
        let count = (bytes.len() - *at).min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[*at..*at + count]);
        *at += count;
        Ok(count)
    }
}
