//! How display formats show scene-linear light.

use super::RenderSpec;
use super::error::{SpecError, wrong};
use serde::{Deserialize, Serialize};

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

pub(super) fn check(render: &RenderSpec) -> Result<(), SpecError> {
    if render.look.is_some() && render.tone_map != ToneMapSpec::Agx {
        return wrong("look", "looks are for AgX alone: add --tone-map agx, or leave --look out");
    }
    Ok(())
}
