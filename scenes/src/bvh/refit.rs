//! Refitting: a tree that was built for another frame, around the same triangles where they are
//! now. Takes a fraction of a build. Decides when such a tree is good enough; which tree there is
//! changes speed only, never a hit.

use super::bounds::Bounds;
use super::builder_kind::BuilderKind;
use super::wide::{self, Trees};
use rayon::prelude::*;
use std::sync::{Arc, Mutex, PoisonError};
use tessera_layout::{
    BLOCK_ALPHA_FLAG, BvhNode8, CHILD_EMPTY, CHILD_LEAF_FLAG, NONE, Triangle, TriangleBlock,
    room_for,
};

/// Nodes from which threads share what is below a node.
const PARALLEL_MIN: usize = 512;

/// Most that the cost of a tree may have grown since it was built.
const GROWTH_MAX: f32 = 1.5;

/// Samples of a simple picture that take as long as building a tree instead of refitting it, for
/// each triangle (measured with `benches/refit.rs`). Where a tree's cost has grown by a tenth, so
/// has that of samples, at most.
const BUILD_SAMPLES: f32 = 0.25;

/// Growth that a frame must bear for anything to be refitted. With less, it would rarely do.
const GROWTH_LEAST: f32 = 0.01;

/// The tree over triangles that was built last, for frames in which they move.
#[derive(Debug, Default)]
pub(crate) struct LastTree(Mutex<Option<Arc<Topology>>>);

impl LastTree {
    /// Returns the tree around `triangles`: the last one refitted, or the one that `build` makes.
    pub(super) fn tree(
        &self,
        kind: BuilderKind,
        (triangles, padding): (&[Triangle], f32),
        samples: u64,
        build: impl FnOnce() -> Trees,
    ) -> Trees {
        let growth_max = growth_max(triangles.len(), samples);
        if growth_max < 1.0 + GROWTH_LEAST || triangles.is_empty() {
            return build();
        }
        // If a thread panicked while it held the lock, an old tree is left, which is as good.
        let last = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let last = last.filter(|last| last.kind == kind && last.triangles == triangles.len());
        let refitted = last.and_then(|last| last.refit(triangles, padding, growth_max));
        refitted.unwrap_or_else(|| {
            let built = build();
            let topology = Arc::new(Topology::of(kind, triangles.len(), &built));
            *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(topology);
            built
        })
    }
}

/// Returns the most that a tree's cost may have grown for a frame of so many samples: what that
/// costs them is less than what building takes.
fn growth_max(triangles: usize, samples: u64) -> f32 {
    (1.0 + BUILD_SAMPLES * triangles as f32 / samples as f32).min(GROWTH_MAX)
}

/// What a tree is without its boxes and corners: some ten bytes a triangle.
#[derive(Debug)]
struct Topology {
    kind: BuilderKind,
    triangles: usize,
    /// Children of each node, the root first.
    children: Vec<[u32; 8]>,
    /// Triangles of each block, and [`NONE`] in empty lanes.
    blocks: Vec<[u32; 4]>,
    /// Cost when it was built.
    cost: Cost,
}

/// Cost of a tree by the surface area heuristic.
#[derive(Clone, Copy, Debug)]
struct Cost {
    /// Half the areas of all boxes, in square metres: of a ray that may be anywhere.
    areas: f64,
    /// The same in units of the root's: of a ray that meets the root.
    in_root: f64,
}

impl Cost {
    /// Sums are the same from any number of threads.
    fn of(nodes: &[BvhNode8]) -> Self {
        let of_some = |nodes: &[BvhNode8]| -> f64 {
            nodes.iter().flat_map(boxes_of).map(|bounds| f64::from(bounds.half_area())).sum()
        };
        let sums: Vec<f64> = nodes.par_chunks(PARALLEL_MIN).map(of_some).collect();
        let areas = sums.iter().sum();
        let root = nodes.first().map_or(0.0, |root| union(boxes_of(root)).half_area());
        Self { areas, in_root: areas / f64::from(root) }
    }

    /// Returns whether it is at most so many times another. Both measures count: something that
    /// flies away makes all else small beside the root, and a crowd that gathers makes boxes small.
    fn is_within(self, growth_max: f32, other: Self) -> bool {
        let most = f64::from(growth_max);
        self.areas <= most * other.areas && self.in_root <= most * other.in_root
    }
}

impl Topology {
    fn of(kind: BuilderKind, triangles: usize, (nodes, blocks): &Trees) -> Self {
        let ids = |block: &TriangleBlock| {
            block.triangle.map(|id| if id == NONE { NONE } else { id & !BLOCK_ALPHA_FLAG })
        };
        Self {
            kind,
            triangles,
            children: nodes.iter().map(|node| node.child).collect(),
            blocks: blocks.iter().map(ids).collect(),
            cost: Cost::of(nodes),
        }
    }

    /// Returns the tree around triangles; None if its cost has grown more.
    fn refit(&self, triangles: &[Triangle], padding: f32, growth_max: f32) -> Option<Trees> {
        let mut blocks: Vec<TriangleBlock> = room_for(self.blocks.len());
        let blocks_of = self.blocks.par_iter().map(|ids| wide::block_of(ids, triangles));
        blocks_of.collect_into_vec(&mut blocks);
        let mut nodes: Vec<BvhNode8> = room_for(self.children.len());
        let empty = self.children.par_iter().map(|&child| BvhNode8 { child, ..wide::EMPTY_NODE });
        empty.collect_into_vec(&mut nodes);
        let (root, below) = nodes.split_first_mut()?;
        Fit { blocks: &blocks, padding }.node(root, below, 1);
        Cost::of(&nodes).is_within(growth_max, self.cost).then_some((nodes, blocks))
    }
}

/// What boxes are fitted around.
struct Fit<'a> {
    blocks: &'a [TriangleBlock],
    padding: f32,
}

impl Fit<'_> {
    /// Fits the boxes of a node and of everything below it, whose first index is `first`. As
    /// [`wide`] lays nodes out, its inner children come first there, and then what is below each of
    /// them. Returns the box around it.
    fn node(&self, node: &mut BvhNode8, below: &mut [BvhNode8], first: u32) -> Bounds {
        let mut boxes = [Bounds::EMPTY; 8];
        for (bounds, &child) in boxes.iter_mut().zip(&node.child) {
            if child != CHILD_EMPTY && child & CHILD_LEAF_FLAG != 0 {
                *bounds = self.block(&self.blocks[(child & !CHILD_LEAF_FLAG) as usize]);
            }
        }
        let mut inner: Vec<(u32, &mut Bounds)> =
            node.child.into_iter().zip(&mut boxes).filter(|(child, _)| is_inner(*child)).collect();
        inner.sort_by_key(|(child, _)| *child);
        let is_shared = below.len() >= PARALLEL_MIN;
        let (own, mut rest) = below.split_at_mut(inner.len());
        // What is below a child ends where what is below the next one begins.
        let mut end = first + (own.len() + rest.len()) as u32;
        let mut work = Vec::with_capacity(inner.len());
        for (child, (_, bounds)) in own.iter_mut().zip(inner).rev() {
            let begin = child.child.into_iter().filter(|child| is_inner(*child)).min();
            let begin = begin.unwrap_or(end);
            let (before, below) = rest.split_at_mut(rest.len() - (end - begin) as usize);
            (rest, end) = (before, begin);
            work.push((child, below, begin, bounds));
        }
        let fit = |(child, below, first, bounds): (_, _, _, &mut Bounds)| {
            *bounds = self.node(child, below, first);
        };
        if is_shared {
            work.into_par_iter().for_each(fit);
        } else {
            work.into_iter().for_each(fit);
        }
        for (slot, bounds) in boxes.iter().enumerate() {
            if node.child[slot] != CHILD_EMPTY {
                wide::set_child(node, slot, bounds, node.child[slot]);
            }
        }
        union(boxes)
    }

    /// Returns the padded box of a leaf.
    fn block(&self, block: &TriangleBlock) -> Bounds {
        let mut bounds = Bounds::EMPTY;
        for lane in (0..4).filter(|lane| block.triangle[*lane] != NONE) {
            for corner in &block.corner {
                bounds.add_point(corner.map(|axis| axis[lane]));
            }
        }
        bounds.pad(self.padding);
        bounds
    }
}

fn is_inner(child: u32) -> bool {
    child & CHILD_LEAF_FLAG == 0
}

/// Returns the boxes of a node's children.
fn boxes_of(node: &BvhNode8) -> impl Iterator<Item = Bounds> {
    (0..8).filter(|slot| node.child[*slot] != CHILD_EMPTY).map(|slot| {
        let side = |side: usize| [0, 1, 2].map(|axis| node.bounds[side][axis][slot]);
        let ([x, y, z], [far_x, far_y, far_z]) = (side(0), side(1));
        Bounds { lower: [x, y, z, 0.0], upper: [far_x, far_y, far_z, 0.0] }
    })
}

fn union(boxes: impl IntoIterator<Item = Bounds>) -> Bounds {
    let mut around = Bounds::EMPTY;
    boxes.into_iter().for_each(|bounds| around.add(&bounds));
    around
}
