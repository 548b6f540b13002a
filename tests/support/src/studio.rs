//! What scenes made by hand are made with: light, noise, textures and a camera.

use crate::builder::*;
use tessera_kernels::CheckedScene;
use tessera_layout::*;

/// How much brighter the scenes are than a picture would be: the film's steps are 2^-24, and with
/// radiances in the hundreds the last bit of every one of them is seen.
const BRIGHTNESS: f32 = 512.0;

/// The finished scene under a bright constant environment.
pub fn bright(mut builder: Builder) -> CheckedScene {
    let brighten = |colour: &mut [f32; 3]| colour.iter_mut().for_each(|value| *value *= BRIGHTNESS);
    builder.lights.iter_mut().for_each(|(light, _)| brighten(&mut light.emission));
    builder.materials.iter_mut().for_each(|material| brighten(&mut material.emission));
    brighten(&mut builder.environment.constant);
    builder.environment.intensity *= BRIGHTNESS;
    builder.finish()
}

/// Numbers without pattern.
pub struct Noise(pub u32);

impl Noise {
    /// The next 32 bits.
    pub fn bits(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        (self.0 ^ self.0 >> 15).wrapping_mul(0x2c1b_3c6d)
    }

    /// In [0, 1).
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 / 16_777_216.0
    }

    /// Uniform in `low..high`.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// A point in the cube of this half edge about the origin.
    pub fn point(&mut self, half: f32) -> [f32; 3] {
        [self.between(-half, half), self.between(-half, half), self.between(-half, half)]
    }
}

/// Adds a texture of noise with all its levels; its number.
pub fn texture(
    builder: &mut Builder,
    format: TexelFormat,
    wrap: (Wrap, Wrap),
    bilinear: bool,
    size: (u32, u32),
) -> u32 {
    builder.texels.resize(builder.texels.len().next_multiple_of(16), 0);
    let offset = builder.texels.len() as u64;
    let mut noise = Noise(offset as u32 + 77);
    let level_count = Texture::levels_of(size.0, size.1);
    let words = Texture::level_texels(size, level_count)
        * if format == TexelFormat::Rgba16Linear { 2 } else { 1 };
    for _ in 0..words {
        builder.texels.extend((noise.bits() | 0x2000_2020).to_le_bytes());
    }
    builder.textures.push(Texture {
        offset,
        width: size.0,
        height: size.1,
        format: format as u32,
        wrap_u: wrap.0 as u32,
        wrap_v: wrap.1 as u32,
        bilinear: u32::from(bilinear),
        level_count,
        reserved: [0; 3],
    });
    builder.textures.len() as u32 - 1
}

/// A reference to a texture by its UV set.
pub fn used(texture: u32, uv_set: u32) -> TextureRef {
    TextureRef {
        uv_from_mesh: [2.6, 0.4, -0.7, -0.5, 3.1, 0.2],
        texture,
        uv_set,
        ..TextureRef::ABSENT
    }
}

/// A camera at `from` that looks at the origin.
pub fn look(from: [f32; 3]) -> Camera {
    // A general rotation, so that no axis of the camera is one of the world's.
    let (sine, cosine) = (0.28f32, 0.96f32);
    let mut camera = camera_at(from, CameraKind::Perspective, 0.45);
    camera.world_from_camera = [
        cosine,
        -sine * 0.28,
        sine * 0.96,
        from[0] + 1.2,
        0.0,
        0.96,
        0.28,
        from[1] + 1.2,
        -sine,
        -cosine * 0.28,
        cosine * 0.96,
        from[2] - 0.3,
    ];
    camera.half_height = 0.4;
    camera
}
