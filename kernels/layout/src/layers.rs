//! What glTF's material extensions add to a material, as the kernels read it.

use crate::{Material, TextureRef};
use bytemuck::{Pod, Zeroable};

/// Records of a scene at most.
pub const LAYERS_MAX: usize = 1 << 16;

/// Bits of [`Layers::flags`].
pub mod layers_flags {
    /// KHR_materials_pbrSpecularGlossiness: `specular_color` is F0, the base colour the diffuse
    /// one.
    pub const SPECULAR_GLOSSINESS: u32 = 1;
}

/// Places in [`Layers::textures`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum LayersTexture {
    /// A: strength of the specular reflection.
    Specular = 0,
    /// RGB, sRGB: its colour.
    SpecularColor = 1,
    /// R: strength of the coat.
    Clearcoat = 2,
    /// G: roughness of the coat.
    ClearcoatRoughness = 3,
    /// Tangent-space normal of the coat.
    ClearcoatNormal = 4,
    /// RGB, sRGB.
    SheenColor = 5,
    /// A.
    SheenRoughness = 6,
    /// R.
    Transmission = 7,
    /// A.
    DiffuseTransmission = 8,
    /// RGB, sRGB.
    DiffuseTransmissionColor = 9,
    /// RG: direction, B: strength.
    Anisotropy = 10,
    /// R.
    Iridescence = 11,
    /// G: between the least and the largest thickness.
    IridescenceThickness = 12,
    /// RGB, sRGB: F0; A: glossiness.
    SpecularGlossiness = 13,
}

/// Textures of [`Layers`].
pub const LAYERS_TEXTURES: usize = 14;

/// The extensions of one material: 784 bytes. Factors are linear and multiply their textures.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Layers {
    /// Bits of [`layers_flags`].
    pub flags: u32,
    /// KHR_materials_specular: strength, in [0, 1].
    pub specular: f32,
    /// KHR_materials_clearcoat: strength, in [0, 1].
    pub clearcoat: f32,
    /// Perceptual roughness of the coat, in [0, 1].
    pub clearcoat_roughness: f32,
    /// Colour of F0, >= 0; F0 itself for [`layers_flags::SPECULAR_GLOSSINESS`].
    pub specular_color: [f32; 3],
    /// Scale of the coat's normal map.
    pub clearcoat_normal_scale: f32,
    /// KHR_materials_sheen: colour, each in [0, 1]; black for none.
    pub sheen_color: [f32; 3],
    /// Perceptual roughness of the sheen, in [0, 1].
    pub sheen_roughness: f32,
    /// KHR_materials_diffuse_transmission: colour, each in [0, 1].
    pub diffuse_transmission_color: [f32; 3],
    /// Share of the diffuse light that goes through, in [0, 1].
    pub diffuse_transmission: f32,
    /// KHR_materials_transmission: share of the light below the interface that goes through, in [0,
    /// 1].
    pub transmission: f32,
    /// KHR_materials_anisotropy: strength, in [0, 1].
    pub anisotropy: f32,
    /// Cosine of its rotation.
    pub anisotropy_cosine: f32,
    /// Sine of its rotation.
    pub anisotropy_sine: f32,
    /// KHR_materials_iridescence: strength, in [0, 1].
    pub iridescence: f32,
    /// Index of refraction of the film, >= 1.
    pub iridescence_ior: f32,
    /// Thickness of the film where its texture is 0, nm.
    pub iridescence_thickness_min: f32,
    /// Thickness of the film where its texture is 1 or absent, nm.
    pub iridescence_thickness_max: f32,
    /// KHR_materials_volume with a thickness: index into [`crate::FlatScene::media`] of what the
    /// surface encloses; light is refracted by it. 0 where it encloses nothing.
    pub medium: u32,
    /// Zero.
    pub reserved: [u32; 3],
    /// Indexed by [`LayersTexture`].
    pub textures: [TextureRef; LAYERS_TEXTURES],
}

impl Layers {
    /// A material without extensions: the first record of every scene that has any.
    pub const NONE: Layers = Layers {
        flags: 0,
        specular: 1.0,
        clearcoat: 0.0,
        clearcoat_roughness: 0.0,
        specular_color: [1.0; 3],
        clearcoat_normal_scale: 1.0,
        sheen_color: [0.0; 3],
        sheen_roughness: 0.0,
        diffuse_transmission_color: [1.0; 3],
        diffuse_transmission: 0.0,
        transmission: 0.0,
        anisotropy: 0.0,
        anisotropy_cosine: 1.0,
        anisotropy_sine: 0.0,
        iridescence: 0.0,
        iridescence_ior: 1.3,
        iridescence_thickness_min: 100.0,
        iridescence_thickness_max: 400.0,
        medium: 0,
        reserved: [0; 3],
        textures: [TextureRef::ABSENT; LAYERS_TEXTURES],
    };
}

/// Perceptual roughness up to which thin glass is a pane: light goes straight through, and shadow
/// rays with it.
pub const PANE_ROUGHNESS: f32 = 0.1;

impl Layers {
    /// Returns whether a material with these layers is a pane wherever it is smooth, and may be
    /// smooth somewhere: it transmits, encloses nothing and has no grain.
    pub fn may_be_pane(&self, material: &Material) -> bool {
        let may_be_smooth = material.roughness <= PANE_ROUGHNESS
            || material.metallic_roughness_texture.texture != crate::NONE;
        self.transmission > 0.0 && self.medium == 0 && self.anisotropy == 0.0 && may_be_smooth
    }
}

const _: () = assert!(size_of::<Layers>() == 28 * 4 + LAYERS_TEXTURES * 48);
