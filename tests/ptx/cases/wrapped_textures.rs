//! Walls of mirrored and of repeated textures, so large in the picture that what is done for such a
//! coordinate runs often in every copy of the look-up, near and so far away that coarse levels are
//! read. Made for the mutation check; knows no machine.

use tessera_layout::*;
use tessera_support::builder::*;
use tessera_support::scenes::{Case, bright, coat, look, texture, used};

/// Mirrored, filtered and not, and repeated, near and far; plain and with a coat.
pub(crate) fn all(size: u32) -> Vec<Case> {
    let unit = UnitParams { aovs: 15, ..whole(size, size, 3, 1) };
    let walls = [
        (Wrap::MirroredRepeat, true, 1.0),
        (Wrap::MirroredRepeat, false, 1.0),
        (Wrap::Repeat, true, 1.0),
        (Wrap::Repeat, true, 16.0),
    ]
    .map(wall);
    let scenes = walls.into_iter().flat_map(|scene| [coat(&scene, 1), scene]);
    scenes.map(|scene| Case { name: "mirrors", scene, unit }).collect()
}

/// `often`: how often more the textures repeat than those of other scenes.
fn wall((wrap, bilinear, often): (Wrap, bool, f32)) -> tessera_kernels::CheckedScene {
    let mut builder = Builder::default();
    let formats = [TexelFormat::Rgba8Srgb, TexelFormat::Rgba8Linear, TexelFormat::Rgba16Linear];
    let [colour, rough, fine] =
        formats.map(|format| texture(&mut builder, format, (wrap, wrap), bilinear, (11, 7)));
    let mut look_of = material([0.9, 0.8, 0.7], 0.3, 0.6);
    let used = |texture| {
        let once = used(texture, 0);
        TextureRef { uv_from_mesh: once.uv_from_mesh.map(|factor| factor * often), ..once }
    };
    (look_of.base_color_texture, look_of.metallic_roughness_texture) = (used(colour), used(rough));
    (look_of.normal_texture, look_of.emission_texture) = (used(fine), used(colour));
    (look_of.emission, look_of.normal_scale) = ([0.5, 0.6, 0.7], 0.5);
    let wall = builder.add_material(look_of);
    builder
        .quad([[-9.0, -9.0, -1.0], [9.0, -9.0, -1.0], [9.0, 9.0, -1.4], [-9.0, 9.0, -1.2]], wall);
    builder.constant([0.8, 0.9, 1.1]);
    builder.camera = look([0.0, 0.0, 4.4]);
    bright(builder)
}
