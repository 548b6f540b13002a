//! PNG files: sRGB with 8 or 16 bits per channel, after exposure and tone map. There is no dither,
//! so the bytes depend only on the pixels.

use super::band::Band;
use super::error::ResolveError;
use super::out_file::OutFile;
use super::tone::Display;
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
pub(super) struct PngRows {
    out: Arc<Mutex<OutFile>>,
    writer: StreamWriter<'static, Shared>,
    display: Display,
    depth: BitDepth,
    channels: usize,
}

impl PngRows {
    /// Begins a file for bands with 1 channel (grey), 3 (RGB) or 4 (RGB and linear alpha). Other
    /// channels are left out. Viewers can show `comment`.
    pub(super) fn begin(
        out: OutFile,
        (width, height, channels): (u32, u32, usize),
        display: Display,
        depth: BitDepth,
        comment: Option<String>,
    ) -> Result<Self, ResolveError> {
        let out = Arc::new(Mutex::new(out));
        let mut encoder = png::Encoder::new(Shared(out.clone()), width, height);
        encoder.set_color(match channels {
            1 => ColorType::Grayscale,
            4 => ColorType::Rgba,
            _ => ColorType::Rgb,
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
        let channels = if matches!(channels, 1 | 4) { channels } else { 3 };
        Ok(Self { out, writer, display, depth, channels })
    }

    /// Appends the rows of a band.
    pub(super) fn push(&mut self, band: &Band) -> Result<(), ResolveError> {
        let bytes_per_pixel = self.channels * if self.depth == BitDepth::Sixteen { 2 } else { 1 };
        let mut rows = vec![0u8; band.width * band.height * bytes_per_pixel];
        let (display, depth, channels) = (self.display, self.depth, self.channels);
        rows.par_chunks_mut(band.width * bytes_per_pixel).enumerate().for_each(|(y, row)| {
            let [r, g, b] = [0, 1, 2].map(|channel| band.line(channel.min(channels - 1), y));
            let alpha = (channels == 4).then(|| band.line(3, y));
            for (x, pixel) in row.chunks_exact_mut(bytes_per_pixel).enumerate() {
                let [r, g, b] = display.encode([r[x], g[x], b[x]]);
                let alpha = alpha.map_or(1.0, |alpha| f64::from(alpha[x]).clamp(0.0, 1.0));
                quantize([r, g, b, alpha], depth, pixel);
            }
        });
        self.writer.write_all(&rows).map_err(ResolveError::Write)
    }

    /// Ends the file and returns it. `OutFile` reports an error in its last bytes.
    pub(super) fn finish(self) -> Result<OutFile, ResolveError> {
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

fn failed(error: EncodingError) -> ResolveError {
    match error {
        EncodingError::IoError(error) => ResolveError::Write(error),
        other => ResolveError::Encode(other.to_string()),
    }
}
