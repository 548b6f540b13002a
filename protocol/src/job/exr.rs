//! Options of EXR files: how exact each layer is, and how they are compressed.

use super::error::{SpecError, wrong};
use super::{AovSpec, FormatSpec, RenderSpec};
use serde::{Deserialize, Serialize};

/// Precision of values in an EXR file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExrDepthSpec {
    /// 16-bit half: rounded to the nearest, at most 65504.
    Half,
    /// 32-bit float.
    Float,
}

/// A layer of an EXR file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the layers have these names in files")]
pub enum ExrLayerSpec {
    Beauty,
    Albedo,
    Normal,
    Depth,
    Position,
    Noisy,
    Samples,
}

impl ExrLayerSpec {
    /// Every layer that a file can have, ascending.
    pub const ALL: [Self; 7] = [
        Self::Beauty,
        Self::Albedo,
        Self::Normal,
        Self::Depth,
        Self::Position,
        Self::Noisy,
        Self::Samples,
    ];

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Beauty => "beauty",
            Self::Albedo => AovSpec::Albedo.name(),
            Self::Normal => AovSpec::Normal.name(),
            Self::Depth => AovSpec::Depth.name(),
            Self::Position => AovSpec::Position.name(),
            Self::Noisy => "noisy",
            Self::Samples => "samples",
        }
    }

    /// Returns whether half precision is fine enough for what the layer shows: not for distances,
    /// positions and counts.
    fn is_color(self) -> bool {
        !matches!(self, Self::Depth | Self::Position | Self::Samples)
    }

    /// Returns what gives a job's files the layer, if they do not have it.
    fn missing(self, render: &RenderSpec) -> Option<&'static str> {
        let aov = |layer| !render.aovs.contains(&layer);
        let (is_missing, option) = match self {
            Self::Beauty => (false, ""),
            Self::Albedo => (aov(AovSpec::Albedo), "--aov albedo"),
            Self::Normal => (aov(AovSpec::Normal), "--aov normal"),
            Self::Depth => (aov(AovSpec::Depth), "--aov depth"),
            Self::Position => (aov(AovSpec::Position), "--aov position"),
            Self::Noisy => (!render.denoise, "--denoise"),
            Self::Samples => (render.noise.is_none(), "--noise"),
        };
        is_missing.then_some(option)
    }
}

/// Precision of one layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExrLayerDepth {
    /// The layer.
    pub layer: ExrLayerSpec,
    /// Its precision.
    pub depth: ExrDepthSpec,
}

/// Compression of EXR files, by the names of OpenEXR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExrCompressionSpec {
    /// None at all.
    None,
    /// Run lengths.
    Rle,
    /// Deflate over one row.
    Zips,
    /// Deflate over 16 rows.
    Zip,
    /// Wavelets and Huffman codes.
    Piz,
    /// Deflate. Floats lose the lowest 8 of their 32 bits.
    Pxr24,
    /// Halves lose precision in blocks of 4 x 4 pixels; floats are not compressed.
    B44,
    /// The same, with flat blocks in less.
    B44a,
}

impl RenderSpec {
    /// Returns the precision of a layer in EXR files.
    pub fn exr_depth_of(&self, layer: ExrLayerSpec) -> ExrDepthSpec {
        let chosen = self.exr_layers.iter().find(|chosen| chosen.layer == layer);
        match chosen {
            Some(chosen) => chosen.depth,
            None if layer.is_color() => self.exr_depth,
            None => ExrDepthSpec::Float,
        }
    }
}

pub(super) fn check(render: &RenderSpec) -> Result<(), SpecError> {
    if !render.exr_layers.windows(2).all(|pair| pair[0].layer < pair[1].layer) {
        return wrong("exr-depth", "layers must be in order, each once");
    }
    let missing = |of: &ExrLayerDepth| Some((of.layer.name(), of.layer.missing(render)?));
    if let Some((layer, option)) = render.exr_layers.iter().find_map(missing) {
        let problem = format!("the files of this job have no layer {layer}: add {option}");
        return wrong("exr-depth", problem);
    }
    if render.formats.contains(&FormatSpec::Exr) {
        return Ok(());
    }
    let no_files = "EXR files, and this job writes none: add --format exr, or -o FILE.exr";
    if render.exr_depth == ExrDepthSpec::Half {
        return wrong("exr-depth", format!("half is for {no_files}"));
    }
    if !render.exr_layers.is_empty() {
        return wrong("exr-depth", format!("layers are of {no_files}"));
    }
    if render.exr_compression != ExrCompressionSpec::Zip {
        return wrong("exr-compression", format!("it is for {no_files}"));
    }
    Ok(())
}
