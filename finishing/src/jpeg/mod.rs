//! JPEG files: baseline, 8-bit sRGB after exposure and tone map, without subsampling of colours.
//! They are written row by row, and every step is in exact integers or in f64, so the bytes depend
//! only on the pixels.

mod coder;
mod tables;
mod transform;

use crate::FinishError;
use crate::band::Band;
use crate::out_file::OutFile;
use crate::tone::Display;
use coder::{Bits, Codes};
use rayon::prelude::*;
use std::io::Write;
use transform::{EDGE, Quantizer};

/// Channels of a picture: luma and two of chroma.
const CHANNELS: usize = 3;

/// A file whose rows are being written.
pub(crate) struct JpegRows {
    out: OutFile,
    display: Display,
    width: usize,
    quantizers: [Quantizer; 2],
    codes: [Codes; 2],
    bits: Bits,
    /// Last value of each channel's mean. The file has differences of them.
    means: [i32; CHANNELS],
    /// Rows that do not fill a row of blocks yet, and luma and chroma of their pixels.
    pending: Vec<[f64; CHANNELS]>,
}

impl JpegRows {
    /// Begins a file for bands with at least 3 channels. `quality` is 1 to 100. Viewers can show
    /// `comment`.
    pub(crate) fn begin(
        mut out: OutFile,
        (width, height): (u32, u32),
        display: Display,
        quality: u8,
        comment: Option<&str>,
    ) -> Result<Self, FinishError> {
        let quantizers = [&tables::LUMA, &tables::CHROMA].map(|base| Quantizer::new(base, quality));
        let size = [width, height].map(|edge| u16::try_from(edge).ok());
        let [Some(width), Some(height)] = size else {
            let problem = format!("{width}x{height} is too large for a JPEG file");
            return Err(FinishError::Encode(problem));
        };
        let head = tables::head(
            (width, height),
            &quantizers.each_ref().map(Quantizer::in_zigzag),
            comment,
        );
        out.write_all(&head).map_err(FinishError::Write)?;
        Ok(Self {
            out,
            display,
            width: width.into(),
            quantizers,
            codes: [Codes::luma(), Codes::chroma()],
            bits: Bits::default(),
            means: [0; CHANNELS],
            pending: Vec::new(),
        })
    }

    /// Appends the rows of a band.
    pub(crate) fn push(&mut self, band: &Band) -> Result<(), FinishError> {
        let display = self.display;
        for y in 0..band.height {
            let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel, y));
            let pixels = (0..band.width).into_par_iter();
            let row = pixels.map(|x| luma_and_chroma(display.encode([r[x], g[x], b[x]])));
            self.pending.par_extend(row);
            if self.pending.len() == EDGE * self.width {
                self.write_blocks()?;
            }
        }
        Ok(())
    }

    /// Ends the file and returns it.
    pub(crate) fn finish(mut self) -> Result<OutFile, FinishError> {
        if !self.pending.is_empty() {
            // The rows below the picture repeat its last one.
            let last = self.pending[self.pending.len() - self.width..].to_vec();
            while self.pending.len() < EDGE * self.width {
                self.pending.extend_from_slice(&last);
            }
            self.write_blocks()?;
        }
        self.bits.end();
        self.out.write_all(self.bits.bytes()).map_err(FinishError::Write)?;
        self.out.write_all(&tables::END).map_err(FinishError::Write)?;
        Ok(self.out)
    }

    fn write_blocks(&mut self) -> Result<(), FinishError> {
        let (width, pending, quantizers) = (self.width, &self.pending, &self.quantizers);
        let block = |place: usize, channel: usize| {
            // The columns right of the picture repeat its last one.
            let value = |x: usize, y: usize| {
                pending[y * width + (place * EDGE + x).min(width - 1)][channel]
            };
            quantizers[channel.min(1)].coefficients(value)
        };
        let blocks: Vec<[[i32; EDGE * EDGE]; CHANNELS]> = (0..width.div_ceil(EDGE))
            .into_par_iter()
            .map(|place| [0, 1, 2].map(|channel| block(place, channel)))
            .collect();
        for (channel, block) in blocks.iter().flat_map(|blocks| blocks.iter().enumerate()) {
            self.codes[channel.min(1)].put(&mut self.bits, block, &mut self.means[channel]);
        }
        self.pending.clear();
        self.out.write_all(self.bits.bytes()).map_err(FinishError::Write)?;
        self.bits.clear();
        Ok(())
    }
}

/// The luma and chroma of JFIF, about 0, from sRGB values in [0, 1].
fn luma_and_chroma([r, g, b]: [f64; 3]) -> [f64; CHANNELS] {
    let [r, g, b] = [r, g, b].map(|v| v * 255.0);
    [
        0.299 * r + 0.587 * g + 0.114 * b - 128.0,
        0.5 * b - 0.168_735_892 * r - 0.331_264_108 * g,
        0.5 * r - 0.418_687_589 * g - 0.081_312_411 * b,
    ]
}
