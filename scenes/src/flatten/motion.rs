//! Which nodes of a film move: by what the played clips target, never by the frames asked for.

use crate::mesh::{Mesh, Skin};
use crate::node::Forest;
use crate::node::animation::{self, Clip};
use crate::pointer::Target;

/// What a film does to each node.
#[derive(Debug)]
pub(crate) struct Motion {
    /// Whether a node's mesh is somewhere else, or has another shape, in some frame.
    pub(crate) changes: Vec<bool>,
    /// Whether it has another shape in some frame: by its skin or its morph weights.
    pub(crate) deforms: Vec<bool>,
    /// Whether a node is visible in some frames and not in others, or may be.
    pub(crate) comes_and_goes: Vec<bool>,
}

impl Motion {
    pub(crate) fn of(forest: &Forest, meshes: &[Mesh], skins: &[Skin], clips: &[Clip]) -> Self {
        let count = forest.nodes.len();
        let (mut moved, mut morphed) = (vec![false; count], vec![false; count]);
        let mut comes_and_goes = vec![false; count];
        let mut morphed_meshes = vec![false; meshes.len()];
        for channel in animation::played(clips) {
            match channel.target {
                Target::Translation(node) | Target::Rotation(node) | Target::Scale(node) => {
                    moved[node] = true;
                }
                Target::Weights(node) | Target::Weight(node, _) => morphed[node] = true,
                Target::MeshWeights(mesh) | Target::MeshWeight(mesh, _) => {
                    morphed_meshes[mesh] = true;
                }
                Target::Visible(node) => comes_and_goes[node] = true,
                Target::Unseen(..) | Target::Value(_) => {}
            }
        }
        let moved = forest.spread(moved);
        let skins = skins.iter();
        let joints_move: Vec<bool> =
            skins.map(|skin| skin.joints.iter().any(|joint| moved[*joint])).collect();
        let nodes = forest.nodes.iter().enumerate();
        let deforms = nodes.map(|(index, node)| {
            morphed[index]
                || node.mesh.is_some_and(|mesh| morphed_meshes[mesh])
                || node.skin.is_some_and(|skin| joints_move[skin])
        });
        let deforms: Vec<bool> = deforms.collect();
        let changes = moved.iter().zip(&deforms).map(|(moved, deforms)| *moved || *deforms);
        let changes = changes.collect();
        Self { changes, deforms, comes_and_goes: forest.spread(comes_and_goes) }
    }

    /// Returns whether any frame shows other triangles than the first because a node with triangles
    /// moves, or a joint of its skin, or its morph weights. `shown` are the nodes that may be
    /// visible.
    pub(crate) fn moves_geometry(&self, forest: &Forest, shown: &[usize]) -> bool {
        shown.iter().any(|&node| forest.nodes[node].mesh.is_some() && self.changes[node])
    }
}
