//! Resolving: makes a frame's files from its spool, one row of tiles at a time. Owns the arithmetic
//! from sums to pixels, and the form of the files.
//!
//! Memory: a row of tiles as 32-bit floats needs width × tile edge × channels × 4 bytes. 3840 × 64
//! × 3 × 4 are 2.8 MiB; at the limits, 32768 × 512 × 17 × 4 are 1.1 GiB. Each decoding thread needs
//! three copies of one tile's sums, at most 64 MiB each. The writers hold at most 32 rows per
//! thread.
//!
//! Denoising has two passes. Each holds such a row of tiles and 61 rows of pixels, with at most 19
//! channels, and one more row of tiles is between them (3840 × 64: 88 MiB in all). With overscan
//! beyond the frame it is done twice, and rows wait for each other: three times as much at most.
//! Only one frame is resolved at a time.

mod alpha;
mod band;
mod denoise;
pub(crate) mod error;
mod exr_file;
mod file_space;
mod frame;
mod jpeg;
mod meter;
pub(crate) mod orders;
mod out_file;
mod overscan;
mod png_file;
mod tone;
mod values;

use crate::blobs::Blobs;
use alpha::Alpha;
use band::{Band, Tiles};
pub use error::ResolveError;
use exr_file::{ExrFile, ExrRows};
pub use frame::Frame;
use jpeg::JpegRows;
use out_file::OutFile;
use overscan::{Cut, Denoising};
use png_file::PngRows;
use sha2::{Digest, Sha256};
use tessera_core::{Grid, Split};
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
        None => {
            let split = Split::Tiles(Grid::of(frame.spec));
            frame.spool.check_complete(split.units(), split.all_units())?;
        }
    }
    let mut exr = None;
    let mut shown = Vec::new();
    for format in &frame.spec.formats {
        let out = OutFile::new(blobs.writer()?);
        match format {
            FormatSpec::Exr => exr = Some(out),
            _ => shown.push(ShownRows::begin(out, frame.spec, *format)?),
        }
    }
    let pixels_sha256 = write_rows(frame, exr.as_mut(), &mut shown)?;
    let mut shown = shown.into_iter().map(ShownRows::finish).collect::<Result<Vec<_>, _>>()?;
    shown.reverse();

    let mut files = Vec::new();
    for format in &frame.spec.formats {
        let out = if *format == FormatSpec::Exr { exr.take() } else { shown.pop() };
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

/// Returns the exposure of a frame in which it is metered, in stops.
pub fn metered_exposure(frame: &Frame<'_>) -> Result<f32, ResolveError> {
    meter::exposure(frame)
}

/// A file of a display format whose rows are being written.
enum ShownRows {
    Png(Box<PngRows>),
    Jpeg(Box<JpegRows>),
}

impl ShownRows {
    fn begin(out: OutFile, spec: &RenderSpec, format: FormatSpec) -> Result<Self, ResolveError> {
        let chosen = away_from_default(spec);
        let mut notes: Vec<String> = chosen.iter().filter_map(Chosen::file_note).collect();
        if spec.auto_exposure {
            notes.push(format!("exposure metered: {} stops", spec.exposure));
        }
        let comment = (!notes.is_empty()).then(|| notes.join("; "));
        let window = spec.data_window();
        let (size, display) = ((window.width(), window.height()), Display::new(spec));
        if format == FormatSpec::Jpeg {
            let rows = JpegRows::begin(out, size, display, spec.jpeg_quality, comment.as_deref())?;
            return Ok(Self::Jpeg(Box::new(rows)));
        }
        let depth =
            if format == FormatSpec::Png16 { png::BitDepth::Sixteen } else { png::BitDepth::Eight };
        let alpha = spec
            .coverage_channel()
            .map(|channel| Alpha { channel: channel.into(), is_premultiplied: true });
        let rows = PngRows::begin(out, size, (3, alpha), display, depth, comment)?;
        Ok(Self::Png(Box::new(rows)))
    }

    fn push(&mut self, band: &Band) -> Result<(), ResolveError> {
        match self {
            Self::Png(rows) => rows.push(band),
            Self::Jpeg(rows) => rows.push(band),
        }
    }

    fn finish(self) -> Result<OutFile, ResolveError> {
        match self {
            Self::Png(rows) => rows.finish(),
            Self::Jpeg(rows) => rows.finish(),
        }
    }
}

/// Writes the rows of every file in one pass over the spool. Returns the SHA-256 of the pixels.
fn write_rows(
    frame: &Frame<'_>,
    exr: Option<&mut OutFile>,
    shown: &mut [ShownRows],
) -> Result<[u8; 32], ResolveError> {
    let tiles = Tiles::new(frame);
    let mut pixels = Sha256::new();
    let coverage = frame.spec.coverage_channel().map(usize::from);
    let mut denoiser = frame.spec.denoise.then(|| Denoising::new(frame.spec));
    let mut cut = Cut::new(frame.spec);
    let mut feed = |mut exr: Option<&mut ExrRows<'_, '_>>| -> Result<(), ResolveError> {
        for row in 0..tiles.rows() {
            let mut band = tiles.band(row)?;
            if let Some(denoiser) = &mut denoiser {
                band = denoiser.push(band)?;
            }
            if let Some(channel) = coverage {
                alpha::settle(&mut band, channel, frame.spec.denoise);
            }
            let mut band = cut.push(band);
            file_space::restore(&mut band, frame.spec);
            hash_pixels(&mut pixels, &band);
            if let Some(rows) = exr.as_deref_mut() {
                rows.push(&band)?;
            }
            shown.iter_mut().try_for_each(|rows| rows.push(&band))?;
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
#[path = "tests/alpha.rs"]
mod alpha_tests;
#[cfg(test)]
#[path = "tests/crops.rs"]
mod crop_tests;
#[cfg(test)]
#[path = "tests/rounds.rs"]
mod rounds_tests;
#[cfg(test)]
pub(crate) mod tests;
