//! What follows from a render job's options for its film and the layers of its files: channels,
//! rounds, coverage, precision, and the frame that is metered.

use super::{
    AovSpec, EnvironmentSpec, ExrDepthSpec, ExrLayerSpec, FormatSpec, HALF_CHANNELS, RenderSpec,
};
use crate::ids::FrameNumber;
use crate::rounds::Rounds;

/// Layers that guide the denoiser, ascending.
const GUIDES: [AovSpec; 3] = [AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth];

impl RenderSpec {
    /// Returns the layers of the film beside the beauty, ascending: the requested layers and those
    /// that guide the denoiser.
    pub fn film_layers(&self) -> Vec<AovSpec> {
        let all = [AovSpec::Albedo, AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
        let has =
            |layer: &AovSpec| self.aovs.contains(layer) || self.denoise && GUIDES.contains(layer);
        all.into_iter().filter(has).collect()
    }

    /// Returns whether the job's files show lengths or places of the scene.
    pub fn shows_places(&self) -> bool {
        self.aovs.iter().any(|aov| matches!(aov, AovSpec::Depth | AovSpec::Position))
    }

    /// Returns the rounds in which each frame is sampled; None if every pixel has `spp` samples.
    pub fn rounds(&self) -> Option<Rounds> {
        self.has_rounds().then(|| Rounds::new(self.spp))
    }

    /// Returns whether frames are sampled in rounds.
    pub fn has_rounds(&self) -> bool {
        self.noise.is_some() || self.time_secs.is_some()
    }

    /// Returns whether the film has the plane of halves.
    pub fn has_half(&self) -> bool {
        self.denoise
    }

    /// Returns the number of film channels: beauty, layers, coverage and, with the plane of halves,
    /// [`HALF_CHANNELS`].
    pub fn channels(&self) -> u8 {
        let half = if self.has_half() { HALF_CHANNELS } else { 0 };
        self.layers_end() + u8::from(self.has_coverage()) + half
    }

    /// Returns whether nothing is drawn behind the scene, so that the film has what surfaces cover
    /// of each pixel.
    pub fn has_coverage(&self) -> bool {
        self.transparent || self.environment == EnvironmentSpec::None
    }

    /// Returns the film channel of the coverage; None if the picture is opaque everywhere.
    pub fn coverage_channel(&self) -> Option<u8> {
        self.has_coverage().then(|| self.layers_end())
    }

    /// Returns the film channel after those of the beauty and the layers.
    fn layers_end(&self) -> u8 {
        3 + self.film_layers().iter().map(|layer| layer.channels()).sum::<u8>()
    }

    /// Returns the first film channel of a layer; None if the film does not have the layer.
    pub fn channel_of(&self, layer: AovSpec) -> Option<u8> {
        let layers = self.film_layers();
        let place = layers.iter().position(|other| *other == layer)?;
        Some(3 + layers[..place].iter().map(|before| before.channels()).sum::<u8>())
    }

    /// Returns the frame in which the exposure is metered, if it is. Files of other frames wait for
    /// it.
    pub fn metered_frame(&self) -> Option<FrameNumber> {
        let is_shown = self.formats.iter().any(|format| *format != FormatSpec::Exr);
        self.frames.iter().next().filter(|_| self.auto_exposure && is_shown)
    }

    /// Returns the precision of a layer in EXR files.
    pub fn exr_depth_of(&self, layer: ExrLayerSpec) -> ExrDepthSpec {
        let chosen = self.exr_layers.iter().find(|chosen| chosen.layer == layer);
        match chosen {
            Some(chosen) => chosen.depth,
            None if layer.is_color() => self.exr_depth,
            None => ExrDepthSpec::Float,
        }
    }

    /// Returns the option that gives files a layer; None if they have it.
    pub(super) fn option_of_missing(&self, layer: ExrLayerSpec) -> Option<&'static str> {
        let aov = |aov| self.aovs.contains(&aov);
        let (is_there, option) = match layer {
            ExrLayerSpec::Beauty => (true, ""),
            ExrLayerSpec::Albedo => (aov(AovSpec::Albedo), "--aov albedo"),
            ExrLayerSpec::Normal => (aov(AovSpec::Normal), "--aov normal"),
            ExrLayerSpec::Depth => (aov(AovSpec::Depth), "--aov depth"),
            ExrLayerSpec::Position => (aov(AovSpec::Position), "--aov position"),
            ExrLayerSpec::Noisy => (self.denoise, "--denoise"),
            ExrLayerSpec::Samples => (self.noise.is_some(), "--noise"),
        };
        (!is_there).then_some(option)
    }
}
