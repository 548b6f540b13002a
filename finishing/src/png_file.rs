//! PNG files: sRGB with 8 or 16 bits per channel, after exposure and tone map. There is no dither,
//! so the bytes depend only on the pixels.

use crate::FinishError;
use crate::alpha::{Alpha, straight};
use crate::band::Band;
use crate::out_file::OutFile;
use crate::tone::Display;
use png::{BitDepth, ColorType, EncodingError, SrgbRenderingIntent, StreamWriter};
use rayon::prelude::*;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

/// Size of the buffer for compressed bytes. Each full buffer becomes one chunk of the file.
const CHUNK_BYTES: usize = 1 << 16;

/// The file, shared with an encoder that must own what it writes to.
struct Shared(Arc<Mutex<OutFile>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).flush()
    }
}

/// A file whose rows are being written.
pub(crate) struct PngRows {
    out: Arc<Mutex<OutFile>>,
    writer: StreamWriter<'static, Shared>,
    display: Display,
    depth: BitDepth,
    /// 1 (grey) or 3 (RGB).
    colors: usize,
    alpha: Option<Alpha>,
}

impl PngRows {
    /// Begins a file for bands with one colour channel (grey) or three (RGB), with or without
    /// alpha. Colours are stored straight. Viewers can show `comment`.
    pub(crate) fn begin(
        out: OutFile,
        (width, height): (u32, u32),
        (colors, alpha): (usize, Option<Alpha>),
        display: Display,
        depth: BitDepth,
        comment: Option<String>,
    ) -> Result<Self, FinishError> {
        let out = Arc::new(Mutex::new(out));
        let mut encoder = png::Encoder::new(Shared(out.clone()), width, height);
        encoder.set_color(match (colors, alpha) {
            (1, _) => ColorType::Grayscale,
            (_, Some(_)) => ColorType::Rgba,
            (_, None) => ColorType::Rgb,
        });
        encoder.set_depth(depth);
        encoder.set_source_srgb(SrgbRenderingIntent::RelativeColorimetric);
        if let Some(comment) = comment {
            encoder.add_text_chunk("Comment".to_owned(), comment).map_err(failed)?;
        }
        let writer = encoder
            .write_header()
            .and_then(|writer| writer.into_stream_writer_with_size(CHUNK_BYTES))
            .map_err(failed)?;
        let alpha = alpha.filter(|_| colors != 1);
        Ok(Self { out, writer, display, depth, colors, alpha })
    }

    /// Appends the rows of a band.
    pub(crate) fn push(&mut self, band: &Band) -> Result<(), FinishError> {
        let values = self.colors + usize::from(self.alpha.is_some());
        let bytes_per_pixel = values * if self.depth == BitDepth::Sixteen { 2 } else { 1 };
        let mut rows = vec![0u8; band.width * band.height * bytes_per_pixel];
        let (display, depth, colors, of_alpha) =
            (self.display, self.depth, self.colors, self.alpha);
        rows.par_chunks_mut(band.width * bytes_per_pixel).enumerate().for_each(|(y, row)| {
            let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel.min(colors - 1), y));
            let line = of_alpha.map(|alpha| band.line(alpha.channel, y));
            let is_premultiplied = of_alpha.is_some_and(|alpha| alpha.is_premultiplied);
            for (x, pixel) in row.chunks_exact_mut(bytes_per_pixel).enumerate() {
                let alpha = line.map_or(1.0, |line| line[x].clamp(0.0, 1.0));
                let mut color = [r[x], g[x], b[x]];
                if is_premultiplied {
                    color = straight(color, alpha);
                }
                let [r, g, b] = display.encode(color);
                quantize([r, g, b, f64::from(alpha)], depth, pixel);
            }
        });
        self.writer.write_all(&rows).map_err(FinishError::Write)
    }

    /// Ends the file and returns it. `OutFile` reports an error in its last bytes.
    pub(crate) fn finish(self) -> Result<OutFile, FinishError> {
        self.writer.finish().map_err(failed)?;
        let out = Arc::into_inner(self.out).expect("the encoder has ended, and its share with it");
        Ok(out.into_inner().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Rounds to the nearest value, halves up. A PNG has big-endian 16-bit values.
fn quantize(color: [f64; 4], depth: BitDepth, pixel: &mut [u8]) {
    if depth == BitDepth::Sixteen {
        for (value, bytes) in color.iter().zip(pixel.chunks_exact_mut(2)) {
            bytes.copy_from_slice(&((value * 65535.0 + 0.5) as u16).to_be_bytes());
        }
    } else {
        for (value, byte) in color.iter().zip(pixel) {
            *byte = (value * 255.0 + 0.5) as u8;
        }
    }
}

fn failed(error: EncodingError) -> FinishError {
    match error {
        EncodingError::IoError(error) => FinishError::Write(error),
        other => FinishError::Encode(other.to_string()),
    }
}
