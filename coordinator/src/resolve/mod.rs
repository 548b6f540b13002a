//! Resolving: makes a frame's files from its spool, one row of tiles at a time. Owns the arithmetic
//! from sums to pixels, and the form of the files.
//!
//! Memory: a row of tiles as 32-bit floats needs width × tile edge × channels × 4 bytes. 3840 × 64
//! × 3 × 4 are 2.8 MiB; at the limits, 32768 × 512 × 13 × 4 are 832 MiB. Each decoding thread needs
//! three copies of one tile's sums, at most 32 MiB each. The writers hold 16 rows per thread.
//!
//! Denoising has two passes. Each holds such a row of tiles and 61 rows of pixels, with at most 19
//! channels, and one more row of tiles is between them (3840 × 64: 88 MiB in all). With overscan
//! beyond the frame it is done twice, and rows wait for each other: three times as much at most.
//! Only one frame is resolved at a time.

mod band;
mod denoise;
pub(crate) mod error;
mod exr_file;
mod frame;
pub(crate) mod orders;
mod out_file;
mod overscan;
mod png_file;
mod tone;
mod values;

use crate::blobs::Blobs;
use band::{Band, Tiles};
pub use error::ResolveError;
use exr_file::{ExrFile, ExrRows};
pub use frame::Frame;
use out_file::OutFile;
use overscan::{Cut, Denoising};
use png_file::PngRows;
use sha2::{Digest, Sha256};
use tessera_core::Grid;
use tessera_protocol::job::options::{Chosen, away_from_default};
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::status::FrameFile;
use tone::Display;
pub use values::{Values, assemble};

/// Makes the files of a frame as blobs, one for each format of the spec and in its order. After an
/// error no part of them is left.
pub fn resolve(frame: &Frame<'_>, blobs: &dyn Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    match frame.rounds {
        Some(rounds) => frame.spool.check_rounds(rounds)?,
        None => frame.spool.check_complete(Grid::of(frame.spec).units())?,
    }
    let mut exr = None;
    let mut png = None;
    for format in &frame.spec.formats {
        let out = OutFile::new(blobs.writer()?);
        match format {
            FormatSpec::Exr => exr = Some(out),
            FormatSpec::Png | FormatSpec::Png16 => png = Some(begin_png(out, frame.spec, *format)?),
        }
    }
    let pixels_sha256 = write_rows(frame, exr.as_mut(), png.as_mut())?;
    let mut png = png.map(PngRows::finish).transpose()?;

    let mut files = Vec::new();
    for format in &frame.spec.formats {
        let out = match format {
            FormatSpec::Exr => exr.take(),
            FormatSpec::Png | FormatSpec::Png16 => png.take(),
        };
        let Some(out) = out else {
            return Err(ResolveError::Encode(format!(
                "format `{}` is asked for twice",
                format.extension()
            )));
        };
        let (hash, length) = out.finish().map_err(ResolveError::Write)?.finish()?;
        files.push(FrameFile {
            format: format.extension().to_owned(),
            hash,
            length,
            pixels_sha256,
        });
    }
    Ok(files)
}

fn begin_png(out: OutFile, spec: &RenderSpec, format: FormatSpec) -> Result<PngRows, ResolveError> {
    let depth =
        if format == FormatSpec::Png16 { png::BitDepth::Sixteen } else { png::BitDepth::Eight };
    let chosen = away_from_default(spec);
    let notes: Vec<String> = chosen.iter().filter_map(Chosen::file_note).collect();
    let comment = (!notes.is_empty()).then(|| notes.join("; "));
    let window = spec.data_window();
    PngRows::begin(out, (window.width(), window.height(), 3), Display::new(spec), depth, comment)
}

/// Writes the rows of every file in one pass over the spool. Returns the SHA-256 of the pixels.
fn write_rows(
    frame: &Frame<'_>,
    exr: Option<&mut OutFile>,
    mut png: Option<&mut PngRows>,
) -> Result<[u8; 32], ResolveError> {
    let tiles = Tiles::new(frame);
    let mut pixels = Sha256::new();
    let mut denoiser = frame.spec.denoise.then(|| Denoising::new(frame.spec, frame.samples()));
    let mut cut = Cut::new(frame.spec);
    let mut feed = |mut exr: Option<&mut ExrRows<'_, '_>>| -> Result<(), ResolveError> {
        for row in 0..tiles.rows() {
            let mut band = tiles.band(row)?;
            if let Some(denoiser) = &mut denoiser {
                band = denoiser.push(band)?;
            }
            let band = cut.push(band);
            hash_pixels(&mut pixels, &band);
            if let Some(rows) = exr.as_deref_mut() {
                rows.push(&band)?;
            }
            if let Some(rows) = png.as_deref_mut() {
                rows.push(&band)?;
            }
        }
        exr.map_or(Ok(()), ExrRows::finish)
    };
    match exr {
        Some(out) => exr_file::write(out, &ExrFile::of_frame(frame), |rows| feed(Some(rows)))?,
        None => feed(None)?,
    }
    Ok(pixels.finalize().into())
}

/// Hashes R, G and B as little-endian 32-bit floats, row by row and pixel by pixel.
fn hash_pixels(hasher: &mut Sha256, band: &Band) {
    let mut bytes = Vec::with_capacity(band.width * 12);
    for y in 0..band.height {
        bytes.clear();
        let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel, y));
        for ((r, g), b) in r.iter().zip(g).zip(b) {
            for value in [r, g, b] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
        }
        hasher.update(&bytes);
    }
}

#[cfg(test)]
#[path = "tests/crops.rs"]
mod crop_tests;
#[cfg(test)]
#[path = "tests/rounds.rs"]
mod rounds_tests;
#[cfg(test)]
pub(crate) mod tests;
