//! Marks of a data folder whose state or files are elsewhere: which place, and where it was. They
//! keep a coordinator from starting on what the folder itself has, old or empty.

use std::io;
use std::path::Path;
use tessera_transport::files;
use uuid::Uuid;

/// Longest file in bytes. An address has a few hundred.
const BYTES_MAX: u64 = 8192;

/// Names the place that a data folder belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Id of the place, which it has from the day that it was made.
    pub(crate) id: Uuid,
    /// Where the place was last, without a password.
    pub(crate) address: String,
}

impl Mark {
    /// Reads the mark in a file. None if there is none. An error of the kind `InvalidData` says
    /// that it is no mark with this head.
    pub(crate) fn read(path: &Path, head: &str) -> io::Result<Option<Self>> {
        let bytes = match files::read_secret(path, BYTES_MAX) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        let text = String::from_utf8_lossy(&bytes);
        let mut lines = text.lines();
        match (lines.next(), lines.next().map(Uuid::parse_str), lines.next()) {
            (Some(found), Some(Ok(id)), Some(address)) if found == head => {
                Ok(Some(Self { id, address: address.to_owned() }))
            }
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "it does not name a place")),
        }
    }

    /// Writes the mark, durably.
    pub(crate) fn write(&self, path: &Path, head: &str) -> io::Result<()> {
        let text = format!("{head}\n{}\n{}\n", self.id, self.address);
        files::write_atomically(path, text.as_bytes(), files::Access::Secret)
    }

    /// Removes a mark, durably. Harmless if there is none.
    pub(crate) fn remove(path: &Path) -> io::Result<()> {
        match std::fs::remove_file(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            removed => removed?,
        }
        files::sync_folder(path.parent().unwrap_or(Path::new(".")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_read_as_written_and_another_text_is_none() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("mark");
        assert_eq!(Mark::read(&path, "there").unwrap(), None);
        let mark = Mark { id: Uuid::from_u128(7), address: "s3://bucket/farm".into() };
        mark.write(&path, "there").unwrap();
        assert_eq!(Mark::read(&path, "there").unwrap(), Some(mark));
        for (text, head) in [("there\nx\ny\n", "there"), ("", "there")] {
            std::fs::write(&path, text).unwrap();
            let error = Mark::read(&path, head).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{text:?}");
        }
        Mark::remove(&path).unwrap();
        Mark::remove(&path).unwrap();
        assert_eq!(Mark::read(&path, "there").unwrap(), None);
    }
}
