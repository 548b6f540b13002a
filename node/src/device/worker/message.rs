//! What a node and its worker say to each other. Both are the same build, so these messages have no
//! versions; they are bounded (`frame.rs`) and checked all the same.

use super::sandbox::{Allowed, SandboxReport};
use crate::device::reading::DeviceReading;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tessera_layout::UnitParams;

/// The bytes of a [`UnitParams`], in words.
pub(crate) type UnitWords = [u32; size_of::<UnitParams>() / 4];

/// From the node to its worker. The first is always [`Order::Begin`]; the second says what the
/// worker is for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Who you are: confine yourself, then say [`Report::Ready`].
    Begin {
        /// Process id of the node; a worker whose parent is another one ends itself.
        parent: u32,
        /// Files to allow; None leaves the worker unconfined.
        allowed: Option<Allowed>,
    },
    /// List the devices, say [`Report::Devices`], end.
    List,
    /// Look for NVRTC: [`Report::Compiler`].
    FindCompiler,
    /// Watch the devices by NVML: [`Report::Readings`] every so often, [`Report::Xid`] at once.
    Watch { period: Duration },
    /// Open a device and serve it: [`Report::Opened`].
    Open { ordinal: u32, uuid: String },
    /// A scene that the worker has asked for: so many bytes of device memory, filled by the
    /// [`Order::SceneBytes`] that follow. `view` is a `DeviceScene` that holds offsets.
    Scene { scene: u64, bytes: u64, view: Vec<u8> },
    /// Bytes of that scene's memory (the payload) from an offset on; `last` ends the scene.
    SceneBytes { scene: u64, offset: u64, last: bool },
    /// The scene that was asked for will not come.
    NoScene { scene: u64, problem: String },
    /// Render a unit of a scene; ends in exactly one of [`Report::Rendered`], [`Report::Failed`],
    /// [`Report::Cancelled`].
    Render { unit: u64, scene: u64, params: UnitWords },
    /// Stop a unit.
    Cancel { unit: u64 },
    /// Open a device for compute jobs: [`Report::Opened`]. Orders are then done one after the
    /// other.
    Compute { ordinal: u32, uuid: String },
    /// Compile CUDA C++ (the payload): [`Report::Compiled`] or [`Report::Unusable`].
    Compile { name: String },
    /// Load PTX (the payload) and find its entry: [`Report::Loaded`] or [`Report::Unusable`]. What
    /// was loaded before goes.
    Program { entry: String },
    /// Write the payload into a variable of the program. An error is told in the place of the next
    /// chunk's values.
    Variable { name: String },
    /// An input for a variable of the program: device memory of so many bytes, filled by the
    /// [`Order::ArrayBytes`] that follow.
    Array { name: String, element: u32, shape: Vec<u64>, bytes: u64 },
    /// Bytes of that input (the payload) from an offset on.
    ArrayBytes { offset: u64 },
    /// Give up the scenes and workspaces that no unit uses: another process needs the device's
    /// memory. Then [`Report::GaveUp`].
    GiveUp,
    /// Run the program over a chunk, in blocks of so many threads: [`Report::Begun`], then
    /// [`Report::Values`].
    Chunk { params: Vec<u8>, count: u32, block: u32, bytes: u64 },
    /// Try what the sandbox forbids, and say how it went.
    TryForbidden { port: u16, file: PathBuf },
}

/// From a worker to its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// Confined as far as it goes.
    Ready(SandboxReport),
    /// What devices there are.
    Devices(Vec<FoundDevice>),
    /// The device is unusable or absent.
    Refused(Refusal),
    /// The device is open and the kernels are loaded.
    Opened(Opened),
    /// A unit needs this scene.
    NeedScene { scene: u64 },
    /// The device has been told a unit. `free_bytes` of its memory are free, and `held_bytes` the
    /// worker would give up for another one.
    Started { unit: u64, free_bytes: u64, held_bytes: u64 },
    /// This share of a unit's work is done, of 1000.
    Progress { unit: u64, permille: u16 },
    /// The sums, planar `i64` little endian, are the payload.
    Rendered { unit: u64, rays: [u64; 4], device_nanos: u64, device_bytes: u64 },
    /// A unit has failed.
    Failed { unit: u64, error: UnitError },
    /// It was cancelled.
    Cancelled { unit: u64 },
    /// The NVRTC that this worker can load, or why it can load none.
    Compiler(Result<FoundCompiler, String>),
    /// NVRTC cannot be loaded, and why.
    NoCompiler(String),
    /// A kernel is compiled; the payload is its PTX.
    Compiled,
    /// A program is on the device.
    Loaded,
    /// A program, or what it reads, cannot be used; the device is well.
    Unusable(UnitError),
    /// The device has begun a chunk.
    Begun,
    /// The values of a chunk are the payload.
    Values { device_nanos: u64, device_bytes: u64 },
    /// What no unit uses is given up.
    GaveUp,
    /// The driver has failed: the context is dead, and so is the worker.
    Broken(CallError),
    /// The devices now.
    Readings(Vec<DeviceReading>),
    /// The driver has reported an event of a device.
    Xid { uuid: String, code: u64 },
    /// The outcome of [`Order::TryForbidden`]: None if it was possible, else the error.
    Tried {
        connect: Option<String>,
        bind: Option<String>,
        read: Option<String>,
        write: Option<String>,
        run: Option<String>,
    },
}

/// A device as CUDA lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundDevice {
    /// Its number for CUDA, given the worker's environment.
    pub ordinal: u32,
    /// `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Name of its maker's.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: (u32, u32),
    /// Memory in bytes.
    pub memory_bytes: u64,
    /// Multiprocessors.
    pub multiprocessors: u32,
    /// The device that a MIG slice is cut of.
    pub mig_parent: Option<String>,
    /// Opened by `CUDA_VISIBLE_DEVICES` with its UUID, as ordinal 0: CUDA shows one MIG slice to a
    /// process at most.
    pub by_uuid: bool,
}

/// An NVRTC that workers can load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCompiler {
    /// Major, minor.
    pub version: (u32, u32),
    /// The library, as the system's loader was given it.
    pub path: PathBuf,
}

/// An open device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// What it is.
    pub(crate) device: FoundDevice,
    /// Version of CUDA that the driver offers, such as 12080.
    pub(crate) driver_version: i32,
    /// Free memory in bytes, the kernels loaded.
    pub(crate) free_bytes: u64,
    /// Time to initialise the driver and the context.
    pub(crate) start: Duration,
    /// Time in which the driver compiled the kernels, or found them in its cache.
    pub(crate) compile: Duration,
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// No library.
    #[error("no NVIDIA driver is installed (libcuda.so.1 is not found)")]
    NoDriver,
    /// A library, but no device of its own.
    #[error("the driver finds no device")]
    NoDevices,
    /// There are fewer.
    #[error("there is no CUDA device {0}; `tessera doctor` lists them")]
    NoSuchDevice(u32),
    /// Another one stands in its place now.
    #[error("CUDA device {ordinal} is now {found}, not {expected}; restart the node")]
    OtherDevice {
        /// Its number.
        ordinal: u32,
        /// What it was.
        expected: String,
        /// What it is.
        found: String,
    },
    /// The driver is older than what is called.
    #[error("the driver offers CUDA {}.{}, and {}.{} is the least; install a newer driver (525 or \
        later)", found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10)]
    DriverTooOld {
        /// As the driver says it: 1000 × major + 10 × minor.
        found: i32,
        /// The least, likewise.
        needed: i32,
    },
    /// The driver lacks a call.
    #[error("the driver lacks a function ({0}); install a newer driver (525 or later)")]
    MissingFunction(String),
    /// The device is too old.
    #[error("{name} has compute capability {}.{}, and 7.5 (Turing) is the least", found.0, found.1)]
    Capability {
        /// Its name.
        name: String,
        /// What it has.
        found: (u32, u32),
    },
    /// The driver's compiler refuses the kernels.
    #[error("the driver refuses the kernels ({error}): {log}")]
    Kernels {
        /// The driver's error.
        error: String,
        /// What its compiler says.
        log: String,
    },
    /// A call failed.
    #[error("{0}")]
    Driver(CallError),
}

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{call}: {name} ({code})")]
pub struct CallError {
    /// What was called.
    pub call: String,
    /// `CUresult`.
    pub code: u32,
    /// Its name.
    pub name: String,
}

/// Why a unit has no sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UnitError {
    /// It does not fit, however few paths are in flight. The device is well.
    OutOfMemory { needed: u64, available: u64 },
    /// The unit or its scene makes no sense to the device. The device is well.
    Refused(String),
}
