//! Decoders of what finishes frames: pieces, which files are put together from, and the inputs of
//! units.

use crate::wire::told;
use std::io::{self, Cursor, Seek, SeekFrom, Write};
use tessera_finishing::{
    Films, FinishError, Frame, Inputs, Output, Outputs, Running, is_piece, join, make_piece,
    piece_of, pixels_of, write_part_head,
};
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::node::{Finish, Piece};
use tessera_protocol::{BlobHash, FrameNumber, JobId, TileSums};

/// A small frame of two bands.
fn spec() -> RenderSpec {
    RenderSpec {
        width: 4,
        height: 40,
        tile: 40,
        spp: 1,
        formats: vec![FormatSpec::Exr, FormatSpec::Png],
        ..RenderSpec::default()
    }
}

/// Files that nobody reads.
struct Nowhere(Cursor<Vec<u8>>);

struct Everywhere;

impl Outputs for Everywhere {
    fn begin(&self) -> Result<Box<dyn Output>, FinishError> {
        Ok(Box::new(Nowhere(Cursor::default())))
    }
}

impl Output for Nowhere {
    fn finish(self: Box<Self>) -> Result<(BlobHash, u64), FinishError> {
        let bytes = self.0.into_inner();
        Ok((BlobHash::of(&bytes), bytes.len() as u64))
    }
}

impl Write for Nowhere {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Nowhere {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.0.seek(position)
    }
}

/// Reads a piece, and puts files together from it.
pub(crate) fn piece(bytes: &[u8]) -> Result<(), String> {
    let piece = piece_of(bytes).map_err(|error| told(&error))?;
    assert!(is_piece(bytes));
    let pixels = pixels_of(bytes, bytes.len());
    assert_eq!(pixels.is_ok(), matches!(piece, Piece::Band { .. }));
    assert!(
        pixels.is_ok_and(|range| range.end <= bytes.len())
            || pixels_of(bytes, bytes.len()).is_err()
    );
    let spec = spec();
    let frame = Frame {
        job: JobId(uuid::Uuid::from_u128(5)),
        frame: FrameNumber(4),
        spec: &spec,
        fingerprint: None,
        samples: 1,
        samples_mean: None,
    };
    let mut pieces = std::iter::repeat_with(|| Ok(bytes.to_vec())).take(2);
    let several = join(&frame, &mut pieces, &Everywhere).map_err(|error| told(&error));
    let mut one = std::iter::once(Ok(bytes.to_vec()));
    let one = join(&frame, &mut one, &Everywhere).map_err(|error| told(&error));
    several.or(one).map(drop)
}

fn made(piece: Piece, inputs: &[u8]) -> Result<Vec<u8>, FinishError> {
    let inputs = opened(inputs)?;
    let finish = Finish { piece, exposure_bits: 0 };
    make_piece(&spec(), &finish, &inputs, &Running::default())
}

/// Opens inputs whose number of parts comes first.
fn opened(bytes: &[u8]) -> Result<Inputs, FinishError> {
    let (parts, bytes) = bytes.split_first_chunk::<4>().unwrap_or((&[0; 4], bytes));
    let mut file = tempfile::tempfile().expect("a file can be made");
    file.write_all(bytes).expect("a file can be written");
    Inputs::open(file, u32::from_le_bytes(*parts), bytes.len() as u64)
}

/// Reads inputs, and makes pieces of them.
pub(crate) fn inputs(bytes: &[u8]) -> Result<(), String> {
    let inputs = opened(bytes).map_err(|error| told(&error))?;
    let _ = (inputs.sums(1), inputs.sums(u32::MAX));
    let pieces = [Piece::Band { first: 32, rows: 8 }, Piece::Frame { rows: 40 }, Piece::Assembly];
    let made = pieces.map(|piece| made(piece, bytes).map_err(|error| told(&error)));
    assert!(made.iter().flatten().all(|piece| piece_of(piece).is_ok()));
    made.into_iter().collect::<Result<Vec<_>, _>>().map(drop)
}

/// Returns inputs with the number of their parts before them.
pub(crate) fn parts(parts: &[(u32, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = (parts.len() as u32).to_le_bytes().to_vec();
    for (place, part) in parts {
        bytes.extend(write_part_head(*place, part.len() as u32));
        bytes.extend(part);
    }
    bytes
}

fn film(samples: u32) -> Vec<u8> {
    let film = TileSums { samples, ..TileSums::empty(4, 40, spec().channels()) };
    film.to_bytes()
}

/// Films of a tile in one part and in two, and pixels of two bands.
pub(crate) fn all_inputs() -> Vec<Vec<u8>> {
    let pixels = |rows: usize| vec![0; 48 * rows];
    vec![
        parts(&[(0, film(1))]),
        parts(&[(0, film(0)), (0, film(1))]),
        parts(&[(1, pixels(8)), (0, pixels(32))]),
    ]
}

pub(crate) fn pieces() -> Vec<Vec<u8>> {
    let inputs = all_inputs();
    let of = |piece, inputs| made(piece, inputs).expect("a piece can be made");
    vec![
        of(Piece::Band { first: 0, rows: 32 }, &inputs[0]),
        of(Piece::Band { first: 32, rows: 8 }, &inputs[1]),
        of(Piece::Frame { rows: 40 }, &inputs[0]),
        of(Piece::Assembly, &inputs[2]),
    ]
}
