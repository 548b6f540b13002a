//! Resolve: a frame's spool to its files, one row of tiles at a time. Owns the arithmetic from sums
//! to pixels and the files' forms.
//!
//! Memory: a row of tiles as 32-bit floats is width × tile edge × channels × 4 bytes (3840 × 64 × 3
//! × 4 is 2.8 MiB; at the limits, 32768 × 512 × 13 × 4 is 832 MiB), and per decoding thread three
//! copies of one tile's sums, at most 32 MiB each. The writers hold 16 rows a thread. Denoising
//! holds for each of its two passes such a row of tiles and 61 rows of pixels, of at most 19
//! channels, and one more row of tiles on its way (3840 × 64: 88 MiB in all). No more than one
//! frame is resolved at a time.

mod band;
mod denoise;
mod exr_file;
pub(crate) mod orders;
mod out_file;
mod png_file;
mod tone;
mod values;

use crate::blobs::{BlobError, Blobs};
use crate::spool::{SpoolError, SpoolIndex};
use band::{Band, Tiles};
use denoise::Denoiser;
use exr_file::{ExrFile, ExrRows};
use out_file::OutFile;
use png_file::PngRows;
use sha2::{Digest, Sha256};
use std::io;
use tessera_core::{FrameRounds, Grid, ResolveFailure};
use tessera_kernels::denoise::DenoiseError;
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{Fingerprint, FrameNumber, JobId};
use tone::Display;
pub use values::{Values, assemble};

/// A frame whose units are all in its spool.
#[derive(Debug)]
pub struct Frame<'a> {
    /// The job.
    pub job: JobId,
    /// The frame of the job.
    pub frame: FrameNumber,
    /// What was asked for.
    pub spec: &'a RenderSpec,
    /// Which build's results they are.
    pub fingerprint: Option<Fingerprint>,
    /// The results.
    pub spool: &'a SpoolIndex,
    /// Where it was sampled in rounds: how many each tile has.
    pub rounds: Option<&'a FrameRounds>,
}

/// Why a frame could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// The spool is not whole.
    #[error("results of the frame are damaged")]
    Spool(#[from] SpoolError),
    /// A unit's film has another shape than the unit.
    #[error("the film of unit {unit} has another shape than the unit")]
    Shape {
        /// The unit's index.
        unit: u32,
    },
    /// A unit's result is no chunk of the job.
    #[error("the result of unit {unit} is no chunk of the job: {problem}")]
    Chunk {
        /// The unit's index.
        unit: u32,
        /// What is wrong with it.
        problem: String,
    },
    /// A file could not be written.
    #[error("frame file cannot be written")]
    Write(#[source] io::Error),
    /// The denoiser refused.
    #[error("frame cannot be denoised")]
    Denoise(#[from] DenoiseError),
    /// The encoder refused.
    #[error("frame file cannot be encoded: {0}")]
    Encode(String),
    /// The blob store refused.
    #[error("frame file cannot be stored")]
    Blob(#[from] BlobError),
}

impl ResolveError {
    /// What the core should make of it: trouble with the disk may pass, damage will not.
    pub fn failure(&self) -> ResolveFailure {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(error) = source {
            text = format!("{text}: {error}");
            source = error.source();
        }
        match self {
            Self::Write(_) | Self::Blob(_) | Self::Spool(SpoolError::Io { .. }) => {
                ResolveFailure::Retry(text)
            }
            Self::Spool(_)
            | Self::Shape { .. }
            | Self::Chunk { .. }
            | Self::Denoise(_)
            | Self::Encode(_) => ResolveFailure::Fatal(text),
        }
    }
}

impl Frame<'_> {
    /// Samples per pixel, or the most that a pixel has.
    fn samples(&self) -> u32 {
        match (self.spec.time_secs, self.rounds) {
            (Some(_), Some(rounds)) => rounds.newest_samples(),
            _ => self.spec.spp,
        }
    }
}

/// Makes the files of a frame, one for each format of the spec and in its order, as blobs. On an
/// error nothing of them is left.
pub fn resolve(frame: &Frame<'_>, blobs: &Blobs) -> Result<Vec<FrameFile>, ResolveError> {
    match frame.rounds {
        Some(rounds) => frame.spool.check_rounds(rounds)?,
        None => frame.spool.check_complete(Grid::of(frame.spec).units())?,
    }
    let mut exr = None;
    let mut png = None;
    for format in &frame.spec.formats {
        let out = OutFile::new(blobs.temporary()?);
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
        let (hash, length) = blobs.adopt(out.finish().map_err(ResolveError::Write)?)?;
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
    let comment =
        spec.clamp.map(|clamp| format!("indirect light clamped at {clamp}: darker than the scene"));
    PngRows::begin(out, (spec.width, spec.height, 3), Display::new(spec), depth, comment)
}

/// Writes the rows of every file in one pass over the spool; gives the SHA-256 of the pixels.
fn write_rows(
    frame: &Frame<'_>,
    exr: Option<&mut OutFile>,
    mut png: Option<&mut PngRows>,
) -> Result<[u8; 32], ResolveError> {
    let tiles = Tiles::new(frame);
    let mut pixels = Sha256::new();
    let mut denoiser = frame.spec.denoise.then(|| Denoiser::new(frame.spec, frame.samples()));
    let mut feed = |mut exr: Option<&mut ExrRows<'_, '_>>| -> Result<(), ResolveError> {
        for row in 0..tiles.rows() {
            let mut band = tiles.band(row)?;
            if let Some(denoiser) = &mut denoiser {
                band = denoiser.push(band)?;
            }
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

/// Row by row, pixel by pixel: R, G, B as little endian 32-bit floats.
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
#[path = "tests/rounds.rs"]
mod rounds_tests;
#[cfg(test)]
pub(crate) mod tests;
