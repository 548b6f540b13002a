//! What flattening starts from: nodes, meshes and materials of one scene.

use crate::mesh::{Mesh, Skin};
use crate::node::Forest;
use crate::options::Limits;
use tessera_layout::{AlphaMode, Material, material_flags, triangle_flags};

/// Everything that geometry is made from.
pub(crate) struct Parts<'a> {
    pub(crate) file: &'a str,
    pub(crate) forest: &'a Forest,
    /// Visible nodes of the scene, in its order.
    pub(crate) shown: &'a [usize],
    pub(crate) meshes: &'a [Mesh],
    pub(crate) skins: &'a [Skin],
    pub(crate) materials: &'a [Material],
    pub(crate) limits: &'a Limits,
}

/// Returns the flags that a material gives to its triangles.
pub(crate) fn flags_of(material: &Material) -> u32 {
    let mut flags = 0;
    if material.alpha_mode != AlphaMode::Opaque as u32 || material.flags & material_flags::PANE != 0
    {
        flags |= triangle_flags::ALPHA;
    }
    if material.flags & material_flags::DOUBLE_SIDED != 0 {
        flags |= triangle_flags::DOUBLE_SIDED;
    }
    flags
}
