//! Makes pieces of a frame: what finishing units do.

use crate::band::Band;
use crate::exr_file::{self, ExrFile};
use crate::exr_rows::ExrRows;
use crate::memory_file::MemoryFile;
use crate::out_file::OutFile;
use crate::part::{BAND_ROWS, Part};
use crate::piece::PieceMaker;
use crate::pipeline::finished_rows;
use crate::running::Running;
use crate::shown::ShownRows;
use crate::{FinishError, Inputs, pixels};
use exr::block::chunk::{Chunk, CompressedBlock};
use sha2::{Digest, Sha256};
use std::ops::Range;
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::node::{Finish, Piece};

/// Rows of a band that the assembly reads at once.
pub(crate) const ROWS_AT_ONCE: usize = 32;

/// Makes a piece of a frame: the result of a finishing unit. Ends early with
/// [`FinishError::Stopped`] if it is stopped.
pub fn make_piece(
    spec: &RenderSpec,
    finish: &Finish,
    inputs: &Inputs,
    running: &Running<'_>,
) -> Result<Vec<u8>, FinishError> {
    let exposure = f32::from_bits(finish.exposure_bits);
    let spec = &RenderSpec { exposure, ..spec.clone() };
    match finish.piece {
        Piece::Band { first, rows } => {
            let rows = checked_rows(spec, first, rows)?;
            let mut maker = PieceMaker::default();
            let alpha = pixels::alpha_channel(spec);
            make_rows(spec, rows, inputs, running, &mut maker, |maker, band| {
                pixels::append(band, alpha, &mut maker.pixels);
                maker.check()
            })?;
            maker.finish(finish.piece)
        }
        Piece::Frame { rows } => frame(spec, rows, inputs, running),
        Piece::Assembly => assembly(spec, inputs, running),
    }
}

/// Returns the rows of a band, if the frame can have such a band.
fn checked_rows(spec: &RenderSpec, first: u32, rows: u32) -> Result<Range<u32>, FinishError> {
    let height = spec.data_window().height();
    let end = first.checked_add(rows).filter(|end| *end <= height && rows > 0);
    let end = end.filter(|end| *end == height || end.is_multiple_of(BAND_ROWS));
    match end {
        Some(end) if first.is_multiple_of(BAND_ROWS) => Ok(first..end),
        _ => Err(FinishError::Piece(format!(
            "{rows} rows from row {first} on are no band of a frame with {height} rows"
        ))),
    }
}

/// Makes all that a frame of one band has.
fn frame(
    spec: &RenderSpec,
    rows: u32,
    inputs: &Inputs,
    running: &Running<'_>,
) -> Result<Vec<u8>, FinishError> {
    if rows != spec.data_window().height() {
        let problem = format!("a frame of {rows} rows where the job has other ones");
        return Err(FinishError::Piece(problem));
    }
    let mut shown = ShownFiles::begin(spec, spec.coverage_channel().map(usize::from))?;
    let mut hasher = Sha256::new();
    let mut maker = PieceMaker::default();
    make_rows(spec, 0..rows, inputs, running, &mut maker, |_, band| {
        pixels::hash(&mut hasher, band);
        shown.push(band)
    })?;
    shown.finish(&mut maker)?;
    maker.pixels_sha256 = hasher.finalize().into();
    maker.finish(Piece::Frame { rows })
}

/// Makes the EXR chunks of some rows of the files, and gives the rows to `take`.
fn make_rows(
    spec: &RenderSpec,
    rows: Range<u32>,
    inputs: &Inputs,
    running: &Running<'_>,
    maker: &mut PieceMaker,
    mut take: impl FnMut(&mut PieceMaker, &Band) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    let part = Part::of_rows(spec, rows.clone());
    if !spec.formats.contains(&FormatSpec::Exr) {
        return finished_rows(spec, &part, inputs, running, |band| take(maker, band));
    }
    let mut chunks = Vec::new();
    let mut put = |_, chunk| {
        chunks.push(compressed(chunk)?);
        Ok(())
    };
    let file = ExrFile::of_rows(spec);
    let feed = |exr: &mut ExrRows<'_>| {
        finished_rows(spec, &part, inputs, running, |band| {
            take(maker, band)?;
            exr.push(band)
        })?;
        exr.finish()
    };
    exr_file::chunks_of_rows(&file, rows.start as usize, &mut put, feed)?;
    chunks.into_iter().try_for_each(|chunk| maker.add_chunk(&chunk))
}

/// Returns what a file has of the rows of a chunk.
fn compressed(chunk: Chunk) -> Result<Vec<u8>, FinishError> {
    match chunk.compressed_block {
        CompressedBlock::ScanLine(block) => Ok(block.compressed_pixels_le),
        _ => Err(FinishError::Encode("a block that is not of whole lines".to_owned())),
    }
}

/// Makes what runs through all rows of a frame from the pixels of its bands.
fn assembly(
    spec: &RenderSpec,
    inputs: &Inputs,
    running: &Running<'_>,
) -> Result<Vec<u8>, FinishError> {
    let window = spec.data_window();
    let width = window.width() as usize;
    let has_alpha = pixels::alpha_channel(spec).is_some();
    let values = pixels::COLORS + usize::from(has_alpha);
    let row_bytes = 4 * values * width;
    let mut shown = ShownFiles::begin(spec, has_alpha.then_some(pixels::COLORS))?;
    let mut hasher = Sha256::new();
    let mut left = window.height() as usize;
    for (index, part) in inputs.parts().iter().enumerate() {
        let length = part.length as usize;
        let rows = length / row_bytes;
        if part.place as usize != index || length != rows * row_bytes || rows > left {
            let problem = format!("the pixels of band {} do not fit", part.place);
            return Err(FinishError::Piece(problem));
        }
        left -= rows;
        for first in (0..rows).step_by(ROWS_AT_ONCE) {
            running.check()?;
            let mut bytes = vec![0; ROWS_AT_ONCE.min(rows - first) * row_bytes];
            inputs.read(part, (first * row_bytes) as u64, &mut bytes)?;
            let band = Band::of_pixels(width, values, &bytes);
            pixels::hash(&mut hasher, &band);
            shown.push(&band)?;
        }
    }
    if left > 0 {
        return Err(FinishError::Piece(format!("bands without the last {left} rows")));
    }
    let mut maker = PieceMaker::default();
    shown.finish(&mut maker)?;
    maker.pixels_sha256 = hasher.finalize().into();
    maker.finish(Piece::Assembly)
}

/// The files of all display formats of a job, in memory.
struct ShownFiles(Vec<(ShownRows, MemoryFile)>);

impl ShownFiles {
    fn begin(spec: &RenderSpec, coverage: Option<usize>) -> Result<Self, FinishError> {
        let shown = spec.formats.iter().filter(|format| **format != FormatSpec::Exr);
        let begin = |format: &FormatSpec| {
            let file = MemoryFile::default();
            let out = OutFile::new(Box::new(file.clone()));
            Ok((ShownRows::begin(out, spec, *format, coverage)?, file))
        };
        Ok(Self(shown.map(begin).collect::<Result<_, FinishError>>()?))
    }

    fn push(&mut self, band: &Band) -> Result<(), FinishError> {
        self.0.iter_mut().try_for_each(|(rows, _)| rows.push(band)).map_err(too_large)
    }

    fn finish(self, maker: &mut PieceMaker) -> Result<(), FinishError> {
        for (rows, file) in self.0 {
            rows.finish().and_then(OutFile::close).map_err(too_large)?;
            maker.add_file(file.into_bytes())?;
        }
        Ok(())
    }
}

/// Files in memory take every byte up to the length of a result.
fn too_large(error: FinishError) -> FinishError {
    match error {
        FinishError::Write(_) => FinishError::TooLarge,
        other => other,
    }
}
