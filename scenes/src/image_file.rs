//! PNG and JPEG files into texels, within limits that are checked on the header. Owns no meaning of the texels.

use image::{ColorType, DynamicImage, ImageDecoder, ImageFormat, ImageReader};
use std::io::Cursor;
use tessera_layout::TexelFormat;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// More than eight bits a component.
    pub(crate) has_16_bits: bool,
}

/// Reads a header without decoding. The error says what is wrong and what to do.
pub(crate) fn header(bytes: &[u8], edge_max: u32) -> Result<Header, String> {
    let decoder = reader(bytes)?.into_decoder().map_err(|error| cannot_decode(&error))?;
    let (width, height) = decoder.dimensions();
    if width == 0 || height == 0 || width > edge_max || height > edge_max {
        return Err(format!(
            "{width}x{height} texels have an edge that is not in 1 to {edge_max}; resize it"
        ));
    }
    let has_16_bits = matches!(
        decoder.color_type(),
        ColorType::L16 | ColorType::La16 | ColorType::Rgb16 | ColorType::Rgba16
    );
    Ok(Header { width, height, has_16_bits })
}

/// Decodes into `target`, which has exactly the bytes that the header and the format ask for.
pub(crate) fn decode(
    bytes: &[u8],
    header: &Header,
    format: TexelFormat,
    target: &mut [u8],
) -> Result<(), String> {
    let decoder = reader(bytes)?.into_decoder().map_err(|error| cannot_decode(&error))?;
    let image = DynamicImage::from_decoder(decoder).map_err(|error| cannot_decode(&error))?;
    if (image.width(), image.height()) != (header.width, header.height) {
        return Err("its size is not what its header says; write it again".into());
    }
    match format {
        TexelFormat::Rgba8Srgb | TexelFormat::Rgba8Linear => target.copy_from_slice(&image.into_rgba8()),
        TexelFormat::Rgba16Linear => {
            for (out, value) in target.chunks_exact_mut(2).zip(image.into_rgba16().iter()) {
                out.copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Ok(())
}

fn reader(bytes: &[u8]) -> Result<ImageReader<Cursor<&[u8]>>, String> {
    // The content decides, as glTF wants; a wrong mimeType or extension is a common mistake.
    let format = match image::guess_format(bytes) {
        Ok(format @ (ImageFormat::Png | ImageFormat::Jpeg)) => format,
        _ => return Err("it is neither PNG nor JPEG; convert it".into()),
    };
    let mut reader = ImageReader::with_format(Cursor::new(bytes), format);
    // The caller has its own limits on edges and on the sum of all textures; eight bytes a texel of the largest.
    let mut limits = image::Limits::default();
    limits.max_alloc = Some(4 << 30);
    reader.limits(limits);
    Ok(reader)
}

fn cannot_decode(error: &image::ImageError) -> String {
    format!("it cannot be decoded ({error}); write it again")
}
