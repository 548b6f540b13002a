//! Puts the files of a frame together from its pieces. Copies bytes, and computes on no pixel.

use crate::exr_file::{self, ExrFile, PutChunk};
use crate::out_file::OutFile;
use crate::part::BAND_ROWS;
use crate::piece::Sections;
use crate::whole::files;
use crate::{FinishError, Frame, Outputs, pixels};
use exr::block::chunk::{Chunk, CompressedBlock, CompressedScanLineBlock};
use exr::meta::header::Header;
use std::io::Write;
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::node::Piece;
use tessera_protocol::status::FrameFile;

/// Bytes of the pieces of a frame, in the order of their units. Each is read when the one before it
/// is written.
type Pieces<'a, B> = dyn Iterator<Item = Result<B, FinishError>> + 'a;

/// Puts the files of a frame together from its pieces, in the order of their units. Computes on no
/// pixel. After an error no part of the files is left.
pub fn join<B: AsRef<[u8]>>(
    frame: &Frame<'_>,
    pieces: &mut Pieces<'_, B>,
    outputs: &dyn Outputs,
) -> Result<Vec<FrameFile>, FinishError> {
    let spec = frame.spec;
    let (exr, last) = match spec.formats.contains(&FormatSpec::Exr) {
        false => (None, last_piece(spec, pieces, &mut |_, _, _| Ok(()))?),
        true => {
            let mut out = OutFile::new(outputs.begin()?);
            let mut last = None;
            exr_file::write_chunks(&mut out, &ExrFile::of_frame(frame), |headers, put| {
                let layout = Layout::of(spec, headers);
                let mut write = |first, bytes: &[u8], sections: &Sections| {
                    layout.put_chunks(first, (bytes, sections), put)
                };
                last = Some(last_piece(spec, pieces, &mut write)?);
                Ok(())
            })?;
            (Some(out), last.ok_or_else(|| damaged("the last one is missing"))?)
        }
    };
    let (bytes, sections) = last;
    let mut shown = Vec::new();
    for section in &sections.files {
        let mut out = OutFile::new(outputs.begin()?);
        out.write_all(&bytes.as_ref()[section.clone()]).map_err(FinishError::Write)?;
        shown.push(out);
    }
    files(&spec.formats, exr, shown, sections.pixels_sha256)
}

fn damaged(problem: impl Into<String>) -> FinishError {
    FinishError::Piece(problem.into())
}

/// What is done with a piece that has rows: its first row, its bytes, and where they are what.
type Take<'a> = dyn FnMut(u32, &[u8], &Sections) -> Result<(), FinishError> + 'a;

/// Gives all pieces that have rows to `take`. Returns the last piece, which has what runs through
/// all rows of the frame. Checks that each row is there once.
fn last_piece<B: AsRef<[u8]>>(
    spec: &RenderSpec,
    pieces: &mut Pieces<'_, B>,
    take: &mut Take<'_>,
) -> Result<(B, Sections), FinishError> {
    let height = spec.data_window().height();
    let mut next = 0;
    let last = loop {
        let bytes = pieces.next().ok_or_else(|| damaged("a piece is missing"))??;
        let sections = Sections::of(bytes.as_ref())?;
        check_sections(spec, &sections)?;
        match sections.piece {
            Piece::Band { first, rows } if first == next && rows <= height - next => {
                if rows < height - next && !rows.is_multiple_of(BAND_ROWS) {
                    return Err(damaged(format!("a band of {rows} rows before others")));
                }
                take(next, bytes.as_ref(), &sections)?;
                next += rows;
            }
            Piece::Frame { rows } if next == 0 && rows == height => {
                take(0, bytes.as_ref(), &sections)?;
                break (bytes, sections);
            }
            Piece::Assembly if next == height => break (bytes, sections),
            other => return Err(damaged(format!("{other:?} after {next} of {height} rows"))),
        }
    };
    match pieces.next() {
        None => Ok(last),
        Some(_) => Err(damaged("there is a piece after the last one")),
    }
}

/// Checks that a piece has the sections that the job asks for.
fn check_sections(spec: &RenderSpec, sections: &Sections) -> Result<(), FinishError> {
    let has_exr = spec.formats.contains(&FormatSpec::Exr);
    let shown = spec.formats.iter().filter(|format| **format != FormatSpec::Exr).count();
    let values = pixels::COLORS + usize::from(pixels::alpha_channel(spec).is_some());
    let row_bytes = 4 * values * spec.data_window().width() as usize;
    let lines = exr_file::lines_of_chunk(spec.exr_compression) as u32;
    let (rows, files, pixels) = match sections.piece {
        Piece::Band { rows, .. } => (rows, 0, rows as usize * row_bytes),
        Piece::Frame { rows } => (rows, shown, 0),
        Piece::Assembly => (0, shown, 0),
    };
    let chunks = if has_exr { rows.div_ceil(lines) } else { 0 };
    let expected = (chunks as usize, files, pixels);
    let found = (sections.chunks.len(), sections.files.len(), sections.pixels.len());
    match found == expected {
        true => Ok(()),
        false => Err(damaged(format!(
            "{found:?} chunks, files and bytes of pixels where {expected:?} are due"
        ))),
    }
}

/// Where chunks are in an EXR file.
struct Layout {
    /// Rows of a chunk.
    lines: usize,
    /// Bytes of a row without compression.
    row_bytes: usize,
    /// Place of the file's first row in the frame.
    top: i32,
}

impl Layout {
    fn of(spec: &RenderSpec, headers: &[Header]) -> Self {
        let data = spec.data_window();
        let of_pixel = headers.first().map_or(0, |header| header.channels.bytes_per_pixel);
        Self {
            lines: exr_file::lines_of_chunk(spec.exr_compression),
            row_bytes: of_pixel * data.width() as usize,
            top: data.top,
        }
    }

    /// Writes the chunks of a piece whose first row is `first`.
    fn put_chunks(
        &self,
        first: u32,
        (bytes, sections): (&[u8], &Sections),
        put: PutChunk<'_>,
    ) -> Result<(), FinishError> {
        for (place, section) in sections.chunks.iter().enumerate() {
            let row = first as usize + place * self.lines;
            // What does not become shorter is not compressed.
            if section.len() > self.lines * self.row_bytes {
                return Err(damaged(format!("the chunk at row {row} is too long")));
            }
            let block = CompressedScanLineBlock {
                y_coordinate: self.top + row as i32,
                compressed_pixels_le: bytes[section.clone()].to_vec(),
            };
            let compressed_block = CompressedBlock::ScanLine(block);
            put(row / self.lines, Chunk { layer_index: 0, compressed_block })?;
        }
        Ok(())
    }
}
