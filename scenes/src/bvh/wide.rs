//! The eight-wide tree in the form for kernels, made from a binary tree by its plans.

use super::binary::{PARALLEL_MIN, Place, Tree, WIDTH};
use super::bounds::Bounds;
use rayon::prelude::*;
use tessera_layout::{
    BLOCK_ALPHA_FLAG, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG, NONE, Triangle,
    TriangleBlock, room_for, triangle_flags,
};

/// Nodes of a tree, the root first, and its blocks.
pub(super) type Trees = (Vec<BvhNode8>, Vec<TriangleBlock>);

/// Content of leaves.
#[derive(Clone, Copy)]
pub(super) enum Leaves<'a> {
    /// A block of these triangles.
    Triangles(&'a [Triangle]),
    /// One instance each.
    Instances,
}

/// A binary subtree: its place, its first triangle in leaf order, and its number of triangles.
#[derive(Clone, Copy)]
struct Subtree<'a> {
    place: Place<'a>,
    first: usize,
    count: usize,
}

impl<'a> Subtree<'a> {
    fn is_leaf(self) -> bool {
        self.place.node().plan.is_leaf()
    }

    /// Lists the children that the plan makes of it with `slots` slots.
    fn gather(self, slots: usize, children: &mut [Subtree<'a>; WIDTH], count: &mut usize) {
        let node = self.place.node();
        let mut slots = slots;
        while slots > 1 && node.plan.left_slots(slots) == 0 {
            slots -= 1;
        }
        if slots == 1 {
            children[*count] = self;
            *count += 1;
            return;
        }
        let left_slots = node.plan.left_slots(slots);
        let left_count = node.left_count as usize;
        let [left, right] = self.place.children();
        let left = Subtree { place: left, count: left_count, ..self };
        let right = Subtree {
            place: right,
            first: self.first + left_count,
            count: self.count - left_count,
        };
        left.gather(left_slots, children, count);
        right.gather(slots - left_slots, children, count);
    }
}

/// What the tree's leaves are made from.
struct Collapse<'a> {
    /// Ids of triangles or instances, in leaf order.
    ids: &'a [u32],
    leaves: Leaves<'a>,
}

/// Place for everything below a node, and the index of the first node and block in it.
struct Room<'a> {
    nodes: &'a mut [BvhNode8],
    first_node: u32,
    blocks: &'a mut [TriangleBlock],
    first_block: u32,
}

impl<'a> Room<'a> {
    /// Takes the first `nodes` nodes and `blocks` blocks of it.
    fn take(&mut self, nodes: usize, blocks: usize) -> Room<'a> {
        let (own_nodes, nodes_left) = std::mem::take(&mut self.nodes).split_at_mut(nodes);
        let (own_blocks, blocks_left) = std::mem::take(&mut self.blocks).split_at_mut(blocks);
        let own = Room {
            nodes: own_nodes,
            first_node: self.first_node,
            blocks: own_blocks,
            first_block: self.first_block,
        };
        self.nodes = nodes_left;
        self.first_node += nodes as u32;
        self.blocks = blocks_left;
        self.first_block += blocks as u32;
        own
    }
}

/// Expectation for a ray that hits a box, by the surface area heuristic for rays that end at any
/// hit (Ize and Hansen, "RTSAH Traversal Order for Occlusion Rays", Computer Graphics Forum 30,
/// 2011). It decides only the order of visits, never a result.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    /// Probability that something in the box blocks the ray.
    chance: f32,
    /// Number of nodes and blocks that are tested until that is known.
    cost: f32,
}

impl Prospect {
    /// Expectation for an instance, whose mesh is not needed here.
    const UNKNOWN: Prospect = Prospect { chance: 0.5, cost: 1.0 };
    /// Largest probability that is assumed.
    const CHANCE_MAX: f32 = 0.95;

    /// Returns the value by which children are ordered. The order is the cheapest one for
    /// independent probabilities.
    fn worth(self) -> f32 {
        self.chance / self.cost
    }
}

/// A child, ready to be set.
#[derive(Clone, Copy)]
struct Child {
    bounds: Bounds,
    reference: u32,
    prospect: Prospect,
}

pub(super) const EMPTY_NODE: BvhNode8 = BvhNode8 {
    bounds: [[[f32::INFINITY; 8]; 3], [[f32::NEG_INFINITY; 8]; 3]],
    child: [CHILD_EMPTY; 8],
    reserved: [0; 8],
};

const EMPTY_BLOCK: TriangleBlock =
    TriangleBlock { corner: [[[f32::NAN; 4]; 3]; 3], triangle: [NONE; 4] };

/// Makes the nodes (the root first) and the blocks. `ids` are in leaf order.
pub(super) fn collapse(tree: &Tree, ids: &[u32], leaves: Leaves<'_>) -> Trees {
    let work = Collapse { ids, leaves };
    let subtree = Subtree { place: tree.root(), first: 0, count: ids.len() };
    let mut nodes = repeated(EMPTY_NODE, subtree.place.node().wide_count.max(1) as usize);
    let mut blocks = repeated(EMPTY_BLOCK, work.block_count(subtree));
    let (root, below) = nodes.split_at_mut(1);
    let room = Room { nodes: below, first_node: 1, blocks: &mut blocks, first_block: 0 };
    work.fill(&mut root[0], room, subtree);
    (nodes, blocks)
}

/// Returns copies of an item, which all threads make.
fn repeated<T: Copy + Send + Sync>(item: T, count: usize) -> Vec<T> {
    let mut items = room_for(count);
    (0..count).into_par_iter().map(|_| item).collect_into_vec(&mut items);
    items
}

impl Collapse<'_> {
    /// Fills a wide node from a subtree, and everything below it. In memory, a node's inner
    /// children are neighbours, and so are the blocks of its leaves, ordered by size; everything
    /// below them follows. In the node, children are ordered by their value for a shadow ray. The
    /// best is last, because the ray tries it first.
    fn fill(&self, node: &mut BvhNode8, mut room: Room<'_>, subtree: Subtree<'_>) -> Prospect {
        let mut children = [subtree; WIDTH];
        let mut count = 0;
        if subtree.is_leaf() {
            count = 1;
        } else {
            subtree.gather(WIDTH, &mut children, &mut count);
        }
        let children = &mut children[..count];
        let half_area = |child: &Subtree| child.place.node().bounds().half_area();
        children.sort_by(|a, b| half_area(a).total_cmp(&half_area(b)));
        let leaf_count = children.iter().filter(|child| child.is_leaf()).count();
        let own_blocks = if matches!(self.leaves, Leaves::Instances) { 0 } else { leaf_count };
        let own = room.take(count - leaf_count, own_blocks);
        let (mut own_nodes, mut own_blocks) = (own.nodes.iter_mut(), own.blocks.iter_mut());
        let (mut node_index, mut block_index) = (own.first_node, own.first_block);
        let mut made =
            [Child { bounds: Bounds::EMPTY, reference: CHILD_EMPTY, prospect: Prospect::UNKNOWN };
                WIDTH];
        let mut work = Vec::with_capacity(WIDTH);
        for (child, made) in children.iter().zip(&mut made) {
            let binary = child.place.node();
            made.bounds = binary.bounds();
            if !child.is_leaf() {
                made.reference = node_index;
                node_index += 1;
                let below = room.take(binary.wide_count as usize - 1, self.block_count(*child));
                work.push((
                    own_nodes.next().expect("one for each"),
                    below,
                    *child,
                    &mut made.prospect,
                ));
            } else if let Leaves::Triangles(triangles) = self.leaves {
                made.reference = CHILD_LEAF_FLAG | block_index;
                block_index += 1;
                let block = own_blocks.next().expect("one for each");
                made.prospect = self.fill_block(block, *child, triangles);
            } else {
                made.reference = CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG | self.ids[child.first];
            }
        }
        if subtree.count >= PARALLEL_MIN {
            work.into_par_iter()
                .for_each(|(node, room, child, prospect)| *prospect = self.fill(node, room, child));
        } else {
            work.into_iter()
                .for_each(|(node, room, child, prospect)| *prospect = self.fill(node, room, child));
        }
        let made = &mut made[..count];
        made.sort_by(|a, b| a.prospect.worth().total_cmp(&b.prospect.worth()));
        for (slot, child) in made.iter().enumerate() {
            set_child(node, slot, &child.bounds, child.reference);
        }
        prospect_of(made, subtree.place.node().bounds().half_area())
    }

    /// Returns the number of blocks of a subtree.
    fn block_count(&self, subtree: Subtree<'_>) -> usize {
        match self.leaves {
            Leaves::Triangles(_) => subtree.place.node().leaf_count as usize,
            Leaves::Instances => 0,
        }
    }

    /// Fills the block of a leaf. A ray that hits a convex body hits its content in proportion to
    /// the areas.
    fn fill_block(
        &self,
        block: &mut TriangleBlock,
        leaf: Subtree<'_>,
        triangles: &[Triangle],
    ) -> Prospect {
        let mut area = 0.0;
        let ids = &self.ids[leaf.first..leaf.first + leaf.count];
        for (lane, id) in ids.iter().enumerate() {
            let triangle = &triangles[*id as usize];
            set_lane(block, lane, *id, triangle);
            area += area_of(triangle);
        }
        let hits = area / leaf.place.node().bounds().half_area();
        Prospect { chance: hits.min(Prospect::CHANCE_MAX), cost: 1.0 }
    }
}

/// Returns the expectation for a node from its children, which are tried from the last one on.
fn prospect_of(children: &[Child], half_area: f32) -> Prospect {
    let (mut missed, mut cost) = (1.0, 1.0);
    for child in children.iter().rev() {
        let met = (child.bounds.half_area() / half_area).min(1.0);
        cost += missed * met * child.prospect.cost;
        missed *= 1.0 - met * child.prospect.chance;
    }
    Prospect { chance: (1.0f32 - missed).min(Prospect::CHANCE_MAX), cost }
}

/// Returns the block of some triangles; [`NONE`] leaves a lane empty.
pub(super) fn block_of(ids: &[u32; 4], triangles: &[Triangle]) -> TriangleBlock {
    let mut block = EMPTY_BLOCK;
    for (lane, id) in ids.iter().enumerate().filter(|(_, id)| **id != NONE) {
        set_lane(&mut block, lane, *id, &triangles[*id as usize]);
    }
    block
}

fn set_lane(block: &mut TriangleBlock, lane: usize, id: u32, triangle: &Triangle) {
    for (corner, position) in [triangle.v0, triangle.v1, triangle.v2].into_iter().enumerate() {
        for (axis, coordinate) in position.into_iter().enumerate() {
            block.corner[corner][axis][lane] = coordinate;
        }
    }
    let alpha = if triangle.flags & triangle_flags::ALPHA != 0 { BLOCK_ALPHA_FLAG } else { 0 };
    block.triangle[lane] = id | alpha;
}

fn area_of(triangle: &Triangle) -> f32 {
    let edge =
        |to: [f32; 3]| [to[0] - triangle.v0[0], to[1] - triangle.v0[1], to[2] - triangle.v0[2]];
    let (a, b) = (edge(triangle.v1), edge(triangle.v2));
    let normal = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
    0.5 * (normal[0] * normal[0] + normal[1] * normal[1] + normal[2] * normal[2]).sqrt()
}

pub(super) fn set_child(node: &mut BvhNode8, slot: usize, bounds: &Bounds, reference: u32) {
    for axis in 0..3 {
        node.bounds[0][axis][slot] = bounds.lower[axis];
        node.bounds[1][axis][slot] = bounds.upper[axis];
    }
    node.child[slot] = reference;
}
