//! Looks up the nearest texel by UV, for estimates while a scene is prepared. Pictures use the
//! kernels' filtering.

use crate::texture::TextureSet;
use crate::texture::srgb::linear_from_srgb;
use tessera_layout::{TexelFormat, Texture, Wrap};

/// Reads one texture.
pub(crate) struct TexelReader<'a> {
    texture: Texture,
    texels: &'a [u8],
    linear: &'static [f64; 256],
}

impl<'a> TexelReader<'a> {
    /// Creates a reader for texture number `texture`, which must exist.
    pub(crate) fn new(set: &'a TextureSet, texture: u32) -> Self {
        let texture = set.textures[texture as usize];
        let texels = &set.texels[texture.offset as usize..];
        Self { texture, texels, linear: linear_from_srgb() }
    }

    /// Returns linear RGB of the texel at (u, v).
    pub(crate) fn nearest(&self, u: f64, v: f64) -> [f64; 3] {
        let x = wrap(u, self.texture.width, self.texture.wrap_u);
        let y = wrap(v, self.texture.height, self.texture.wrap_v);
        self.texel(u64::from(y) * u64::from(self.texture.width) + u64::from(x))
    }

    /// Returns linear RGB, averaged over the texture.
    pub(crate) fn mean(&self) -> [f64; 3] {
        let count = u64::from(self.texture.width) * u64::from(self.texture.height);
        let mut sum = [0.0; 3];
        for index in 0..count {
            let texel = self.texel(index);
            sum = std::array::from_fn(|i| sum[i] + texel[i]);
        }
        sum.map(|value| value / count as f64)
    }

    fn texel(&self, index: u64) -> [f64; 3] {
        if self.texture.format == TexelFormat::Rgba16Linear as u32 {
            let at = index as usize * 8;
            let word = |i: usize| {
                u16::from_le_bytes([self.texels[at + 2 * i], self.texels[at + 2 * i + 1]])
            };
            return std::array::from_fn(|i| f64::from(word(i)) / 65_535.0);
        }
        let bytes = &self.texels[index as usize * 4..][..3];
        let is_srgb = self.texture.format == TexelFormat::Rgba8Srgb as u32;
        std::array::from_fn(|i| {
            if is_srgb { self.linear[usize::from(bytes[i])] } else { f64::from(bytes[i]) / 255.0 }
        })
    }
}

fn wrap(coordinate: f64, size: u32, mode: u32) -> u32 {
    let coordinate = if mode == Wrap::ClampToEdge as u32 {
        coordinate.clamp(0.0, 1.0)
    } else if mode == Wrap::MirroredRepeat as u32 {
        let folded = coordinate - 2.0 * (coordinate * 0.5).floor();
        if folded > 1.0 { 2.0 - folded } else { folded }
    } else {
        coordinate - coordinate.floor()
    };
    ((coordinate * f64::from(size)) as u32).min(size - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wrap_mode_lands_on_its_texel() {
        let at = |u: f64, mode: Wrap| wrap(u, 4, mode as u32);
        assert_eq!(
            [at(1.3, Wrap::Repeat), at(-0.1, Wrap::Repeat), at(0.99, Wrap::Repeat)],
            [1, 3, 3]
        );
        assert_eq!([at(1.3, Wrap::ClampToEdge), at(-0.1, Wrap::ClampToEdge)], [3, 0]);
        assert_eq!([at(1.3, Wrap::MirroredRepeat), at(-0.1, Wrap::MirroredRepeat)], [2, 0]);
        assert_eq!(at(f64::NAN, Wrap::Repeat), 0);
    }
}
