//! Committed PTX images: text compressed by zstd, and unpacked once when it is first needed.

use std::io;
use std::sync::OnceLock;

/// Most bytes of an unpacked image. The largest has 2.5 MiB.
const PTX_BYTES_MAX: usize = 8 << 20;
/// Level of zstd. Images are packed once and unpacked at every start, so this is the slowest level
/// that unpacks as fast as the others.
const ZSTD_LEVEL: i32 = 19;

/// An image in the binary.
pub(crate) struct PackedPtx {
    packed: &'static [u8],
    text: OnceLock<String>,
}

impl PackedPtx {
    pub(crate) const fn new(packed: &'static [u8]) -> Self {
        Self { packed, text: OnceLock::new() }
    }

    /// Returns the PTX. The first call takes some milliseconds.
    pub(crate) fn text(&'static self) -> &'static str {
        // The test `every_image_unpacks` unpacks all of them as they are compiled in.
        self.text.get_or_init(|| unpack_ptx(self.packed).expect("the committed image is whole"))
    }
}

/// Unpacks an image.
///
/// # Errors
/// If the bytes are not what [`pack_ptx`] gives, or more than 8 MiB would come out of them.
pub fn unpack_ptx(packed: &[u8]) -> io::Result<String> {
    let text = zstd::bulk::decompress(packed, PTX_BYTES_MAX)?;
    String::from_utf8(text).map_err(io::Error::other)
}

/// Packs an image.
///
/// # Errors
/// Those of zstd.
pub fn pack_ptx(text: &str) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(text.as_bytes(), ZSTD_LEVEL)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::KernelSet;

    #[test]
    fn every_image_unpacks() {
        let images = KernelSet::ALL.map(KernelSet::ptx);
        for text in images.into_iter().chain([crate::compute::ptx(), crate::unit_tests::ptx()]) {
            assert!(text.contains("\n.target sm_75\n"));
        }
    }

    #[test]
    fn an_image_that_unpacks_to_too_much_is_refused() {
        let text = "x".repeat(PTX_BYTES_MAX);
        assert_eq!(unpack_ptx(&pack_ptx(&text).unwrap()).unwrap(), text);
        assert!(unpack_ptx(&pack_ptx(&(text + "x")).unwrap()).is_err());
        assert!(unpack_ptx(b"no image").is_err());
    }
}
