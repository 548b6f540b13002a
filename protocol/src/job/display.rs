//! How display formats show scene-linear light.

use super::error::{SpecError, wrong};
use super::{FormatSpec, RenderSpec};
use crate::ids::FrameNumber;
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

impl RenderSpec {
    /// Returns the frame in which the exposure is metered, if it is. Files of other frames wait for
    /// it.
    pub fn metered_frame(&self) -> Option<FrameNumber> {
        let is_shown = self.formats.iter().any(|format| *format != FormatSpec::Exr);
        self.frames.iter().next().filter(|_| self.auto_exposure && is_shown)
    }
}

pub(super) fn check(render: &RenderSpec) -> Result<(), SpecError> {
    if render.look.is_some() && render.tone_map != ToneMapSpec::Agx {
        return wrong("look", "looks are for AgX alone: add --tone-map agx, or leave --look out");
    }
    let quality = render.jpeg_quality;
    if !(1..=100).contains(&quality) {
        return wrong("jpeg-quality", format!("{quality} is not in 1 to 100"));
    }
    if quality != JPEG_QUALITY_DEFAULT && !render.formats.contains(&FormatSpec::Jpeg) {
        return wrong(
            "jpeg-quality",
            "it is for JPEG files, and this job writes none: add --format jpeg, or -o FILE.jpg",
        );
    }
    Ok(())
}
