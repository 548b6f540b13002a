//! Loaded scenes and prepared frames in memory, with a limit in bytes. The entry that was unused
//! for the longest time is dropped first. Loads nothing itself.

use crate::device::PreparedFrame;
use crate::import::ImportedScene;
use std::sync::{Arc, Mutex};
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::FilmImages;
use tessera_protocol::BlobHash;
use tessera_scenes::{FlattenOptions, LoadOptions};

/// Everything that a loaded scene depends on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SceneKey {
    pub(super) hash: BlobHash,
    pub(super) options: LoadOptions,
}

struct Entry<K, V> {
    key: K,
    value: V,
    bytes: u64,
    used: u64,
}

/// A few entries in a list. Keys contain floating-point settings, which have no order, so a look-up
/// compares them one by one.
pub(super) struct SceneStore<S = ImportedScene> {
    bytes_max: u64,
    clock: u64,
    frame_ids: u64,
    scenes: Vec<Entry<SceneKey, Arc<S>>>,
    frames: Vec<Entry<(SceneKey, FlattenOptions), Arc<PreparedFrame>>>,
}

impl SceneStore {
    /// Adds a scene, whose importer holds everything until a frame has it.
    pub(super) fn add_scene(&mut self, key: SceneKey, scene: Arc<ImportedScene>) {
        let bytes = scene.report().arrays_bytes.max(scene.own_bytes());
        self.add_scene_of(key, scene, bytes);
    }
}

impl<S> SceneStore<S> {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self { bytes_max, clock: 0, frame_ids: 0, scenes: Vec::new(), frames: Vec::new() }
    }

    /// Returns the hashes of the stored scenes, each once, in order.
    pub(super) fn scenes(&self) -> Vec<BlobHash> {
        let mut hashes: Vec<BlobHash> = self.scenes.iter().map(|entry| entry.key.hash).collect();
        hashes.sort_unstable();
        hashes.dedup();
        hashes
    }

    pub(super) fn scene(&mut self, key: &SceneKey) -> Option<Arc<S>> {
        self.clock += 1;
        let entry = self.scenes.iter_mut().find(|entry| entry.key == *key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    pub(super) fn frame(
        &mut self,
        scene: &SceneKey,
        options: &FlattenOptions,
    ) -> Option<Arc<PreparedFrame>> {
        self.clock += 1;
        let entry = self
            .frames
            .iter_mut()
            .find(|entry| entry.key.0 == *scene && entry.key.1 == *options)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Notes what a scene's importer takes beside its frames, or 0 if that is not known.
    pub(super) fn note_scene_bytes(&mut self, scene: &Arc<S>, bytes: u64) {
        let entry = self.scenes.iter_mut().find(|entry| Arc::ptr_eq(&entry.value, scene));
        if let (Some(entry), 1..) = (entry, bytes) {
            entry.bytes = bytes;
        }
    }

    /// Forgets a scene that can no longer be flattened. Its frames stay.
    pub(super) fn drop_scene(&mut self, scene: &Arc<S>) {
        self.scenes.retain(|entry| !Arc::ptr_eq(&entry.value, scene));
    }

    fn add_scene_of(&mut self, key: SceneKey, scene: Arc<S>, bytes: u64) {
        self.clock += 1;
        self.scenes.push(Entry { key, value: scene, bytes, used: self.clock });
        self.shrink();
    }

    /// Adds a frame and returns its handle. If another task has added the same frame before,
    /// returns that one.
    pub(super) fn add_frame(
        &mut self,
        (scene, options): (SceneKey, FlattenOptions),
        checked: CheckedScene,
        images: Arc<Mutex<FilmImages>>,
    ) -> Arc<PreparedFrame> {
        if let Some(frame) = self.frame(&scene, &options) {
            return frame;
        }
        self.clock += 1;
        self.frame_ids += 1;
        let bytes = checked.bytes();
        let frame = Arc::new(PreparedFrame::in_film(checked, self.frame_ids, images));
        self.frames.push(Entry {
            key: (scene, options),
            value: frame.clone(),
            bytes,
            used: self.clock,
        });
        self.shrink();
        frame
    }

    /// Drops the longest unused entries until the limit holds. The newest entry stays. Entries in
    /// use live on with their users.
    fn shrink(&mut self) {
        loop {
            let bytes: u64 = self.scenes.iter().map(|entry| entry.bytes).sum::<u64>()
                + self.frames.iter().map(|entry| entry.bytes).sum::<u64>();
            if bytes <= self.bytes_max {
                return;
            }
            let scene = oldest(&self.scenes, self.clock);
            let frame = oldest(&self.frames, self.clock);
            match (scene, frame) {
                (Some((used, index)), frame) if frame.is_none_or(|(other, _)| used < other) => {
                    self.scenes.swap_remove(index);
                }
                (_, Some((_, index))) => {
                    self.frames.swap_remove(index);
                }
                _ => return,
            }
        }
    }
}

/// Returns when the longest unused entry was last used, and its position. Never returns the newest
/// of all.
fn oldest<K, V>(entries: &[Entry<K, V>], newest: u64) -> Option<(u64, usize)> {
    let old = entries.iter().enumerate().filter(|(_, entry)| entry.used < newest);
    old.map(|(index, entry)| (entry.used, index)).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_scene;

    fn key(byte: u8) -> SceneKey {
        SceneKey { hash: BlobHash([byte; 32]), options: LoadOptions::default() }
    }

    fn at(time_secs: f64) -> FlattenOptions {
        FlattenOptions { time_secs, ..FlattenOptions::still(8, 8) }
    }

    fn checked() -> CheckedScene {
        test_scene::frame().scene.clone()
    }

    #[test]
    fn a_frame_is_found_by_scene_time_and_view() {
        let mut store = SceneStore::<()>::new(u64::MAX);
        let frame = store.add_frame((key(1), at(0.5)), checked(), Arc::default());
        assert!(Arc::ptr_eq(&store.frame(&key(1), &at(0.5)).unwrap(), &frame));
        assert!(Arc::ptr_eq(
            &store.add_frame((key(1), at(0.5)), checked(), Arc::default()),
            &frame
        ));
        assert!(store.frame(&key(2), &at(0.5)).is_none());
        assert!(store.frame(&key(1), &at(0.6)).is_none());
        assert_ne!(store.add_frame((key(1), at(0.6)), checked(), Arc::default()).id, frame.id);
    }

    #[test]
    fn the_least_recently_used_entry_is_dropped_first() {
        let bytes = checked().bytes();
        let mut store = SceneStore::<()>::new(2 * bytes);
        store.add_scene_of(key(1), Arc::new(()), bytes);
        store.add_frame((key(1), at(1.0)), checked(), Arc::default());
        assert!(store.scene(&key(1)).is_some());
        store.add_frame((key(1), at(2.0)), checked(), Arc::default());
        assert!(store.frame(&key(1), &at(1.0)).is_none());
        assert_eq!(store.scenes(), [BlobHash([1; 32])]);
        store.add_frame((key(1), at(3.0)), checked(), Arc::default());
        assert!(store.scenes().is_empty());
        assert!(store.frame(&key(1), &at(2.0)).is_some());
    }

    #[test]
    fn an_oversized_entry_is_kept_until_the_next_one() {
        let mut store = SceneStore::<()>::new(1);
        store.add_frame((key(1), at(1.0)), checked(), Arc::default());
        assert!(store.frame(&key(1), &at(1.0)).is_some());
        store.add_frame((key(1), at(2.0)), checked(), Arc::default());
        assert!(store.frame(&key(1), &at(1.0)).is_none());
    }
}
