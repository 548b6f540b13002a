//! The binary tree: splits ranges down to what fits into a leaf and finds, on the way back, the cheapest eight-wide tree
//! inside it. Owns neither the split rules nor the output format.

use super::BuilderKind;
use super::bounds::{Bounds, PrimitiveRef};
use super::split;

/// Children of a wide node.
pub(super) const WIDTH: usize = 8;

/// Cost of testing a wide node's eight boxes, and of testing a block of triangles, however full: measured on
/// `benches/rays`, in one unit.
const COST_NODE: f32 = 1.0;
const COST_BLOCK: f32 = 1.0;

/// Ranges below this are built by one thread.
const PARALLEL_MIN: usize = 4096;

/// A node over `n` triangles; the slice of its subtree has `2 n - 1` nodes, itself first, then the left subtree, then
/// the right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryNode {
    pub(super) bounds: Bounds,
    /// Triangles of the left subtree; 0 where this is a leaf.
    pub(super) left_count: u32,
    /// How to make wide children of it.
    pub(super) plan: Plan,
}

/// The cheapest way to turn a subtree into at most 1, 2, ... 8 children of a wide node (Ylitie, Karras and Laine,
/// "Efficient Incoherent Ray Traversal on GPUs Through Compressed Wide BVHs", HPG 2017, section 3).
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan {
    /// For `s` slots, at `s - 1`: how many of them the left subtree gets; 0: use one slot less. For the first, where
    /// there is nothing to share: 1 for a leaf, 0 for a wide node.
    pub(super) left_slots: [u8; WIDTH],
}

/// Cost of a subtree as at most 1, 2, ... 7 children.
type Costs = [f32; WIDTH - 1];

/// What a tree has to keep to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: BuilderKind,
    /// Primitives in a leaf at most, 1 or more.
    pub(super) leaf_max: usize,
    /// Levels at most, more than it takes to halve the primitives again and again.
    pub(super) depth_max: u32,
}

/// Builds the tree over `primitives`, which is not empty, and orders them by its leaves.
pub(super) fn build(primitives: &mut [PrimitiveRef], shape: Shape) -> Vec<BinaryNode> {
    let empty = BinaryNode { bounds: Bounds::EMPTY, left_count: 0, plan: Plan::default() };
    let mut nodes = vec![empty; 2 * primitives.len() - 1];
    build_range(primitives, &mut nodes, shape, 0);
    nodes
}

/// Levels that halving so many primitives takes.
pub(super) fn levels_of_halving(primitives: usize) -> u32 {
    usize::BITS - primitives.saturating_sub(1).leading_zeros()
}

fn build_range(primitives: &mut [PrimitiveRef], nodes: &mut [BinaryNode], shape: Shape, depth: u32) -> Costs {
    let (bounds, centers) = measure(primitives);
    let count = primitives.len();
    nodes[0].bounds = bounds;
    if count <= shape.leaf_max {
        nodes[0].plan.left_slots[0] = 1;
        return [bounds.half_area() * COST_BLOCK; WIDTH - 1];
    }
    let left_count = split_range(primitives, &centers, shape, depth);
    let (left_primitives, right_primitives) = primitives.split_at_mut(left_count);
    let (node, rest) = nodes.split_at_mut(1);
    let (left_nodes, right_nodes) = rest.split_at_mut(2 * left_count - 1);
    let left = |primitives, nodes| build_range(primitives, nodes, shape, depth + 1);
    let (left_costs, right_costs) = if count >= PARALLEL_MIN {
        rayon::join(
            || left(left_primitives, left_nodes),
            || build_range(right_primitives, right_nodes, shape, depth + 1),
        )
    } else {
        (left(left_primitives, left_nodes), build_range(right_primitives, right_nodes, shape, depth + 1))
    };
    node[0].left_count = left_count as u32;
    let (plan, costs) = plan(&left_costs, &right_costs, bounds.half_area());
    node[0].plan = plan;
    costs
}

/// The box of all triangles and the box of their (doubled) centres.
fn measure(primitives: &[PrimitiveRef]) -> (Bounds, Bounds) {
    let mut bounds = Bounds::EMPTY;
    let mut centers = Bounds::EMPTY;
    for primitive in primitives {
        let center = primitive.center();
        bounds.add(&primitive.0);
        centers.add(&Bounds { lower: center, upper: center });
    }
    (bounds, centers)
}

/// Splits by the rule, or by count where the rule could otherwise go deeper than a traversal's stack allows: halving
/// `n` triangles takes `ceil(log2 n)` more levels, which is kept in reserve at every node. A wide tree is never deeper
/// than the binary one.
fn split_range(primitives: &mut [PrimitiveRef], centers: &Bounds, shape: Shape, depth: u32) -> usize {
    if depth + levels_of_halving(primitives.len()) + 1 >= shape.depth_max {
        return split::median(primitives, centers);
    }
    match shape.kind {
        BuilderKind::SurfaceArea => split::surface_area(primitives, centers),
        BuilderKind::Median => split::median(primitives, centers),
        BuilderKind::Random(seed) => split::random(primitives, seed),
    }
}

/// The plan of a node from its children's costs.
fn plan(left: &Costs, right: &Costs, half_area: f32) -> (Plan, Costs) {
    let mut plan = Plan::default();
    let mut costs = [f32::INFINITY; WIDTH];
    for slots in 2..=WIDTH {
        // The first share stands where costs overflow: any share makes a valid tree.
        let mut best = (left[0] + right[slots - 2], 1);
        for left_slots in 2..slots {
            let cost = left[left_slots - 1] + right[slots - left_slots - 1];
            if cost < best.0 {
                best = (cost, left_slots as u8);
            }
        }
        costs[slots - 1] = best.0;
        plan.left_slots[slots - 1] = best.1;
    }
    costs[0] = costs[WIDTH - 1] + half_area * COST_NODE;
    for slots in 2..WIDTH {
        if costs[slots - 2] <= costs[slots - 1] {
            costs[slots - 1] = costs[slots - 2];
            plan.left_slots[slots - 1] = 0;
        }
    }
    let mut narrow = [0.0; WIDTH - 1];
    narrow.copy_from_slice(&costs[..WIDTH - 1]);
    (plan, narrow)
}
