//! A scene in which the last place of a texture coordinate decides what a ray meets. Made for the
//! mutation check; renders nothing.

use crate::builder::*;
use crate::studio::{Noise, bright, look, texture};
use tessera_kernels::CheckedScene;
use tessera_layout::*;

/// Texels are as wide as the last place of a coordinate: 16 of them in a unit, and coordinates near
/// 2^18.
const STEEP: f32 = 200_000.0;

fn steep(texture: u32, uv_set: u32) -> TextureRef {
    TextureRef {
        uv_from_mesh: [STEEP, 0.4, -0.7, -0.5, 1.1 * STEEP, 0.2],
        texture,
        uv_set,
        ..TextureRef::ABSENT
    }
}

/// Layers that are cut out by steep textures, and by colours that equal their cutoff but for
/// rounding, before lamps.
pub fn steep_textures() -> CheckedScene {
    let mut builder = Builder::default();
    let srgb = texture(
        &mut builder,
        TexelFormat::Rgba8Srgb,
        (Wrap::Repeat, Wrap::MirroredRepeat),
        false,
        (16, 13),
    );
    let soft = texture(
        &mut builder,
        TexelFormat::Rgba8Linear,
        (Wrap::MirroredRepeat, Wrap::Repeat),
        true,
        (16, 16),
    );
    let fine = texture(
        &mut builder,
        TexelFormat::Rgba16Linear,
        (Wrap::Repeat, Wrap::Repeat),
        true,
        (9, 16),
    );
    let base = material([0.7, 0.8, 0.6], 0.3, 0.5);
    let mask = |cutoff, used| Material {
        alpha_mode: AlphaMode::Mask as u32,
        alpha_cutoff: cutoff,
        base_color_texture: used,
        ..base
    };
    let blend = Material {
        alpha_mode: AlphaMode::Blend as u32,
        base_color_texture: steep(fine, 1),
        normal_texture: steep(soft, 0),
        metallic_roughness_texture: steep(srgb, 1),
        ..base
    };
    let looks = [
        mask(0.5, steep(srgb, 0)),
        mask(0.55, steep(soft, 1)),
        mask(0.7, TextureRef::ABSENT),
        blend,
        mask(0.5, steep(fine, 0)),
    ]
    .map(|look| builder.add_material(look));
    let mut lamp = material([0.4; 3], 0.0, 0.8);
    (lamp.emission, lamp.flags, lamp.emission_texture) =
        ([2.0, 3.0, 2.5], material_flags::DOUBLE_SIDED, steep(soft, 0));
    let lamp = builder.add_material(lamp);
    let mut noise = Noise(41);
    for at in 0..25usize {
        let centre = noise.point(1.6);
        let corner =
            |noise: &mut Noise| std::array::from_fn(|axis| centre[axis] + noise.between(-0.9, 0.9));
        let corners =
            [corner(&mut noise), corner(&mut noise), corner(&mut noise), corner(&mut noise)];
        builder.quad(corners, looks[at % looks.len()]);
    }
    add_lamps(&mut builder, lamp, &mut noise);
    builder.map(7, 5, |x, y| [0.2 + x as f32 * 0.1, 0.4, 0.1 + y as f32 * 0.3]);
    builder.camera = look([0.0, 0.1, 2.2]);
    bright(builder)
}

/// Adds lit walls, a spot and a sun, and gives every vertex colours and coordinates of noise.
fn add_lamps(builder: &mut Builder, lamp: u32, noise: &mut Noise) {
    for side in [-2.5, 2.5f32] {
        let wall = [[-2.5, -2.5, side], [2.5, -2.4, side], [2.4, 2.5, side], [-2.5, 2.4, side]];
        let lit = builder.quad(wall.map(|[a, b, c]| [c, a, b]), lamp);
        builder.emit(lit, 1.0);
        builder.emit(lit + 1, 1.0);
        let lit = builder.quad(wall.map(|[a, b, c]| [b, c, a]), lamp);
        builder.emit(lit, 2.0);
        builder.emit(lit + 1, 0.5);
    }
    for vertex in &mut builder.vertices {
        vertex.color =
            [noise.between(0.4, 1.0), noise.between(0.4, 1.0), noise.between(0.4, 1.0), 0.7];
        (vertex.u0, vertex.v0) = (noise.between(-1.0, 1.0), noise.between(-1.0, 1.0));
        vertex.uv1 = [noise.between(-1.0, 1.0), noise.between(-1.0, 1.0)];
    }
    let mut spot = light(LightKind::Spot, [30.0, 25.0, 20.0]);
    (spot.position, spot.range, spot.spot_scale, spot.spot_offset) =
        ([1.5, 2.3, 2.0], 9.0, 5.0, -3.4);
    spot.direction = unit([-1.2, -2.6, -1.9]);
    let mut sun = light(LightKind::Directional, [1.5, 1.4, 1.2]);
    sun.direction = unit([0.999, -0.03, -0.02]);
    builder.lights.extend([(spot, 1.0), (sun, 1.0)]);
}
