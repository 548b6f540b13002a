//! From the space in which kernels see a scene back to the file's own: depths and positions.

use super::band::Band;
use tessera_protocol::job::{AovSpec, RenderSpec, SpaceSpec};

/// Converts the layers of a band that show lengths or places. A pixel that shows nothing keeps its
/// zeros.
pub(super) fn restore(band: &mut Band, spec: &RenderSpec) {
    let Some(space) = &spec.space else { return };
    if let Some(depth) = spec.channel_of(AovSpec::Depth) {
        let depths = plane(band, depth.into());
        depths.iter_mut().for_each(|depth| *depth = space.file_length(*depth));
    }
    if let Some(position) = spec.channel_of(AovSpec::Position) {
        restore_positions(band, position.into(), space);
    }
}

fn plane(band: &mut Band, channel: usize) -> &mut [f32] {
    let pixels = band.width * band.height;
    &mut band.values[channel * pixels..][..pixels]
}

fn restore_positions(band: &mut Band, first: usize, space: &SpaceSpec) {
    let pixels = band.width * band.height;
    let places = &mut band.values[first * pixels..][..3 * pixels];
    for pixel in 0..pixels {
        let index = [pixel, pixel + pixels, pixel + 2 * pixels];
        let seen = index.map(|index| places[index]);
        if seen != [0.0; 3] {
            let restored = space.file_point(seen);
            index.iter().zip(restored).for_each(|(index, value)| places[*index] = value);
        }
    }
}
