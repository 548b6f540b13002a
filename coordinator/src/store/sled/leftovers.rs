//! The files that sled writes beside its log: snapshots and its settings. Tells the whole ones from
//! those that a killed process or a full disk left half made, and sets those aside.
//!
//! sled believes the newest `snap.*`, also an empty `snap.*.generating`, and then refuses to open.
//! All of these files can be made again from the log.

use std::io;
use std::path::{Path, PathBuf};
use tessera_transport::files;

/// Beginning of the names of sled's snapshots.
const SNAPSHOT: &str = "snap.";
/// sled's settings: a text and its checksum.
const SETTINGS: &str = "conf";
/// Bytes behind the content of a snapshot: its length (8) and its checksum (4).
const SNAPSHOT_TAIL: usize = 12;
/// Bytes of a checksum.
const CHECKSUM: usize = 4;
/// Shortest settings that sled reads, in bytes.
const SETTINGS_BYTES_MIN: usize = 9;
/// Largest snapshot that is read, in bytes. A page takes about 20 bytes in it.
const SNAPSHOT_BYTES_MAX: u64 = 1 << 30;
/// Most files that are kept aside. The oldest are deleted.
const KEPT_ASIDE: usize = 8;

/// A file beside sled's log that must not be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leftover {
    pub(super) path: PathBuf,
    /// Description of the fault, for people.
    pub(super) problem: &'static str,
}

/// The files beside a log.
#[derive(Debug, Default)]
pub(super) struct Beside {
    /// Files that sled must not see.
    pub(super) leftovers: Vec<Leftover>,
    /// Intact snapshots, oldest first.
    pub(super) snapshots: Vec<PathBuf>,
}

/// Looks at the files beside a log. A folder that does not exist has none.
pub(super) fn look(sled: &Path) -> io::Result<Beside> {
    let mut beside = Beside::default();
    let entries = match std::fs::read_dir(sled) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(beside),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name else { continue };
        let problem = if name == SETTINGS {
            let damaged = !is_sealed(&path, SETTINGS_BYTES_MIN, CHECKSUM)?;
            damaged.then_some("sled's settings are damaged")
        } else if !name.starts_with(SNAPSHOT) {
            None
        } else if name.trim_start_matches(SNAPSHOT).contains('.') {
            Some("sled's snapshot was not written to its end")
        } else if is_sealed(&path, SNAPSHOT_TAIL + 1, SNAPSHOT_TAIL)? {
            beside.snapshots.push(path.clone());
            None
        } else {
            Some("sled's snapshot is damaged")
        };
        beside.leftovers.extend(problem.map(|problem| Leftover { path, problem }));
    }
    beside.snapshots.sort();
    beside.leftovers.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(beside)
}

/// Returns whether a file has at least `shortest` bytes, and ends with the checksum of what is
/// before its tail.
fn is_sealed(path: &Path, shortest: usize, tail: usize) -> io::Result<bool> {
    let bytes = match files::read_bounded(path, SNAPSHOT_BYTES_MAX) {
        Ok(bytes) => bytes,
        // A folder, or a file that nobody wrote as a snapshot.
        Err(error)
            if matches!(error.kind(), io::ErrorKind::IsADirectory | io::ErrorKind::InvalidData) =>
        {
            return Ok(false);
        }
        Err(error) => return Err(error),
    };
    if bytes.len() < shortest {
        return Ok(false);
    }
    let expected = &bytes[bytes.len() - CHECKSUM..];
    Ok(crc32(&bytes[..bytes.len() - tail]).to_le_bytes() == expected)
}

/// Moves a file out of sled's sight, into a folder where the newest few are kept. Returns its new
/// path. Durable on return.
pub(super) fn set_aside(file: &Path, aside: &Path) -> io::Result<PathBuf> {
    files::create_private_folder(aside)?;
    let mut kept = Vec::new();
    for entry in std::fs::read_dir(aside)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let number: Option<u64> = name.split_once('-').and_then(|(digits, _)| digits.parse().ok());
        kept.extend(number.map(|number| (number, entry.path())));
    }
    kept.sort();
    let number = kept.last().map_or(1, |(number, _)| number + 1);
    for (_, oldest) in kept.iter().take((kept.len() + 1).saturating_sub(KEPT_ASIDE)) {
        let gone = if oldest.is_dir() {
            std::fs::remove_dir_all(oldest)
        } else {
            std::fs::remove_file(oldest)
        };
        gone?;
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let to = aside.join(format!("{number:04}-{name}"));
    std::fs::rename(file, &to)?;
    files::sync_folder(aside)?;
    files::sync_folder(files::folder_of(file))?;
    Ok(to)
}

/// CRC-32 of IEEE 802.3, as sled writes it.
pub(super) fn crc32(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut index = 0;
        while index < 256 {
            let mut value = index as u32;
            let mut bit = 0;
            while bit < 8 {
                value = if value & 1 == 1 { value >> 1 ^ 0xedb8_8320 } else { value >> 1 };
                bit += 1;
            }
            table[index] = value;
            index += 1;
        }
        table
    };
    let step = |sum: u32, byte: &u8| TABLE[((sum ^ u32::from(*byte)) & 0xff) as usize] ^ sum >> 8;
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_sled() {
        // The check value of CRC-32/ISO-HDLC.
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b""), 0);
    }

    #[test]
    fn only_the_newest_few_files_are_kept_aside() {
        let root = tempfile::tempdir().unwrap();
        let aside = root.path().join("aside");
        for number in 0..20 {
            let file = root.path().join("snap.7.generating");
            std::fs::write(&file, [number]).unwrap();
            let to = set_aside(&file, &aside).unwrap();
            assert!(!file.exists());
            assert_eq!(std::fs::read(to).unwrap(), [number]);
        }
        let mut names: Vec<_> =
            std::fs::read_dir(&aside).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names.len(), KEPT_ASIDE);
        assert_eq!(names[0], "0013-snap.7.generating");
    }
}
