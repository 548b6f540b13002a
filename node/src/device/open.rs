//! Which devices a node opens, and why it cannot. Drives none.

use super::cuda::{CudaDevice, Monitor, ProbeError, StartFault, WorkerCommand, find_compiler, probe_with};
use super::worker::FoundDevice;
use super::xid::{XidTable, XidTableError};
use super::{CpuDevice, Device};
use crate::config::{Config, DeviceSpec};
use std::sync::Arc;
use tessera_kernels::host::Isa;

/// Why the devices asked for cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceOpenError {
    /// No device at all.
    #[error("no device chosen; name one, such as `auto` or `cpu`")]
    Nothing,
    /// The same twice.
    #[error("device `{0}` is named twice")]
    Twice(DeviceSpec),
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
    /// No CUDA device can be used.
    #[error("device `{spec}` cannot be used; see `tessera doctor`, or use `cpu`")]
    Cuda {
        /// What was asked for.
        spec: DeviceSpec,
        /// Why.
        #[source]
        source: ProbeError,
    },
    /// One device is not fit.
    #[error("device `{slot}` cannot be used; see `tessera doctor`, or use another")]
    Unfit {
        /// Which.
        slot: String,
        /// Why.
        #[source]
        source: StartFault,
    },
    /// The table of driver events.
    #[error(transparent)]
    XidTable(#[from] XidTableError),
    /// The system refuses a thread or a folder that device workers need.
    #[error("cannot start device workers")]
    System(#[source] std::io::Error),
}

/// The devices of a node.
pub struct Devices {
    /// In the order of their positions; those that failed at the start are quarantined.
    pub devices: Vec<Arc<dyn Device>>,
    /// Version of the NVRTC with which the devices' workers compile kernels; None where there are none, or they find none.
    pub compiler: Option<(u32, u32)>,
    /// Watches the CUDA devices as long as it is kept.
    _monitor: Option<Monitor>,
}

/// Opens what the configuration names, in its order. Blocks until every device has shown that it computes what it should.
///
/// # Errors
/// What was asked for by name cannot be had. `auto` takes the CPU instead, and `cuda` leaves out (quarantined) the devices that fail
/// as long as one works.
pub fn open(config: &Config) -> Result<Devices, DeviceOpenError> {
    check(&config.devices)?;
    let mut opened = Opened { config, command: None, found: None, devices: Vec::new(), cuda: Vec::new() };
    for spec in &config.devices {
        match spec {
            DeviceSpec::Cpu => opened.add_cpu()?,
            DeviceSpec::Cuda(index) => opened.add_cuda(*spec, *index)?,
            DeviceSpec::Auto => match opened.add_cuda(*spec, None) {
                Ok(()) => {}
                Err(error) => {
                    tracing::info!(
                        reason = crate::scene::chain(&error),
                        "no CUDA device; rendering on the CPU"
                    );
                    opened.add_cpu()?;
                }
            },
        }
    }
    opened.finish()
}

fn check(specs: &[DeviceSpec]) -> Result<(), DeviceOpenError> {
    for (position, spec) in specs.iter().enumerate() {
        let same = |other: &DeviceSpec| match (other, spec) {
            (DeviceSpec::Auto, _) | (_, DeviceSpec::Auto) => true,
            (DeviceSpec::Cuda(None), DeviceSpec::Cuda(_)) | (DeviceSpec::Cuda(_), DeviceSpec::Cuda(None)) => {
                true
            }
            _ => other == spec,
        };
        if specs[..position].iter().any(same) {
            return Err(DeviceOpenError::Twice(*spec));
        }
    }
    if specs.is_empty() { Err(DeviceOpenError::Nothing) } else { Ok(()) }
}

struct Opened<'a> {
    config: &'a Config,
    command: Option<WorkerCommand>,
    found: Option<Vec<FoundDevice>>,
    devices: Vec<Arc<dyn Device>>,
    cuda: Vec<Arc<CudaDevice>>,
}

impl Opened<'_> {
    fn add_cpu(&mut self) -> Result<(), DeviceOpenError> {
        self.devices.push(Arc::new(CpuDevice::open(self.config.threads, self.config.isa)?));
        Ok(())
    }

    fn command(&mut self) -> Result<WorkerCommand, DeviceOpenError> {
        if self.command.is_none() {
            self.command = Some(WorkerCommand::of(self.config).map_err(DeviceOpenError::System)?);
        }
        self.command.clone().ok_or(DeviceOpenError::Nothing)
    }

    fn found(&mut self, spec: DeviceSpec) -> Result<Vec<FoundDevice>, DeviceOpenError> {
        if let Some(found) = &self.found {
            return Ok(found.clone());
        }
        let refused = |source| DeviceOpenError::Cuda { spec, source };
        let probed = probe_with(&self.command()?).map_err(refused)?;
        let found = probed.devices.map_err(|refusal| refused(refusal.into()))?;
        self.found = Some(found.clone());
        Ok(found)
    }

    /// All devices, or the one of that index.
    fn add_cuda(&mut self, spec: DeviceSpec, index: Option<u32>) -> Result<(), DeviceOpenError> {
        let found = self.found(spec)?;
        let command = self.command()?;
        let wanted = |(slot, _): &(usize, FoundDevice)| index.is_none_or(|index| *slot == index as usize);
        let mut opening = Vec::new();
        for (slot, found) in found.into_iter().enumerate().filter(wanted) {
            let name = format!("cuda:{slot}");
            let open = CudaDevice::open(&command, name.clone(), found, self.config.watchdog);
            opening.push((name, open.map_err(DeviceOpenError::System)?));
        }
        let (mut works, mut fault) = (0, None);
        let mut devices = Vec::new();
        for (slot, opening) in opening {
            let (device, outcome) = opening.wait();
            match outcome {
                Ok(()) => works += 1,
                Err(source) => {
                    tracing::warn!(device = slot, reason = %source, "device left out");
                    fault = fault.or(Some(DeviceOpenError::Unfit { slot, source }));
                }
            }
            devices.push(Arc::new(device));
        }
        if works == 0 {
            let none = index.map_or(super::worker::Refusal::NoDevices, super::worker::Refusal::NoSuchDevice);
            return Err(fault.unwrap_or(DeviceOpenError::Cuda { spec, source: none.into() }));
        }
        for device in devices {
            self.cuda.push(device.clone());
            self.devices.push(device);
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Devices, DeviceOpenError> {
        let listeners: Vec<_> = self.cuda.iter().map(|device| device.listener()).collect();
        if listeners.is_empty() {
            return Ok(Devices { devices: self.devices, compiler: None, _monitor: None });
        }
        let table = XidTable::load(self.config.xid_table.as_deref())?;
        let command = self.command()?;
        let compiler = find_compiler(&command);
        let monitor = Monitor::start(command, listeners, table).map_err(DeviceOpenError::System)?;
        Ok(Devices { devices: self.devices, compiler, _monitor: Some(monitor) })
    }
}
