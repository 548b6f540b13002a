//! OpenEXR files: scene-linear Rec. 709, 32-bit float or 16-bit half by layer, compressed as
//! chosen. The default layer is RGBA, premultiplied; A is 1 where the film has no coverage. AOVs
//! are named layers. The layer `noisy` is the picture before denoising. In frames that are sampled
//! in rounds, `samples` is the number of samples of each pixel. The display window is the frame,
//! and the data window the crop with its overscan.

use crate::FinishError;
use crate::Frame;
use crate::band::Planes;
use crate::denoise;
use crate::exr_rows::{ExrRows, failed};
use crate::out_file::OutFile;
use exr::block::chunk::Chunk;
use exr::block::writer::ChunksWriter;
use exr::error::Error;
use exr::meta::BlockDescription;
use exr::meta::attribute::{
    AttributeValue, ChannelDescription, ChannelList, Chromaticities, LineOrder, SampleType, Text,
};
use exr::meta::header::Header;
use exr::prelude::{Compression, IntegerBounds, Vec2};
use tessera_protocol::job::options::{Chosen, away_from_default};
use tessera_protocol::job::{
    AovSpec, ExrCompressionSpec, ExrDepthSpec, ExrLayerSpec, RenderSpec, Window,
};

/// Everything in a file except its pixels.
pub(crate) struct ExrFile {
    /// Width and height in pixels of the display window, which begins at (0, 0).
    pub(crate) size: (u32, u32),
    /// The data window: the pixels of the file.
    pub(crate) data: Window,
    /// Name of each channel, its precision, and the band's channel that it shows (None for 1
    /// everywhere). The names are in byte order.
    pub(crate) channels: Vec<(String, ExrDepthSpec, Option<usize>)>,
    pub(crate) compression: ExrCompressionSpec,
    /// Record of how the file was made.
    pub(crate) about: serde_json::Value,
}

impl ExrFile {
    /// Describes the file of a rendered frame.
    pub(crate) fn of_frame(frame: &Frame<'_>) -> Self {
        let spec = frame.spec;
        let mut about = serde_json::json!({
            "version": env!("CARGO_PKG_VERSION"),
            "fingerprint": frame.fingerprint.map(|fingerprint| fingerprint.to_string()),
            "job": frame.job.to_string(),
            "frame": frame.frame.0,
            "samples": frame.samples,
            "seed": spec.seed,
        });
        if let (Some(_), Some(mean)) = (spec.noise, frame.samples_mean) {
            about["samples_mean"] = mean.into();
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
        Self { about, ..Self::of_rows(spec) }
    }

    /// Describes all that the rows of a job's files depend on.
    pub(crate) fn of_rows(spec: &RenderSpec) -> Self {
        Self {
            size: (spec.width, spec.height),
            data: spec.data_window(),
            channels: channels(spec),
            compression: spec.exr_compression,
            about: serde_json::Value::Null,
        }
    }
}

/// Returns the number of rows that are compressed together.
pub(crate) fn lines_of_chunk(spec: ExrCompressionSpec) -> usize {
    compression(spec).scan_lines_per_block()
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

fn text(value: &str) -> Result<Text, FinishError> {
    Text::new_or_none(value)
        .ok_or_else(|| FinishError::Encode(format!("{value:?} is not text for an EXR file")))
}

fn data_size(file: &ExrFile) -> Vec2<usize> {
    Vec2(file.data.width() as usize, file.data.height() as usize)
}

fn header(file: &ExrFile) -> Result<Header, FinishError> {
    let list: Vec<ChannelDescription> = file
        .channels
        .iter()
        .map(|(name, depth, _)| Ok(ChannelDescription::named(text(name)?, sample_type(*depth))))
        .collect::<Result<_, FinishError>>()?;
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
pub(crate) fn write(
    out: &mut OutFile,
    file: &ExrFile,
    feed: impl FnOnce(&mut ExrRows<'_>) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    write_chunks(out, file, |headers, put| feed(&mut ExrRows::new(headers, sources(file), 0, put)))
}

/// Where a file's chunks go, with their numbers.
pub(crate) type PutChunk<'a> = &'a mut dyn FnMut(usize, Chunk) -> Result<(), FinishError>;

/// Writes a whole file. `feed` puts every chunk, in order.
pub(crate) fn write_chunks(
    out: &mut OutFile,
    file: &ExrFile,
    feed: impl FnOnce(&[Header], PutChunk<'_>) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    let header = header(file)?;
    let mut failure = None;
    let written =
        exr::block::write(&mut *out, [header].into_iter().collect(), true, |meta, chunks| {
            let mut put = |index, chunk| chunks.write_chunk(index, chunk).map_err(failed);
            feed(&meta.headers, &mut put).map_err(|error| {
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

/// Makes the chunks of some rows of a file, which begin at the row `first`. `feed` pushes them.
pub(crate) fn chunks_of_rows(
    file: &ExrFile,
    first: usize,
    put: PutChunk<'_>,
    feed: impl FnOnce(&mut ExrRows<'_>) -> Result<(), FinishError>,
) -> Result<(), FinishError> {
    feed(&mut ExrRows::new(&[header(file)?], sources(file), first, put))
}

/// Returns the type of each channel of a file, and the band's channel that it shows.
fn sources(file: &ExrFile) -> Vec<(SampleType, Option<usize>)> {
    file.channels.iter().map(|(_, depth, source)| (sample_type(*depth), *source)).collect()
}

fn encode_failed(out: &mut OutFile, error: Error) -> FinishError {
    match (out.take_failure(), error) {
        (Some(failure), _) | (None, Error::Io(failure)) => FinishError::Write(failure),
        (None, error) => FinishError::Encode(error.to_string()),
    }
}
