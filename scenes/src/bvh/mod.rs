//! Bounding volume hierarchies over world-space triangles. Owns how they are built; what a hit is, and why it does not
//! depend on anything decided here, stands in `kernels/source/traverse.h`.
//!
//! ```text
//! triangles ─ padded boxes ─ binary tree (split rule) ─ cheapest eight-wide tree ─ nodes and triangle blocks
//! ```
//!
//! A tree depends on the triangles and the builder alone, not on the number of threads.

mod binary;
mod bounds;
mod split;
mod wide;

use bounds::{Bounds, PrimitiveRef};
use tessera_layout::{Bvh, Triangle};

/// How a tree is split.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum BuilderKind {
    /// Binned surface area heuristic: what scenes are rendered with.
    #[default]
    SurfaceArea,
    /// Halves by count along the longest axis: quick to build, slower to trace.
    Median,
    /// Arbitrary splits from a seed, for tests: as bad as a valid tree can be.
    Random(u64),
}

/// Padding in units of the largest coordinate: 2^-21, four units in the last place. A slab distance is off by three
/// roundings at most, so a box that is this much larger is never missed by a ray that meets what is in it.
const PADDING_SCALE: f32 = 1.0 / 2_097_152.0;

/// Triangles a hierarchy can hold, so that ids and node indices keep clear of their flag bits.
pub const TRIANGLES_MAX: usize = 1 << 29;

/// Builds a hierarchy over `triangles`, whose corners are finite. `origin_max` is the largest magnitude in metres of
/// any coordinate that a ray can start from outside the triangles themselves (cameras with their lens).
///
/// # Panics
/// With more than [`TRIANGLES_MAX`] triangles, which importers refuse long before.
pub fn build(triangles: &[Triangle], kind: BuilderKind, origin_max: f32) -> Bvh {
    assert!(
        triangles.len() <= TRIANGLES_MAX,
        "{} triangles are more than a hierarchy can hold",
        triangles.len()
    );
    let padding = padding(triangles, origin_max);
    if triangles.is_empty() {
        return Bvh { padding, ..Bvh::default() };
    }
    let mut primitives: Vec<PrimitiveRef> = (0u32..)
        .zip(triangles)
        .map(|(id, triangle)| PrimitiveRef::new(padded_box(triangle, padding), id))
        .collect();
    let tree = binary::build(&mut primitives, kind);
    let (nodes, blocks) = wide::collapse(&tree, &primitives, triangles);
    Bvh { nodes, blocks, padding }
}

/// The padding for these triangles and ray origins, in metres.
fn padding(triangles: &[Triangle], origin_max: f32) -> f32 {
    let corners = triangles.iter().flat_map(|t| [t.v0, t.v1, t.v2]).flatten();
    corners.fold(origin_max.abs(), |largest, coordinate| largest.max(coordinate.abs())) * PADDING_SCALE
}

/// A triangle's own box by the operations of `own_box_interval` in `kernels/source/triangle.h`.
fn padded_box(triangle: &Triangle, padding: f32) -> Bounds {
    let mut bounds = Bounds::EMPTY;
    for corner in [triangle.v0, triangle.v1, triangle.v2] {
        bounds.add_point(corner);
    }
    for axis in 0..3 {
        bounds.lower[axis] -= padding;
        bounds.upper[axis] += padding;
    }
    bounds
}

#[cfg(test)]
mod tests;
