//! The nodes of a device's hierarchy: the host's wide nodes on grids of 8 bits, with 80 bytes per
//! node, and triangles in the order of their leaves. `source/bvh/compressed.h` explains why it
//! gives the same hits. Knows one tree at a time; `hierarchy.rs` joins those of a scene.

use bytemuck::{Pod, Zeroable};
use tessera_layout::{
    BLOCK_ALPHA_FLAG, BvhNode8, CHILD_EMPTY, CHILD_INSTANCE_FLAG, CHILD_LEAF_FLAG, NONE,
    TriangleBlock,
};

/// Twin of `CompressedNode`. If all bits of `exponents` and `nodes` are 0, it is the instance with
/// the index `first_triangle`, and `first_node` is the root of the instance's mesh.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct CompressedNode {
    /// The grid's origin, 2^15 steps below its first plane.
    pub base: [f32; 3],
    /// Biased exponents of the steps.
    pub exponents: [u8; 3],
    /// Bit k: child k is a node.
    pub nodes: u8,
    /// First of the children that are nodes.
    pub first_node: u32,
    /// First triangle of the children that are leaves.
    pub first_triangle: u32,
    /// For each slot: number of triangles << 5 | first triangle, counted from `first_triangle`.
    pub leaf: [u8; 8],
    /// Lower planes, by axis and slot.
    pub lower: [[u8; 8]; 3],
    /// Upper planes, by axis and slot.
    pub upper: [[u8; 8]; 3],
}

/// Twin of `LeafTriangle`.
#[derive(Clone, Copy, Debug, PartialEq, Pod, Zeroable)]
#[repr(C, align(16))]
pub struct LeafTriangle {
    /// First corner.
    pub v0: [f32; 3],
    /// Id, counted from 0 within an instanced mesh, with [`tessera_layout::BLOCK_ALPHA_FLAG`] if it
    /// applies.
    pub triangle: u32,
    /// Second corner.
    pub v1: [f32; 3],
    /// Always 0.
    pub reserved0: u32,
    /// Third corner.
    pub v2: [f32; 3],
    /// Always 0.
    pub reserved1: u32,
}

const _: () = assert!(size_of::<CompressedNode>() == 12 + 4 + 8 + 8 + 24 + 24);
const _: () = assert!(size_of::<LeafTriangle>() == 3 * 12 + 3 * 4);

/// Number of the first plane in the grid's arithmetic: q becomes a float by putting q into the bits
/// of 2^15.
const GRID_FIRST: f32 = 32_768.0;
/// Last plane of a grid.
const GRID_LAST: u8 = 255;

impl CompressedNode {
    /// Returns a child's plane as kernels compute it: side 0 is lower, side 1 upper.
    pub fn plane(&self, side: usize, axis: usize, slot: usize) -> f32 {
        let q = if side == 0 { self.lower[axis][slot] } else { self.upper[axis][slot] };
        Grid { base: self.base[axis], exponent: self.exponents[axis] }.plane(q)
    }

    /// Returns the index of the instance, if the node is one.
    pub fn instance(&self) -> Option<u32> {
        (self.exponents == [0; 3] && self.nodes == 0).then_some(self.first_triangle)
    }

    /// The node of an instance, and the root of its mesh.
    pub(super) fn of_instance(index: u32, root: u32) -> Self {
        Self { exponents: [0; 3], first_node: root, first_triangle: index, ..EMPTY }
    }
}

/// One axis of a node's grid.
#[derive(Clone, Copy, Debug)]
struct Grid {
    base: f32,
    exponent: u8,
}

impl Grid {
    /// Computes `fma(2^15 + q, step, base)`. The product is exact (16 bits times a power of two),
    /// so a plain sum rounds in the same way.
    fn plane(self, q: u8) -> f32 {
        (GRID_FIRST + f32::from(q)) * step(self.exponent) + self.base
    }

    /// Returns the finest grid whose first plane is not above `low` and whose last plane is not
    /// below `high`.
    fn over(low: f32, high: f32) -> Self {
        let width = (f64::from(high) - f64::from(low)).max(0.0) / f64::from(GRID_LAST);
        // Begin one step below the exponent of the width, or at the least one. The loop below
        // corrects rounding.
        let start = ((width as f32).to_bits() >> 23).clamp(1, 240) as u8;
        let mut exponent = start.max(2) - 1;
        loop {
            let mut base =
                (f64::from(low) - f64::from(GRID_FIRST) * f64::from(step(exponent))) as f32;
            while (Self { base, exponent }).plane(0) > low {
                base = base.next_down();
            }
            let grid = Self { base, exponent };
            if grid.plane(GRID_LAST) >= high || exponent >= 240 {
                return grid;
            }
            exponent += 1;
        }
    }

    /// Returns the last plane that is not above a lower bound.
    fn lower(self, bound: f32) -> u8 {
        let mut q = self.guess(bound);
        while q > 0 && self.plane(q) > bound {
            q -= 1;
        }
        while q < GRID_LAST && self.plane(q + 1) <= bound {
            q += 1;
        }
        q
    }

    /// Returns the first plane that is not below an upper bound.
    fn upper(self, bound: f32) -> u8 {
        let mut q = self.guess(bound);
        while q < GRID_LAST && self.plane(q) < bound {
            q += 1;
        }
        while q > 0 && self.plane(q - 1) >= bound {
            q -= 1;
        }
        q
    }

    /// Returns roughly the plane of a coordinate.
    fn guess(self, bound: f32) -> u8 {
        let offset = f64::from(bound) - f64::from(self.base);
        (offset / f64::from(step(self.exponent)) - f64::from(GRID_FIRST)) as u8
    }
}

fn step(exponent: u8) -> f32 {
    f32::from_bits(u32::from(exponent) << 23)
}

/// A tree to compress: its wide nodes and triangle blocks, and its root.
#[derive(Clone, Copy)]
pub(super) struct Tree<'a> {
    pub(super) nodes: &'a [BvhNode8],
    pub(super) blocks: &'a [TriangleBlock],
    pub(super) root: u32,
    /// What is added to the ids of its triangles.
    pub(super) first_id: u32,
}

/// Compressed trees, one after another.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Compressed {
    /// Nodes. The inner children of a node are consecutive.
    pub(super) nodes: Vec<CompressedNode>,
    /// Triangles. Those of a node's leaves are consecutive.
    pub(super) triangles: Vec<LeafTriangle>,
    /// Number of nodes before these children in the device's array.
    nodes_before: u32,
    /// Number of triangles before these in the device's array.
    triangles_before: u32,
}

impl Compressed {
    /// No trees yet; where they will be in the device's arrays.
    pub(super) fn behind(nodes: usize, triangles: usize) -> Self {
        let (nodes_before, triangles_before) = (nodes as u32, triangles as u32);
        Self { nodes_before, triangles_before, ..Self::default() }
    }

    /// Appends a tree, its root first, and returns the index of the root in `nodes`. `node_of`
    /// makes the node of an instance.
    pub(super) fn add(
        &mut self,
        tree: &Tree<'_>,
        node_of: impl Fn(u32) -> CompressedNode,
    ) -> usize {
        let first = self.nodes.len();
        self.nodes.push(EMPTY);
        let mut open = vec![(tree.root, first)];
        while let Some((from, to)) = open.pop() {
            let node = &tree.nodes[from as usize];
            let children = slots(node);
            self.nodes[to] = self.compress(node, &children, tree);
            for child in children.into_iter().flatten().map(|k| node.child[k]) {
                match Child::of(child) {
                    Child::Node(child) => {
                        open.push((child, self.nodes.len()));
                        self.nodes.push(EMPTY);
                    }
                    Child::Instance(index) => self.nodes.push(node_of(index)),
                    Child::Block(_) => {}
                }
            }
        }
        first
    }

    /// Compresses one node, and appends the triangles of its leaves.
    fn compress(&mut self, node: &BvhNode8, children: &Slots, tree: &Tree<'_>) -> CompressedNode {
        let mut made = EMPTY;
        let first_leaf = self.triangles.len() as u32;
        made.first_node = self.nodes_before + self.nodes.len() as u32;
        made.first_triangle = self.triangles_before + first_leaf;
        for (slot, child) in children.iter().enumerate() {
            let Some(child) = child.map(|k| node.child[k]) else { continue };
            let Child::Block(block) = Child::of(child) else {
                made.nodes |= 1 << slot;
                continue;
            };
            let first = self.triangles.len() as u32 - first_leaf;
            let block = &tree.blocks[block as usize];
            let used = (0..4).filter(|lane| block.triangle[*lane] != NONE);
            self.triangles.extend(used.map(|lane| leaf(block, lane, tree.first_id)));
            let count = self.triangles.len() as u32 - first_leaf - first;
            // at most 4 triangles, of which the first is at most the 28th
            made.leaf[slot] = (count << 5 | first) as u8;
        }
        for axis in 0..3 {
            let bound = |side: usize, k: usize| node.bounds[side][axis][k];
            let used = || children.iter().flatten();
            let low = used().map(|k| bound(0, *k)).fold(f32::INFINITY, f32::min);
            let high = used().map(|k| bound(1, *k)).fold(f32::NEG_INFINITY, f32::max);
            let grid =
                if low <= high { Grid::over(low, high) } else { Grid { base: 0.0, exponent: 1 } };
            (made.base[axis], made.exponents[axis]) = (grid.base, grid.exponent);
            for (slot, child) in children.iter().enumerate() {
                if let Some(k) = *child {
                    made.lower[axis][slot] = grid.lower(bound(0, k));
                    made.upper[axis][slot] = grid.upper(bound(1, k));
                }
            }
        }
        made
    }
}

/// A node without children: all boxes are inverted.
const EMPTY: CompressedNode = CompressedNode {
    base: [0.0; 3],
    exponents: [1; 3],
    nodes: 0,
    first_node: 0,
    first_triangle: 0,
    leaf: [0; 8],
    lower: [[GRID_LAST; 8]; 3],
    upper: [[0; 8]; 3],
};

/// Kind of an existing child of a wide node.
enum Child {
    Node(u32),
    Block(u32),
    Instance(u32),
}

impl Child {
    fn of(child: u32) -> Self {
        match child & (CHILD_LEAF_FLAG | CHILD_INSTANCE_FLAG) {
            CHILD_LEAF_FLAG => Self::Block(child & !CHILD_LEAF_FLAG),
            flags if flags & CHILD_LEAF_FLAG == 0 => Self::Node(child),
            flags => Self::Instance(child & !flags),
        }
    }
}

/// Child of the wide node in each slot of a compressed node.
type Slots = [Option<usize>; 8];

/// Puts every child into the slot of the nearest corner of the node (bit k of a slot is the upper
/// side of axis k). It takes the best pair of child and slot again and again. Ties go to the lower
/// child and slot. Only the order of visits depends on it.
fn slots(node: &BvhNode8) -> Slots {
    let present: Vec<usize> = (0..8).filter(|k| node.child[*k] != CHILD_EMPTY).collect();
    let center =
        |axis: usize, k: usize| node.bounds[0][axis][k] * 0.5 + node.bounds[1][axis][k] * 0.5;
    let mean: [f32; 3] = std::array::from_fn(|axis| {
        present.iter().map(|k| center(axis, *k)).sum::<f32>() / present.len().max(1) as f32
    });
    let mut pairs: Vec<(f32, usize, usize)> = Vec::with_capacity(64);
    for &child in &present {
        for slot in 0..8 {
            let side = |axis: usize| if slot >> axis & 1 == 1 { 1.0 } else { -1.0 };
            let along = (0..3).map(|axis| side(axis) * (center(axis, child) - mean[axis])).sum();
            pairs.push((along, child, slot));
        }
    }
    pairs.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)).then(a.2.cmp(&b.2)));
    let mut result = [None; 8];
    let mut placed = [false; 8];
    for (_, child, slot) in pairs {
        if !placed[child] && result[slot].is_none() {
            result[slot] = Some(child);
            placed[child] = true;
        }
    }
    result
}

fn leaf(block: &TriangleBlock, lane: usize, first_id: u32) -> LeafTriangle {
    let id = block.triangle[lane];
    let corner = |c: usize| std::array::from_fn(|axis| block.corner[c][axis][lane]);
    LeafTriangle {
        v0: corner(0),
        triangle: (first_id + (id & !BLOCK_ALPHA_FLAG)) | id & BLOCK_ALPHA_FLAG,
        v1: corner(1),
        reserved0: 0,
        v2: corner(2),
        reserved1: 0,
    }
}
