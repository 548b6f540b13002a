//! Textures: descriptors into one texel buffer. Filtering is done by the kernels, never by
//! hardware.

use bytemuck::{Pod, Zeroable};

/// How a texel is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TexelFormat {
    /// 4 bytes, R G B A; R G B are sRGB-encoded and decoded by table, A is linear.
    Rgba8Srgb = 0,
    /// 4 bytes, R G B A, all linear in 1/255.
    Rgba8Linear = 1,
    /// 8 bytes, four little-endian u16, all linear in 1/65535 (16-bit PNG, linear use).
    Rgba16Linear = 2,
}

impl TexelFormat {
    /// Bytes that a texel takes.
    pub fn bytes(self) -> usize {
        if self == TexelFormat::Rgba16Linear { 8 } else { 4 }
    }
}

/// Wrap mode of one axis (glTF sampler).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Wrap {
    /// Tile.
    Repeat = 0,
    /// Clamp to the edge texel.
    ClampToEdge = 1,
    /// Tile, every other one mirrored.
    MirroredRepeat = 2,
}

/// One texture: 48 bytes. Rows run from v = 0 (top) downwards, as in glTF. Levels follow one
/// another without a gap, each half as wide and high as the one before, rounded down, and one texel
/// at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Texture {
    /// Byte offset of the first texel in [`crate::FlatScene::texels`]; a multiple of 16.
    pub offset: u64,
    /// Texels across, 1 to 16384.
    pub width: u32,
    /// Texels down, 1 to 16384.
    pub height: u32,
    /// A [`TexelFormat`].
    pub format: u32,
    /// A [`Wrap`] for u.
    pub wrap_u: u32,
    /// A [`Wrap`] for v.
    pub wrap_v: u32,
    /// 0: nearest, 1: bilinear (the magnification filter).
    pub bilinear: u32,
    /// Levels, 1 to [`Texture::levels_of`] its size.
    pub level_count: u32,
    /// Zero.
    pub reserved: [u32; 3],
}

const _: () = assert!(size_of::<Texture>() == 48);

impl Texture {
    /// How many levels a texture of this size can have: down to one texel.
    pub fn levels_of(width: u32, height: u32) -> u32 {
        32 - width.max(height).max(1).leading_zeros()
    }

    /// Texels across and down of a level, of a texture that is so large at level 0.
    pub fn level_size((width, height): (u32, u32), level: u32) -> (u32, u32) {
        ((width >> level).max(1), (height >> level).max(1))
    }

    /// Texels of the first levels together.
    pub fn level_texels(size: (u32, u32), level_count: u32) -> u64 {
        let texels = |(width, height)| u64::from(width) * u64::from(height);
        (0..level_count).map(|level| texels(Self::level_size(size, level))).sum()
    }
}
