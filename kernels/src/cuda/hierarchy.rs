//! The hierarchy of a scene on a device: its root, the trees of meshes that are held for a whole
//! film, and its own tree. The held ones come first, so that nothing in them depends on a frame.

use super::compress::{Compressed, CompressedNode, LeafTriangle, Tree};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tessera_layout::{Bvh, Instance, Meshes};

/// Trees of meshes, which frames share.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct HeldTrees {
    trees: Compressed,
    /// Where the root of each mesh is on the device, by its root on a host.
    roots: BTreeMap<u32, u32>,
    /// What stands still, if something does.
    standing: Option<StandingTree>,
}

/// A tree that is walked without a map.
#[derive(Clone, Copy, Debug, PartialEq)]
struct StandingTree {
    /// Its root on a host.
    root: u32,
    /// Id of its first triangle.
    first_id: u32,
    /// Its root in the trees.
    at: usize,
}

impl HeldTrees {
    /// Compresses the trees of those roots, and that of what stands.
    pub(super) fn of(
        meshes: &Meshes,
        roots: impl IntoIterator<Item = u32>,
        standing: Option<&Instance>,
    ) -> Self {
        let none = |_| unreachable!("meshes have no instances: they were checked");
        let tree =
            |root, first_id| Tree { nodes: &meshes.nodes, blocks: &meshes.blocks, root, first_id };
        // Before the held trees there is the root of the scene.
        let mut trees = Compressed::behind(1, 0);
        let standing = standing.map(|instance| {
            let (root, first_id) = (instance.root, instance.first_id);
            StandingTree { root, first_id, at: trees.add(&tree(root, first_id), none) }
        });
        let roots: BTreeSet<u32> = roots.into_iter().collect();
        let added =
            roots.into_iter().map(|root| (root, 1 + trees.add(&tree(root, 0), none) as u32));
        let roots = added.collect();
        Self { trees, roots, standing }
    }

    /// Returns whether these are the trees that instances need.
    pub(super) fn serve(&self, standing: Option<&Instance>, others: &[Instance]) -> bool {
        let held = self.standing.map(|held| (held.root, held.first_id));
        held == standing.map(|instance| (instance.root, instance.first_id))
            && others.iter().all(|instance| self.roots.contains_key(&instance.root))
    }

    /// Returns the roots, as a host counts them.
    pub(super) fn roots(&self) -> impl Iterator<Item = u32> {
        self.roots.keys().copied()
    }

    pub(super) fn nodes(&self) -> &[CompressedNode] {
        &self.trees.nodes
    }

    pub(super) fn triangles(&self) -> &[LeafTriangle] {
        &self.trees.triangles
    }
}

/// The hierarchy of a scene for a device.
#[derive(Clone, Debug, PartialEq)]
pub struct CompressedBvh {
    held: Arc<HeldTrees>,
    own: Compressed,
}

impl CompressedBvh {
    /// Compresses the hierarchies of a checked scene: its own, with one node for each instance in
    /// it, and that of each instanced mesh once.
    pub fn of(bvh: &Bvh, instances: &[Instance], meshes: &Meshes) -> Self {
        let roots = instances.iter().map(|instance| instance.root);
        Self::with(bvh, instances, Arc::new(HeldTrees::of(meshes, roots, None)))
    }

    /// Compresses a scene's own hierarchy for held trees that serve its instances. If they have one
    /// that stands, it is the first instance: its root is a node of the scene's own tree, and the
    /// other instances are counted from 0.
    pub(super) fn with(bvh: &Bvh, instances: &[Instance], held: Arc<HeldTrees>) -> Self {
        let mut own = Compressed::behind(held.nodes().len(), held.triangles().len());
        let node_of = |instance: u32| match (held.standing, instance) {
            (Some(standing), 0) => held.trees.nodes[standing.at],
            (standing, instance) => {
                let root = held.roots[&instances[instance as usize].root];
                CompressedNode::of_instance(instance - u32::from(standing.is_some()), root)
            }
        };
        if !bvh.nodes.is_empty() {
            let (nodes, blocks) = (&bvh.nodes[..], &bvh.blocks[..]);
            own.add(&Tree { nodes, blocks, root: 0, first_id: 0 }, node_of);
        }
        Self { held, own }
    }

    /// Returns the trees that it shares.
    pub(super) fn held(&self) -> &Arc<HeldTrees> {
        &self.held
    }

    /// Returns the nodes in the order of the device: the root, those that are held, and the others.
    pub(super) fn node_parts(&self) -> [&[CompressedNode]; 3] {
        let (root, others) = self.own.nodes.split_at(self.own.nodes.len().min(1));
        [root, self.held.nodes(), others]
    }

    /// Returns the triangles of leaves in the order of the device.
    pub(super) fn triangle_parts(&self) -> [&[LeafTriangle]; 2] {
        [self.held.triangles(), &self.own.triangles]
    }

    /// Copies all nodes, for tests: the root first, and the inner children of a node consecutive.
    pub fn nodes(&self) -> Vec<CompressedNode> {
        self.node_parts().concat()
    }

    /// Copies all triangles, for tests. Those of a node's leaves are consecutive.
    pub fn triangles(&self) -> Vec<LeafTriangle> {
        self.triangle_parts().concat()
    }
}
