//! Decodes PNG, JPEG, WebP and KTX2 files to texels, within limits that are checked on the header.
//! Does not interpret the texels.

pub(crate) mod jpeg;
pub(crate) mod ktx2;
pub(crate) mod radiance;
pub(crate) mod webp;

use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use std::io::Cursor;
use tessera_layout::TexelFormat;

/// Content of a header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Whether a component has more than eight bits.
    pub(crate) has_16_bits: bool,
}

/// Bytes that a decoder may use besides the picture. Profiles and texts in a PNG are compressed
/// too.
const EXTRA_BYTES: u64 = 16 << 20;

/// Reads a header without decoding. The error says what is wrong and what to do.
pub(crate) fn header(bytes: &[u8], edge_max: u32) -> Result<Header, String> {
    let header = match format(bytes)? {
        Format::Jpeg => {
            let (width, height) = jpeg::size(bytes)?;
            Header { width, height, has_16_bits: false }
        }
        Format::Png => png_header(bytes)?,
        Format::WebP => {
            let (width, height) = webp::size(bytes)?;
            Header { width, height, has_16_bits: false }
        }
        Format::Ktx2 => {
            let (width, height) = ktx2::size(bytes)?;
            Header { width, height, has_16_bits: false }
        }
    };
    let Header { width, height, .. } = header;
    if width == 0 || height == 0 || width > edge_max || height > edge_max {
        return Err(format!(
            "{width}x{height} texels have an edge that is not in 1 to {edge_max}; resize it"
        ));
    }
    Ok(header)
}

/// Decodes into `target`, whose length must match the header and the format.
pub(crate) fn decode(
    bytes: &[u8],
    header: &Header,
    texel: TexelFormat,
    target: &mut [u8],
) -> Result<(), String> {
    let format = match format(bytes)? {
        // There are eight bits per component, because the header did not lead to another format.
        Format::Jpeg => return jpeg::decode(bytes, target),
        Format::Ktx2 => return ktx2::decode(bytes, target),
        Format::Png => ImageFormat::Png,
        Format::WebP => ImageFormat::WebP,
    };
    let taken = u64::from(header.width) * u64::from(header.height) * 8;
    let decoder =
        reader(bytes, format, taken).into_decoder().map_err(|error| cannot_decode(&error))?;
    let image = DynamicImage::from_decoder(decoder).map_err(|error| cannot_decode(&error))?;
    if (image.width(), image.height()) != (header.width, header.height) {
        return Err("its size is not what its header says; write it again".into());
    }
    match texel {
        TexelFormat::Rgba8Srgb | TexelFormat::Rgba8Linear => {
            target.copy_from_slice(&image.into_rgba8())
        }
        TexelFormat::Rgba16Linear => {
            for (out, value) in target.chunks_exact_mut(2).zip(image.into_rgba16().iter()) {
                out.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Ok(())
}

/// Format of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Png,
    Jpeg,
    WebP,
    Ktx2,
}

/// Recognises the format by the content, as glTF requires. A wrong mimeType or extension is a
/// common mistake.
fn format(bytes: &[u8]) -> Result<Format, String> {
    match image::guess_format(bytes) {
        Ok(ImageFormat::Png) => Ok(Format::Png),
        Ok(ImageFormat::Jpeg) => Ok(Format::Jpeg),
        Ok(ImageFormat::WebP) => Ok(Format::WebP),
        _ if bytes.starts_with(&ktx2::IDENTIFIER) => Ok(Format::Ktx2),
        _ => Err("it is not PNG, JPEG, WebP or KTX2; convert it".into()),
    }
}

fn png_header(bytes: &[u8]) -> Result<Header, String> {
    let decoder =
        reader(bytes, ImageFormat::Png, 0).into_decoder().map_err(|error| cannot_decode(&error))?;
    let (width, height) = decoder.dimensions();
    let has_16_bits = matches!(
        decoder.color_type(),
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16
    );
    Ok(Header { width, height, has_16_bits })
}

/// Returns a reader. `taken` bytes are for the picture; the caller has checked them against its own
/// limits.
fn reader(bytes: &[u8], format: ImageFormat, taken: u64) -> ImageReader<Cursor<&[u8]>> {
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(taken.saturating_mul(2).saturating_add(EXTRA_BYTES));
    reader.limits(limits);
    reader
}

fn cannot_decode(error: &image::ImageError) -> String {
    format!("it cannot be decoded ({error}); write it again")
}
