//! The witness: a separate file that counts the durable commits. It shows that the journal has lost
//! its end, and repairs nothing.
//!
//! sled takes a damaged message for the cut end of its log. It silently drops that message and
//! everything after it. So the journal counts its commits, and this file gets each count after the
//! sync. A journal with a lower count than its witness has lost acknowledged commits. The witness
//! itself is not synced. After a power cut its count may be too low, but never too high.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Layout of a slot: magic and version, count, checksum. The file has two slots that are written in
/// turn, so that a torn write destroys only one.
const SLOT_BYTES: usize = 32;
const SLOTS: u64 = 2;
/// The last byte is the version.
const MAGIC: [u8; 8] = *b"TSRAWIT\x01";

/// The witness file, open for writing.
#[derive(Debug)]
pub(super) struct Witness {
    file: File,
}

impl Witness {
    /// Opens or makes the witness.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        Ok(Self { file })
    }

    /// Records that `count` commits are durable.
    pub(super) fn tell(&self, count: u64) -> io::Result<()> {
        self.file.write_all_at(&slot(count), count % SLOTS * SLOT_BYTES as u64)
    }
}

/// Reads the count of a witness. Returns 0 if there is none.
pub(super) fn read(path: &Path) -> io::Result<u64> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(0),
        Err(error) => return Err(error),
    };
    let mut seen = 0;
    for slot in 0..SLOTS {
        let mut bytes = [0; SLOT_BYTES];
        match file.read_exact_at(&mut bytes, slot * SLOT_BYTES as u64) {
            Ok(()) => seen = seen.max(count_of(&bytes).unwrap_or(0)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

fn slot(count: u64) -> [u8; SLOT_BYTES] {
    let mut bytes = [0; SLOT_BYTES];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..16].copy_from_slice(&count.to_le_bytes());
    let hash = blake3::hash(&bytes[..16]);
    bytes[16..].copy_from_slice(&hash.as_bytes()[..16]);
    bytes
}

/// Returns the count of an intact slot.
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
        assert_eq!(read(&path).unwrap(), 0);
        let witness = Witness::open(&path).unwrap();
        for count in 1..=7 {
            witness.tell(count).unwrap();
            assert_eq!(read(&path).unwrap(), count);
        }
        // The write of 8 is torn, so 7 is still the newest count.
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[8] ^= 0xff;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(read(&path).unwrap(), 7);
        std::fs::write(&path, &bytes[..40]).unwrap();
        assert_eq!(read(&path).unwrap(), 0);
    }
}
