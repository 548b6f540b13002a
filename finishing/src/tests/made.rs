//! Made-up frames for tests: their films, and the units that finish them.

use crate::memory_file::MemoryFile;
use crate::*;
use std::io::Write;
use std::sync::Mutex;
use tessera_protocol::job::{FormatSpec, RenderSpec};
use tessera_protocol::node::{Finish, Piece};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{Fingerprint, FrameNumber, JobId, TileSums};

pub(crate) fn spec(width: u32, height: u32, tile: u32) -> RenderSpec {
    RenderSpec {
        width,
        height,
        tile,
        spp: 8,
        formats: vec![FormatSpec::Exr, FormatSpec::Png],
        ..RenderSpec::default()
    }
}

/// The films of a job's frames. In jobs with rounds, tiles have different numbers of samples.
pub(crate) struct Made<'a>(pub(crate) &'a RenderSpec);

/// Returns a made-up mean of a pixel, within the frame or beyond it, in the units of sums.
fn mean(channel: u32, x: i32, y: i32) -> i64 {
    let seed = u64::from(channel) << 40 ^ (x as u64 & 0xffff) << 20 ^ (y as u64 & 0xffff);
    let noise = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 42) as i64;
    i64::from((x + y / 2).div_euclid(40) + 9) * (1 << 20) + noise
}

impl Made<'_> {
    fn samples(&self, tile: u32) -> u32 {
        if self.0.has_rounds() { 2 * (tile % 4 + 1) } else { self.0.spp }
    }
}

impl Films for Made<'_> {
    fn sums(&self, tile: u32) -> Result<TileSums, FinishError> {
        let channels = self.0.channels();
        let window = self.0.tiles().window(tile).ok_or(FinishError::Shape { tile })?;
        let (width, height) = (window.width() as u16, window.height() as u16);
        let mut film = TileSums::empty(width, height, channels);
        film.samples = self.samples(tile);
        let coverage = self.0.coverage_channel().map(u32::from);
        let places = (0..u32::from(channels)).flat_map(|channel| {
            (window.top..window.bottom)
                .flat_map(move |y| (window.left..window.right).map(move |x| (channel, x, y)))
        });
        for (value, (channel, x, y)) in film.values.iter_mut().zip(places) {
            // Some pixels are covered by nothing, and some a little more than wholly.
            let covered = if (x + y) % 5 == 0 { 0 } else { mean(channel, x, y) * 2 };
            let of_pixel = if coverage == Some(channel) { covered } else { mean(channel, x, y) };
            *value = of_pixel * i64::from(film.samples) + i64::from(x & 3);
        }
        Ok(film)
    }
}

/// Returns a file with parts, as a node keeps it, with the number of its parts and its length.
pub(crate) fn file_of(parts: &[(u32, Vec<u8>)]) -> (std::fs::File, u32, u64) {
    let mut file = tempfile::tempfile().unwrap();
    let mut length = 0;
    for (place, bytes) in parts {
        file.write_all(&write_part_head(*place, bytes.len() as u32)).unwrap();
        file.write_all(bytes).unwrap();
        length += 8 + bytes.len() as u64;
    }
    (file, parts.len() as u32, length)
}

pub(crate) fn inputs_of(parts: &[(u32, Vec<u8>)]) -> Inputs {
    let (file, parts, bytes) = file_of(parts);
    Inputs::open(file, parts, bytes).unwrap()
}

/// Returns the films that a piece reads, those of each tile in `split` parts, in another order.
pub(crate) fn films_of(spec: &RenderSpec, finish: &Finish, split: u32) -> Vec<(u32, Vec<u8>)> {
    let (rows, grid) = (rows_read(spec, finish), spec.tiles());
    let mut parts = Vec::new();
    for tile in 0..grid.count() {
        let window = grid.window(tile).unwrap().from(&spec.rendered_window());
        if window.bottom <= rows.start as i32 || window.top >= rows.end as i32 {
            continue;
        }
        let mut left = Made(spec).sums(tile).unwrap();
        for _ in 1..split {
            let mut part = left.clone();
            part.samples /= 2;
            part.values.iter_mut().for_each(|value| *value = *value / 3 - 7);
            left.samples -= part.samples;
            left.values.iter_mut().zip(&part.values).for_each(|(left, part)| *left -= part);
            parts.insert(parts.len() / 2, (tile, part.to_bytes()));
        }
        parts.insert(parts.len() / 3, (tile, left.to_bytes()));
    }
    parts
}

pub(crate) fn frame(spec: &RenderSpec) -> Frame<'_> {
    Frame {
        job: JobId(uuid::Uuid::from_u128(5)),
        frame: FrameNumber(4),
        spec,
        fingerprint: Some(Fingerprint([0xab; 32])),
        samples: spec.spp,
        samples_mean: Some(5.5),
    }
}

/// Files in memory, of which no one is left if they cannot be finished.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Mutex<Vec<MemoryFile>>);

impl Outputs for Kept {
    fn begin(&self) -> Result<Box<dyn Output>, FinishError> {
        let file = MemoryFile::default();
        self.0.lock().unwrap().push(file.clone());
        Ok(Box::new(file))
    }
}

pub(crate) fn finish_of(spec: &RenderSpec, piece: Piece) -> Finish {
    Finish { piece, exposure_bits: spec.exposure.to_bits() }
}

pub(crate) fn made(spec: &RenderSpec, finish: &Finish, inputs: &Inputs) -> Vec<u8> {
    let bytes = make_piece(spec, finish, inputs, &Running::default()).unwrap();
    assert!(is_piece(&bytes) && piece_of(&bytes).unwrap() == finish.piece);
    bytes
}

/// Makes the pieces of a frame in bands of `rows` rows.
pub(crate) fn pieces_of(spec: &RenderSpec, rows: u32, split: u32) -> Vec<Vec<u8>> {
    let height = spec.data_window().height();
    let band = |first: u32| {
        let piece = Piece::Band { first, rows: rows.min(height - first) };
        let finish = finish_of(spec, piece);
        made(spec, &finish, &inputs_of(&films_of(spec, &finish, split)))
    };
    let mut pieces: Vec<Vec<u8>> = (0..height).step_by(rows as usize).map(band).collect();
    let pixels = |bytes: &Vec<u8>| bytes[pixels_of(bytes, bytes.len()).unwrap()].to_vec();
    let mut pixels: Vec<_> = (0..).zip(pieces.iter().map(pixels)).collect();
    pixels.reverse();
    let finish = finish_of(spec, Piece::Assembly);
    pieces.push(made(spec, &finish, &inputs_of(&pixels)));
    pieces
}

/// Makes the only piece of a frame.
pub(crate) fn piece_of_frame(spec: &RenderSpec) -> Vec<u8> {
    let finish = finish_of(spec, Piece::Frame { rows: spec.data_window().height() });
    made(spec, &finish, &inputs_of(&films_of(spec, &finish, 1)))
}

pub(crate) fn whole(spec: &RenderSpec) -> Vec<FrameFile> {
    finish(&frame(spec), &Made(spec), &Kept::default()).unwrap()
}

pub(crate) fn joined(spec: &RenderSpec, pieces: &[Vec<u8>]) -> Result<Vec<FrameFile>, FinishError> {
    join(&frame(spec), &mut pieces.iter().cloned().map(Ok), &Kept::default())
}
