//! Opens the devices of a node, or explains why it cannot. Drives none.

use super::cuda::{
    CudaDevice, Monitor, Opening, ProbeError, StartFault, WorkerCommand, compiler_of, probe_with,
};
use super::host_thread::{HostLane, HostThread, host_threads};
use super::known_answer::AnswerError;
use super::worker::FoundDevice;
use super::xid::{XidTable, XidTableError};
use super::{CpuDevice, Device};
use crate::config::{Config, DeviceSpec};
use std::sync::Arc;
use tessera_kernels::host::{Isa, best_isa};
use tessera_transport::error::chain;

/// Why the wanted devices cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DeviceOpenError {
    /// No device at all.
    #[error("no device chosen; name one, such as `auto` or `cpu`")]
    Nothing,
    /// A device is named twice.
    #[error("device `{0}` is named twice")]
    Twice(DeviceSpec),
    /// The processor is older than every build of the kernels.
    #[error("this processor cannot run kernels built for {0}; x86-64-v2 (SSE4.2) is the least")]
    Processor(Isa),
    /// The system refused to start threads.
    #[error("cannot start {threads} render threads; ask for fewer")]
    Threads {
        /// Number of threads that were asked for.
        threads: usize,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
    /// The kernels for the CPU are wrong.
    #[error("device `cpu` cannot be used")]
    Answer(#[from] AnswerError),
    /// No CUDA device can be used.
    #[error("device `{spec}` cannot be used; see `tessera doctor`, or use `cpu`")]
    Cuda {
        /// Device that was asked for.
        spec: DeviceSpec,
        /// Result of the probe.
        #[source]
        source: ProbeError,
    },
    /// A device cannot be used.
    #[error("device `{slot}` cannot be used; see `tessera doctor`, or use another")]
    Unfit {
        /// Name of the device.
        slot: String,
        /// Reason why the device cannot be used.
        #[source]
        source: StartFault,
    },
    /// The table of driver events cannot be used.
    #[error(transparent)]
    XidTable(#[from] XidTableError),
    /// The system refuses a thread or a folder that device workers need.
    #[error("cannot start device workers")]
    System(#[source] std::io::Error),
}

/// The devices of a node.
pub struct Devices {
    /// Devices in the order of their positions. Those that failed at the start are quarantined.
    pub devices: Vec<Arc<dyn Device>>,
    /// Version of the NVRTC that the devices' workers use to compile kernels; None if there are no
    /// workers, or they find none.
    pub compiler: Option<(u32, u32)>,
    /// Watches the CUDA devices as long as it exists.
    _monitor: Option<Monitor>,
}

/// Opens what the configuration names, in its order, CUDA devices all at the same time. Blocks
/// until every device has shown that it computes what it should, or that it does not.
///
/// # Errors
/// What was asked for by name cannot be had. `auto` takes the CPU instead, and `cuda` leaves out
/// (quarantined) the devices that fail as long as one works.
pub fn open(config: &Config) -> Result<Devices, DeviceOpenError> {
    open_until(config, Until::All)
}

/// [`open`], but of several devices that one name stands for it waits for the first that works. The
/// others are being tested meanwhile, and take units as each is ready.
///
/// # Errors
/// As for [`open`].
pub fn open_first(config: &Config) -> Result<Devices, DeviceOpenError> {
    open_until(config, Until::First)
}

/// Number of devices of one name that must be ready before the node continues.
#[derive(Clone, Copy, PartialEq)]
enum Until {
    First,
    All,
}

fn open_until(config: &Config, until: Until) -> Result<Devices, DeviceOpenError> {
    check(&config.devices)?;
    let mut opened = Opened {
        config,
        command: None,
        found: None,
        devices: Vec::new(),
        cuda: Vec::new(),
        host: None,
    };
    // All of them begin before the node waits for one.
    let begun: Vec<_> = config.devices.iter().map(|spec| opened.begin(*spec)).collect();
    for (spec, begun) in config.devices.iter().zip(begun) {
        let added = match begun {
            Ok(Begun::Cpu) => opened.add_cpu(),
            Ok(Begun::Cuda(group)) => opened.add_cuda(group, until),
            Err(error) => Err(error),
        };
        match (spec, added) {
            (DeviceSpec::Auto, Err(error)) => {
                tracing::info!(reason = chain(&error), "no CUDA device; rendering on the CPU");
                opened.add_cpu()?;
            }
            (_, added) => added?,
        }
    }
    opened.finish()
}

/// Devices of one name that are being opened.
enum Begun {
    Cpu,
    /// Slots with their devices.
    Cuda(Vec<(String, Opening)>),
}

fn check(specs: &[DeviceSpec]) -> Result<(), DeviceOpenError> {
    for (position, spec) in specs.iter().enumerate() {
        let same = |other: &DeviceSpec| match (other, spec) {
            (DeviceSpec::Auto, _) | (_, DeviceSpec::Auto) => true,
            (DeviceSpec::Cuda(None), DeviceSpec::Cuda(_))
            | (DeviceSpec::Cuda(_), DeviceSpec::Cuda(None)) => true,
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
    /// The thread for the finishing units of all CUDA devices.
    host: Option<Arc<HostThread>>,
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

    fn host(&mut self) -> Result<Arc<HostThread>, DeviceOpenError> {
        if let Some(host) = &self.host {
            return Ok(host.clone());
        }
        let isa = self.config.isa.unwrap_or_else(best_isa);
        let started = HostThread::start(host_threads(self.config.threads), isa);
        let host = Arc::new(started.map_err(DeviceOpenError::System)?);
        self.host = Some(host.clone());
        Ok(host)
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

    fn begin(&mut self, spec: DeviceSpec) -> Result<Begun, DeviceOpenError> {
        match spec {
            DeviceSpec::Cpu => Ok(Begun::Cpu),
            DeviceSpec::Cuda(index) => self.begin_cuda(spec, index).map(Begun::Cuda),
            DeviceSpec::Auto => self.begin_cuda(spec, None).map(Begun::Cuda),
        }
    }

    /// Begins to open all devices, or the one with that index.
    fn begin_cuda(
        &mut self,
        spec: DeviceSpec,
        index: Option<u32>,
    ) -> Result<Vec<(String, Opening)>, DeviceOpenError> {
        let found = self.found(spec)?;
        let command = self.command()?;
        let wanted =
            |(slot, _): &(usize, FoundDevice)| index.is_none_or(|index| *slot == index as usize);
        let mut group = Vec::new();
        for (slot, found) in found.into_iter().enumerate().filter(wanted) {
            let name = format!("cuda:{slot}");
            let host = HostLane::new(self.host()?);
            let device = (name.clone(), found);
            let settings = (self.config.watchdog, self.config.denoise);
            let open = CudaDevice::open(&command, device, settings, host);
            group.push((name, open.map_err(DeviceOpenError::System)?));
        }
        if group.is_empty() {
            let none = index
                .map_or(super::worker::Refusal::NoDevices, super::worker::Refusal::NoSuchDevice);
            return Err(DeviceOpenError::Cuda { spec, source: none.into() });
        }
        Ok(group)
    }

    /// Waits for a group until enough of its devices work. At least one of them must.
    fn add_cuda(
        &mut self,
        group: Vec<(String, Opening)>,
        until: Until,
    ) -> Result<(), DeviceOpenError> {
        let (mut works, mut fault) = (false, None);
        let mut unknown: Vec<&(String, Opening)> = group.iter().collect();
        let is_enough = |works: bool| works && until == Until::First;
        while !unknown.is_empty() && !is_enough(works) {
            unknown.retain(|(slot, opening)| match opening.look() {
                None => true,
                Some(Ok(())) => {
                    works = true;
                    false
                }
                Some(Err(source)) => {
                    tracing::warn!(device = slot, reason = %source, "device left out");
                    fault.get_or_insert(DeviceOpenError::Unfit { slot: slot.clone(), source });
                    false
                }
            });
        }
        if let Some(fault) = fault.filter(|_| !works) {
            return Err(fault);
        }
        for (_, opening) in group {
            let device = Arc::new(opening.into_device());
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
        let compiler = compiler_of(&command);
        let monitor = Monitor::start(command, listeners, table).map_err(DeviceOpenError::System)?;
        Ok(Devices { devices: self.devices, compiler, _monitor: Some(monitor) })
    }
}
