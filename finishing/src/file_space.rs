//! From the space in which kernels see a scene back to the file's own: depths and positions.

use crate::band::Band;
use tessera_protocol::job::{AovSpec, RenderSpec, SpaceSpec};

/// Converts the layers of a band that show lengths or places. A pixel that shows nothing keeps its
/// zeros.
pub(crate) fn restore(band: &mut Band, spec: &RenderSpec) {
    let Some(space) = spec.space.as_deref() else { return };
    if let Some(depth) = spec.channel_of(AovSpec::Depth) {
        let depths = plane(band, depth.into());
        depths.iter_mut().for_each(|depth| *depth = space.file_length(*depth));
    }
    if let Some(position) = spec.channel_of(AovSpec::Position) {
        let coverage = spec.coverage_channel().map(usize::from);
        restore_positions(band, (position.into(), coverage), space);
    }
}

fn plane(band: &mut Band, channel: usize) -> &mut [f32] {
    let pixels = band.width * band.height;
    &mut band.values[channel * pixels..][..pixels]
}

/// Positions are means over the pixel, with zeros where nothing is seen. So the origin counts for
/// what is covered of the pixel, or for all of it where that is not known.
fn restore_positions(
    band: &mut Band,
    (first, coverage): (usize, Option<usize>),
    space: &SpaceSpec,
) {
    let pixels = band.width * band.height;
    for pixel in 0..pixels {
        let index = [0, 1, 2].map(|axis| (first + axis) * pixels + pixel);
        let seen = index.map(|index| band.values[index]);
        if seen != [0.0; 3] {
            let covered = coverage.map_or(1.0, |channel| band.values[channel * pixels + pixel]);
            let restored = space.file_point(seen, covered);
            index.iter().zip(restored).for_each(|(index, value)| band.values[*index] = value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_and_positions_go_back_and_nothing_else_does() {
        let space = Some(Box::new(SpaceSpec { origin: [1e6, 0.0, -1e5], exponent: 2 }));
        let aovs = vec![AovSpec::Normal, AovSpec::Depth, AovSpec::Position];
        let spec = RenderSpec { aovs, space, ..RenderSpec::default() };
        let channels = usize::from(spec.channels());
        // Two pixels: one shows something, and one nothing.
        let values = (0..channels).flat_map(|channel| [channel as f32, 0.0]).collect();
        let mut band = Band { width: 1, height: 2, values };
        restore(&mut band, &spec);
        let of_first: Vec<f32> = band.values.iter().copied().step_by(2).collect();
        assert_eq!(of_first[..6], [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], "beauty and normal");
        assert_eq!(of_first[6..], [1.5, 1_000_001.75, 2.0, -99_997.75]);
        assert!(band.values.iter().skip(1).step_by(2).all(|value| *value == 0.0));
        let transparent = RenderSpec { transparent: true, ..spec.clone() };
        assert_eq!(transparent.coverage_channel(), Some(10));
        // A pixel that is covered by half, with means over all of it.
        let values = vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 2.0, 4.0, 8.0, 0.5];
        let mut half = Band { width: 1, height: 1, values };
        restore(&mut half, &transparent);
        assert_eq!(half.values[7..], [500_000.5, 1.0, -49_998.0, 0.5]);
        let (before, own) = (band.values.clone(), RenderSpec { space: None, ..spec });
        restore(&mut band, &own);
        assert_eq!(band.values, before);
    }
}
