//! A rendered frame as the input of a kernel: the colours of an EXR file as an array of rows,
//! columns and channels.

use super::LoadedArray;
use super::array_file::{unreadable, words_for};
use exr::prelude::{MetaData, ReadChannels, ReadLayers};
use std::fs::File;
use std::io::{BufReader, Seek};
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use tessera_protocol::compute::{Element, InputArray};
use tessera_protocol::node::Failure;

/// Where colours go.
struct Colours {
    words: Vec<u64>,
    width: usize,
    channels: usize,
}

/// Reads the colours of a frame whose size must be the job's. It is compared before any memory is
/// taken.
pub(super) fn load(path: &Path, input: &InputArray) -> Result<LoadedArray, Failure> {
    let failed = |error: std::io::Error| unreadable(path, &error);
    let named = |problem: String| Failure::Asset(format!("input `{}`: {problem}", input.name));
    let broken = |error: exr::error::Error| named(format!("its frame cannot be read: {error}"));
    let mut file = BufReader::new(File::open(path).map_err(failed)?);
    let meta = MetaData::read_from_buffered(&mut file, false).map_err(broken)?;
    let (3 | 4, [height, width, channels], Element::F32) =
        (input.shape.last().copied().unwrap_or_default(), &input.shape[..], input.element)
    else {
        return Err(named("a picture has rows, columns, and 3 or 4 channels of f32".into()));
    };
    let sizes = meta.headers.iter().map(|header| header.layer_size);
    let wanted = (*width as usize, *height as usize);
    if let Some(size) = sizes.into_iter().find(|size| (size.0, size.1) != wanted) {
        return Err(named(format!(
            "its frame has {}x{} pixels, the job says {width}x{height}",
            size.0, size.1
        )));
    }
    let length = usize::try_from(input.bytes())
        .map_err(|_| named("it is larger than this machine's memory".into()))?;
    let words = Mutex::new(words_for(input, length)?);
    file.rewind().map_err(failed)?;
    let channels = *channels as usize;
    let image = exr::prelude::read()
        .no_deep_data()
        .largest_resolution_level()
        .rgba_channels(
            move |size, _| {
                let words =
                    std::mem::take(&mut *words.lock().unwrap_or_else(PoisonError::into_inner));
                Colours { words, width: size.width(), channels }
            },
            |colours: &mut Colours, at, (r, g, b, a): (f32, f32, f32, f32)| {
                let first = (at.y() * colours.width + at.x()) * colours.channels;
                let values: &mut [f32] = bytemuck::must_cast_slice_mut(&mut colours.words);
                if let Some(of_pixel) = values.get_mut(first..first + colours.channels) {
                    of_pixel.copy_from_slice(&[r, g, b, a][..colours.channels]);
                }
            },
        )
        .first_valid_layer()
        .all_attributes()
        .from_buffered(file)
        .map_err(broken)?;
    Ok(LoadedArray {
        name: input.name.clone(),
        element: input.element,
        shape: input.shape.clone(),
        words: image.layer_data.channel_data.pixels.words,
        length,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use exr::prelude::{Image, SpecificChannels, WritableImage};
    use tessera_protocol::compute::FromJob;
    use tessera_protocol::{BlobHash, JobId};

    fn input(shape: &[u64]) -> InputArray {
        InputArray {
            name: "image".into(),
            hash: BlobHash([1; 32]),
            length: 100,
            element: Element::F32,
            shape: shape.to_vec(),
            from: Some(FromJob { job: JobId::default(), file: "exr".into() }),
        }
    }

    #[test]
    fn colours_lie_by_rows_columns_and_channels() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.exr");
        let value = |x: usize, y: usize, of: usize| (100 * y + 10 * x + of) as f32;
        let pixels = SpecificChannels::rgba(|at: exr::math::Vec2<usize>| {
            let (x, y) = (at.x(), at.y());
            (value(x, y, 0), value(x, y, 1), value(x, y, 2), value(x, y, 3))
        });
        Image::from_channels((3, 2), pixels).write().to_file(&path).unwrap();
        for channels in [3, 4] {
            let array = load(&path, &input(&[2, 3, channels])).unwrap();
            let values: &[f32] = bytemuck::must_cast_slice(&array.words);
            let mut expected = Vec::new();
            for (y, x) in (0..2).flat_map(|y| (0..3).map(move |x| (y, x))) {
                expected.extend((0..channels as usize).map(|of| value(x, y, of)));
            }
            assert_eq!(values[..expected.len()], expected);
        }
        for (shape, told) in [
            (&[3, 2, 3][..], "has 3x2 pixels, the job says 2x3"),
            (&[2, 3, 5], "3 or 4 channels"),
            (&[2, 3], "3 or 4 channels"),
            (&[1 << 40, 3, 3], "has 3x2 pixels"),
        ] {
            let failure = load(&path, &input(shape)).unwrap_err();
            assert!(format!("{failure:?}").contains(told), "{shape:?}: {failure:?}");
        }
        std::fs::write(&path, b"v/1\x01 and no more").unwrap();
        assert!(format!("{:?}", load(&path, &input(&[2, 3, 3])).unwrap_err()).contains("be read"));
    }
}
