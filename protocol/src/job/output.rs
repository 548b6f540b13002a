//! What files of frames show beside the beauty, and in which formats.

use serde::{Deserialize, Serialize};

/// Output layers beside the beauty. The order here is their order in the film.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AovSpec {
    /// First hit's albedo, 3 channels.
    Albedo,
    /// First hit's shading normal, 3 channels.
    Normal,
    /// First hit's distance along the view axis, 1 channel.
    Depth,
    /// First hit's world position, 3 channels.
    Position,
}

impl AovSpec {
    /// Returns the number of film channels of the layer.
    pub fn channels(self) -> u8 {
        if self == Self::Depth { 1 } else { 3 }
    }

    /// Name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Albedo => "albedo",
            Self::Normal => "normal",
            Self::Depth => "depth",
            Self::Position => "position",
        }
    }
}

/// A file format of finished frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FormatSpec {
    /// Scene-linear Rec. 709, 32-bit float, ZIP; AOVs as layers.
    Exr,
    /// 8-bit sRGB after exposure and tone map.
    Png,
    /// 16-bit sRGB after exposure and tone map.
    Png16,
    /// Baseline JPEG: 8-bit sRGB after exposure and tone map.
    Jpeg,
}

impl FormatSpec {
    /// Returns the extension of file names, without the dot.
    pub fn extension(self) -> &'static str {
        match self {
            Self::Exr => "exr",
            Self::Png | Self::Png16 => "png",
            Self::Jpeg => "jpg",
        }
    }
}
