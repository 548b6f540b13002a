//! Memory of the frames that a node works on or prepares, against the memory of the node. Decides
//! whether the next frame fits beside the present ones. Holds no frame itself.

use bytemuck::Pod;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tessera_layout::{Array, FlatScene};
use tessera_protocol::node::Failure;

/// Part of this process's memory that frames never get: one of so many parts.
const SPARED: u64 = 8;

/// Why a frame is not prepared.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum NotPrepared {
    /// It cannot be prepared: its units fail.
    Failed(Failure),
    /// It does not fit beside the frames in use. It can be tried again when one of them is done.
    Postponed(Shortage),
}

impl From<Failure> for NotPrepared {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<Shortage> for NotPrepared {
    fn from(shortage: Shortage) -> Self {
        Self::Postponed(shortage)
    }
}

/// A frame does not fit beside those in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it needs about {needed} bytes, the frames in use have {used}, and the node has {limit}")]
pub(crate) struct Shortage {
    /// Bytes that the frame probably needs.
    pub(crate) needed: u64,
    /// Bytes of the other frames.
    pub(crate) used: u64,
    /// Bytes for all frames in use.
    pub(crate) limit: u64,
}

/// A range of memory, which several frames may share: an array of a frame, wherever it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    /// Identifies the array as long as it is in memory.
    pub(crate) address: usize,
    pub(crate) bytes: u64,
}

/// What one frame takes.
#[derive(Debug, Default)]
struct Taken {
    /// Bytes that it probably needs, while it is being prepared.
    expected: u64,
    /// Its arrays, once it is prepared.
    arrays: Vec<Held>,
}

#[derive(Debug, Default)]
struct Claims {
    last: u64,
    taken: BTreeMap<u64, Taken>,
}

impl Claims {
    /// Returns the bytes of all frames but one. Arrays that they share count once.
    fn used(&self, but: u64) -> u64 {
        let others = || self.taken.iter().filter(|(id, _)| **id != but).map(|(_, taken)| taken);
        let arrays = others().flat_map(|taken| &taken.arrays);
        let arrays: BTreeMap<usize, u64> =
            arrays.map(|array| (array.address, array.bytes)).collect();
        let expected = others().map(|taken| taken.expected);
        arrays.into_values().chain(expected).fold(0, u64::saturating_add)
    }
}

/// Memory for the frames in use. Frames that are kept for later, and in use by nobody, are counted
/// by those who keep them.
#[derive(Debug)]
pub(crate) struct FrameMemory {
    /// Bytes for all frames; 0 if it is not known, and nothing is refused.
    limit: u64,
    claims: Mutex<Claims>,
}

impl FrameMemory {
    /// Creates it for a process that may use `host` bytes, or 0 if that is not known, of which
    /// `kept` are for frames and scenes that are not in use.
    pub(crate) fn new(host: u64, kept: u64) -> Arc<Self> {
        let limit = (host - host / SPARED).saturating_sub(kept).max(u64::from(host > 0));
        Arc::new(Self { limit, claims: Mutex::default() })
    }

    /// Begins a claim, which takes nothing yet. With `beside`, it must fit beside those that are
    /// there.
    pub(crate) fn claim(self: &Arc<Self>, beside: bool) -> Claim {
        let mut claims = self.claims();
        claims.last += 1;
        let id = claims.last;
        claims.taken.insert(id, Taken::default());
        Claim(Arc::new(Guard { id, beside, memory: self.clone() }))
    }

    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Memory of one frame, from the beginning of its preparation to the end of its last unit. Clones
/// are of the same frame.
#[derive(Clone, Debug)]
pub(crate) struct Claim(Arc<Guard>);

#[derive(Debug)]
struct Guard {
    id: u64,
    beside: bool,
    memory: Arc<FrameMemory>,
}

impl Claim {
    /// Takes what the frame probably needs in all, in place of what was expected before.
    ///
    /// # Errors
    /// It does not fit beside the other frames, and has to.
    pub(crate) fn expect(&self, bytes: u64) -> Result<(), Shortage> {
        let Guard { id, beside, memory } = &*self.0;
        let mut claims = memory.claims();
        let (used, limit) = (claims.used(*id), memory.limit);
        if *beside && limit > 0 && used.saturating_add(bytes) > limit {
            return Err(Shortage { needed: bytes, used, limit });
        }
        if let Some(taken) = claims.taken.get_mut(id) {
            taken.expected = bytes;
        }
        Ok(())
    }

    /// Takes the arrays of the prepared frame, in place of what was expected. Returns the bytes
    /// that the other frames do not have.
    pub(crate) fn settle(&self, arrays: Vec<Held>) -> u64 {
        let Guard { id, memory, .. } = &*self.0;
        let mut claims = memory.claims();
        let before = claims.used(*id);
        if let Some(taken) = claims.taken.get_mut(id) {
            *taken = Taken { expected: 0, arrays };
        }
        // No frame has that number.
        claims.used(0).saturating_sub(before)
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.memory.claims().taken.remove(&self.id);
    }
}

/// Returns the arrays of a scene. Those of later frames are the same arrays where nothing moves.
pub(crate) fn arrays_of(scene: &FlatScene) -> Vec<Held> {
    fn of<T: Pod>(array: &Array<T>) -> Held {
        Held { address: array.as_ptr() as usize, bytes: size_of_val(&**array) as u64 }
    }
    let (bvh, meshes) = (&scene.bvh, &scene.meshes);
    let mut all = vec![
        of(&scene.triangles),
        of(&scene.triangle_vertices),
        of(&scene.vertices),
        of(&scene.materials),
        of(&scene.layers),
        of(&scene.media),
        of(&scene.textures),
        of(&scene.texels),
        of(&scene.lights),
        of(&scene.light_alias),
        of(&scene.light_nodes),
        of(&scene.environment_texels),
        of(&scene.environment_cells),
        of(&scene.instances),
        of(&bvh.nodes),
        of(&bvh.blocks),
        of(&meshes.triangles),
        of(&meshes.triangle_vertices),
        of(&meshes.vertices),
        of(&meshes.nodes),
        of(&meshes.blocks),
    ];
    // An empty array has no address of its own.
    all.retain(|held| held.bytes > 0);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(address: usize, bytes: u64) -> Held {
        Held { address, bytes }
    }

    #[test]
    fn the_next_frame_must_fit_beside_the_present_one() {
        // An eighth is spared, and 100 bytes are for what is kept.
        let memory = FrameMemory::new(1600, 100);
        let present = memory.claim(false);
        present.expect(5000).expect("the only frame is never refused");
        present.settle(vec![array(1, 700), array(2, 100)]);
        let next = memory.claim(true);
        let shortage = next.expect(501).unwrap_err();
        assert_eq!(shortage, Shortage { needed: 501, used: 800, limit: 1300 });
        next.expect(500).expect("it fits");
        let third = memory.claim(true);
        assert_eq!(third.expect(1).unwrap_err().used, 1300);
        drop(present);
        third.expect(800).expect("the first is gone");
    }

    #[test]
    fn arrays_that_frames_share_count_once() {
        let memory = FrameMemory::new(800, 0);
        let frames: Vec<Claim> = (0..5usize)
            .map(|frame| {
                let claim = memory.claim(frame > 0);
                let own = claim.settle(vec![array(9, 500), array(100 + frame, 10)]);
                assert_eq!(own, if frame == 0 { 510 } else { 10 });
                claim
            })
            .collect();
        let next = memory.claim(true);
        assert_eq!(next.expect(151).unwrap_err().used, 550);
        next.expect(150).expect("it fits");
        // A clone is the same frame: it is in use until the last unit ends.
        let clone = frames[4].clone();
        drop(frames);
        assert_eq!(memory.claim(true).expect(700).unwrap_err().used, 660);
        drop((clone, next));
        memory.claim(true).expect(700).expect("nothing is in use");
    }

    #[test]
    fn a_node_of_unknown_memory_refuses_nothing() {
        let memory = FrameMemory::new(0, 100);
        let claims = [memory.claim(true), memory.claim(true)];
        claims.iter().for_each(|claim| claim.expect(u64::MAX).expect("nothing is known"));
        // What is kept may be all that there is. Then only one frame fits.
        let memory = FrameMemory::new(100, 100);
        assert!(memory.claim(true).expect(2).is_err());
        memory.claim(false).expect(2).expect("it is the only one");
    }

    #[test]
    fn all_arrays_of_a_scene_are_counted() {
        let frame = crate::test_scene::frame();
        let arrays = arrays_of(&frame.scene);
        assert_eq!(arrays.iter().map(|array| array.bytes).sum::<u64>(), frame.scene.bytes());
        // Another frame of the scene has another camera, and the same arrays.
        let other =
            FlatScene { camera: bytemuck::Zeroable::zeroed(), ..FlatScene::clone(&frame.scene) };
        assert_eq!(arrays_of(&other), arrays);
    }
}
