//! How display formats show scene-linear light.

use super::error::{SpecError, wrong};
use serde::{Deserialize, Serialize};

/// Quality of JPEG files by default.
pub const JPEG_QUALITY_DEFAULT: u8 = 90;

/// Tone map of display formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToneMapSpec {
    /// Clip to [0, 1].
    Standard,
    /// The PBR Neutral tone map by Khronos.
    PbrNeutral,
    /// AgX as Blender shows it on an sRGB display.
    Agx,
    /// Filmic as Blender shows it on an sRGB display.
    Filmic,
}

/// Look of [`ToneMapSpec::Agx`], as Blender names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[expect(missing_docs, reason = "the names say what there is to say")]
pub enum LookSpec {
    Punchy,
    Greyscale,
    VeryHighContrast,
    HighContrast,
    MediumHighContrast,
    BaseContrast,
    MediumLowContrast,
    LowContrast,
    VeryLowContrast,
}

/// Checks a look with its tone map.
pub(super) fn check_look(look: Option<LookSpec>, tone_map: ToneMapSpec) -> Result<(), SpecError> {
    if look.is_some() && tone_map != ToneMapSpec::Agx {
        return wrong("look", "looks are only for AgX: add --tone-map agx, or leave --look out");
    }
    Ok(())
}

/// Checks the quality of JPEG files, of a job that writes them or does not.
pub(super) fn check_quality(quality: u8, has_files: bool) -> Result<(), SpecError> {
    if !(1..=100).contains(&quality) {
        return wrong("jpeg-quality", format!("{quality} is not in 1 to 100"));
    }
    if quality != JPEG_QUALITY_DEFAULT && !has_files {
        return wrong(
            "jpeg-quality",
            "it is for JPEG files, and this job writes none: add --format jpeg, or -o FILE.jpg",
        );
    }
    Ok(())
}
