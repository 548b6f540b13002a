//! The binary tree: splits ranges down to the size of leaves, and then finds the cheapest
//! eight-wide tree in it. Owns neither the split rules nor the output format.

use super::bounds::{Bounds, PrimitiveRef};
use super::builder_kind::BuilderKind;
use super::split;
use rayon::prelude::*;

/// Number of children of a wide node.
pub(super) const WIDTH: usize = 8;

/// Costs of testing a wide node's eight boxes and of testing a block of triangles, full or not.
/// They were measured with `benches/rays`, in one unit.
const COST_NODE: f32 = 1.0;
const COST_BLOCK: f32 = 1.0;

/// Size of a range below which it is built by one thread.
pub(super) const PARALLEL_MIN: usize = 4096;

/// A node of a subtree. What is below it follows: the left subtree, then the right one.
#[derive(Clone, Copy, Debug)]
pub(super) struct BinaryNode {
    lower: [f32; 3],
    upper: [f32; 3],
    /// Triangles of the left subtree; 0 if the node is a leaf.
    pub(super) left_count: u32,
    /// Distance to the right subtree's node, where both are in one piece.
    right: u32,
    /// How wide children are made from the node.
    pub(super) plan: Plan,
    /// Number of wide nodes if the subtree becomes one child; 0 if the node is a leaf.
    pub(super) wide_count: u32,
    /// Number of leaves below the node, or the node itself.
    pub(super) leaf_count: u32,
}

const _: () = assert!(size_of::<BinaryNode>() == 44);

impl BinaryNode {
    pub(super) fn bounds(&self) -> Bounds {
        let [x, y, z] = self.lower;
        let [far_x, far_y, far_z] = self.upper;
        Bounds { lower: [x, y, z, 0.0], upper: [far_x, far_y, far_z, 0.0] }
    }

    fn leaf(bounds: &Bounds) -> Self {
        Self { plan: Plan::LEAF, leaf_count: 1, ..Self::inner(bounds, 0) }
    }

    /// Returns a node of which only the box and the left subtree's triangles are known.
    fn inner(bounds: &Bounds, left_count: u32) -> Self {
        let [x, y, z, _] = bounds.lower;
        let [far_x, far_y, far_z, _] = bounds.upper;
        Self {
            lower: [x, y, z],
            upper: [far_x, far_y, far_z],
            left_count,
            right: 0,
            plan: Plan::default(),
            wide_count: 0,
            leaf_count: 0,
        }
    }
}

/// A tree: pieces that one thread each has made, and the nodes above them. Pieces have exactly the
/// nodes that they need, which are far fewer than a tree over so many triangles may have.
#[derive(Debug)]
pub(super) enum Tree {
    Fork(Box<Fork>),
    Piece(Box<[BinaryNode]>),
}

/// A node above pieces.
#[derive(Debug)]
pub(super) struct Fork {
    node: BinaryNode,
    left: Tree,
    right: Tree,
}

/// A place in a tree.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Fork(&'a Fork),
    /// The rest of a piece, from a node on.
    Piece(&'a [BinaryNode]),
}

impl Tree {
    pub(super) fn root(&self) -> Place<'_> {
        match self {
            Tree::Fork(fork) => Place::Fork(fork),
            Tree::Piece(nodes) => Place::Piece(nodes),
        }
    }

    /// Returns the number of nodes that it holds.
    #[cfg(test)]
    pub(super) fn node_count(&self) -> usize {
        match self {
            Tree::Fork(fork) => 1 + fork.left.node_count() + fork.right.node_count(),
            Tree::Piece(nodes) => nodes.len(),
        }
    }
}

impl<'a> Place<'a> {
    pub(super) fn node(self) -> &'a BinaryNode {
        match self {
            Place::Fork(fork) => &fork.node,
            Place::Piece(nodes) => &nodes[0],
        }
    }

    /// Returns the subtrees of a node that is no leaf.
    pub(super) fn children(self) -> [Place<'a>; 2] {
        match self {
            Place::Fork(fork) => [fork.left.root(), fork.right.root()],
            Place::Piece(nodes) => {
                [Place::Piece(&nodes[1..]), Place::Piece(&nodes[nodes[0].right as usize..])]
            }
        }
    }
}

/// The cheapest way to turn a subtree into at most 1, 2, ... 8 children of a wide node (Ylitie,
/// Karras and Laine, "Efficient Incoherent Ray Traversal on GPUs Through Compressed Wide BVHs", HPG
/// 2017, section 3).
///
/// Four bits for each `s` slots, those of one slot lowest: how many of them the left subtree gets;
/// 0: use one slot less. For one slot, where there is nothing to share: 1 for a leaf, 0 for a wide
/// node.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plan(u32);

impl Plan {
    const LEAF: Plan = Plan(1);

    /// Returns how many of 1 to 8 slots the left subtree gets.
    pub(super) fn left_slots(self, slots: usize) -> usize {
        (self.0 >> (4 * (slots - 1)) & 15) as usize
    }

    pub(super) fn is_leaf(self) -> bool {
        self.left_slots(1) == 1
    }
}

/// A subtree as at most 1, 2, ... 7 children: their cost, and their number of wide nodes.
struct Forests {
    costs: [f32; WIDTH - 1],
    wide_counts: [u32; WIDTH - 1],
}

/// Limits of a tree.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) kind: BuilderKind,
    /// Most primitives in a leaf, 1 or more.
    pub(super) leaf_max: usize,
    /// Most levels. There must be more than repeated halving of the primitives takes.
    pub(super) depth_max: u32,
}

/// Builds the tree over `primitives`, which must not be empty, and orders them by its leaves.
pub(super) fn build(primitives: &mut [PrimitiveRef], shape: Shape) -> Tree {
    build_range(primitives, shape, 0).0
}

/// Returns the number of levels that halving `primitives` primitives takes.
pub(super) fn levels_of_halving(primitives: usize) -> u32 {
    usize::BITS - primitives.saturating_sub(1).leading_zeros()
}

fn build_range(primitives: &mut [PrimitiveRef], shape: Shape, depth: u32) -> (Tree, Forests) {
    let count = primitives.len();
    if count < PARALLEL_MIN {
        let mut nodes = Vec::with_capacity(count);
        let forests = build_piece(primitives, &mut nodes, shape, depth);
        return (Tree::Piece(nodes.into_boxed_slice()), forests);
    }
    let (bounds, centers) = measure(primitives);
    let left_count = split_range(primitives, &centers, shape, depth);
    let (left_primitives, right_primitives) = primitives.split_at_mut(left_count);
    let ((left, left_forests), (right, right_forests)) = rayon::join(
        || build_range(left_primitives, shape, depth + 1),
        || build_range(right_primitives, shape, depth + 1),
    );
    let (plan, forests) = plan(&left_forests, &right_forests, bounds.half_area());
    let node = BinaryNode {
        plan,
        wide_count: forests.wide_counts[0],
        leaf_count: left.root().node().leaf_count + right.root().node().leaf_count,
        ..BinaryNode::inner(&bounds, left_count as u32)
    };
    (Tree::Fork(Box::new(Fork { node, left, right })), forests)
}

/// Appends the nodes of a range that one thread builds.
fn build_piece(
    primitives: &mut [PrimitiveRef],
    nodes: &mut Vec<BinaryNode>,
    shape: Shape,
    depth: u32,
) -> Forests {
    let (bounds, centers) = measure(primitives);
    let own = nodes.len();
    if primitives.len() <= shape.leaf_max {
        nodes.push(BinaryNode::leaf(&bounds));
        return Forests {
            costs: [bounds.half_area() * COST_BLOCK; WIDTH - 1],
            wide_counts: [0; WIDTH - 1],
        };
    }
    let left_count = split_range(primitives, &centers, shape, depth);
    let (left, right) = primitives.split_at_mut(left_count);
    nodes.push(BinaryNode::inner(&bounds, left_count as u32));
    let left_forests = build_piece(left, nodes, shape, depth + 1);
    let at_right = nodes.len();
    let right_forests = build_piece(right, nodes, shape, depth + 1);
    let (plan, forests) = plan(&left_forests, &right_forests, bounds.half_area());
    let leaf_count = nodes[own + 1].leaf_count + nodes[at_right].leaf_count;
    let node = &mut nodes[own];
    node.right = (at_right - own) as u32;
    (node.plan, node.wide_count, node.leaf_count) = (plan, forests.wide_counts[0], leaf_count);
    forests
}

/// Returns the box of all triangles, and the box of their (doubled) centres.
fn measure(primitives: &[PrimitiveRef]) -> (Bounds, Bounds) {
    if primitives.len() >= split::CHUNKED_MIN {
        let measured = primitives.par_chunks(split::CHUNK).map(measure);
        return measured.reduce(
            || (Bounds::EMPTY, Bounds::EMPTY),
            |mut all, more| {
                all.0.add(&more.0);
                all.1.add(&more.1);
                all
            },
        );
    }
    let mut bounds = Bounds::EMPTY;
    let mut centers = Bounds::EMPTY;
    for primitive in primitives {
        let center = primitive.center();
        bounds.add(&primitive.0);
        centers.add(&Bounds { lower: center, upper: center });
    }
    (bounds, centers)
}

/// Splits by the rule, or by count if the rule could go deeper than the traversal's stack. Halving
/// `n` triangles takes `ceil(log2 n)` more levels, which are kept in reserve at every node. A wide
/// tree is never deeper than the binary one.
fn split_range(
    primitives: &mut [PrimitiveRef],
    centers: &Bounds,
    shape: Shape,
    depth: u32,
) -> usize {
    if depth + levels_of_halving(primitives.len()) + 1 >= shape.depth_max {
        return split::median(primitives, centers);
    }
    match shape.kind {
        BuilderKind::SurfaceArea => split::surface_area(primitives, centers),
        BuilderKind::Median => split::median(primitives, centers),
        BuilderKind::Random(seed) => split::random(primitives, seed),
    }
}

/// Returns the plan of a node from its children's forests.
fn plan(left: &Forests, right: &Forests, half_area: f32) -> (Plan, Forests) {
    let mut shares = [0usize; WIDTH];
    let mut costs = [f32::INFINITY; WIDTH];
    for slots in 2..=WIDTH {
        // If costs overflow, the first share is used. Any share makes a valid tree.
        let mut best = (left.costs[0] + right.costs[slots - 2], 1);
        for left_slots in 2..slots {
            let cost = left.costs[left_slots - 1] + right.costs[slots - left_slots - 1];
            if cost < best.0 {
                best = (cost, left_slots);
            }
        }
        costs[slots - 1] = best.0;
        shares[slots - 1] = best.1;
    }
    costs[0] = costs[WIDTH - 1] + half_area * COST_NODE;
    for slots in 2..WIDTH {
        if costs[slots - 2] <= costs[slots - 1] {
            costs[slots - 1] = costs[slots - 2];
            shares[slots - 1] = 0;
        }
    }
    let wide_count = |slots: usize| {
        let left_slots = shares[slots - 1];
        left.wide_counts[left_slots - 1] + right.wide_counts[slots - left_slots - 1]
    };
    let mut forests =
        Forests { costs: [0.0; WIDTH - 1], wide_counts: [1 + wide_count(WIDTH); WIDTH - 1] };
    forests.costs.copy_from_slice(&costs[..WIDTH - 1]);
    let mut plan = (shares[WIDTH - 1] as u32) << (4 * (WIDTH - 1));
    for slots in 2..WIDTH {
        let same = shares[slots - 1] == 0;
        forests.wide_counts[slots - 1] =
            if same { forests.wide_counts[slots - 2] } else { wide_count(slots) };
        plan |= (shares[slots - 1] as u32) << (4 * (slots - 1));
    }
    (Plan(plan), forests)
}
