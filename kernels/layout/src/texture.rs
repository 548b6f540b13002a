//! Textures: descriptors into one texel buffer. Filtering is done by the kernels, never by hardware.

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

/// One texture: 32 bytes. Rows run from v = 0 (top) downwards, as in glTF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
}

const _: () = assert!(size_of::<Texture>() == 32);
