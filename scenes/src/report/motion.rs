//! What of a film's geometry is placed for every frame, and why: by the rule that decides what
//! stands still (`flatten/standing.rs`). Decides nothing itself.

use crate::flatten::instancing::Instancing;
use crate::flatten::motion::Motion;
use crate::flatten::parts::Parts;
use crate::node::Node;
use crate::report::{MotionPart, MotionReport};
use tessera_layout::{Instance, ShadingVertex, Triangle};

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
        let vertices: u64 = geometries().map(|of| of.shading_count() as u64).sum();
        let is_held = |number: &usize| instancing.holds((mesh, node.instance_color(*number)));
        let places = node.instances.len() as u64;
        let held = (0..node.instances.len()).filter(is_held).count() as u64;
        let copy = triangles * (size_of::<Triangle>() + size_of::<[u32; 3]>()) as u64
            + vertices * size_of::<ShadingVertex>() as u64;
        self.triangles += places * triangles;
        self.held_triangles += held * triangles;
        self.bytes += (places - held) * copy + held * size_of::<Instance>() as u64;
    }
}
