//! The bounding volume hierarchy of the host build: eight children a node.

use crate::Array;
use bytemuck::{Pod, Zeroable};

/// Triangles one leaf may hold: one [`TriangleBlock`].
pub const LEAF_TRIANGLES_MAX: u32 = 4;
/// A child that is not there (its box is empty: lower above upper).
pub const CHILD_EMPTY: u32 = u32::MAX;
/// Set in a child that is a leaf; the low 31 bits are its index into [`Bvh::blocks`].
pub const CHILD_LEAF_FLAG: u32 = 0x8000_0000;
/// Set in a leaf that is an instance; the low 30 bits are its index into
/// [`crate::FlatScene::instances`].
pub const CHILD_INSTANCE_FLAG: u32 = 0x4000_0000;
/// Set beside a triangle id in [`TriangleBlock::triangle`] where the triangle has
/// [`crate::triangle_flags::ALPHA`], so that traversal need not look the triangle up.
pub const BLOCK_ALPHA_FLAG: u32 = 0x8000_0000;
/// Inner nodes on any way from the root to a leaf, at most, those of an instance's mesh included.
/// The traversal's stack has room for exactly this.
pub const BVH_DEPTH_MAX: u32 = 48;

/// Eight boxes and eight children: 256 bytes, structure of arrays, for one vector test of all
/// eight.
///
/// Any hierarchy over the same triangles gives the same hits to the last bit, because hits are
/// canonical (see `kernels/source/bvh/traverse.h`): a child's box must contain the padded box of
/// every triangle below it, nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub struct BvhNode8 {
    /// Side (0 lower, 1 upper), axis, child: metres, world space.
    pub bounds: [[[f32; 8]; 3]; 2],
    /// Index of an inner node, or a leaf ([`CHILD_LEAF_FLAG`]), or [`CHILD_EMPTY`].
    pub child: [u32; 8],
    /// Zero.
    pub reserved: [u32; 8],
}

/// The triangles of one leaf: 160 bytes, structure of arrays, for one vector test of all four. A
/// lane without a triangle has NaN corners, which no ray hits.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(32))]
pub struct TriangleBlock {
    /// Corner, axis, lane: the positions of [`crate::Triangle`], bit for bit.
    pub corner: [[[f32; 4]; 3]; 3],
    /// Triangle id, with [`BLOCK_ALPHA_FLAG`] where it applies; [`crate::NONE`] in an empty lane.
    pub triangle: [u32; 4],
}

const _: () = assert!(size_of::<BvhNode8>() == 256);
const _: () = assert!(size_of::<TriangleBlock>() == 160);

/// A hierarchy: nodes (the root is 0; empty for an empty scene) and the blocks its leaves point at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bvh {
    /// Inner nodes.
    pub nodes: Array<BvhNode8>,
    /// Leaves; every triangle of the scene's own stands in exactly one.
    pub blocks: Array<TriangleBlock>,
    /// Padding in metres, added to every side of every triangle's own box: a few units in the last
    /// place of the largest coordinate that a ray or a triangle can have.
    pub padding: f32,
}
