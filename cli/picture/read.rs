//! Reads a picture file in the format that its first bytes tell. Decodes nothing itself.

use super::{Picture, PictureError, exr_file, jpeg_file, png_file};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek};
use std::path::Path;

/// First bytes of an OpenEXR file.
const EXR_MAGIC: &[u8] = &[0x76, 0x2f, 0x31, 0x01];
/// First bytes of a PNG file.
const PNG_MAGIC: &[u8] = b"\x89PNG\r\n\x1a\n";
/// First bytes of a JPEG file.
const JPEG_MAGIC: &[u8] = &[0xff, 0xd8, 0xff];

/// Reads the colours and the opacity of an EXR, PNG or JPEG file.
///
/// Of an EXR file these are the channels `R`, `G`, `B` and `A` of the first layer that has them,
/// whatever their type; other layers are passed over. A PNG or JPEG file is taken as sRGB whatever
/// else it says, and decoded to linear.
///
/// # Errors
/// If the file cannot be read, is none of these, is broken, has no colours, or is larger than a
/// frame may be.
pub fn read(path: &Path) -> Result<Picture, PictureError> {
    let failed = |source| PictureError::Read { path: path.to_path_buf(), source };
    let wrong = |problem| PictureError::File { path: path.to_path_buf(), problem };
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let mut magic = [0; 8];
    match file.read_exact(&mut magic) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => magic = [0; 8],
        other => other.map_err(failed)?,
    }
    file.rewind().map_err(failed)?;
    if magic.starts_with(EXR_MAGIC) {
        exr_file::decode(file).map_err(wrong)
    } else if magic.starts_with(PNG_MAGIC) {
        png_file::decode(file).map_err(wrong)
    } else if magic.starts_with(JPEG_MAGIC) {
        jpeg_file::decode(file).map_err(wrong)
    } else {
        Err(wrong("it is neither OpenEXR, PNG nor JPEG; convert it".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_are_not_pictures_are_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let error = read(&folder.path().join("missing.exr")).unwrap_err();
        assert!(
            matches!(error, PictureError::Read { .. }) && error.to_string().contains("missing.exr")
        );
        for (name, bytes) in [("short.exr", &b"v/1"[..]), ("a.gif", b"GIF89a..........")] {
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("neither"), "{error}");
        }
        for magic in [EXR_MAGIC, PNG_MAGIC, JPEG_MAGIC] {
            let path = folder.path().join("cut");
            std::fs::write(&path, [magic, &[0xff; 20]].concat()).unwrap();
            assert!(matches!(read(&path), Err(PictureError::File { .. })));
        }
    }
}
