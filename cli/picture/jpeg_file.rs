//! Reads JPEG files: with or without colour, taken as sRGB and decoded to linear.

use super::{Encoding, Picture, check_size};
use crate::srgb::linear_from_srgb;
use std::io::Read;
use tessera_protocol::limits::FRAME_PIXELS_MAX;
use zune_jpeg::JpegDecoder;
use zune_jpeg::errors::DecodeErrors;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

/// Decodes a file within the limits on size, which are checked on its header first. The error says
/// what is wrong and what to do.
pub(super) fn decode(file: impl Read) -> Result<Picture, String> {
    let broken = |error: DecodeErrors| format!("it cannot be decoded ({error:?}); write it again");
    let mut bytes = Vec::new();
    // A file with as many bytes as the largest picture has values is none that somebody wrote.
    let read = file.take(3 * FRAME_PIXELS_MAX).read_to_end(&mut bytes);
    read.map_err(|error| format!("it cannot be read ({error})"))?;
    let options = DecoderOptions::default().jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(&bytes[..]), options);
    decoder.decode_headers().map_err(broken)?;
    let (width, height) = decoder.dimensions().ok_or("its header has no size; write it again")?;
    let (width, height) = check_size(width as u64, height as u64)?;
    let values = decoder.decode().map_err(broken)?;
    let count = width as usize * height as usize;
    if values.len() != 3 * count {
        return Err("its size is not what its header says; write it again".into());
    }
    let linear: Vec<f32> =
        (0..=255).map(|value| linear_from_srgb(f64::from(value) / 255.0) as f32).collect();
    let color = |p: &[u8]| [p[0], p[1], p[2]].map(|value| linear[usize::from(value)]);
    let pixels = values.chunks_exact(3).map(color).collect();
    Ok(Picture { width, height, pixels, alpha: None, encoding: Encoding::Display })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_another_encoder_is_read() {
        let bytes = include_bytes!("../../scenes/tests/images/ramp-420.jpg");
        let picture = decode(&bytes[..]).unwrap();
        assert!(picture.alpha.is_none() && picture.encoding == Encoding::Display);
        // A pixel at (x, y) is (7 x, 8 y, 128).
        let at = |x: u32, y: u32| picture.pixels[(y * picture.width + x) as usize];
        let value = |encoded: u32| linear_from_srgb(f64::from(encoded) / 255.0) as f32;
        for (x, y) in [(1, 1), (9, 5), (3, 12)] {
            for (found, wanted) in at(x, y).into_iter().zip([7 * x, 8 * y, 128]) {
                assert!((found - value(wanted)).abs() < 0.02, "{x} {y}: {:?}", at(x, y));
            }
        }
        assert!(decode(&bytes[..200]).is_err());
        assert!(decode(&b"\xff\xd8\xff\xe0"[..]).is_err());
    }
}
