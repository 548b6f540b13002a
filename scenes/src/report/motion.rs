//! What of a film's geometry is placed for every frame, and why: by the rule that decides what
//! stands still (`flatten/standing.rs`). Decides nothing itself.

use crate::flatten::instancing::Instancing;
use crate::flatten::motion::Motion;
use crate::flatten::parts::Parts;
use crate::node::Node;
use serde::{Deserialize, Serialize};
use tessera_layout::{Instance, ShadingVertex, Triangle};

/// A part of a film's geometry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MotionPart {
    /// Triangles, in all their places.
    pub triangles: u64,
    /// Bytes of their arrays in a frame: corners, indices and vertices, without the hierarchy. A
    /// place of a mesh that is held once is a matrix.
    pub bytes: u64,
}

/// What a film whose geometry moves does with it. Each triangle that may be visible in some frame
/// is in one part: the first of them, from the end, that is true of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MotionReport {
    /// What stands still for the whole film.
    pub stands: MotionPart,
    /// Whether that is placed once for all frames. It is placed for every frame if it is little.
    pub is_placed_once: bool,
    /// What stands still, and is visible in some frames only or has a material that changes its
    /// triangles. It is placed for every frame.
    pub varies: MotionPart,
    /// What stands still, and emits or may do so. It is placed for every frame.
    pub emits: MotionPart,
    /// What moves as it is.
    pub moves: MotionPart,
    /// What changes its shape: by joints of a skin that move, or by morph weights.
    pub deforms: MotionPart,
}

impl MotionReport {
    /// Makes the report of all nodes that may be visible. `emits` and `is_plain` are of materials.
    pub(crate) fn of(
        parts: &Parts<'_>,
        (motion, instancing): (&Motion, &Instancing),
        emits: impl Fn(u32) -> bool,
        is_plain: impl Fn(u32) -> bool,
    ) -> Self {
        let mut report = Self { is_placed_once: instancing.standing.is_some(), ..Self::default() };
        for &index in parts.shown {
            let node = &parts.forest.nodes[index];
            let Some(mesh) = node.mesh else { continue };
            let mut materials = parts.meshes[mesh].surfaces.iter().map(|surface| surface.material);
            let part = if motion.deforms[index] {
                &mut report.deforms
            } else if motion.changes[index] {
                &mut report.moves
            } else if materials.clone().any(&emits) {
                &mut report.emits
            } else if motion.comes_and_goes[index] || !materials.all(&is_plain) {
                &mut report.varies
            } else {
                &mut report.stands
            };
            part.add(parts, (node, mesh), instancing);
        }
        report
    }
}

impl MotionPart {
    fn add(&mut self, parts: &Parts<'_>, (node, mesh): (&Node, usize), instancing: &Instancing) {
        let geometries = || parts.meshes[mesh].surfaces.iter().map(|surface| &surface.geometry);
        let triangles: u64 = geometries().map(|of| of.triangles.len() as u64).sum();
        let vertices: u64 = geometries().map(|of| of.positions.len() as u64).sum();
        let is_held = |number: &usize| instancing.holds((mesh, node.instance_color(*number)));
        let places = node.instances.len() as u64;
        let held = (0..node.instances.len()).filter(is_held).count() as u64;
        let copy = triangles * (size_of::<Triangle>() + size_of::<[u32; 3]>()) as u64
            + vertices * size_of::<ShadingVertex>() as u64;
        self.triangles += places * triangles;
        self.bytes += (places - held) * copy + held * size_of::<Instance>() as u64;
    }
}
