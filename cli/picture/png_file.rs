//! Reads PNG files: 1 to 16 bits, with or without colour, taken as sRGB and decoded to linear.

use super::{Encoding, Picture, check_size, unless_opaque};
use crate::srgb::linear_from_srgb;
use image::codecs::png::PngDecoder;
use image::{DynamicImage, ImageDecoder, ImageError, Limits};
use std::io::{BufRead, Seek};
use std::sync::OnceLock;
use tessera_protocol::limits::{FRAME_EDGE_MAX, FRAME_PIXELS_MAX};

/// Linear values of all 16-bit sRGB values. An 8-bit value v is the 16-bit value 257 v, which
/// stands for the same.
static LINEAR: OnceLock<Vec<f32>> = OnceLock::new();

fn linear() -> &'static [f32] {
    LINEAR.get_or_init(|| {
        (0..=65_535).map(|v| linear_from_srgb(f64::from(v) / 65_535.0) as f32).collect()
    })
}

/// Decodes a file within the limits on size, which are checked on its header first. The error says
/// what is wrong and what to do.
pub(super) fn decode(file: impl BufRead + Seek) -> Result<Picture, String> {
    let broken = |error: ImageError| format!("it cannot be decoded ({error}); write it again");
    let mut limits = Limits::default();
    (limits.max_image_width, limits.max_image_height) =
        (Some(FRAME_EDGE_MAX), Some(FRAME_EDGE_MAX));
    limits.max_alloc = Some(8 * FRAME_PIXELS_MAX);
    let decoder = PngDecoder::with_limits(file, limits).map_err(broken)?;
    let (width, height) = decoder.dimensions();
    let (width, height) = check_size(width.into(), height.into())?;
    let has_alpha = decoder.color_type().has_alpha();
    let pixels = DynamicImage::from_decoder(decoder).map_err(broken)?.into_rgba16().into_raw();
    let linear = linear();
    let colors = pixels
        .chunks_exact(4)
        .map(|p| [p[0], p[1], p[2]].map(|value| linear[usize::from(value)]))
        .collect();
    let opacity = |p: &[u16]| f32::from(p[3]) / 65_535.0;
    let alpha =
        has_alpha.then(|| pixels.chunks_exact(4).map(opacity).collect()).and_then(unless_opaque);
    Ok(Picture { width, height, pixels: colors, alpha, encoding: Encoding::Display })
}

#[cfg(test)]
mod tests {
    use super::*;
    use image::{ExtendedColorType, ImageEncoder, codecs::png::PngEncoder};
    use std::io::Cursor;

    fn file(bytes: &[u8], width: u32, height: u32, color: ExtendedColorType) -> Cursor<Vec<u8>> {
        let mut out = Vec::new();
        PngEncoder::new(&mut out).write_image(bytes, width, height, color).unwrap();
        Cursor::new(out)
    }

    #[test]
    fn eight_and_sixteen_bits_are_the_same_light() {
        let eight: Vec<u8> = (0..=255).flat_map(|v| [v, 255 - v, 0]).collect();
        let sixteen: Vec<u8> = eight.iter().flat_map(|v| [*v, *v]).collect();
        let a = decode(file(&eight, 256, 1, ExtendedColorType::Rgb8)).unwrap();
        let b = decode(file(&sixteen, 256, 1, ExtendedColorType::Rgb16)).unwrap();
        assert_eq!(a, b);
        assert_eq!((a.pixels[0], a.pixels[255]), ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0]));
        assert!((a.pixels[128][0] - 0.215_860_5).abs() < 1e-7);
    }

    #[test]
    fn grey_and_opacity_are_read() {
        let grey = decode(file(&[0, 255], 2, 1, ExtendedColorType::L8)).unwrap();
        assert_eq!((grey.pixels, grey.alpha), (vec![[0.0; 3], [1.0; 3]], None));
        let clear = decode(file(&[255, 255, 255, 51], 1, 1, ExtendedColorType::Rgba8)).unwrap();
        assert_eq!(clear.alpha, Some(vec![0.2]));
    }

    #[test]
    fn too_large_a_file_is_refused_on_its_header() {
        let mut bytes = Vec::new();
        let mut writer = png::Encoder::new(&mut bytes, 32_768, 32_768).write_header().unwrap();
        writer.write_chunk(png::chunk::IDAT, &[0; 8]).unwrap();
        drop(writer);
        let error = decode(Cursor::new(bytes)).unwrap_err();
        assert!(error.contains("32768x32768"), "{error}");
    }
}
