//! What a device of a node is, and how it is now. Knows no driver and decides nothing.

use serde::{Deserialize, Serialize};

/// What a device is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// All threads of the host, or some of them.
    Cpu,
    /// One CUDA device, or a MIG slice of one.
    Cuda,
}

/// One device of a node: a slot that takes units, with a memory budget of its own. A node's list of
/// devices keeps its order and its length for the life of the process, so that a position in it
/// names a device; only what a device says of itself changes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceInfo {
    /// What `--device` calls it: `cpu`, `cuda:0`, `cuda:0/1` for a MIG slice.
    pub slot: String,
    /// Kind.
    pub kind: DeviceKind,
    /// Its name as its maker gives it.
    pub name: String,
    /// Threads (CPU) or multiprocessors.
    pub parallelism: u32,
    /// Memory in bytes; 0 where nobody says.
    pub memory_bytes: u64,
    /// What only a CUDA device has.
    pub cuda: Option<CudaInfo>,
    /// Whether it may have work.
    pub state: DeviceState,
}

/// What a CUDA device says of itself. Texts are empty where the driver does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CudaInfo {
    /// `GPU-…`, or `MIG-…` of a slice: the same after a restart and in any machine.
    pub uuid: String,
    /// Compute capability: major, minor.
    pub compute_capability: (u8, u8),
    /// Version of the driver, such as `580.95.05`.
    pub driver: String,
    /// PCIe address, such as `0000:41:00.0`.
    pub pcie: String,
    /// Profile of the MIG slice, such as `1g.18gb`; None for a whole device.
    pub mig: Option<String>,
    /// Milliseconds that its last start took: the context, and the driver's compilation of the
    /// kernels.
    pub start_millis: u32,
}

/// Whether a device may have work.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceState {
    /// It takes units.
    #[default]
    Ready,
    /// It starts, or shows with a known answer that it computes what it should.
    Testing,
    /// It gets no unit.
    Quarantined {
        /// Why.
        reason: String,
        /// What ends it.
        remedy: String,
    },
}

/// How a device is now; a part of each heartbeat. None where the device, or its driver, does not
/// say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceTelemetry {
    /// Position among the node's devices.
    pub device: u8,
    /// Share of the time since the last heartbeat in which it worked, 0 to 1.
    pub busy: f32,
    /// Camera samples per second of device time, of its last units; 0 before the first.
    pub samples_per_second: f64,
    /// Bytes free now, for whomever.
    pub memory_free: Option<u64>,
    /// Bytes that the node itself holds on it and would give up for another unit.
    pub memory_held: Option<u64>,
    /// Degrees Celsius.
    pub temperature: Option<u32>,
    /// Power drawn, milliwatts.
    pub power_milliwatts: Option<u32>,
    /// Clock of the multiprocessors, MHz.
    pub clock_mhz: Option<u32>,
    /// Clock of the memory, MHz.
    pub memory_clock_mhz: Option<u32>,
    /// What holds its clocks down now, such as `sw_thermal`; at most
    /// [`crate::limits::THROTTLES_MAX`] short names.
    pub throttles: Vec<String>,
    /// Memory errors corrected since the driver was loaded.
    pub ecc_corrected: Option<u64>,
    /// Memory errors not corrected since the driver was loaded.
    pub ecc_uncorrected: Option<u64>,
    /// The last Xid event since the node started.
    pub xid: Option<XidEvent>,
}

/// An error event of NVIDIA's driver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct XidEvent {
    /// Its number in NVIDIA's table.
    pub code: u32,
    /// Seconds since it happened.
    pub secs_ago: u64,
}
