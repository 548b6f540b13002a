//! The witness: how many commits were made durable, told by a file of its own. Says that the
//! journal has lost its end, and repairs nothing.
//!
//! sled takes a damaged message for the torn end of its log: it drops that message with everything
//! behind it and says nothing. The journal therefore counts its commits, and this file is told each
//! count after the sync. A journal that ends before what its witness saw has lost what was
//! acknowledged. The witness itself is not synced: after a power cut it may have seen less than
//! there was, never more.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Magic and version, count, checksum; two of them stand in the file and take turns, so that a torn
/// one leaves the other.
const SLOT_BYTES: usize = 32;
const SLOTS: u64 = 2;
/// The last byte is the version.
const MAGIC: [u8; 8] = *b"TSRAWIT\x01";

/// The file, open for telling.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Opens or makes the witness; gives what it has seen, 0 where it has seen nothing.
    pub(super) fn open(path: &Path) -> io::Result<(Self, u64)> {
        let file =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path)?;
        let mut seen = 0;
        for slot in 0..SLOTS {
            let mut bytes = [0; SLOT_BYTES];
            match file.read_exact_at(&mut bytes, slot * SLOT_BYTES as u64) {
                Ok(()) => seen = seen.max(count_of(&bytes).unwrap_or(0)),
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
                Err(error) => return Err(error),
            }
        }
        Ok((Self { file }, seen))
    }

    /// Tells it that this many commits are durable.
    pub(super) fn tell(&self, count: u64) -> io::Result<()> {
        self.file.write_all_at(&slot(count), count % SLOTS * SLOT_BYTES as u64)
    }
}

fn slot(count: u64) -> [u8; SLOT_BYTES] {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    let hash = blake3::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&hash.as_bytes()[..16]);
    bytes
}

/// The count of a slot that is whole.
fn count_of(bytes: &[u8; SLOT_BYTES]) -> Option<u64> {
    let count = u64::from_le_bytes(bytes[8..16].try_into().ok()?);
    (slot(count) == *bytes).then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_whole_slot_is_believed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("witness");
        let (witness, seen) = Witness::open(&path).unwrap();
        assert_eq!(seen, 0);
        for count in 1..=7 {
            witness.tell(count).unwrap();
            assert_eq!(Witness::open(&path).unwrap().1, count);
        }
        // Torn while 8 was told: what 7 told stands.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(Witness::open(&path).unwrap().1, 7);
        std::fs::write(&path, &bytes[..40]).unwrap();
        assert_eq!(Witness::open(&path).unwrap().1, 0);
    }
}
