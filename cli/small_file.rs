//! Reads small text files whole, up to a limit. Knows no format.

use std::fs::File;
use std::io::{Error, Read, Result};
use std::path::Path;

/// The text of a file of at most `bytes_max`. A device that never ends is a file that is too long.
pub(crate) fn read(path: &Path, bytes_max: u64) -> Result<String> {
    let mut text = String::new();
    // One more than there may be: whether there is more is not known otherwise.
    File::open(path)?.take(bytes_max + 1).read_to_string(&mut text)?;
    if text.len() as u64 > bytes_max {
        return Err(Error::other(format!("it is longer than {bytes_max} bytes")));
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endless_file_is_refused_as_too_long() {
        assert!(read(Path::new("/dev/zero"), 100).unwrap_err().to_string().contains("longer"));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        std::fs::write(&path, "abc").unwrap();
        assert_eq!(read(&path, 3).unwrap(), "abc");
        assert!(read(&path, 2).is_err());
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        assert!(read(&path, 9).is_err());
    }
}
