//! Importing scenes in a child process: whatever a scene's files do to an importer, they do it to a
//! process that has limits, no network, no keys and no other files, and that nothing else depends
//! on. Owns the process and its limits, not what it reads.
//!
//! ```text
//! Importer ─ load ─► child: sandbox, tessera_scenes::load ─ report ─► ImportedScene
//! ImportedScene ─ flatten ─► child ─ files in memory ─► FlatScene
//! ```
//!
//! One child stands for one loaded scene and ends with it. What comes back is bounded by the
//! limits, and checked by `CheckedScene` before a kernel sees it.

mod arrays;
mod child;
mod error;
mod huge_pages;
mod memory_file;
mod message;
mod process;
#[cfg(test)]
mod process_tests;

pub use child::{COMMAND, main};
pub use error::ImportError;

use crate::device::worker::sandbox::{enter_importer, record_folder};
use crate::device::worker::{Sandbox, die_with};
use crate::memory::HostMemory;
use message::{Answer, Order};
use process::{Answered, Ask};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Sender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tessera_kernels::CheckedMeshes;
use tessera_kernels::cuda::FilmImages;
use tessera_layout::FlatScene;
use tessera_scenes::{EnvironmentSource, FlattenOptions, Limits, LoadOptions, SceneReport};

/// Memory that an importer may take where a quarter of the machine's is less, bytes; but never more
/// than half of what this process may use.
const MEMORY_BYTES_LEAST: u64 = 4 << 30;
/// How long loading a scene, or flattening one frame, may take.
const TIME: Duration = Duration::from_secs(300);

/// Limits on the resources of one import.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImportLimits {
    /// Bytes of memory for one scene's process.
    pub memory_bytes: u64,
    /// Time for loading a scene, and for flattening each of its frames.
    pub time: Duration,
}

impl Default for ImportLimits {
    /// A quarter of the memory that this process may use and at least 4 GiB, but never more than
    /// half of it; five minutes.
    fn default() -> Self {
        Self { memory_bytes: usual_bytes(HostMemory::of_this_process().bytes()), time: TIME }
    }
}

impl ImportLimits {
    /// Lowers the memory to what this process may use, less an eighth for itself: beyond that, the
    /// kernel would end the importer, or everything in the control group. Returns the bytes that
    /// were asked for, if they were lowered.
    pub fn lower_to(&mut self, host: &HostMemory) -> Option<u64> {
        let (asked, all) = (self.memory_bytes, host.bytes());
        let most = all - all / 8;
        (all > 0 && asked > most).then(|| std::mem::replace(&mut self.memory_bytes, most))
    }
}

/// Returns the memory of an importer where this process may use `host_bytes`, or 0 if that is not
/// known.
fn usual_bytes(host_bytes: u64) -> u64 {
    let usual = (host_bytes / 4).max(MEMORY_BYTES_LEAST);
    if host_bytes == 0 { usual } else { usual.min(host_bytes / 2) }
}

/// Starts importers. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Importer {
    /// Program whose `scene-importer` command imports: this one.
    program: PathBuf,
    limits: ImportLimits,
    threads: usize,
    /// Without it, memory and time stay limited.
    sandbox: Sandbox,
}

impl Importer {
    /// An importer in a child that runs `program`. `threads` of None takes all that this process
    /// may use.
    pub fn new(
        program: PathBuf,
        limits: ImportLimits,
        threads: Option<usize>,
        sandbox: Sandbox,
    ) -> Self {
        let all = || std::thread::available_parallelism().map_or(1, usize::from);
        Self { program, limits, threads: threads.unwrap_or_else(all), sandbox }
    }

    /// This program's own, with all threads.
    pub fn of_this_program(limits: ImportLimits) -> Self {
        // The file that runs, even where another one has taken its name since.
        Self::new(PathBuf::from("/proc/self/exe"), limits, None, Sandbox::of_environment())
    }

    /// Loads the scene `main` within `folder`. Blocks; call it where blocking is allowed.
    ///
    /// # Errors
    /// What is wrong with the scene, or what it did to the importer.
    pub fn load(
        &self,
        folder: &Path,
        main: &str,
        options: &LoadOptions,
    ) -> Result<ImportedScene, ImportError> {
        self.load_unless(Arc::default(), folder, main, options)
    }

    /// Loads the scene `main` within `folder`, and ends soon after `stopped` is set.
    ///
    /// # Errors
    /// As [`Self::load`]; [`ImportError::Gone`] where it was stopped.
    pub(crate) fn load_unless(
        &self,
        stopped: Arc<AtomicBool>,
        folder: &Path,
        main: &str,
        options: &LoadOptions,
    ) -> Result<ImportedScene, ImportError> {
        let mut options = options.clone();
        let (asked, most) = (options.limits.memory_bytes, self.limits.memory_bytes);
        let is_usual = asked == Limits::default().memory_bytes;
        options.limits.memory_bytes = if is_usual { most } else { asked.min(most) };
        // The folder, and what a person may have named elsewhere: a link in the place of the main
        // file, and a map.
        let mut readable = vec![folder.to_owned()];
        readable.extend(folder.join(main).canonicalize().ok());
        if let EnvironmentSource::File { path } = &options.environment {
            readable.push(path.clone());
        }
        let begin = Order::Begin {
            parent: std::process::id(),
            readable,
            confine: self.sandbox.is_on(),
            memory_bytes: self.limits.memory_bytes,
            threads: self.threads as u64,
            record: record_folder(),
            is_required: self.sandbox == Sandbox::Require,
        };
        let asks = process::start(self.program.clone(), begin, (self.limits.clone(), stopped))?;
        let order = Order::Load { folder: folder.to_owned(), main: main.to_owned(), options };
        let Answered { answer, own_bytes, .. } = ask(&asks, order)?;
        match answer {
            Answer::Loaded { report } => {
                let frame_bytes = AtomicU64::new(report.arrays_bytes);
                let report = *report;
                let (checked, images) = (Mutex::default(), Arc::default());
                let own_bytes = AtomicU64::new(own_bytes);
                Ok(ImportedScene { asks, report, own_bytes, frame_bytes, checked, images })
            }
            _ => Err(ImportError::Nonsense("it answered another request".into())),
        }
    }
}

/// A scene that a child has loaded. Dropped, the child ends.
#[derive(Debug)]
pub struct ImportedScene {
    asks: Sender<Ask>,
    report: SceneReport,
    own_bytes: AtomicU64,
    /// Bytes of the newest frame, without the arrays that other frames had.
    frame_bytes: AtomicU64,
    /// What was checked of the meshes that its frames share.
    checked: Mutex<Option<Arc<CheckedMeshes>>>,
    /// What was laid out for devices, and other frames have too.
    images: Arc<Mutex<FilmImages>>,
}

/// Stops an import when it is dropped, unless it is disarmed.
#[derive(Debug, Default)]
pub(crate) struct StopOnDrop(Option<Arc<AtomicBool>>);

impl StopOnDrop {
    /// Returns the flag that the import looks at.
    pub(crate) fn flag(&mut self) -> Arc<AtomicBool> {
        self.0.get_or_insert_default().clone()
    }

    /// Lets the import be.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(flag) = &self.0 {
            flag.store(true, Ordering::Relaxed);
        }
    }
}

impl ImportedScene {
    /// What is in the scene, what is ignored, and how much memory it needs.
    pub fn report(&self) -> &SceneReport {
        &self.report
    }

    /// Bytes that the child had for itself once the scene was loaded, or after its last frame: it
    /// then has arrays that frames share in their file, with whoever has the frame. 0 where the
    /// system does not tell.
    pub fn own_bytes(&self) -> u64 {
        self.own_bytes.load(Ordering::Relaxed)
    }

    /// Bytes that the next frame probably needs for itself: as many as the newest one did, or all
    /// before the first.
    pub(crate) fn frame_bytes(&self) -> u64 {
        self.frame_bytes.load(Ordering::Relaxed)
    }

    /// Notes what a frame needed for itself.
    pub(crate) fn note_frame_bytes(&self, bytes: u64) {
        self.frame_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Returns what was checked of the meshes of its frames.
    pub(crate) fn checked_meshes(&self) -> Option<Arc<CheckedMeshes>> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes what was checked of a frame's meshes, so that the next is not checked again.
    pub(crate) fn note_checked(&self, meshes: &Arc<CheckedMeshes>) {
        *self.checked.lock().unwrap_or_else(PoisonError::into_inner) = Some(meshes.clone());
    }

    /// Returns what images of its frames share.
    pub(crate) fn images(&self) -> Arc<Mutex<FilmImages>> {
        self.images.clone()
    }

    /// One frame's scene. Arrays that do not change from frame to frame are shared between them.
    /// Blocks.
    ///
    /// # Errors
    /// What is wrong with the frame, or what it did to the importer: see [`ImportError::is_end`].
    pub fn flatten(&self, options: &FlattenOptions) -> Result<FlatScene, ImportError> {
        let answered = ask(&self.asks, Order::Flatten { options: options.clone() })?;
        self.own_bytes.store(answered.own_bytes, Ordering::Relaxed);
        answered.scene.ok_or_else(|| ImportError::Nonsense("it answered without a scene".into()))
    }
}

/// Confines this process as an importer, for reading what may come from anywhere: it reads only
/// this folder, has no network, starts nothing, gets this much memory, and ends with the thread
/// that started it.
///
/// # Errors
/// What the system does not do, where confinement is required.
pub fn confine_reader(
    parent: u32,
    folder: &Path,
    sandbox: Sandbox,
    memory_bytes: u64,
) -> Result<(), String> {
    die_with(parent);
    let readable = [folder.to_owned()];
    let report = enter_importer(&readable, sandbox.is_on(), memory_bytes, None);
    match sandbox == Sandbox::Require && !report.holds() {
        true => Err(format!("this process cannot be confined: {report}")),
        false => Ok(()),
    }
}

fn ask(asks: &Sender<Ask>, order: Order) -> Result<Answered, ImportError> {
    let (reply, answer) = sync_channel(1);
    asks.send(Ask { order, reply }).map_err(|_| ImportError::Gone)?;
    answer.recv().map_err(|_| ImportError::Gone)?
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIB: u64 = 1 << 30;

    #[test]
    fn an_importer_gets_no_more_than_its_process_may_use() {
        let usual = [0, 2, 8, 16, 64].map(|gib| usual_bytes(gib * GIB) / GIB);
        assert_eq!(usual, [4, 1, 4, 4, 16]);
        let host = |bytes| HostMemory {
            machine_bytes: 64 * GIB,
            free_bytes: None,
            group_bytes: Some(bytes),
        };
        let mut limits = ImportLimits { memory_bytes: 32 * GIB, time: TIME };
        assert_eq!(limits.lower_to(&host(40 * GIB)), None);
        assert_eq!(limits.lower_to(&host(8 * GIB)), Some(32 * GIB));
        assert_eq!(limits.memory_bytes, 7 * GIB);
    }
}
