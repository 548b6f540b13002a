//! The colours of finished rows as bytes: what is hashed of a frame, and what its bands hand on.
//! They are 32-bit floats, little endian, row by row and pixel by pixel.

use crate::band::Band;
use sha2::{Digest, Sha256};
use tessera_protocol::job::{FormatSpec, RenderSpec};

/// Values of a pixel that are hashed: R, G and B.
pub(crate) const COLORS: usize = 3;

/// Returns the channel of the alpha that bands hand on after the colours; None if no file of a
/// display format shows it.
pub(crate) fn alpha_channel(spec: &RenderSpec) -> Option<usize> {
    let shows = |format: &FormatSpec| matches!(format, FormatSpec::Png | FormatSpec::Png16);
    let channel = spec.coverage_channel().filter(|_| spec.formats.iter().any(shows));
    channel.map(usize::from)
}

/// Hashes the colours of a band.
pub(crate) fn hash(hasher: &mut Sha256, band: &Band) {
    let mut bytes = Vec::with_capacity(4 * COLORS * band.width);
    for y in 0..band.height {
        bytes.clear();
        append_row(band, y, None, &mut bytes);
        hasher.update(&bytes);
    }
}

/// Appends what a band hands on: the colours of its pixels, each followed by its alpha if there is
/// one.
pub(crate) fn append(band: &Band, alpha: Option<usize>, bytes: &mut Vec<u8>) {
    (0..band.height).for_each(|y| append_row(band, y, alpha, bytes));
}

fn append_row(band: &Band, y: usize, alpha: Option<usize>, bytes: &mut Vec<u8>) {
    let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel, y));
    let alpha = alpha.map(|channel| band.line(channel, y));
    for x in 0..band.width {
        for value in [r[x], g[x], b[x]].into_iter().chain(alpha.map(|line| line[x])) {
            bytes.extend_from_slice(&value.to_le_bytes());
        }
    }
}
