//! A wall of mirrored textures, so large in the picture that what is done for a mirrored coordinate runs often in every copy of the look-up.
//! Made for the mutation check; knows no machine.

use crate::scenes::{Case, bright, coat, look, texture, used};
use crate::support::*;
use tessera_layout::*;

/// Filtered and not, plain and with a coat.
pub(crate) fn all(size: u32) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(size, size, 3, 1) };
    let walls = [true, false].map(wall);
    let scenes = walls.into_iter().flat_map(|scene| [coat(&scene, 1), scene]);
    scenes.map(|scene| Case { name: "mirrors", scene, unit }).collect()
}

fn wall(bilinear: bool) -> tessera_kernels::CheckedScene {
    let mut builder = Builder::default();
    let mirrored = (Wrap::MirroredRepeat, Wrap::MirroredRepeat);
    let formats = [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear];
    let [colour, rough, fine] =
        formats.map(|format| texture(&mut builder, format, mirrored, bilinear, (11, 7)));
    let mut look_of = material([0.9, 0.8, 0.7], 0.3, 0.6);
    (look_of.base_color_texture, look_of.metallic_roughness_texture) = (used(colour, 0), used(rough, 0));
    (look_of.normal_texture, look_of.emission_texture) = (used(fine, 0), used(colour, 0));
    (look_of.emission, look_of.normal_scale) = ([0.5, 0.6, 0.7], 0.5);
    let wall = builder.add_material(look_of);
    builder.quad([[-9.0, -9.0, -1.0], [9.0, -9.0, -1.0], [9.0, 9.0, -1.4], [-9.0, 9.0, -1.2]], wall);
    builder.constant([0.8, 0.9, 1.1]);
    builder.camera = look([0.0, 0.0, 4.4]);
    bright(builder)
}
