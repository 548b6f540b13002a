//! Options of EXR files: how exact each layer is, and how they are compressed.

use super::error::{SpecError, wrong};
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
            Self::Albedo => "albedo",
            Self::Normal => "normal",
            Self::Depth => "depth",
            Self::Position => "position",
            Self::Noisy => "noisy",
            Self::Samples => "samples",
        }
    }

    /// Returns whether half precision is fine enough for what the layer shows: not for distances,
    /// positions and counts.
    pub(super) fn is_color(self) -> bool {
        !matches!(self, Self::Depth | Self::Position | Self::Samples)
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

/// What a job asks of EXR files.
pub(super) struct ExrChoices<'a> {
    pub(super) depth: ExrDepthSpec,
    pub(super) layers: &'a [ExrLayerDepth],
    pub(super) compression: ExrCompressionSpec,
    /// Whether the job writes any.
    pub(super) has_files: bool,
}

/// Checks the choices. `missing` returns what would give files a layer that they do not have.
pub(super) fn check(
    choices: &ExrChoices<'_>,
    missing: impl Fn(ExrLayerSpec) -> Option<&'static str>,
) -> Result<(), SpecError> {
    let ExrChoices { depth, layers, compression, has_files } = choices;
    if !layers.windows(2).all(|pair| pair[0].layer < pair[1].layer) {
        return wrong("exr-depth", "layers must be in order, each once");
    }
    let missing = layers.iter().find_map(|of| Some((of.layer.name(), missing(of.layer)?)));
    if let Some((layer, option)) = missing {
        let problem = format!("the files of this job have no layer {layer}: add {option}");
        return wrong("exr-depth", problem);
    }
    if *has_files {
        return Ok(());
    }
    let no_files = "EXR files, and this job writes none: add --format exr, or -o FILE.exr";
    if *depth == ExrDepthSpec::Half {
        return wrong("exr-depth", format!("half is for {no_files}"));
    }
    if !layers.is_empty() {
        return wrong("exr-depth", format!("layers are of {no_files}"));
    }
    if *compression != ExrCompressionSpec::Zip {
        return wrong("exr-compression", format!("it is for {no_files}"));
    }
    Ok(())
}
