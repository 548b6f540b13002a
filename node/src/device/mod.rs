//! What a device is to the rest of the node: it takes units and calls back. Nothing here knows a
//! CPU from a GPU.
//!
//! A device owns its threads and a queue. It is given the next units while it works on one, so that
//! it never waits: a GPU uploads, computes and downloads different units at a time, and a CPU
//! starts the next unit with the threads that the last blocks of this one leave idle.

mod cancel;
mod cpu;
mod cpu_compute;
pub mod cuda;
mod memory;
mod open;
mod pool;
pub mod reading;
pub mod worker;
pub mod xid;

pub use cancel::CancelToken;
pub use cpu::CpuDevice;
pub(crate) use cpu::memory_bytes as host_memory_bytes;
pub use memory::SceneMemory;
pub use open::{DeviceOpenError, Devices, open, open_first};

use crate::compute::PreparedCompute;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tessera_kernels::CheckedScene;
use tessera_kernels::cuda::SceneImage;
use tessera_layout::UnitParams;
use tessera_protocol::device::{DeviceInfo, DeviceTelemetry};
use tessera_protocol::{ChunkValues, TileSums};

/// One frame's scene, ready for any device. Shared by all units of the frame.
#[derive(Debug)]
pub struct PreparedFrame {
    /// The arrays.
    pub scene: CheckedScene,
    /// Told apart by this, within one process: a device may keep its own copy under it.
    pub id: u64,
    image: OnceLock<SceneImage>,
}

impl PreparedFrame {
    /// A checked scene under an id that no other frame of this process has.
    pub fn new(scene: CheckedScene, id: u64) -> Self {
        Self { scene, id, image: OnceLock::new() }
    }

    /// The scene as CUDA devices hold it: laid out once, for all of them.
    pub(crate) fn image(&self) -> &SceneImage {
        self.image.get_or_init(|| SceneImage::of(&self.scene))
    }
}

/// What a unit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitOutput {
    /// The sums; empty of a compute unit.
    pub sums: TileSums,
    /// The values of a compute unit.
    pub chunk: Option<ChunkValues>,
    /// Rays cast, closest and any hit.
    pub rays: u64,
    /// Time of the whole device that went into it; parts of a device count as parts, so times of
    /// units add up.
    pub device_time: Duration,
    /// Bytes that it needed on the device at least: its scene, and the workspace of the smallest
    /// plan; 0 if it is not measured.
    pub device_bytes: u64,
}

/// Why a unit has no output.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// Somebody asked for that.
    #[error("cancelled")]
    Cancelled,
    /// The device failed at it.
    #[error("device failed: {0}")]
    Failed(String),
    /// The process that drives the device ended while it had the unit.
    #[error("the device's worker failed: {0}")]
    Worker(String),
    /// The device took longer than the watchdog allows.
    #[error("the watchdog ended it: {0}")]
    TimedOut(String),
    /// The user's kernel cannot be used: it does not compile, or lacks what the job gives it. The
    /// same everywhere.
    #[error("{0}")]
    Program(String),
    /// The user's kernel came as CUDA C++, and there is no NVRTC here (any more). Other nodes may
    /// have one.
    #[error("{0}")]
    NoCompiler(String),
    /// The user's kernel failed, or did not end in time. The device is well.
    #[error("{0}")]
    Kernel(String),
    /// It does not fit the device's memory, with the smallest plan too.
    #[error("not enough device memory: {needed} bytes are needed and {available} are there")]
    OutOfMemory {
        /// Bytes that it needs at least.
        needed: u64,
        /// Bytes that the device could have given it.
        available: u64,
    },
}

/// Called once, from a thread of the device, when a unit has ended.
pub type Finish = Box<dyn FnOnce(Result<UnitOutput, DeviceError>) + Send>;

/// What there is to do in a unit.
#[derive(Clone)]
pub enum Work {
    /// A tile × a range of samples of a frame.
    Render {
        /// Scene.
        frame: Arc<PreparedFrame>,
        /// Tile, samples, settings.
        params: UnitParams,
    },
    /// A range of indices of a compute job.
    Compute {
        /// Kernel and inputs.
        job: Arc<PreparedCompute>,
        /// First index.
        first: u64,
        /// How many.
        count: u32,
    },
}

impl UnitOutput {
    /// The output of a compute unit.
    pub(crate) fn of_chunk(chunk: ChunkValues, device_time: Duration, device_bytes: u64) -> Self {
        Self {
            sums: TileSums::empty(0, 0, 0),
            chunk: Some(chunk),
            rays: 0,
            device_time,
            device_bytes,
        }
    }
}

/// A unit for a device.
pub struct DeviceUnit {
    /// What to do.
    pub work: Work,
    /// Ends it early.
    pub cancel: CancelToken,
    /// Hears of its end.
    pub finish: Finish,
}

/// One renderer of a node.
pub trait Device: Send + Sync {
    /// What it is, and whether it takes units now. Units given to one that does not end as
    /// cancelled.
    fn info(&self) -> DeviceInfo;

    /// How it is now; its position in the node is not its own to say.
    fn telemetry(&self) -> DeviceTelemetry {
        DeviceTelemetry::default()
    }

    /// Takes a unit and returns at once. Units start in the order in which they come. When the
    /// device is dropped, units that have not ended end as cancelled.
    fn submit(&self, unit: DeviceUnit);

    /// Device time spent on units since the device was opened.
    fn busy(&self) -> Duration;
}

/// A unit that a device has.
#[derive(Debug)]
pub struct Begun(std::sync::mpsc::Receiver<Result<UnitOutput, DeviceError>>);

impl Begun {
    /// Waits for its end.
    pub fn end(self) -> Result<UnitOutput, DeviceError> {
        self.0.recv().unwrap_or(Err(DeviceError::Cancelled))
    }
}

/// Gives a device one unit, to be waited for.
pub fn begin(device: &dyn Device, frame: &Arc<PreparedFrame>, params: UnitParams) -> Begun {
    let (sender, receiver) = std::sync::mpsc::sync_channel(1);
    let finish: Finish = Box::new(move |result| {
        // No caller has to wait.
        let _ = sender.send(result);
    });
    let work = Work::Render { frame: frame.clone(), params };
    device.submit(DeviceUnit { work, cancel: CancelToken::default(), finish });
    Begun(receiver)
}
