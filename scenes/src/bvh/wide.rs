//! The eight-wide tree as kernels read it, made from a binary tree by its plans.

use super::binary::{BinaryNode, WIDTH};
use super::bounds::{Bounds, PrimitiveRef};
use tessera_layout::{
    BLOCK_ALPHA_FLAG, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG, NONE, Triangle,
    TriangleBlock, triangle_flags,
};

/// What leaves are made of.
#[derive(Clone, Copy)]
pub(super) enum Leaves<'a> {
    /// A block of these triangles.
    Triangles(&'a [Triangle]),
    /// One instance each.
    Instances,
}

/// A binary subtree: its first node, its first triangle in leaf order, and how many it has.
#[derive(Clone, Copy)]
struct Subtree {
    node: usize,
    first: usize,
    count: usize,
}

/// What the tree is made from and into.
struct Collapse<'a> {
    tree: &'a [BinaryNode],
    primitives: &'a [PrimitiveRef],
    leaves: Leaves<'a>,
    nodes: Vec<BvhNode8>,
    blocks: Vec<TriangleBlock>,
}

pub(super) const EMPTY_NODE: BvhNode8 = BvhNode8 {
    bounds: [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]],
    child: [CHILD_EMPTY; 8],
    reserved: [0; 8],
};

const EMPTY_BLOCK: TriangleBlock = TriangleBlock { corner: [[[f32::NAN; 4]; 3]; 3], triangle: [NONE; 4] };

/// Makes the nodes (the root first) and the blocks.
pub(super) fn collapse(
    tree: &[BinaryNode],
    primitives: &[PrimitiveRef],
    leaves: Leaves<'_>,
) -> (Vec<BvhNode8>, Vec<TriangleBlock>) {
    let mut work = Collapse {
        tree,
        primitives,
        leaves,
        nodes: Vec::with_capacity(primitives.len() / 6 + 1),
        blocks: Vec::with_capacity(primitives.len() / 2 + 1),
    };
    work.nodes.push(EMPTY_NODE);
    work.fill(0, Subtree { node: 0, first: 0, count: primitives.len() });
    (work.nodes, work.blocks)
}

impl Collapse<'_> {
    /// Fills wide node `index` from a subtree, and everything below it. Children stand by their size, the largest last: a ray that asks
    /// whether anything is in its way tries that one first. The inner children of a node lie side by side.
    fn fill(&mut self, index: usize, subtree: Subtree) {
        let mut children = [subtree; WIDTH];
        let mut count = 0;
        if self.is_leaf(subtree) {
            count = 1;
        } else {
            self.gather(subtree, WIDTH, &mut children, &mut count);
        }
        let mut order = [(0.0, subtree); WIDTH];
        for (ordered, child) in order.iter_mut().zip(&children[..count]) {
            *ordered = (self.tree[child.node].bounds.half_area(), *child);
        }
        order[..count].sort_by(|a, b| a.0.total_cmp(&b.0));
        for (child, (_, ordered)) in children.iter_mut().zip(&order[..count]) {
            *child = *ordered;
        }
        let first_inner = self.nodes.len();
        let mut inner = first_inner;
        for (slot, &child) in children[..count].iter().enumerate() {
            let reference = if self.is_leaf(child) {
                self.push_leaf(child)
            } else {
                inner += 1;
                inner as u32 - 1
            };
            let bounds = self.tree[child.node].bounds;
            set_child(&mut self.nodes[index], slot, &bounds, reference);
        }
        self.nodes.resize(inner, EMPTY_NODE);
        let inner_children = children[..count].iter().filter(|&&child| !self.is_leaf(child));
        let inner_children: Vec<Subtree> = inner_children.copied().collect();
        for (offset, child) in inner_children.into_iter().enumerate() {
            self.fill(first_inner + offset, child);
        }
    }

    fn is_leaf(&self, subtree: Subtree) -> bool {
        self.tree[subtree.node].plan.left_slots[0] == 1
    }

    /// Lists the children that the plan makes of `subtree` with so many slots.
    fn gather(&self, subtree: Subtree, slots: usize, children: &mut [Subtree; WIDTH], count: &mut usize) {
        let node = &self.tree[subtree.node];
        let mut slots = slots;
        while slots > 1 && node.plan.left_slots[slots - 1] == 0 {
            slots -= 1;
        }
        if slots == 1 {
            children[*count] = subtree;
            *count += 1;
            return;
        }
        let left_slots = usize::from(node.plan.left_slots[slots - 1]);
        let left_count = node.left_count as usize;
        let left = Subtree { node: subtree.node + 1, first: subtree.first, count: left_count };
        let right = Subtree {
            node: subtree.node + 2 * left_count,
            first: subtree.first + left_count,
            count: subtree.count - left_count,
        };
        self.gather(left, left_slots, children, count);
        self.gather(right, slots - left_slots, children, count);
    }

    /// A leaf as a child.
    fn push_leaf(&mut self, subtree: Subtree) -> u32 {
        let primitives = &self.primitives[subtree.first..subtree.first + subtree.count];
        let triangles = match self.leaves {
            Leaves::Triangles(triangles) => triangles,
            Leaves::Instances => return CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | primitives[0].id(),
        };
        let mut block = EMPTY_BLOCK;
        for (lane, primitive) in primitives.iter().enumerate() {
            let triangle = &triangles[primitive.id() as usize];
            for (corner, position) in [triangle.v0, triangle.v1, triangle.v2].into_iter().enumerate() {
                for (axis, coordinate) in position.into_iter().enumerate() {
                    block.corner[corner][axis][lane] = coordinate;
                }
            }
            let alpha = if triangle.flags & triangle_flags::ALPHA != 0 { BLOCK_ALPHA_FLAG } else { 0 };
            block.triangle[lane] = primitive.id() | alpha;
        }
        self.blocks.push(block);
        CHILD_LEAF_FLAG | (self.blocks.len() as u32 - 1)
    }
}

pub(super) fn set_child(node: &mut BvhNode8, slot: usize, bounds: &Bounds, reference: u32) {
    for axis in 0..3 {
        node.bounds[0][axis][slot] = bounds.lower[axis];
        node.bounds[1][axis][slot] = bounds.upper[axis];
    }
    node.child[slot] = reference;
}
