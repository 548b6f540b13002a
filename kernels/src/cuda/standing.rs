//! What stands still in a film as devices have it: among the scene's own triangles, where a walk
//! needs no map. Made once for all frames that have it in the same place.

use crate::CheckedScene;
use crate::copies::{Placed, instance_in, place};
use std::sync::{Arc, Weak};
use tessera_layout::{Instance, Meshes};

/// Returns the instance that stands in a scene, if a device can have it among the scene's own
/// triangles with the boxes that it has. One that it cannot is walked by its map.
pub(super) fn standing(scene: &CheckedScene) -> Option<&Instance> {
    let stands = |instance: &&Instance| instance.standing_padding > 0.0;
    let first = scene.instances.first().filter(stands)?;
    // No importer of ours has two that stand, or names one twice.
    let is_only = !scene.instances.get(1).is_some_and(|second| stands(&second));
    let children = scene.bvh.nodes.iter().flat_map(|node| node.child);
    let named = children.filter(|child| instance_in(*child) == Some(0)).count();
    (first.standing_padding >= scene.bvh.padding && is_only && named == 1).then_some(first)
}

/// Triangles that stand, and where they are in a scene's arrays.
#[derive(Debug)]
pub(super) struct StandingTriangles {
    meshes: Weak<Meshes>,
    instance: Instance,
    first_vertex: usize,
    pub(super) placed: Placed,
}

impl StandingTriangles {
    /// Places what stands in a scene, or returns what was placed for another frame.
    pub(super) fn of(
        scene: &CheckedScene,
        instance: &Instance,
        last: Option<&Arc<Self>>,
    ) -> Arc<Self> {
        let first_vertex = scene.vertices.len();
        if let Some(last) = last
            && std::ptr::eq(last.meshes.as_ptr(), Arc::as_ptr(&scene.meshes))
            && (last.instance, last.first_vertex) == (*instance, first_vertex)
        {
            return Arc::clone(last);
        }
        let (meshes, instance) = (Arc::downgrade(&scene.meshes), *instance);
        let placed = place(scene, &instance, first_vertex);
        Arc::new(Self { meshes, instance, first_vertex, placed })
    }
}
