//! CUDA devices as the node has them: each in a worker process of its own, supervised, watched,
//! tested. No library of NVIDIA's is ever opened in this process.
//!
//! ```text
//! node ─ units ─► CudaDevice ─► supervisor ══ pipe ══► worker ─► driver ─► device
//!                                   ▲                    (../worker: no network, no keys)
//!                    monitor ─ Xid ─┘ ◄══ pipe ══ worker ─► NVML
//! ```
//!
//! Finishing units stay in the node: threads of the host make them. A device that is faster at it
//! computes their passes of the denoiser, as compute units.

mod child;
mod command;
mod compute;
mod denoise;
mod event;
mod flight;
mod health;
mod held;
mod monitor;
mod output;
mod probe;
mod proof;
mod shared;
mod supervisor;
mod watchdog;

pub(crate) use command::WorkerCommand;
pub(crate) use monitor::Monitor;
pub use probe::{ProbeError, Probed, Tried, find_compiler, probe, try_forbidden};
pub(crate) use probe::{compiler_of, probe_with};
pub use watchdog::Watchdog;

use super::host_thread::HostLane;
use super::worker::{FoundDevice, Refusal};
use super::{Device, DeviceError, DeviceUnit, Work};
use crate::backoff::Backoff;
use crate::config::DenoiseOn;
use compute::ComputeLane;
use denoise::{DeviceDenoiser, Verdict};
use event::Event;
use health::Health;
use shared::Shared;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;
use supervisor::{FirstStart, State, Supervisor};
use tessera_protocol::device::{DeviceInfo, DeviceTelemetry};

/// Longest wait of one look at a device that is being opened.
const LOOK: Duration = Duration::from_millis(5);

/// Why a device is not ready at the node's start.
#[derive(Debug, Clone, thiserror::Error)]
pub enum StartFault {
    /// The driver or the device is not suitable.
    #[error(transparent)]
    Refused(Refusal),
    /// The device failed repeatedly, or computes wrongly.
    #[error("{0}")]
    Faulty(String),
}

/// One CUDA device, or a slice of one.
pub(crate) struct CudaDevice {
    shared: Arc<Shared>,
    events: Sender<Event>,
    supervisor: Option<JoinHandle<()>>,
    compute: ComputeLane,
    /// Threads of this host for finishing units.
    host: HostLane,
}

/// A device that is being opened.
pub(crate) struct Opening {
    device: CudaDevice,
    first: Receiver<FirstStart>,
}

impl CudaDevice {
    /// Starts a worker for a device; several can be started before the first is waited for.
    ///
    /// # Errors
    /// The system refuses a thread.
    pub(crate) fn open(
        command: &WorkerCommand,
        (slot, found): (String, FoundDevice),
        (watchdog, denoise): (Watchdog, DenoiseOn),
        host: HostLane,
    ) -> std::io::Result<Opening> {
        let (events, received) = channel();
        let (first, outcome) = channel();
        let shared = Arc::new(Shared::new(slot.clone(), &found));
        let mut key = [0; 16];
        key.copy_from_slice(&blake3::hash(found.uuid.as_bytes()).as_bytes()[..16]);
        let compute =
            ComputeLane::new(command.clone(), found.clone(), (shared.clone(), events.clone()))?;
        let denoiser = DeviceDenoiser {
            slot: slot.clone(),
            setting: denoise,
            door: compute.door(),
            supervisor: events.clone(),
            verdict: Mutex::new(Verdict::default()),
        };
        let host = host.with_denoiser(Arc::new(denoiser));
        let supervisor = Supervisor {
            command: command.clone(),
            label: slot.clone(),
            device: found,
            watchdog,
            shared: shared.clone(),
            compute: compute.way(),
            events: received,
            sender: events.clone(),
            first: Some(first),
            health: Health::new(Backoff::new(key)),
            state: State::new(command.cubins.clone()),
        };
        // The worker ends with the thread that starts it. This thread lives as long as the device.
        let thread = std::thread::Builder::new().name(slot).spawn(move || supervisor.run())?;
        Ok(Opening {
            device: Self { shared, events, supervisor: Some(thread), compute, host },
            first: outcome,
        })
    }

    /// Returns the listener for the monitor's reports.
    pub(crate) fn listener(&self) -> monitor::Listener {
        monitor::Listener { shared: self.shared.clone(), events: self.events.clone() }
    }
}

impl Opening {
    /// Returns the outcome of the device's start, once; None if it is not known after a short wait.
    pub(crate) fn look(&self) -> Option<Result<(), StartFault>> {
        Some(match self.first.recv_timeout(LOOK) {
            Ok(FirstStart::Ready) => Ok(()),
            Ok(FirstStart::Refused(refusal)) => Err(StartFault::Refused(refusal)),
            Ok(FirstStart::Faulty(reason)) => Err(StartFault::Faulty(reason)),
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => {
                Err(StartFault::Faulty("its thread ended".into()))
            }
        })
    }

    /// Returns the device: ready, being tested, or quarantined.
    pub(crate) fn into_device(self) -> CudaDevice {
        self.device
    }
}

impl Device for CudaDevice {
    fn info(&self) -> DeviceInfo {
        self.shared.info()
    }

    fn telemetry(&self) -> DeviceTelemetry {
        self.shared.telemetry()
    }

    fn submit(&self, unit: DeviceUnit) {
        match unit.work {
            Work::Compute { .. } => return self.compute.submit(unit),
            Work::Finish(_) => return self.host.submit(unit),
            Work::Render { .. } => {}
        }
        if let Err(unsent) = self.events.send(Event::Submit(unit))
            && let Event::Submit(unit) = unsent.0
        {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }

    fn busy(&self) -> Duration {
        self.shared.busy() + self.host.busy()
    }
}

impl Drop for CudaDevice {
    fn drop(&mut self) {
        let _ = self.events.send(Event::Stop);
        if let Some(thread) = self.supervisor.take() {
            // The thread does not panic, and has nothing to return.
            let _ = thread.join();
        }
    }
}
