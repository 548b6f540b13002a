//! Reads OpenEXR files: the default layer's colours as 32-bit floats. Other layers, depth and
//! metadata are skipped.

use super::{Encoding, Picture, check_size, unless_opaque};
use exr::error::Error;
use exr::prelude::{MetaData, ReadChannels, ReadLayers};
use std::io::{BufRead, Seek};

/// Decodes a file within the limits on size, which are checked on its headers first. The error says
/// what is wrong and what to do.
pub(super) fn decode(mut file: impl BufRead + Seek) -> Result<Picture, String> {
    let broken = |error: Error| format!("it cannot be decoded ({error}); write it again");
    let meta = MetaData::read_from_buffered(&mut file, false).map_err(broken)?;
    for header in &meta.headers {
        check_size(header.layer_size.0 as u64, header.layer_size.1 as u64)?;
    }
    if !meta
        .headers
        .iter()
        .any(|header| COLORS.iter().all(|color| names(header).any(|name| name == *color)))
    {
        let found: Vec<String> = meta.headers.iter().flat_map(names).collect();
        return Err(format!(
            "it has no channels R, G and B, only {}; write colours",
            found.join(", ")
        ));
    }
    file.rewind().map_err(|error| broken(Error::from(error)))?;
    let image = exr::prelude::read()
        .no_deep_data()
        .largest_resolution_level()
        .rgba_channels(
            |size, _| Pixels::new(size.width(), size.height()),
            |pixels: &mut Pixels, at, (r, g, b, a): (f32, f32, f32, f32)| {
                pixels.set(at.y() * pixels.width + at.x(), [r, g, b], a);
            },
        )
        .first_valid_layer()
        .all_attributes()
        .from_buffered(file)
        .map_err(broken)?;
    let size = image.layer_data.size;
    let (width, height) = check_size(size.width() as u64, size.height() as u64)?;
    let Pixels { colors, alpha, .. } = image.layer_data.channel_data.pixels;
    Ok(Picture {
        width,
        height,
        pixels: colors,
        alpha: unless_opaque(alpha),
        encoding: Encoding::Scene,
    })
}

/// Channels that make a colour.
const COLORS: [&str; 3] = ["R", "G", "B"];

fn names(header: &exr::meta::header::Header) -> impl Iterator<Item = String> {
    header.channels.list.iter().map(|channel| channel.name.to_string())
}

/// Receives the pixels while they are read.
struct Pixels {
    width: usize,
    colors: Vec<[f32; 3]>,
    alpha: Vec<f32>,
}

impl Pixels {
    fn new(width: usize, height: usize) -> Self {
        Self { width, colors: vec![[0.0; 3]; width * height], alpha: vec![1.0; width * height] }
    }

    fn set(&mut self, index: usize, color: [f32; 3], opacity: f32) {
        if let (Some(pixel), Some(alpha)) = (self.colors.get_mut(index), self.alpha.get_mut(index))
        {
            *pixel = color;
            *alpha = opacity;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use exr::prelude::{
        AnyChannel, AnyChannels, Encoding as FileEncoding, FlatSamples, Image, Layer,
        LayerAttributes, SmallVec, WritableImage, f16,
    };
    use std::io::Cursor;

    fn file(channels: Vec<(&str, FlatSamples)>, size: (usize, usize)) -> Vec<u8> {
        let list: SmallVec<_> =
            channels.into_iter().map(|(name, samples)| AnyChannel::new(name, samples)).collect();
        let layer = Layer::new(
            size,
            LayerAttributes { layer_name: None, ..LayerAttributes::default() },
            FileEncoding::SMALL_LOSSLESS,
            AnyChannels::sort(list),
        );
        let mut bytes = Cursor::new(Vec::new());
        Image::from_layer(layer).write().to_buffered(&mut bytes).unwrap();
        bytes.into_inner()
    }

    #[test]
    fn colours_of_any_type_are_read_past_other_layers() {
        let bytes = file(
            vec![
                ("R", FlatSamples::F32(vec![0.1, f32::NAN])),
                ("G", FlatSamples::F16(vec![f16::from_f32(0.5), f16::INFINITY])),
                ("B", FlatSamples::U32(vec![3, 4])),
                ("albedo.R", FlatSamples::F32(vec![9.0, 9.0])),
                ("depth.Z", FlatSamples::F32(vec![9.0, 9.0])),
            ],
            (2, 1),
        );
        let picture = decode(Cursor::new(bytes)).unwrap();
        assert_eq!((picture.width, picture.height, &picture.alpha), (2, 1, &None));
        assert_eq!(picture.pixels[0], [0.1, 0.5, 3.0]);
        assert!(picture.pixels[1][0].is_nan());
        assert_eq!(picture.pixels[1][1..], [f32::INFINITY, 4.0]);
    }

    #[test]
    fn opacity_is_kept_where_there_is_any() {
        let plane = |values: [f32; 2]| FlatSamples::F32(values.to_vec());
        let colors = |alpha| {
            vec![
                ("R", plane([0.0; 2])),
                ("G", plane([0.0; 2])),
                ("B", plane([0.0; 2])),
                ("A", alpha),
            ]
        };
        let some = decode(Cursor::new(file(colors(plane([1.0, 0.25])), (1, 2)))).unwrap();
        assert_eq!(some.alpha, Some(vec![1.0, 0.25]));
        let opaque = decode(Cursor::new(file(colors(plane([1.0, 1.0])), (1, 2)))).unwrap();
        assert_eq!(opaque.alpha, None);
    }

    #[test]
    fn a_file_without_colours_says_what_it_has() {
        let bytes = file(vec![("Z", FlatSamples::F32(vec![1.0]))], (1, 1));
        let error = decode(Cursor::new(bytes)).unwrap_err();
        assert!(error.contains("only Z"), "{error}");
    }

    #[test]
    fn too_large_a_file_is_refused_on_its_header() {
        let mut bytes = file(
            vec![
                ("R", FlatSamples::F32(vec![1.0])),
                ("G", FlatSamples::F32(vec![1.0])),
                ("B", FlatSamples::F32(vec![1.0])),
            ],
            (1, 1),
        );
        // The data window's upper corner, in the header: 99,999 each.
        let name = b"dataWindow\0box2i\0";
        let at = bytes.windows(name.len()).position(|window| window == name).unwrap()
            + name.len()
            + 4
            + 8;
        bytes[at..at + 4].copy_from_slice(&99_999i32.to_le_bytes());
        bytes[at + 4..at + 8].copy_from_slice(&99_999i32.to_le_bytes());
        let error = decode(Cursor::new(bytes)).unwrap_err();
        assert!(error.contains("100000x100000"), "{error}");
    }
}
