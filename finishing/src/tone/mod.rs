//! From linear light to display values: exposure, tone map and sRGB curve. Everything is in f64
//! with the `libm` crate, so that every machine writes the same bytes.

mod agx;
mod filmic;
mod lattice;
mod log;
mod look;
mod matrix;
mod screen;
mod srgb;

use srgb::srgb;
use tessera_protocol::job::{LookSpec, RenderSpec, ToneMapSpec};

/// Exposure and tone map of display formats.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Display {
    gain: f64,
    tone_map: ToneMapSpec,
    /// Look of [`ToneMapSpec::Agx`].
    look: Option<LookSpec>,
}

impl Display {
    pub(crate) fn new(spec: &RenderSpec) -> Self {
        let gain = libm::exp2(f64::from(spec.exposure));
        Self { gain, tone_map: spec.tone_map, look: spec.look }
    }

    /// Returns a display that leaves values in [0, 1] as they are.
    pub(crate) fn plain() -> Self {
        Self { gain: 1.0, tone_map: ToneMapSpec::Standard, look: None }
    }

    /// Converts a linear Rec. 709 colour to sRGB values in [0, 1].
    pub(crate) fn encode(&self, color: [f32; 3]) -> [f64; 3] {
        let exposed = color.map(|v| f64::from(v) * self.gain);
        match self.tone_map {
            ToneMapSpec::Standard => exposed.map(srgb),
            ToneMapSpec::PbrNeutral => pbr_neutral(exposed).map(srgb),
            ToneMapSpec::Agx => agx::agx(exposed, self.look).map(srgb),
            ToneMapSpec::Filmic => filmic::filmic(exposed),
        }
    }
}

/// Returns a tone map as tables, for programs that show linear pixels themselves; None for those
/// that are a formula.
///
/// It is a row of 32-bit floats, lowest byte first: points along an axis of a lattice, steps of a
/// curve, first and last stop of a logarithm, a matrix by rows, the curve from 0 to 1 with both
/// ends, the lattice's colours with red running fastest. A linear Rec. 709 colour is multiplied by
/// the matrix; the logarithm of each value, 0 to 1 from the first stop to the last, is looked up in
/// the lattice, in tetrahedra; the curve makes sRGB values of what is found.
pub fn screen_map(tone_map: ToneMapSpec) -> Option<Vec<u8>> {
    match tone_map {
        ToneMapSpec::Standard | ToneMapSpec::PbrNeutral => None,
        ToneMapSpec::Agx => Some(agx::screen_map().to_bytes()),
        ToneMapSpec::Filmic => Some(filmic::screen_map().to_bytes()),
    }
}

/// Khronos PBR Neutral (2024). It takes the reflection of a dielectric off and keeps colours below
/// 0.8 otherwise. It compresses brighter colours and reduces their saturation.
fn pbr_neutral(color: [f64; 3]) -> [f64; 3] {
    const F90: f64 = 0.04;
    const START: f64 = 0.8 - F90;
    const DESATURATION: f64 = 0.15;
    let darkest = color[0].min(color[1]).min(color[2]);
    let offset = if darkest < 2.0 * F90 { darkest - darkest * darkest / (4.0 * F90) } else { F90 };
    let color = color.map(|v| v - offset);
    let peak = color[0].max(color[1]).max(color[2]);
    if peak < START {
        return color;
    }
    let room = 1.0 - START;
    let compressed = 1.0 - room * room / (peak + room - START);
    let white = 1.0 - 1.0 / (DESATURATION * (peak - compressed) + 1.0);
    color.map(|v| v * compressed / peak * (1.0 - white) + compressed * white)
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
