//! What a device is to the rest of the node: it takes units and calls back. Nothing here knows a CPU from a GPU.
//!
//! A device owns its threads and a queue. It is given the next units while it works on one, so that it never waits: a GPU
//! uploads, computes and downloads different units at a time, and a CPU starts the next unit with the threads that the
//! last blocks of this one leave idle.

mod cancel;
mod cpu;
mod pool;

pub use cancel::CancelToken;
pub use cpu::CpuDevice;

use crate::config::{Config, DeviceSpec};
use std::sync::Arc;
use std::time::Duration;
use tessera_kernels::CheckedScene;
use tessera_kernels::host::Isa;
use tessera_layout::UnitParams;
use tessera_protocol::TileSums;
use tessera_protocol::device::DeviceInfo;

/// One frame's scene, ready for any device. Shared by all units of the frame.
#[derive(Debug)]
pub struct PreparedFrame {
    /// The arrays.
    pub scene: CheckedScene,
    /// Told apart by this, within one process: a device may keep its own copy under it.
    pub id: u64,
}

/// What a unit came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitOutput {
    /// The sums.
    pub sums: TileSums,
    /// Rays cast, closest and any hit.
    pub rays: u64,
    /// Time of the whole device that went into it; parts of a device count as parts, so times of units add up.
    pub device_time: Duration,
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
    /// It does not fit the device's memory.
    #[error("not enough device memory: {0}")]
    OutOfMemory(String),
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
    /// What it is.
    fn info(&self) -> &DeviceInfo;

    /// Takes a unit and returns at once. Units start in the order in which they come. When the device is dropped, units that
    /// have not ended end as cancelled.
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
        // Nobody has to wait.
        let _ = sender.send(result);
    });
    let work = Work::Render { frame: frame.clone(), params };
    device.submit(DeviceUnit { work, cancel: CancelToken::default(), finish });
    Begun(receiver)
}

/// Why the devices asked for cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceOpenError {
    /// No device at all.
    #[error("no device chosen; name one, such as `auto` or `cpu`")]
    Nothing,
    /// The same twice.
    #[error("device `{0}` is named twice")]
    Twice(DeviceSpec),
    /// This build has no such kind.
    #[error("device `{0}` is not available: this build renders on the CPU; use `auto` or `cpu`")]
    Unavailable(DeviceSpec),
    /// The processor is older than every build of the kernels.
    #[error("this processor cannot run kernels built for {0}; x86-64-v2 (SSE4.2) is the least")]
    Processor(Isa),
    /// The system refused threads.
    #[error("cannot start {threads} render threads; ask for fewer")]
    Threads {
        /// How many.
        threads: usize,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// Opens what the configuration names, in its order.
pub fn open(config: &Config) -> Result<Vec<Arc<dyn Device>>, DeviceOpenError> {
    let mut devices: Vec<Arc<dyn Device>> = Vec::new();
    for (position, spec) in config.devices.iter().enumerate() {
        let same = |other: &DeviceSpec| {
            other == spec || matches!((other, spec), (DeviceSpec::Auto, _) | (_, DeviceSpec::Auto))
        };
        if config.devices[..position].iter().any(same) {
            return Err(DeviceOpenError::Twice(*spec));
        }
        match spec {
            DeviceSpec::Auto | DeviceSpec::Cpu => {
                devices.push(Arc::new(CpuDevice::open(config.threads, config.isa)?));
            }
            DeviceSpec::Cuda(_) => return Err(DeviceOpenError::Unavailable(*spec)),
        }
    }
    if devices.is_empty() {
        return Err(DeviceOpenError::Nothing);
    }
    Ok(devices)
}
