//! Pieces of a finished frame as bytes: what finishing units make, and files are put together from.
//!
//! Layout, little endian: `"TFIN"`, u8 format version, u8 kind (0 band, 1 frame, 2 assembly), two
//! zero bytes, u32 first row, u32 rows, u32 number of EXR chunks, u32 number of shown files, u32
//! bytes of pixels, 32 bytes SHA-256 of the frame's pixels (zero in a band). Then the lengths of
//! all chunks and of all files, u32 each; then the chunks, the files, and the pixels. A chunk is
//! what an EXR file has of some rows, compressed. A file is the whole of a PNG or JPEG.

use crate::FinishError;
use std::ops::Range;
use tessera_protocol::VersionError;
use tessera_protocol::limits::{FRAME_EDGE_MAX, RESULT_BYTES_MAX};
use tessera_protocol::node::Piece;

const MAGIC: [u8; 4] = *b"TFIN";
const VERSION: u8 = 1;
const HEADER_BYTES: usize = 60;
/// Most shown files of a frame, with room for formats to come.
const FILES_MAX: usize = 16;
/// Most bytes from a piece's beginning to the end of its lengths. A chunk has at least one row.
pub const PIECE_HEAD_MAX: usize = HEADER_BYTES + 4 * (FRAME_EDGE_MAX as usize + FILES_MAX);

/// Whether bytes are a piece of a finished frame, and not a film or a chunk.
pub fn is_piece(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns what bytes are a piece of, after a check of their whole structure: of all lengths, and
/// that nothing follows.
pub fn piece_of(bytes: &[u8]) -> Result<Piece, FinishError> {
    Ok(Sections::of(bytes)?.piece)
}

/// Returns where the pixels are that the assembly reads of a band of `length` bytes. Needs its
/// first [`PIECE_HEAD_MAX`] bytes, or all.
pub fn pixels_of(head: &[u8], length: usize) -> Result<Range<usize>, FinishError> {
    let sections = Sections::of_head(head, length)?;
    match sections.piece {
        Piece::Band { .. } => Ok(sections.pixels),
        other => Err(damaged(format!("{other:?} is not a band"))),
    }
}

fn damaged(problem: impl Into<String>) -> FinishError {
    FinishError::Piece(problem.into())
}

/// Where the parts of a piece are in its bytes.
#[derive(Debug)]
pub(crate) struct Sections {
    pub(crate) piece: Piece,
    /// SHA-256 of the frame's pixels; zero in a band.
    pub(crate) pixels_sha256: [u8; 32],
    pub(crate) chunks: Vec<Range<usize>>,
    pub(crate) files: Vec<Range<usize>>,
    pub(crate) pixels: Range<usize>,
}

impl Sections {
    /// Finds the sections. Allocates no more than the checked counts need.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, FinishError> {
        Self::of_head(bytes, bytes.len())
    }

    /// Finds the sections of a piece of `length` bytes, of which those up to its lengths are here.
    fn of_head(bytes: &[u8], length: usize) -> Result<Self, FinishError> {
        if !is_piece(bytes) || length > RESULT_BYTES_MAX {
            return Err(damaged("not a piece of a frame"));
        }
        let header =
            bytes.first_chunk::<HEADER_BYTES>().ok_or_else(|| damaged("it is cut short"))?;
        VersionError::check("piece", header[4].into(), (VERSION.into(), VERSION.into()))
            .map_err(|error| damaged(error.to_string()))?;
        let number = |place: usize| number_at(header, place) as usize;
        let [first, rows, chunks, files, pixels] = [8, 12, 16, 20, 24].map(number);
        let mut pixels_sha256 = [0; 32];
        pixels_sha256.copy_from_slice(&header[28..]);
        let piece = match (header[5], &header[6..8]) {
            (0, [0, 0]) => Piece::Band { first: first as u32, rows: rows as u32 },
            (1, [0, 0]) if first == 0 => Piece::Frame { rows: rows as u32 },
            (2, [0, 0]) if first == 0 && rows == 0 => Piece::Assembly,
            _ => return Err(damaged("its kind is unknown")),
        };
        check_counts(&piece, (chunks, files, pixels))?;
        let is_band = matches!(piece, Piece::Band { .. });
        if is_band && pixels_sha256 != [0; 32] {
            return Err(damaged("a band with a hash"));
        }

        let mut start = HEADER_BYTES + 4 * (chunks + files);
        let lengths = bytes.get(HEADER_BYTES..start).ok_or_else(|| damaged("it is cut short"))?;
        let mut sections = Vec::with_capacity(chunks + files);
        for index in 0..chunks + files {
            let of_section = number_at(lengths, 4 * index) as usize;
            let end = start.checked_add(of_section);
            let end = end.filter(|end| *end <= length && of_section > 0);
            let end = end.ok_or_else(|| damaged(format!("its section {index} is cut short")))?;
            sections.push(start..end);
            start = end;
        }
        if start.checked_add(pixels) != Some(length) {
            return Err(damaged("its length is not that of its sections"));
        }
        let files = sections.split_off(chunks);
        Ok(Self { piece, pixels_sha256, chunks: sections, files, pixels: start..length })
    }
}

/// Checks that a piece can have so many rows, chunks, files and bytes of pixels.
fn check_counts(
    piece: &Piece,
    (chunks, files, pixels): (usize, usize, usize),
) -> Result<(), FinishError> {
    let (rows, end) = match piece {
        Piece::Band { first, rows } => (*rows, first.checked_add(*rows)),
        Piece::Frame { rows } => (*rows, Some(*rows)),
        Piece::Assembly => (0, Some(0)),
    };
    let is_plausible = match piece {
        // Four values of a pixel at most, whole rows, and no file.
        Piece::Band { .. } => {
            rows > 0 && files == 0 && pixels > 0 && pixels.is_multiple_of(4 * rows as usize)
        }
        Piece::Frame { .. } => rows > 0 && pixels == 0,
        Piece::Assembly => pixels == 0,
    };
    let is_bounded = end.is_some_and(|end| end <= FRAME_EDGE_MAX)
        && chunks <= rows as usize
        && files <= FILES_MAX;
    match is_plausible && is_bounded {
        true => Ok(()),
        false => Err(damaged(format!(
            "{piece:?} with {chunks} chunks, {files} files and {pixels} bytes of pixels"
        ))),
    }
}

/// Reads a number of a slice that is long enough.
fn number_at(bytes: &[u8], place: usize) -> u32 {
    let mut number = [0; 4];
    number.copy_from_slice(&bytes[place..place + 4]);
    u32::from_le_bytes(number)
}

/// A piece that is being made.
#[derive(Default)]
pub(crate) struct PieceMaker {
    /// Lengths of the chunks, and their bytes.
    chunks: (Vec<u32>, Vec<u8>),
    files: Vec<Vec<u8>>,
    pub(crate) pixels: Vec<u8>,
    pub(crate) pixels_sha256: [u8; 32],
}

impl PieceMaker {
    pub(crate) fn add_chunk(&mut self, bytes: &[u8]) -> Result<(), FinishError> {
        self.chunks.0.push(bytes.len() as u32);
        self.chunks.1.extend_from_slice(bytes);
        self.check()
    }

    pub(crate) fn add_file(&mut self, bytes: Vec<u8>) -> Result<(), FinishError> {
        self.files.push(bytes);
        self.check()
    }

    /// Returns the length so far.
    fn length(&self) -> usize {
        let files: usize = self.files.iter().map(Vec::len).sum();
        let lengths = 4 * (self.chunks.0.len() + self.files.len());
        HEADER_BYTES + lengths + self.chunks.1.len() + files + self.pixels.len()
    }

    /// Checks that the piece fits into a result.
    pub(crate) fn check(&self) -> Result<(), FinishError> {
        if self.length() > RESULT_BYTES_MAX { Err(FinishError::TooLarge) } else { Ok(()) }
    }

    pub(crate) fn finish(self, piece: Piece) -> Result<Vec<u8>, FinishError> {
        self.check()?;
        let (kind, first, rows) = match piece {
            Piece::Band { first, rows } => (0, first, rows),
            Piece::Frame { rows } => (1, 0, rows),
            Piece::Assembly => (2, 0, 0),
        };
        let mut bytes = Vec::with_capacity(self.length());
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, kind, 0, 0]);
        let (chunks, files) = (self.chunks.0.len() as u32, self.files.len() as u32);
        for number in [first, rows, chunks, files, self.pixels.len() as u32] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&self.pixels_sha256);
        let of_files = self.files.iter().map(|file| file.len() as u32);
        for length in self.chunks.0.iter().copied().chain(of_files) {
            bytes.extend_from_slice(&length.to_le_bytes());
        }
        bytes.extend_from_slice(&self.chunks.1);
        self.files.iter().for_each(|file| bytes.extend_from_slice(file));
        bytes.extend_from_slice(&self.pixels);
        Ok(bytes)
    }
}

#[cfg(test)]
#[path = "tests/piece.rs"]
mod tests;
