//! A reading of a device by the driver: its identity and its present state. Owns no library; the
//! monitor fills it in.

use serde::{Deserialize, Serialize};
use tessera_protocol::device::{CudaInfo, DeviceTelemetry};

/// One device or MIG slice at one moment. Values that the driver does not report are None or empty:
/// NVML may be absent, or a device may lack a sensor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceReading {
    /// `GPU-…` or `MIG-…`, as `nvidia-smi -L` shows it.
    pub uuid: String,
    /// Product name, as the manufacturer gives it.
    pub name: String,
    /// Version of the driver, such as `570.86.15`.
    pub driver: String,
    /// PCIe address, such as `0000:41:00.0`.
    pub pcie: String,
    /// PCIe generation and lanes in use now.
    pub pcie_link: Option<(u32, u32)>,
    /// UUID of the device that a MIG slice belongs to.
    pub mig_parent: Option<String>,
    /// State of the device. The node fills in position, load and rate.
    pub telemetry: DeviceTelemetry,
}

impl DeviceReading {
    /// Returns whether this is the device that CUDA calls `uuid`. Some versions of CUDA also write
    /// `GPU-` before a slice's id.
    pub fn is(&self, uuid: &str) -> bool {
        same_uuid(&self.uuid, uuid)
    }

    /// Adds what CUDA does not report.
    pub fn complete(&self, info: &mut CudaInfo) {
        info.driver.clone_from(&self.driver);
        info.pcie.clone_from(&self.pcie);
    }
}

/// Compares two ids without their prefixes.
pub(crate) fn same_uuid(one: &str, other: &str) -> bool {
    let id = |text: &str| text.split_once('-').map(|(_, id)| id.to_owned());
    id(one).is_some() && id(one) == id(other)
}
