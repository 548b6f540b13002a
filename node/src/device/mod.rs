//! The interface of a device to the rest of the node: it takes units and calls back. Nothing here
//! distinguishes CPUs and GPUs.
//!
//! A device owns its threads and a queue. It gets the next units while it works on one, so that it
//! never waits. A GPU uploads, computes and downloads different units at the same time. A CPU
//! begins the next unit with the threads that have no more blocks of the present one.
//!
//! Finishing units are made by threads of the host, one after another, beside what the device
//! renders. Only passes of the denoiser reach a worker process, as compute units.

mod cancel;
mod cpu;
mod cpu_compute;
pub mod cuda;
mod error;
mod host_thread;
mod known_answer;
mod memory;
mod open;
mod pool;
mod rate;
pub mod reading;
pub mod worker;
pub mod xid;

pub use cancel::CancelToken;
pub use cpu::CpuDevice;
pub use error::DeviceError;
pub use known_answer::AnswerError;
pub use memory::SceneMemory;
pub use open::{DeviceOpenError, Devices, open, open_first};

use crate::compute::PreparedCompute;
use crate::frame_prepared::SentBytes;
use crate::piece::PreparedPiece;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::{FilmImages, SceneImage};
use tessera_layout::UnitParams;
use tessera_protocol::device::{DeviceInfo, DeviceTelemetry};
use tessera_protocol::{ChunkValues, TileSums};

/// One frame's scene, ready for any device. Shared by all units of the frame.
#[derive(Debug)]
pub struct PreparedFrame {
    /// Arrays of the flattened scene.
    pub scene: CheckedScene,
    /// Identifies the frame within one process. A device may keep its own copy under this id.
    pub id: u64,
    film: Arc<Mutex<FilmImages>>,
    image: OnceLock<SceneImage>,
    sent: SentBytes,
}

impl PreparedFrame {
    /// Creates a frame from a checked scene, with an id that no other frame of this process has.
    pub fn new(scene: CheckedScene, id: u64) -> Self {
        Self::in_film(scene, id, Arc::default())
    }

    /// Creates such a frame of a film. What `film` has of other frames is neither laid out again
    /// nor sent to a device that holds it.
    pub fn in_film(scene: CheckedScene, id: u64, film: Arc<Mutex<FilmImages>>) -> Self {
        Self { scene, id, film, image: OnceLock::new(), sent: SentBytes::default() }
    }

    /// Returns the scene as CUDA devices store it. It is laid out once for all of them.
    pub(crate) fn image(&self) -> &SceneImage {
        self.image.get_or_init(|| {
            let mut film = self.film.lock().unwrap_or_else(PoisonError::into_inner);
            SceneImage::in_film(&self.scene, &mut film)
        })
    }

    /// Counts the bytes that devices are sent of it.
    pub fn sent(&self) -> &SentBytes {
        &self.sent
    }
}

/// Result of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitOutput {
    /// The sums; empty for a compute or finishing unit.
    pub sums: TileSums,
    /// The values of a compute unit.
    pub chunk: Option<ChunkValues>,
    /// The piece that a finishing unit has made.
    pub piece: Option<Vec<u8>>,
    /// Number of rays cast, closest hit and any hit.
    pub rays: u64,
    /// Device time of the unit, for the whole device. A part of the device counts as a part, so the
    /// times of units can be added.
    pub device_time: Duration,
    /// Fewest bytes that the unit needs on the device: its scene, and the workspace of the smallest
    /// plan; 0 if it is not measured.
    pub device_bytes: u64,
}

/// Called once, from a thread of the device, when a unit has ended.
pub type Finish = Box<dyn FnOnce(Result<UnitOutput, DeviceError>) + Send>;

/// Takes the text of a unit, from a thread of the device.
pub type TextSink = Arc<dyn Fn(String) + Send + Sync>;

/// Whose data a compute unit brings to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// It is not known.
    Unknown,
    /// The owner's with this number of an identity.
    Owner(u64),
    /// Frames of anybody, for this program's own kernels.
    Frames,
}

/// Work of a unit.
#[derive(Clone)]
pub enum Work {
    /// A tile × a range of samples of a frame.
    Render {
        /// Prepared scene of the frame.
        frame: Arc<PreparedFrame>,
        /// Tile, samples and settings.
        params: UnitParams,
    },
    /// A range of indices of a compute job.
    Compute {
        /// Kernel and inputs of the job.
        job: Arc<PreparedCompute>,
        /// Whose data it is. A device has that of one at a time.
        whose: Whose,
        /// First index of the domain to compute.
        first: u64,
        /// Number of indices.
        count: u32,
        /// Called with what the kernel printed, and what a compiler said of it, before the end of
        /// the unit; not called if that is nothing.
        text: TextSink,
    },
    /// A piece of a frame's files. It is made by threads of the host; a GPU may denoise it.
    Finish(Arc<PreparedPiece>),
}

impl UnitOutput {
    /// Creates the output of a compute unit.
    pub(crate) fn of_chunk(chunk: ChunkValues, device_time: Duration, device_bytes: u64) -> Self {
        Self {
            sums: TileSums::empty(0, 0, 0),
            chunk: Some(chunk),
            piece: None,
            rays: 0,
            device_time,
            device_bytes,
        }
    }

    /// Creates the output of a finishing unit.
    pub(crate) fn of_piece(piece: Vec<u8>, device_time: Duration) -> Self {
        let sums = TileSums::empty(0, 0, 0);
        Self { sums, chunk: None, piece: Some(piece), rays: 0, device_time, device_bytes: 0 }
    }
}

/// A unit for a device.
pub struct DeviceUnit {
    /// Work of the unit.
    pub work: Work,
    /// Token that ends the unit early.
    pub cancel: CancelToken,
    /// Called at the end of the unit.
    pub finish: Finish,
}

/// One renderer of a node.
pub trait Device: Send + Sync {
    /// Returns the device's properties, and whether it takes units now. Units for a device that
    /// takes none end as cancelled.
    fn info(&self) -> DeviceInfo;

    /// Returns the present state of the device. The node fills in the position.
    fn telemetry(&self) -> DeviceTelemetry {
        DeviceTelemetry::default()
    }

    /// Takes a unit and returns at once. Units start in the order in which they come. When the
    /// device is dropped, units that have not ended end as cancelled.
    fn submit(&self, unit: DeviceUnit);

    /// Device time spent on units since the device was opened.
    fn busy(&self) -> Duration;
}

/// A unit that was given to a device.
#[derive(Debug)]
pub struct Begun(std::sync::mpsc::Receiver<Result<UnitOutput, DeviceError>>);

impl Begun {
    /// Waits for the end of the unit.
    pub fn end(self) -> Result<UnitOutput, DeviceError> {
        self.0.recv().unwrap_or(Err(DeviceError::Cancelled))
    }
}

/// Gives one unit to a device. The caller waits for it with the returned value.
pub fn begin(device: &dyn Device, frame: &Arc<PreparedFrame>, params: UnitParams) -> Begun {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let finish: Finish = Box::new(move |result| {
        // The caller may not wait any more.
        let _ = sender.send(result);
    });
    let work = Work::Render { frame: frame.clone(), params };
    device.submit(DeviceUnit { work, cancel: CancelToken::default(), finish });
    Begun(receiver)
}
