//! What the images of a film's frames have in common: it is made once, and a device that has it for
//! one frame need not be sent it for the next.

use super::hierarchy::{CompressedBvh, HeldTrees};
use super::standing::StandingTriangles;
use crate::CheckedScene;
use std::any::Any;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use tessera_layout::{Bvh, Instance, Meshes};

/// What owns the bytes of a part. The bytes at one position of an image that one owner has are
/// always the same.
pub(super) type Owner = Arc<dyn Any + Send + Sync>;

/// What was made for the images of a film's frames. It keeps in memory what stands still and the
/// compressed trees of meshes that are held; of everything else it only knows whether it is the
/// same as before.
#[derive(Debug, Default)]
pub struct FilmImages {
    names: Vec<(Weak<dyn Any + Send + Sync>, u64)>,
    held: Option<(Weak<Meshes>, Arc<HeldTrees>)>,
    tree: Option<LastTree>,
    standing: Option<Arc<StandingTriangles>>,
}

/// The hierarchy of the last image, and what it was made of.
#[derive(Debug)]
struct LastTree {
    bvh: Weak<Bvh>,
    instances: Weak<dyn Any + Send + Sync>,
    made: Weak<CompressedBvh>,
}

impl FilmImages {
    /// Names the parts of an image, in the order of their positions. A part has the name that it
    /// had in the last image, if it is the same.
    pub(super) fn name(&mut self, owners: &[Owner]) -> Vec<u64> {
        // The place of the last owner goes to no other one while this points to it.
        let is_last = |(last, _): &&(Weak<_>, u64), owner: &Owner| {
            std::ptr::addr_eq(last.as_ptr(), Arc::as_ptr(owner))
        };
        let name = |(position, owner): (usize, &Owner)| {
            let last = self.names.get(position).filter(|last| is_last(last, owner));
            last.map_or_else(new_name, |(_, name)| *name)
        };
        let names: Vec<u64> = owners.iter().enumerate().map(name).collect();
        self.names = owners.iter().map(Arc::downgrade).zip(names.iter().copied()).collect();
        names
    }

    /// Compresses a scene's hierarchy. The trees of meshes are compressed once.
    pub(super) fn compress(
        &mut self,
        scene: &CheckedScene,
        standing: Option<&Instance>,
    ) -> Arc<CompressedBvh> {
        let held = self.held(scene, standing);
        let instances = scene.instances.identity();
        let last = self.tree.as_ref().filter(|last| {
            std::ptr::eq(last.bvh.as_ptr(), Arc::as_ptr(&scene.bvh))
                && std::ptr::addr_eq(last.instances.as_ptr(), Arc::as_ptr(&instances))
        });
        let last = last.and_then(|last| last.made.upgrade());
        if let Some(tree) = last.filter(|tree| Arc::ptr_eq(tree.held(), &held)) {
            return tree;
        }
        let made = Arc::new(CompressedBvh::with(&scene.bvh, &scene.instances, held));
        self.tree = Some(LastTree {
            bvh: Arc::downgrade(&scene.bvh),
            instances: Arc::downgrade(&instances),
            made: Arc::downgrade(&made),
        });
        made
    }

    /// Places what stands in a scene.
    pub(super) fn place(
        &mut self,
        scene: &CheckedScene,
        instance: &Instance,
    ) -> Arc<StandingTriangles> {
        let placed = StandingTriangles::of(scene, instance, self.standing.as_ref());
        self.standing = Some(Arc::clone(&placed));
        placed
    }

    fn held(&mut self, scene: &CheckedScene, standing: Option<&Instance>) -> Arc<HeldTrees> {
        let others = &scene.instances[usize::from(standing.is_some())..];
        let same = |(meshes, _): &&(Weak<Meshes>, Arc<HeldTrees>)| {
            std::ptr::eq(meshes.as_ptr(), Arc::as_ptr(&scene.meshes))
        };
        let last = self.held.as_ref().filter(same).map(|(_, held)| held);
        if let Some(held) = last.filter(|held| held.serve(standing, others)) {
            return Arc::clone(held);
        }
        // What appears in this frame is added, and what has vanished may come again.
        let known = last.into_iter().flat_map(|held| held.roots());
        let roots = known.chain(others.iter().map(|instance| instance.root));
        let held = Arc::new(HeldTrees::of(&scene.meshes, roots, standing));
        self.held = Some((Arc::downgrade(&scene.meshes), Arc::clone(&held)));
        held
    }
}

/// Returns a name that no other part of this process has.
fn new_name() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
