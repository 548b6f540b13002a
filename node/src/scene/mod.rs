//! Prepares frames from a job's files: fetched into the cache, laid out as a folder, loaded once,
//! flattened per frame. Owns no session; it waits for one if files are missing. Reads no scene: a
//! child process does (`import`).

pub(crate) mod fetch;
mod locks;
mod store;
mod view;

use crate::device::PreparedFrame;
use crate::frame_memory::{Claim, NotPrepared, arrays_of};
use crate::import::{ImportError, ImportedScene, Importer, StopOnDrop};
use crate::job::{camera_choice, flatten_options, load_options};
use fetch::Fetcher;
use locks::Locks;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use store::{SceneKey, SceneStore};
use tessera_kernels::CheckedScene;
use tessera_kernels::copies::with_world_trees;
use tessera_protocol::node::{Failure, MemoryShortage};
use tessera_protocol::{BlobHash, FrameNumber, FrameSet, RenderSpec};
use tessera_scenes::FlattenOptions;

/// Prepares frames. All preparations of a node share it, so that two of them do not do the same
/// work twice.
pub(crate) struct Preparer {
    fetcher: Fetcher,
    importer: Importer,
    views: PathBuf,
    /// The most memory of any device in bytes; 0 if it is not known. A smaller device reports by
    /// itself if a scene does not fit.
    memory_bytes: u64,
    /// Whether frames are laid out for CUDA devices, so that these do not wait for it.
    lays_out: bool,
    store: Mutex<SceneStore>,
    loading: Locks<BlobHash>,
}

impl Preparer {
    /// Creates it for devices with at most `memory_bytes`, or 0 if that is not known. It keeps
    /// `prepared_bytes` of scenes and frames that are not in use.
    pub(crate) fn new(
        fetcher: Fetcher,
        importer: Importer,
        views: PathBuf,
        (memory_bytes, prepared_bytes): (u64, u64),
    ) -> Self {
        let store = Mutex::new(SceneStore::new(prepared_bytes));
        let (loading, lays_out) = (Locks::default(), false);
        Self { fetcher, importer, views, memory_bytes, lays_out, store, loading }
    }

    /// Lays frames out for CUDA devices too, or not.
    pub(crate) fn laying_out(self, lays_out: bool) -> Self {
        Self { lays_out, ..self }
    }

    /// Returns the hashes of the loaded scenes, in order.
    pub(crate) fn scenes(&self) -> Vec<BlobHash> {
        self.store().scenes()
    }

    /// Prepares a frame, or returns it from memory, and when it was asked for: the scene was loaded
    /// then. `claim` is the memory of the frame. If this is dropped, files are not fetched any
    /// more, and the scene is not loaded.
    pub(crate) async fn prepare(
        &self,
        spec: &RenderSpec,
        number: FrameNumber,
        claim: &Claim,
    ) -> Result<(Arc<PreparedFrame>, Instant), NotPrepared> {
        let key = SceneKey { hash: spec.scene_hash(), options: load_options(spec) };
        let scene = self.scene(&key, spec, claim).await?;
        let asked = Instant::now();
        let options = moment(&scene, flatten_options(spec, number));
        let known = self.store().frame(&key, &options);
        let frame = match known {
            Some(frame) => frame,
            None => {
                claim.expect(needed_for(&scene))?;
                match self.flatten(&scene, (key, options), samples_of(spec)).await? {
                    Some(frame) => frame,
                    // A new process has given no frame, so its end is told.
                    None => return Box::pin(self.prepare(spec, number, claim)).await,
                }
            }
        };
        scene.note_frame_bytes(claim.settle(arrays_of(&frame.scene)));
        if self.lays_out {
            let frame = frame.clone();
            heavy(move || {
                frame.image();
                Ok(())
            })
            .await?;
        }
        Ok((frame, asked))
    }

    /// Makes a frame that is to have `samples` samples; None if the process that gave other frames
    /// of the scene is gone, which says nothing against the scene.
    async fn flatten(
        &self,
        scene: &Arc<ImportedScene>,
        (key, options): (SceneKey, FlattenOptions),
        samples: u64,
    ) -> Result<Option<Arc<PreparedFrame>>, Failure> {
        // A copied hierarchy of a mesh that moves takes as long as a tenth of a sample for each
        // triangle, and without it samples in such a mesh take up to half as long again. Devices
        // do not use it.
        let world_trees = if self.lays_out { 0 } else { samples };
        let flatten = {
            // The frame is kept for jobs with other samples too.
            let (scene, options) = (scene.clone(), FlattenOptions { samples, ..options.clone() });
            move || {
                Ok(scene.flatten(&options).map(|flat| {
                    let last = scene.checked_meshes();
                    let checked = CheckedScene::after(Arc::new(flat), last.as_deref());
                    if let Ok(checked) = &checked {
                        scene.note_checked(checked.checked_meshes());
                    }
                    checked.map(|checked| with_world_trees(checked, world_trees))
                }))
            }
        };
        match heavy(flatten).await? {
            Ok(Ok(checked)) => {
                let mut store = self.store();
                store.note_scene_bytes(scene, scene.own_bytes());
                Ok(Some(store.add_frame((key, options), checked, scene.images())))
            }
            Ok(Err(error)) => Err(Failure::Scene(error.to_string())),
            Err(error) => {
                if error.is_end() {
                    // The next request for the scene begins again.
                    self.store().drop_scene(scene);
                }
                if error.is_loss() && scene.checked_meshes().is_some() {
                    tracing::warn!(%error, "a scene is loaded again");
                    return Ok(None);
                }
                Err(error.into_failure())
            }
        }
    }

    async fn scene(
        &self,
        key: &SceneKey,
        spec: &RenderSpec,
        claim: &Claim,
    ) -> Result<Arc<ImportedScene>, NotPrepared> {
        let _turn = self.loading.lock(key.hash).await;
        if let Some(scene) = self.store().scene(key) {
            return Ok(scene);
        }
        // More is not known before the scene is loaded.
        claim.expect(spec.files.iter().fold(0, |sum, file| sum.saturating_add(file.length)))?;
        let view = view::lay_out(&self.views, &spec.files, &self.fetcher).await?;
        let (main, options, importer) =
            (spec.scene.clone(), key.options.clone(), self.importer.clone());
        let mut stop = StopOnDrop::default();
        let stopped = stop.flag();
        let load = move || {
            let loaded = importer.load_unless(stopped, view.path(), &main, &options);
            loaded.map_err(ImportError::into_failure)
        };
        let scene = Arc::new(heavy(load).await?);
        stop.disarm();
        self.check_memory(&scene)?;
        let report = scene.report();
        let is_still = spec.frames == FrameSet::one(FrameNumber(0));
        let still = if is_still { report.still_note() } else { None };
        let camera = report.camera_note(&camera_choice(spec));
        let notes = camera.into_iter().chain(still.as_deref());
        for warning in report.warnings.iter().map(String::as_str).chain(notes) {
            tracing::warn!(scene = %key.hash, "{warning}");
        }
        self.store().add_scene(key.clone(), scene.clone());
        Ok(scene)
    }

    fn check_memory(&self, scene: &ImportedScene) -> Result<(), Failure> {
        let needed = scene.report().arrays_bytes;
        if self.memory_bytes > 0 && needed > self.memory_bytes {
            let have = self.memory_bytes;
            let reason = format!(
                "the scene needs {needed} bytes, the largest device of this node has {have}"
            );
            return Err(Failure::OutOfMemory(MemoryShortage {
                device: 0,
                needed,
                available: have,
                reason,
            }));
        }
        Ok(())
    }

    fn store(&self) -> MutexGuard<'_, SceneStore> {
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the memory that the next frame of a scene probably needs: the scene's process, and the
/// frame's own arrays twice, since the process has them beside their file until they are written.
fn needed_for(scene: &ImportedScene) -> u64 {
    let own = scene.frame_bytes();
    scene.own_bytes().saturating_add(own.saturating_mul(2))
}

/// Returns the number of samples of a frame.
fn samples_of(spec: &RenderSpec) -> u64 {
    let pixels = u64::from(spec.width) * u64::from(spec.height);
    pixels.saturating_mul(u64::from(spec.spp))
}

/// Returns one time for all frames of a scene in which nothing moves, so that they share one
/// preparation.
fn moment(scene: &ImportedScene, options: FlattenOptions) -> FlattenOptions {
    if scene.report().animations.iter().any(|animation| animation.played) {
        return options;
    }
    FlattenOptions { time_secs: 0.0, frame_secs: 0.0, ..options }
}

/// Runs long work away from the tasks that must answer soon. A panic in it is the scene's failure,
/// since every node would have it.
async fn heavy<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(Failure::Scene(format!("preparing the scene failed: {error}"))),
    }
}
