//! OpenEXR files: scene-linear Rec. 709, 32-bit float or 16-bit half by layer, compressed as
//! chosen. The default layer is RGBA, premultiplied; A is 1 where the film has no coverage. AOVs
//! are named layers. The layer `noisy` is the picture before denoising. In frames that are sampled
//! in rounds, `samples` is the number of samples of each pixel. The display window is the frame,
//! and the data window the crop with its overscan.

use super::band::{Band, Planes};
use super::denoise;
use super::error::ResolveError;
use super::frame::Frame;
use super::out_file::OutFile;
use exr::block::chunk::Chunk;
use exr::block::writer::{ChunkWriter, ChunksWriter};
use exr::block::{BlockIndex, UncompressedBlock};
use exr::error::Error;
use exr::meta::attribute::{
    AttributeValue, ChannelDescription, ChannelList, Chromaticities, LineOrder, SampleType, Text,
};
use exr::meta::header::Header;
use exr::meta::{BlockDescription, MetaData};
use exr::prelude::{Compression, IntegerBounds, Vec2, f16};
use rayon::prelude::*;
use tessera_protocol::job::options::{Chosen, away_from_default};
use tessera_protocol::job::{
    AovSpec, ExrCompressionSpec, ExrDepthSpec, ExrLayerSpec, RenderSpec, Window,
};

/// Everything in a file except its pixels.
pub(super) struct ExrFile {
    /// Width and height in pixels of the display window, which begins at (0, 0).
    pub(super) size: (u32, u32),
    /// The data window: the pixels of the file.
    pub(super) data: Window,
    /// Name of each channel, its precision, and the band's channel that it shows (None for 1
    /// everywhere). The names are in byte order.
    pub(super) channels: Vec<(String, ExrDepthSpec, Option<usize>)>,
    pub(super) compression: ExrCompressionSpec,
    /// Record of how the file was made.
    pub(super) about: serde_json::Value,
}

impl ExrFile {
    /// Describes the file of a rendered frame.
    pub(super) fn of_frame(frame: &Frame<'_>) -> Self {
        let spec = frame.spec;
        let mut about = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "fingerprint": frame.fingerprint.map(|fingerprint| fingerprint.to_string()),
            "job": frame.job.to_string(),
            "frame": frame.frame.0,
            "samples": frame.samples(),
            "seed": spec.seed,
        });
        if let (Some(_), Some(rounds)) = (spec.noise, frame.rounds) {
            about["samples_mean"] = rounds.mean_samples().into();
        }
        if spec.metered_frame().is_some() {
            // `-3.41` and not its nearest float in 17 digits.
            about["exposure"] = ((f64::from(spec.exposure) * 100.0).round() / 100.0).into();
        }
        let chosen = away_from_default(spec);
        for Chosen { option, value } in chosen {
            // The division of the work does not change the file.
            if let Some(key) = option.file_key().filter(|_| option.effect.has_picture()) {
                about[key] = value;
            }
        }
        Self {
            size: (spec.width, spec.height),
            data: spec.data_window(),
            channels: channels(spec),
            compression: spec.exr_compression,
            about,
        }
    }
}

/// Returns the name of each channel, its precision, and the band's channel that it shows. None
/// stands for 1 everywhere: such frames are opaque. EXR keeps channels in the byte order of their
/// names.
fn channels(spec: &RenderSpec) -> Vec<(String, ExrDepthSpec, Option<usize>)> {
    let mut channels = vec![("A".to_owned(), spec.coverage_channel().map(usize::from))];
    for (index, name) in ["R", "G", "B"].into_iter().enumerate() {
        channels.push((name.to_owned(), Some(index)));
    }
    for aov in &spec.aovs {
        let parts: &[&str] = match aov {
            AovSpec::Albedo => &["R", "G", "B"],
            AovSpec::Normal | AovSpec::Position => &["X", "Y", "Z"],
            AovSpec::Depth => &["Z"],
        };
        let first = spec.channel_of(*aov).map_or(0, usize::from);
        for (index, part) in parts.iter().enumerate() {
            channels.push((format!("{}.{part}", aov.name()), Some(first + index)));
        }
    }
    if let Some(samples) = Planes::of(spec).samples {
        channels.push(("samples".to_owned(), Some(samples)));
    }
    if spec.denoise {
        for (index, part) in ["R", "G", "B"].into_iter().enumerate() {
            channels.push((format!("noisy.{part}"), Some(denoise::noisy_channel(spec) + index)));
        }
    }
    channels.sort();
    let depth = |name: &str| spec.exr_depth_of(layer_of(name));
    channels.into_iter().map(|(name, source)| (name.clone(), depth(&name), source)).collect()
}

/// The layer of a channel. Those of beauty have no name of a layer before their own.
fn layer_of(channel: &str) -> ExrLayerSpec {
    let name = channel.split('.').next().unwrap_or(channel);
    let layer = ExrLayerSpec::ALL.into_iter().find(|layer| layer.name() == name);
    layer.unwrap_or(ExrLayerSpec::Beauty)
}

/// The type of a channel's values in the file.
fn sample_type(depth: ExrDepthSpec) -> SampleType {
    match depth {
        ExrDepthSpec::Half => SampleType::F16,
        ExrDepthSpec::Float => SampleType::F32,
    }
}

fn compression(spec: ExrCompressionSpec) -> Compression {
    match spec {
        ExrCompressionSpec::None => Compression::Uncompressed,
        ExrCompressionSpec::Rle => Compression::RLE,
        ExrCompressionSpec::Zips => Compression::ZIP1,
        ExrCompressionSpec::Zip => Compression::ZIP16,
        ExrCompressionSpec::Piz => Compression::PIZ,
        ExrCompressionSpec::Pxr24 => Compression::PXR24,
        ExrCompressionSpec::B44 => Compression::B44,
        ExrCompressionSpec::B44a => Compression::B44A,
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

fn text(value: &str) -> Result<Text, ResolveError> {
    Text::new_or_none(value)
        .ok_or_else(|| ResolveError::Encode(format!("{value:?} is not text for an EXR file")))
}

fn data_size(file: &ExrFile) -> Vec2<usize> {
    Vec2(file.data.width() as usize, file.data.height() as usize)
}

fn header(file: &ExrFile) -> Result<Header, ResolveError> {
    let list: Vec<ChannelDescription> = file
        .channels
        .iter()
        .map(|(name, depth, _)| Ok(ChannelDescription::named(text(name)?, sample_type(*depth))))
        .collect::<Result<_, ResolveError>>()?;
    let display = Vec2(file.size.0 as usize, file.size.1 as usize);
    let mut header = Header::new(text("")?, data_size(file), list.into_iter().collect())
        .with_encoding(
            compression(file.compression),
            BlockDescription::ScanLines,
            LineOrder::Increasing,
        );
    debug_assert_eq!(header.channels, ChannelList::new(header.channels.list.clone()));
    header.own_attributes.layer_name = None;
    header.own_attributes.layer_position = Vec2(file.data.left, file.data.top);
    header.shared_attributes.display_window = IntegerBounds::from_dimensions(display);
    header.own_attributes.software_name =
        Some(text(&format!("tessera {}", env!("CARGO_PKG_VERSION")))?);
    // All our values are in one attribute. Several attributes would be in the order of a hash map,
    // and resolving a frame again would not give the same bytes.
    let value = AttributeValue::Text(text(&file.about.to_string())?);
    header.own_attributes.other.insert(text("tessera")?, value);
    // Rec. 709 and its white, D65.
    header.shared_attributes.chromaticities = Some(Chromaticities {
        red: Vec2(0.64, 0.33),
        green: Vec2(0.30, 0.60),
        blue: Vec2(0.15, 0.06),
        white: Vec2(0.3127, 0.3290),
    });
    Ok(header)
}

/// Writes a whole file. `feed` pushes every band, in order.
pub(super) fn write(
    out: &mut OutFile,
    file: &ExrFile,
    feed: impl FnOnce(&mut ExrRows<'_, '_>) -> Result<(), ResolveError>,
) -> Result<(), ResolveError> {
    let header = header(file)?;
    let mut failure = None;
    let written =
        exr::block::write(&mut *out, [header].into_iter().collect(), true, |meta, chunks| {
            let mut rows = ExrRows {
                meta: &meta,
                chunks,
                channels: file
                    .channels
                    .iter()
                    .map(|(_, depth, source)| (sample_type(*depth), *source))
                    .collect(),
                size: data_size(file),
                block_rows: compression(file.compression).scan_lines_per_block(),
                pending: Vec::new(),
                next_row: 0,
            };
            feed(&mut rows).map_err(|error| {
                failure = Some(error);
                Error::Aborted
            })
        });
    match (failure, written) {
        (Some(failure), _) => Err(failure),
        (None, Err(error)) => Err(encode_failed(out, error)),
        (None, Ok(())) => Ok(()),
    }
}

fn encode_failed(out: &mut OutFile, error: Error) -> ResolveError {
    match (out.take_failure(), error) {
        (Some(failure), _) | (None, Error::Io(failure)) => ResolveError::Write(failure),
        (None, error) => ResolveError::Encode(error.to_string()),
    }
}

/// A file whose rows are being written.
pub(super) struct ExrRows<'w, 'o> {
    meta: &'w MetaData,
    chunks: &'w mut ChunkWriter<&'o mut OutFile>,
    /// Type of each channel, and the band's channel that it shows.
    channels: Vec<(SampleType, Option<usize>)>,
    size: Vec2<usize>,
    /// Rows that are compressed together.
    block_rows: usize,
    /// Rows that do not fill a block yet: the values of each channel, row by row.
    pending: Vec<u8>,
    /// Number of the row after the pending ones.
    next_row: usize,
}

impl ExrRows<'_, '_> {
    fn row_bytes(&self) -> usize {
        let of_pixel = self.channels.iter().map(|(kept, _)| kept.bytes_per_sample());
        self.size.x() * of_pixel.sum::<usize>()
    }

    /// Appends the rows of a band. Writes blocks when there is one for each thread, and keeps the
    /// rest.
    pub(super) fn push(&mut self, band: &Band) -> Result<(), ResolveError> {
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
    pub(super) fn finish(&mut self) -> Result<(), ResolveError> {
        self.write_pending()
    }

    /// Writes the pending rows, which begin at a block. The last block may have fewer rows.
    fn write_pending(&mut self) -> Result<(), ResolveError> {
        let row_bytes = self.row_bytes();
        let block_rows = self.block_rows;
        let first = (self.next_row - self.pending.len() / row_bytes) / block_rows;
        let (meta, width) = (self.meta, self.size.x());
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
                UncompressedBlock { index, data: rows.to_vec() }.compress_to_chunk(&meta.headers)
            })
            .collect::<Result<_, Error>>()
            .map_err(|error| ResolveError::Encode(error.to_string()))?;
        self.pending.clear();
        for (index, chunk) in chunks.into_iter().enumerate() {
            self.chunks.write_chunk(first + index, chunk).map_err(|error| match error {
                Error::Io(error) => ResolveError::Write(error),
                error => ResolveError::Encode(error.to_string()),
            })?;
        }
        Ok(())
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
