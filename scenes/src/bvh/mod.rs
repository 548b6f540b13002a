//! Bounding volume hierarchies over world-space triangles. Owns how they are built; what a hit is,
//! and why it does not depend on anything decided here, stands in `kernels/source/bvh/traverse.h`.
//!
//! ```text
//! triangles ─ padded boxes ─ binary tree (split rule) ─ cheapest eight-wide tree
//!                            instances ─ padded boxes ─ the same ───────┤
//!                                             nodes and triangle blocks ◄┘
//! ```
//!
//! A tree depends only on the triangles and the builder, not on the number of threads; in a film in
//! which triangles move, also on the frames before (`refit.rs`).

mod binary;
mod bounds;
mod builder_kind;
mod refit;
mod split;
mod wide;

use binary::Shape;
use bounds::{Bounds, PrimitiveRef};
pub use builder_kind::BuilderKind;
use rayon::prelude::*;
pub(crate) use refit::LastTree;
use tessera_layout::{
    BVH_DEPTH_MAX, Bvh, BvhNode8, CHILD_EMPTY, CHILD_LEAF_FLAG, LEAF_TRIANGLES_MAX, Triangle,
    TriangleBlock, room_for,
};
use wide::{Leaves, Trees};

/// Padding in units of the largest coordinate: 2^-21, which is four units in the last place. A slab
/// distance has an error of at most three roundings. So a ray that hits something in a box always
/// hits the padded box.
pub(crate) const PADDING_SCALE: f32 = 1.0 / 2_097_152.0;

/// Levels that a mesh's binary tree may have, if they suffice. An eight-wide tree has far fewer, so
/// the tree over the instances can have most of the possible levels.
const MESH_DEPTH: u32 = 24;

/// Most levels of a mesh's hierarchy. They leave enough for a tree over as many instances as a
/// scene can have nodes.
pub(crate) const MESH_LEVELS_MAX: u32 = 23;

impl Shape {
    const TRIANGLES: Shape = Shape {
        kind: BuilderKind::SurfaceArea,
        leaf_max: LEAF_TRIANGLES_MAX as usize,
        // One level less, since a root may be added above it.
        depth_max: BVH_DEPTH_MAX - 1,
    };
}

/// Most triangles of a hierarchy, so that ids and node indices do not reach their flag bits.
pub const TRIANGLES_MAX: usize = 1 << 29;

/// Largest coordinate of a box in metres. Kernels refuse larger ones.
pub(crate) const EXTENT_MAX: f32 = 1e34;

/// Instances, as far as a hierarchy needs them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Placed<'a> {
    /// Box of each instance in the world, lower and upper corner, not padded.
    pub(crate) boxes: &'a [[[f32; 3]; 2]],
    /// Number of levels of the deepest mesh.
    pub(crate) depth: u32,
}

/// Builds a hierarchy over `triangles`, whose corners are finite. `origin_max` is the largest
/// magnitude in metres of any coordinate that a ray can start from outside the triangles themselves
/// (cameras with their lens).
///
/// # Panics
///
/// If there are more than [`TRIANGLES_MAX`] triangles, which importers refuse.
pub fn build(triangles: &[Triangle], kind: BuilderKind, origin_max: f32) -> Bvh {
    build_with(triangles, Placed::default(), kind, origin_max)
}

/// Builds a hierarchy over triangles and instances: one tree of each, below one root.
pub(crate) fn build_with(
    triangles: &[Triangle],
    instances: Placed<'_>,
    kind: BuilderKind,
    origin_max: f32,
) -> Bvh {
    let padding = padding_for(triangles, instances, origin_max);
    let of_triangles = tree_of_triangles(triangles, padding, Shape { kind, ..Shape::TRIANGLES });
    above(of_triangles, instances, kind, padding)
}

/// Does the same for a frame of `samples` samples in which triangles may have moved since `last`
/// was used: with its tree, if that is still good enough.
pub(crate) fn build_after(
    (last, samples): (&LastTree, u64),
    triangles: &[Triangle],
    instances: Placed<'_>,
    (kind, origin_max): (BuilderKind, f32),
) -> Bvh {
    let padding = padding_for(triangles, instances, origin_max);
    let build = || tree_of_triangles(triangles, padding, Shape { kind, ..Shape::TRIANGLES });
    let of_triangles = last.tree(kind, (triangles, padding), samples, build);
    above(of_triangles, instances, kind, padding)
}

fn padding_for(triangles: &[Triangle], instances: Placed<'_>, origin_max: f32) -> f32 {
    assert!(
        triangles.len() <= TRIANGLES_MAX,
        "{} triangles are more than a hierarchy can hold",
        triangles.len()
    );
    let of_triangles =
        triangles.par_iter().map(|t| reach([t.v0, t.v1, t.v2])).reduce(|| 0.0, f32::max);
    let of_instances = instances.boxes.iter().map(|&corners| reach(corners)).fold(0.0, f32::max);
    origin_max.abs().max(of_triangles).max(of_instances) * PADDING_SCALE
}

/// Returns the hierarchy of a tree over triangles and of instances.
fn above(of_triangles: Trees, instances: Placed<'_>, kind: BuilderKind, padding: f32) -> Bvh {
    let (nodes, blocks) = if instances.boxes.is_empty() {
        of_triangles
    } else {
        // One level is for the root above both.
        let depth_max = BVH_DEPTH_MAX - instances.depth - 1;
        let of_instances =
            tree_of_instances(instances.boxes, padding, Shape { kind, leaf_max: 1, depth_max });
        (joined(&of_triangles.0, &of_instances), of_triangles.1)
    };
    Bvh { nodes: nodes.into(), blocks: blocks.into(), padding }
}

/// Returns the largest magnitude of any coordinate.
fn reach<const N: usize>(corners: [[f32; 3]; N]) -> f32 {
    corners.into_iter().flatten().fold(0.0, |largest, coordinate| largest.max(coordinate.abs()))
}

/// Returns the nodes, the root first, and the blocks. Both are empty if there is no triangle.
fn tree_of_triangles(triangles: &[Triangle], padding: f32, shape: Shape) -> Trees {
    if triangles.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let mut primitives: Vec<PrimitiveRef> = room_for(triangles.len());
    let numbered = triangles.par_iter().enumerate();
    numbered
        .map(|(id, triangle)| PrimitiveRef::new(padded_box(triangle, padding), id as u32))
        .collect_into_vec(&mut primitives);
    let tree = binary::build(&mut primitives, shape);
    let ids = ids_of(primitives);
    wide::collapse(&tree, &ids, Leaves::Triangles(triangles))
}

/// Returns what the wide tree needs of primitives, whose boxes are freed before there is room for
/// it.
fn ids_of(primitives: Vec<PrimitiveRef>) -> Vec<u32> {
    primitives.par_iter().map(PrimitiveRef::id).collect()
}

fn tree_of_instances(boxes: &[[[f32; 3]; 2]], padding: f32, shape: Shape) -> Vec<BvhNode8> {
    let padded = |[lower, upper]: &[[f32; 3]; 2]| Bounds {
        lower: [lower[0] - padding, lower[1] - padding, lower[2] - padding, 0.0],
        upper: [upper[0] + padding, upper[1] + padding, upper[2] + padding, 0.0],
    };
    let mut primitives: Vec<PrimitiveRef> =
        (0u32..).zip(boxes).map(|(id, placed)| PrimitiveRef::new(padded(placed), id)).collect();
    let tree = binary::build(&mut primitives, shape);
    let ids = ids_of(primitives);
    wide::collapse(&tree, &ids, Leaves::Instances).0
}

/// Returns a root above the trees that are not empty, with the larger one last.
fn joined(of_triangles: &[BvhNode8], of_instances: &[BvhNode8]) -> Vec<BvhNode8> {
    let mut trees: Vec<(&[BvhNode8], Bounds)> = [of_triangles, of_instances]
        .into_iter()
        .filter(|tree| !tree.is_empty())
        .map(|tree| (tree, bounds_of(&tree[0])))
        .collect();
    trees.sort_by(|a, b| a.1.half_area().total_cmp(&b.1.half_area()));
    let mut nodes = vec![wide::EMPTY_NODE];
    for (slot, (tree, bounds)) in trees.iter().enumerate() {
        let first = nodes.len() as u32;
        wide::set_child(&mut nodes[0], slot, bounds, first);
        nodes.extend(tree.iter().map(|node| moved(node, first, 0)));
    }
    nodes
}

/// Returns a node whose inner children are moved by `nodes`, and its blocks by `blocks`.
fn moved(node: &BvhNode8, nodes: u32, blocks: u32) -> BvhNode8 {
    let child = node.child.map(|child| match child {
        CHILD_EMPTY => CHILD_EMPTY,
        leaf if leaf & CHILD_LEAF_FLAG != 0 => leaf + blocks,
        inner => inner + nodes,
    });
    BvhNode8 { child, ..*node }
}

/// Returns the box of all children.
fn bounds_of(node: &BvhNode8) -> Bounds {
    let mut bounds = Bounds::EMPTY;
    for slot in (0..8).filter(|slot| node.child[*slot] != CHILD_EMPTY) {
        let side = |side: usize| [0, 1, 2].map(|axis| node.bounds[side][axis][slot]);
        bounds.add_point(side(0));
        bounds.add_point(side(1));
    }
    bounds
}

/// Appends the hierarchy of an instanced mesh. Boxes of one that is moved are not padded, because
/// that is done in the world. Returns its root and its box.
pub(crate) fn append_mesh(
    triangles: &[Triangle],
    padding: f32,
    (nodes, blocks): (&mut Vec<BvhNode8>, &mut Vec<TriangleBlock>),
) -> (u32, [[f32; 3]; 2]) {
    let depth_max = MESH_DEPTH.max(binary::levels_of_halving(triangles.len()) + 2);
    let (own, own_blocks) =
        tree_of_triangles(triangles, padding, Shape { depth_max, ..Shape::TRIANGLES });
    let (first_node, first_block) = (nodes.len() as u32, blocks.len() as u32);
    let bounds = own.first().map_or(Bounds::EMPTY, bounds_of);
    nodes.extend(own.iter().map(|node| moved(node, first_node, first_block)));
    blocks.extend(own_blocks);
    let [lower, upper] =
        [bounds.lower, bounds.upper].map(|corner| [corner[0], corner[1], corner[2]]);
    (first_node, [lower, upper])
}

/// Returns the number of levels of inner nodes below and including a root.
pub(crate) fn depth(nodes: &[BvhNode8], root: u32) -> u32 {
    let mut deepest = 0;
    let mut open = vec![(root, 1)];
    while let Some((index, level)) = open.pop() {
        deepest = deepest.max(level);
        let inner =
            nodes[index as usize].child.into_iter().filter(|child| child & CHILD_LEAF_FLAG == 0);
        open.extend(inner.map(|child| (child, level + 1)));
    }
    deepest
}

/// Returns a triangle's own box, with the operations of `own_box_interval` in
/// `kernels/source/geometry/triangle.h`.
fn padded_box(triangle: &Triangle, padding: f32) -> Bounds {
    let mut bounds = Bounds::EMPTY;
    for corner in [triangle.v0, triangle.v1, triangle.v2] {
        bounds.add_point(corner);
    }
    bounds.pad(padding);
    bounds
}

#[cfg(test)]
mod tests;
