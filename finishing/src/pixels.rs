//! The colours of finished rows as bytes: what is hashed of a frame, and what its bands hand on.

use crate::band::Band;
use sha2::{Digest, Sha256};

/// Returns R, G and B as little-endian 32-bit floats, row by row and pixel by pixel.
pub(crate) fn colors_of(band: &Band, y: usize, bytes: &mut Vec<u8>) {
    bytes.clear();
    let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel, y));
    for ((r, g), b) in r.iter().zip(g).zip(b) {
        for value in [r, g, b] {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}

/// Hashes the colours of a band.
pub(crate) fn hash(hasher: &mut Sha256, band: &Band) {
    let mut bytes = Vec::with_capacity(band.width * 12);
    for y in 0..band.height {
        colors_of(band, y, &mut bytes);
        hasher.update(&bytes);
    }
}
