//! glTF metallic-roughness materials as the kernels read them.

use bytemuck::{Pod, Zeroable};

/// Alpha mode of a material (glTF 2.0, §3.9.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum AlphaMode {
    /// Alpha is ignored.
    Opaque = 0,
    /// Present where alpha >= cutoff.
    Mask = 1,
    /// Present with probability alpha, decided by a hash of the ray and the triangle.
    Blend = 2,
}

/// Bits of [`Material::flags`].
pub mod material_flags {
    /// Shown from both sides.
    pub const DOUBLE_SIDED: u32 = 1;
    /// KHR_materials_unlit: base colour is emitted towards the camera ray, neither lit nor
    /// lighting.
    pub const UNLIT: u32 = 2;
    /// Thin glass that may be smooth: shadow rays ask what goes through. See
    /// [`Layers::may_be_pane`](crate::Layers::may_be_pane).
    pub const PANE: u32 = 4;
}

/// A use of a texture: which one, which UV set, and the affine map of KHR_texture_transform.
/// 48 bytes: `(u', v') = (m[0]*u + m[1]*v + m[2], m[3]*u + m[4]*v + m[5])`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct TextureRef {
    /// Row-major 2×3 affine map of UVs.
    pub uv_from_mesh: [f32; 6],
    /// Index into [`crate::FlatScene::textures`], or [`crate::NONE`].
    pub texture: u32,
    /// 0 or 1.
    pub uv_set: u32,
    /// Zero.
    pub reserved: [u32; 4],
}

impl TextureRef {
    /// No texture at all: every factor applies alone.
    pub const ABSENT: TextureRef = TextureRef {
        uv_from_mesh: [1.0, 0.0, 0.0, 0.0, 1.0, 0.0],
        texture: crate::NONE,
        uv_set: 0,
        reserved: [0; 4],
    };
}

/// A surface: 256 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Material {
    /// Linear base colour factor and alpha, each in [0, 1].
    pub base_color: [f32; 4],
    /// Linear emitted radiance factor, strength multiplied in (KHR_materials_emissive_strength), >=
    /// 0.
    pub emission: [f32; 3],
    /// Metallic factor in [0, 1].
    pub metallic: f32,
    /// Perceptual roughness factor in [0, 1]; alpha is its square.
    pub roughness: f32,
    /// Scale of the normal map's x and y.
    pub normal_scale: f32,
    /// Cutoff for [`AlphaMode::Mask`].
    pub alpha_cutoff: f32,
    /// Index of refraction (KHR_materials_ior), 1.5 by default; gives F0 = ((ior-1)/(ior+1))².
    pub ior: f32,
    /// An [`AlphaMode`].
    pub alpha_mode: u32,
    /// Bits of [`material_flags`].
    pub flags: u32,
    /// Index into [`crate::FlatScene::layers`] of what the extensions add; 0 for a plain material.
    pub layers: u32,
    /// Zero.
    pub reserved: u32,
    /// Base colour and alpha (sRGB).
    pub base_color_texture: TextureRef,
    /// Green: roughness, blue: metallic (linear).
    pub metallic_roughness_texture: TextureRef,
    /// Tangent-space normal (linear).
    pub normal_texture: TextureRef,
    /// Emission (sRGB).
    pub emission_texture: TextureRef,
}

const _: () = assert!(size_of::<TextureRef>() == 48);
const _: () = assert!(size_of::<Material>() == 256);
