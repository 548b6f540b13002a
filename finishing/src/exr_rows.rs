//! From rows to the compressed chunks of an OpenEXR file. Does not know where chunks go.

use crate::FinishError;
use crate::band::Band;
use exr::block::chunk::Chunk;
use exr::block::{BlockIndex, UncompressedBlock};
use exr::error::Error;
use exr::meta::attribute::SampleType;
use exr::meta::header::Header;
use exr::prelude::{Vec2, f16};
use rayon::prelude::*;

/// Rows that are being compressed.
pub(crate) struct ExrRows<'a> {
    headers: &'a [Header],
    /// Where chunks go, with their numbers.
    put: &'a mut dyn FnMut(usize, Chunk) -> Result<(), FinishError>,
    /// Type of each channel, and the band's channel that it shows.
    channels: Vec<(SampleType, Option<usize>)>,
    width: usize,
    /// Rows that are compressed together.
    block_rows: usize,
    /// Rows that do not fill a block yet: the values of each channel, row by row.
    pending: Vec<u8>,
    /// Number of the row after the pending ones.
    next_row: usize,
}

impl<'a> ExrRows<'a> {
    /// Creates the rows of a file with this header, from the row `first` on. A block begins there.
    /// `channels` has the type of each channel, and the band's channel that it shows; None for 1
    /// everywhere.
    pub(crate) fn new(
        headers: &'a [Header],
        channels: Vec<(SampleType, Option<usize>)>,
        first: usize,
        put: &'a mut dyn FnMut(usize, Chunk) -> Result<(), FinishError>,
    ) -> Self {
        let header = headers.first();
        Self {
            headers,
            put,
            channels,
            width: header.map_or(0, |header| header.layer_size.x()),
            block_rows: header.map_or(1, |header| header.compression.scan_lines_per_block()),
            pending: Vec::new(),
            next_row: first,
        }
    }

    fn row_bytes(&self) -> usize {
        let of_pixel = self.channels.iter().map(|(kept, _)| kept.bytes_per_sample());
        self.width * of_pixel.sum::<usize>()
    }

    /// Appends the rows of a band. Writes blocks when there is one for each thread, and keeps the
    /// rest.
    pub(crate) fn push(&mut self, band: &Band) -> Result<(), FinishError> {
        let batch = self.block_rows * rayon::current_num_threads().max(1) * self.row_bytes();
        for y in 0..band.height {
            let pending = &mut self.pending;
            for (kept, source) in &self.channels {
                match source {
                    Some(channel) => {
                        let line = band.line(*channel, y);
                        line.iter().for_each(|value| push_value(pending, *kept, *value));
                    }
                    None => (0..band.width).for_each(|_| push_value(pending, *kept, 1.0)),
                }
            }
            self.next_row += 1;
            if self.pending.len() >= batch {
                self.write_pending()?;
            }
        }
        Ok(())
    }

    /// Writes the last rows.
    pub(crate) fn finish(&mut self) -> Result<(), FinishError> {
        self.write_pending()
    }

    /// Writes the pending rows, which begin at a block. The last block may have fewer rows.
    fn write_pending(&mut self) -> Result<(), FinishError> {
        let row_bytes = self.row_bytes();
        let block_rows = self.block_rows;
        let first = (self.next_row - self.pending.len() / row_bytes) / block_rows;
        let (headers, width) = (self.headers, self.width);
        let chunks: Vec<Chunk> = self
            .pending
            .par_chunks(block_rows * row_bytes)
            .enumerate()
            .map(|(index, rows)| {
                let index = BlockIndex {
                    layer: 0,
                    pixel_position: Vec2(0, (first + index) * block_rows),
                    pixel_size: Vec2(width, rows.len() / row_bytes),
                    level: Vec2(0, 0),
                };
                UncompressedBlock { index, data: rows.to_vec() }.compress_to_chunk(headers)
            })
            .collect::<Result<_, Error>>()
            .map_err(failed)?;
        self.pending.clear();
        let mut chunks = chunks.into_iter().enumerate();
        chunks.try_for_each(|(index, chunk)| (self.put)(first + index, chunk))
    }
}

/// Says why chunks cannot be made or written.
pub(crate) fn failed(error: Error) -> FinishError {
    match error {
        Error::Io(error) => FinishError::Write(error),
        error => FinishError::Encode(error.to_string()),
    }
}

/// The nearest half, ties to even. Values beyond the largest half become the largest; NaN stays.
fn nearest_half(value: f32) -> f16 {
    let largest = f16::MAX.to_f32();
    f16::from_f32(value.clamp(-largest, largest))
}

fn push_value(bytes: &mut Vec<u8>, kept: SampleType, value: f32) {
    match kept {
        SampleType::F16 => bytes.extend(nearest_half(value).to_ne_bytes()),
        _ => bytes.extend(value.to_ne_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::nearest_half;

    #[test]
    fn halves_are_rounded_to_even_and_never_infinite() {
        let bits = |value: f32| nearest_half(value).to_bits();
        // One and the two halves behind it, and what lies between them.
        assert_eq!(
            [1.0, 1.0 + 1.0 / 2048.0, 1.0 + 3.0 / 2048.0].map(bits),
            [0x3c00, 0x3c00, 0x3c02]
        );
        let large = [65504.0, 65519.0, 65520.0, 1e9, f32::INFINITY];
        assert!(large.iter().all(|value| bits(*value) == 0x7bff));
        assert!(large.iter().all(|value| bits(-value) == 0xfbff));
        assert_eq!([0.0, -0.0].map(bits), [0, 0x8000]);
        assert!(nearest_half(f32::NAN).is_nan());
    }
}
