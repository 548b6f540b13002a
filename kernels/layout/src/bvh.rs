//! The bounding volume hierarchy of the host build: eight children a node.

/// Triangles one leaf may hold.
pub const LEAF_TRIANGLES_MAX: u32 = 4;
/// A child that is not there (its box is empty: lower above upper).
pub const CHILD_EMPTY: u32 = u32::MAX;
/// Set in a child that is a leaf.
pub const CHILD_LEAF_FLAG: u32 = 0x8000_0000;
/// A leaf's triangle count less one sits in bits 29 and 30; the low 29 bits are the first entry in
/// [`Bvh::leaf_triangles`].
pub const LEAF_COUNT_SHIFT: u32 = 29;

/// Eight boxes and eight children: 256 bytes, structure of arrays, for one vector test of all eight.
///
/// Any hierarchy over the same triangles gives the same hits to the last bit, because hits are canonical (see
/// `kernels/source/traverse.h`): a child's box must contain the padded box of every triangle below it, nothing else.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C, align(64))]
pub struct BvhNode8 {
    /// Lower bounds along x, y, z of each child.
    pub lower: [[f32; 8]; 3],
    /// Upper bounds along x, y, z of each child.
    pub upper: [[f32; 8]; 3],
    /// Index of an inner node, or a leaf ([`CHILD_LEAF_FLAG`]), or [`CHILD_EMPTY`]. Children are ordered so that slot
    /// `s` holds the child that lies furthest along the direction whose sign bits are `s`, as far as that is possible.
    pub child: [u32; 8],
    /// Zero.
    pub reserved: [u32; 8],
}

const _: () = assert!(size_of::<BvhNode8>() == 256);

/// A hierarchy: nodes (the root is 0; empty for an empty scene) and the triangle ids its leaves point at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bvh {
    /// Inner nodes.
    pub nodes: Vec<BvhNode8>,
    /// Triangle ids in leaf order. An id may stand in several leaves (spatial splits).
    pub leaf_triangles: Vec<u32>,
    /// Padding in metres, added to every side of every triangle's own box: about one unit in the last place of the
    /// largest coordinate that a ray or a triangle can have.
    pub padding: f32,
}
