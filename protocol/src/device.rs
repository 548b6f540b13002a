//! Properties and present state of a node's device. Knows no driver and decides nothing.

use crate::compute::{ComputeSpec, PtxNeeds};
use serde::{Deserialize, Serialize};

/// Kind of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// All threads of the host, or some of them.
    Cpu,
    /// One CUDA device, or a MIG slice of one.
    Cuda,
}

/// One device of a node: a slot that takes units and has its own memory budget. A node's list of
/// devices keeps its order and length while the process runs, so a position in the list names a
/// device. Only the properties of a device change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// Name of the device in `--device`: `cpu`, `cuda:0`, or `cuda:0/1` for a MIG slice.
    pub slot: String,
    /// Kind of the device: CPU or CUDA.
    pub kind: DeviceKind,
    /// Product name, as the manufacturer gives it.
    pub name: String,
    /// Number of threads (CPU) or of multiprocessors (CUDA).
    pub parallelism: u32,
    /// Memory in bytes; 0 if it is not known.
    pub memory_bytes: u64,
    /// Properties that only a CUDA device has.
    pub cuda: Option<CudaInfo>,
    /// Whether the device can have work.
    pub state: DeviceState,
}

impl DeviceInfo {
    /// Returns whether the device, in whatever state, is of a kind that runs such a job.
    pub fn runs(&self, compute: &ComputeSpec) -> bool {
        let takes = |ptx: &PtxNeeds| self.cuda.as_ref().is_none_or(|cuda| cuda.takes(ptx));
        !compute.needs_cuda()
            || (self.kind == DeviceKind::Cuda && compute.ptx.as_ref().is_none_or(takes))
    }
}

/// Properties of a CUDA device. A text is empty if the driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaInfo {
    /// `GPU-…`, or `MIG-…` for a slice. It stays the same after a restart and in another machine.
    pub uuid: String,
    /// Compute capability: major, minor.
    pub compute_capability: (u8, u8),
    /// Version of the driver, such as `580.95.05`.
    pub driver: String,
    /// PCIe address, such as `0000:41:00.0`.
    pub pcie: String,
    /// Profile of the MIG slice, such as `1g.18gb`; None for a whole device.
    pub mig: Option<String>,
    /// Duration of the last start in milliseconds: creating the context, and compiling the kernels
    /// in the driver.
    pub start_millis: u32,
    /// Newest version of PTX that the driver takes: major, minor; (0, 0) if it is not known.
    pub ptx_version: (u8, u8),
    /// Compute capability of the machine code from which the kernels were loaded: major, minor;
    /// None if the driver has compiled them.
    pub cubin: Option<(u8, u8)>,
}

impl CudaInfo {
    /// Returns whether the driver takes such PTX, and the device runs it. What is not known counts
    /// as possible.
    pub fn takes(&self, ptx: &PtxNeeds) -> bool {
        let known = self.compute_capability != (0, 0);
        ptx.suits_driver(self.ptx_version) && (!known || ptx.suits_device(self.compute_capability))
    }
}

/// Whether a device can have work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// The device takes units.
    #[default]
    Ready,
    /// The device is starting, or is being tested with units whose results are known.
    Testing,
    /// The device gets no units.
    Quarantined {
        /// Reason of the quarantine.
        reason: String,
        /// Action that ends the quarantine.
        remedy: String,
    },
}

/// State of a device now, a part of each heartbeat. None if the device or its driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceTelemetry {
    /// Position among the node's devices.
    pub device: u8,
    /// Share of the time since the last heartbeat in which the device worked, 0 to 1.
    pub busy: f32,
    /// Camera samples per second of device time, over the last units; 0 before the first unit.
    pub samples_per_second: f64,
    /// Free memory in bytes, for any process.
    pub memory_free: Option<u64>,
    /// Memory in bytes that the node holds on the device and would give up for another unit.
    pub memory_held: Option<u64>,
    /// Temperature in degrees Celsius.
    pub temperature: Option<u32>,
    /// Power drawn, milliwatts.
    pub power_milliwatts: Option<u32>,
    /// Clock of the multiprocessors, MHz.
    pub clock_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// Reasons for low clocks now, such as `sw_thermal`; at most [`crate::limits::THROTTLES_MAX`]
    /// short names.
    pub throttles: Vec<String>,
    /// Memory errors corrected since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    /// Memory errors not corrected since the driver was loaded.
    pub ecc_uncorrected: Option<u64>,
    /// The last Xid event since the node started.
    pub xid: Option<XidEvent>,
}

/// An error event of NVIDIA's driver (Xid).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidEvent {
    /// Number of the event in NVIDIA's table.
    pub code: u32,
    /// Seconds since the event.
    pub secs_ago: u64,
}
