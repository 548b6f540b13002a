//! Triangles for intersection and vertices for shading, both already in world space.

use bytemuck::{Pod, Zeroable};

/// Bits of [`Triangle::flags`].
pub mod triangle_flags {
    /// The material has alpha mode MASK or BLEND, or may be a pane: what a hit stops is asked of
    /// the material.
    pub const ALPHA: u32 = 1;
    /// The material is double sided.
    pub const DOUBLE_SIDED: u32 = 2;
    /// The triangle emits and is in the light table; [`super::ShadingVertex`] data is needed for
    /// textured emission.
    pub const EMISSIVE: u32 = 4;
    /// The instance's transform mirrors (negative determinant). Winding and tangent signs already
    /// account for it; the bit only tells.
    pub const MIRRORED: u32 = 8;
}

/// What a ray is tested against: 48 bytes, positions in world space (metres).
///
/// The array is indexed by the triangle's id, which is its canonical position in the flattened
/// scene (node order of the default scene, then primitive, then triangle). Ids break ties between
/// equal distances, so they may depend on nothing but the scene. Counter-clockwise seen from the
/// front.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct Triangle {
    /// First corner.
    pub v0: [f32; 3],
    /// Index into [`crate::FlatScene::materials`].
    pub material: u32,
    /// Second corner.
    pub v1: [f32; 3],
    /// Bits of [`triangle_flags`].
    pub flags: u32,
    /// Third corner.
    pub v2: [f32; 3],
    /// Index into [`crate::FlatScene::lights`] of this triangle's own light, or [`crate::NONE`].
    pub light: u32,
}

/// What shading needs at a corner: 64 bytes. Triangle `i` has the vertices `triangle_vertices[i]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct ShadingVertex {
    /// Unit shading normal in world space (the geometric one where the file has none).
    pub normal: [f32; 3],
    /// TEXCOORD_0, u.
    pub u0: f32,
    /// Unit tangent in world space; zero where the mesh has neither tangents nor UVs to make them
    /// from.
    pub tangent: [f32; 3],
    /// Sign of the bitangent: `cross(normal, tangent) * tangent_sign`.
    pub tangent_sign: f32,
    /// COLOR_0 (linear, with alpha); white where absent.
    pub color: [f32; 4],
    /// TEXCOORD_0, v.
    pub v0: f32,
    /// TEXCOORD_1.
    pub uv1: [f32; 2],
    /// Zero.
    pub reserved: f32,
}

const _: () = assert!(size_of::<Triangle>() == 48);
const _: () = assert!(size_of::<ShadingVertex>() == 64);
