//! Messages between a node and its worker. Both are the same build, so these messages have no
//! version. They are still bounded (`frame.rs`) and checked.

use super::sandbox::{Allowed, SandboxReport};
use crate::device::reading::DeviceReading;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tessera_layout::UnitParams;

/// The bytes of a [`UnitParams`], as words.
pub(crate) type UnitWords = [u32; size_of::<UnitParams>() / 4];

/// An order from the node to its worker. The first is always [`Order::Begin`]; the second decides
/// the worker's task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Order {
    /// Confine yourself, then send [`Report::Ready`].
    Begin {
        /// Process id of the node. A worker with another parent ends itself.
        parent: u32,
        /// Files that the worker can open; None leaves it unconfined.
        allowed: Option<Allowed>,
    },
    /// List the devices, send [`Report::Devices`], and end.
    List,
    /// Look for NVRTC, and send [`Report::Compiler`].
    FindCompiler,
    /// Watch the devices with NVML: send [`Report::Readings`] regularly and [`Report::Xid`] at
    /// once.
    Watch { period: Duration },
    /// Open a device and serve it. Answered by [`Report::Opened`]. `cubins`: folder of machine code
    /// that may be used instead of what the driver's compiler makes.
    Open { ordinal: u32, uuid: String, cubins: Option<PathBuf> },
    /// A scene that the worker has requested: its size in device memory, and its parts. `view` is
    /// a `DeviceScene` with offsets. Answered by [`Report::NeedParts`]; then come those parts.
    Scene { scene: u64, bytes: u64, view: Vec<u8>, parts: Vec<ScenePart> },
    /// Bytes of that scene's memory (the payload) from an offset on. `last` ends the scene.
    SceneBytes { scene: u64, offset: u64, last: bool },
    /// The requested scene will not come.
    NoScene { scene: u64, problem: String },
    /// Render a unit of a scene. It ends in exactly one of [`Report::Rendered`], [`Report::Failed`]
    /// and [`Report::Cancelled`]. `in_stages`: by a [`Plan::in_waves`], whatever its size.
    ///
    /// [`Plan::in_waves`]: tessera_kernels::cuda::Plan::in_waves
    Render { unit: u64, scene: u64, params: UnitWords, in_stages: bool },
    /// Stop a unit that was ordered before.
    Cancel { unit: u64 },
    /// Open a device for compute jobs. Answered by [`Report::Opened`]. Later orders are executed
    /// one after another.
    Compute { ordinal: u32, uuid: String },
    /// A header (the payload) for the next [`Order::Compile`].
    Header { name: String },
    /// Compile CUDA C++ (the payload). Answered by [`Report::Compiled`] or [`Report::Unusable`].
    Compile { name: String },
    /// Load PTX (the payload), find its entry, and check that the device can run it in blocks of
    /// these threads with this dynamic shared memory. Answered by [`Report::Loaded`] or
    /// [`Report::Unusable`]. The former program is unloaded.
    Program { entry: String, block: [u32; 3], shared_bytes: u32 },
    /// Forget the inputs, and keep the program for a frame of others.
    OtherInputs,
    /// Write the payload into a variable of the program. An error is reported in place of the next
    /// chunk's values.
    Variable { name: String },
    /// Give a variable of the program, before every chunk, the value that it has before the first
    /// one. `is_zero` tells that this is zero.
    Restore { name: String, is_zero: bool },
    /// An input for a variable of the program: its size in device memory. The following
    /// [`Order::ArrayBytes`] fill it.
    Array { name: String, element: u32, shape: Vec<u64>, bytes: u64 },
    /// Bytes of that input (the payload) from an offset on.
    ArrayBytes { offset: u64 },
    /// Free the scenes and workspaces that no unit uses, because another process needs the memory.
    /// Answered by [`Report::GaveUp`].
    GiveUp,
    /// A named output for a variable of the program. Each chunk says where its values go.
    Output { name: String, element: u32, channels: u32 },
    /// Run the program over a chunk with a grid of its blocks, as many times as `params` has steps.
    /// `bytes` are those of all outputs. Answered by [`Report::Begun`], then [`Report::Values`].
    Chunk { params: Vec<u8>, grid: [u32; 3], written: Vec<Written>, bytes: u64 },
    /// Try what the sandbox forbids, and report the results.
    TryForbidden { port: u16, file: PathBuf },
}

/// A report from a worker to its node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) enum Report {
    /// The worker is confined as far as possible.
    Ready(SandboxReport),
    /// The devices of this machine.
    Devices(Vec<FoundDevice>),
    /// The device is absent or cannot be used.
    Refused(Refusal),
    /// The device is open and the kernels are loaded.
    Opened(Opened),
    /// A unit needs this scene.
    NeedScene { scene: u64 },
    /// The device has room for a scene, and lacks the parts at these positions of its list.
    NeedParts { scene: u64, parts: Vec<u32> },
    /// A unit was enqueued. `free_bytes` of device memory are free, and the worker would give up
    /// `held_bytes` for another unit.
    Started { unit: u64, free_bytes: u64, held_bytes: u64 },
    /// Share of a unit's work that is done, of 1000.
    Progress { unit: u64, permille: u16 },
    /// The payload holds the sums, planar `i64` little endian.
    Rendered { unit: u64, rays: [u64; 4], device_nanos: u64, device_bytes: u64 },
    /// A unit has failed.
    Failed { unit: u64, error: UnitError },
    /// A unit was cancelled.
    Cancelled { unit: u64 },
    /// The NVRTC that this worker can load, or the reason why it can load none.
    Compiler(Result<FoundCompiler, String>),
    /// NVRTC cannot be loaded, for this reason.
    NoCompiler(String),
    /// A kernel was compiled, and the compiler said this of it. The payload is its PTX.
    Compiled { log: String },
    /// A program is on the device.
    Loaded,
    /// The driver or the device does not take the program's PTX, for this reason. Others may.
    Unable(String),
    /// A program, or one of its inputs, cannot be used. The device is healthy.
    Unusable(UnitError),
    /// The device has begun a chunk.
    Begun,
    /// The payload holds the values of a chunk.
    Values { device_nanos: u64, device_bytes: u64 },
    /// Memory that no unit uses was freed.
    GaveUp,
    /// The driver has failed. The context is dead, and so is the worker.
    Broken(CallError),
    /// Present readings of the devices.
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

/// Where the values of an output lie in the memory that a chunk writes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Written {
    /// Name of the variable; empty for what is written in the chunk itself.
    pub(crate) name: String,
    /// First byte.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// The array that, from the second step on, is what the step before has written here.
    pub(crate) feed: Option<String>,
}

/// A part of a scene in device memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ScenePart {
    /// First byte in the scene's memory.
    pub(crate) offset: u64,
    /// Length in bytes.
    pub(crate) bytes: u64,
    /// Parts of the same name and length have the same bytes.
    pub(crate) name: u64,
}

/// A device as CUDA lists it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FoundDevice {
    /// Number for CUDA, in the worker's environment.
    pub ordinal: u32,
    /// UUID of the driver, `GPU-…` or `MIG-…`.
    pub uuid: String,
    /// Product name, as the manufacturer gives it.
    pub name: String,
    /// Compute capability: major, minor.
    pub capability: (u32, u32),
    /// Total memory in bytes.
    pub memory_bytes: u64,
    /// Number of multiprocessors.
    pub multiprocessors: u32,
    /// UUID of the device that a MIG slice belongs to.
    pub mig_parent: Option<String>,
    /// Whether `CUDA_VISIBLE_DEVICES` must name it by its UUID, which makes it ordinal 0. CUDA
    /// shows a process at most one MIG slice.
    pub by_uuid: bool,
}

/// An NVRTC that workers can load.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundCompiler {
    /// Version: major, minor.
    pub version: (u32, u32),
    /// Path of the library, as it was given to the system's loader.
    pub path: PathBuf,
}

/// Facts about a device that was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Opened {
    /// Properties of the device.
    pub(crate) device: FoundDevice,
    /// Version of CUDA that the driver offers, such as 12080.
    pub(crate) driver_version: i32,
    /// Free memory in bytes, after the kernels were loaded.
    pub(crate) free_bytes: u64,
    /// Most paths that a batch begins with; 0 if it is open for compute jobs.
    pub(crate) batch_paths: u32,
    /// Time to initialise the driver and the context.
    pub(crate) start: Duration,
    /// Time that the driver needed to compile the kernels, or to find them in its cache.
    pub(crate) compile: Duration,
    /// What the kernels were loaded from.
    pub(crate) code: KernelCode,
}

/// What kernels were loaded from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KernelCode {
    /// Compute capability of the machine code that was installed; None if the driver has compiled
    /// the PTX.
    pub(crate) cubin: Option<(u32, u32)>,
    /// Why machine code that is there was not used.
    pub(crate) passed_over: Option<String>,
}

/// Why a device cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum Refusal {
    /// There is no driver library.
    #[error("no NVIDIA driver is installed (libcuda.so.1 is not found)")]
    NoDriver,
    /// There is a library, but no device.
    #[error("the driver finds no device")]
    NoDevices,
    /// There are fewer devices.
    #[error("there is no CUDA device {0}; `tessera doctor` lists them")]
    NoSuchDevice(u32),
    /// Another device has this number now.
    #[error("CUDA device {ordinal} is now {found}, not {expected}; restart the node")]
    OtherDevice {
        /// Number of the device.
        ordinal: u32,
        /// UUID of the expected device.
        expected: String,
        /// UUID of the present device.
        found: String,
    },
    /// The driver is older than the calls need.
    #[error("the driver offers CUDA {}.{}, and {}.{} is the least; install a newer driver (525 or \
        later)", found / 1000, found % 1000 / 10, needed / 1000, needed % 1000 / 10)]
    DriverTooOld {
        /// Version of the driver: 1000 × major + 10 × minor.
        found: i32,
        /// Lowest version that is needed, in the same form.
        needed: i32,
    },
    /// The driver lacks a function.
    #[error("the driver lacks a function ({0}); install a newer driver (525 or later)")]
    MissingFunction(String),
    /// The device is too old.
    #[error("{name} has compute capability {}.{}, and 7.5 (Turing) is the least", found.0, found.1)]
    Capability {
        /// Name of the device.
        name: String,
        /// Compute capability of the device.
        found: (u32, u32),
    },
    /// The driver's compiler refused the kernels.
    #[error("the driver refuses the kernels ({error}): {log}")]
    Kernels {
        /// Error of the driver.
        error: String,
        /// Messages of its compiler.
        log: String,
    },
    /// Another process has a device that takes one at a time, or it takes none.
    #[error(
        "CUDA device {0} takes no further process: it is in exclusive-process mode and another \
        process has it, or in prohibited mode; `nvidia-smi -i {0} -c DEFAULT` shares it"
    )]
    InUse(u32),
    /// A call of the driver failed.
    #[error("{0}")]
    Driver(CallError),
}

/// `CUDA_ERROR_DEVICE_UNAVAILABLE`: the device has a process, and takes one at a time.
const UNAVAILABLE: u32 = 46;

impl Refusal {
    /// Why there is no context on a device.
    pub(crate) fn of_context(ordinal: u32, error: CallError) -> Self {
        match error.code {
            UNAVAILABLE => Self::InUse(ordinal),
            _ => Self::Driver(error),
        }
    }
}

/// A call of the driver that failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{call}: {name} ({code})")]
pub struct CallError {
    /// Name of the call.
    pub call: String,
    /// Value of `CUresult`.
    pub code: u32,
    /// Name of that value.
    pub name: String,
}

/// Why a unit has no sums.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum UnitError {
    /// The unit does not fit, however few paths are in flight. The device is healthy.
    OutOfMemory { needed: u64, available: u64 },
    /// The unit or its scene is invalid for the device. The device is healthy.
    Refused(String),
}
