//! The table of a render job's options: what each is called, and what it changes. A field of
//! [`RenderSpec`] without a row fails a test.

use super::{RenderSpec, described};

/// What of a picture an option changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The film: which samples are taken, of what, and what is kept of them.
    Film,
    /// Only what is made of the film: its files.
    Finishing,
    /// Nothing: only how the work is cut.
    Neither,
}

/// An option of a render job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RenderOption {
    /// Field of [`RenderSpec`].
    pub field: &'static str,
    /// Options of the command line that set it, by commas; empty where none does.
    pub flags: &'static str,
    /// What it changes.
    pub effect: Effect,
}

const fn row(field: &'static str, flags: &'static str, effect: Effect) -> RenderOption {
    RenderOption { field, flags, effect }
}

/// One row for each field, in their order.
pub const OPTIONS: [RenderOption; 26] = [
    row("scene", "", Effect::Film),
    row("files", "", Effect::Film),
    row("environment", "env", Effect::Film),
    row("environment_intensity", "env-intensity", Effect::Film),
    row("environment_rotation_degrees", "env-rotate", Effect::Film),
    row("camera", "camera,eye,target,up,vfov", Effect::Film),
    row(
        "lens",
        "lens-radius,f-stop,focus-distance,focus-point,blades,blade-rotation",
        Effect::Film,
    ),
    row("width", "size", Effect::Film),
    row("height", "size", Effect::Film),
    row("frames", "frame,frames", Effect::Neither),
    row("fps", "fps", Effect::Film),
    row("spp", "spp", Effect::Film),
    row("depth", "depth", Effect::Film),
    row("seed", "seed", Effect::Film),
    row("filter", "filter", Effect::Film),
    row("tile", "tile", Effect::Neither),
    row("unit_samples", "unit-samples", Effect::Neither),
    row("aovs", "aov", Effect::Film),
    row("formats", "format", Effect::Finishing),
    row("exposure", "exposure", Effect::Finishing),
    row("tone_map", "tone-map", Effect::Finishing),
    row("variant", "variant", Effect::Film),
    row("denoise", "denoise", Effect::Film),
    row("noise", "noise", Effect::Film),
    row("time_secs", "time", Effect::Film),
    row("clamp", "clamp", Effect::Film),
];

/// The options of a job that are not at their default.
pub fn away_from_default(render: &RenderSpec) -> Vec<&'static RenderOption> {
    let away = described::options_away(render);
    OPTIONS.iter().filter(|row| away.iter().any(|(field, _)| field == row.field)).collect()
}
