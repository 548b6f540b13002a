//! State of a CUDA device that the rest of the node reads. Decides nothing.

use crate::device::worker::FoundDevice;
use crate::device::worker::message::Opened;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tessera_protocol::compute::ptx_version_of_cuda;
use tessera_protocol::device::{
    CudaInfo, DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry, XidEvent,
};

/// Longest time between the cause of a driver event and the event.
const USER_KERNEL: Duration = Duration::from_secs(15);
/// Action that ends a quarantine.
const REMEDY: &str = "see its log, repair or reset the device, then restart the node";

/// State that the device's supervisor and the monitor write.
#[derive(Debug)]
pub(super) struct Shared {
    seen: Mutex<Seen>,
    busy_nanos: AtomicU64,
    /// Device memory in bytes that the worker for compute jobs uses.
    compute_held: AtomicU64,
    /// When a user's kernel last ran.
    user_kernel: Mutex<Option<Instant>>,
}

#[derive(Debug)]
struct Seen {
    info: DeviceInfo,
    telemetry: DeviceTelemetry,
    xid: Option<(u64, Instant)>,
}

impl Shared {
    /// Creates the state of a device that has not been tested yet.
    pub(super) fn new(slot: String, found: &FoundDevice) -> Self {
        let mut info = DeviceInfo {
            slot,
            kind: DeviceKind::Cuda,
            name: String::new(),
            parallelism: 0,
            memory_bytes: 0,
            cuda: Some(CudaInfo::default()),
            state: DeviceState::Testing,
        };
        describe(&mut info, found);
        let seen = Seen { info, telemetry: DeviceTelemetry::default(), xid: None };
        let none = || AtomicU64::new(0);
        Self {
            seen: Mutex::new(seen),
            busy_nanos: none(),
            compute_held: none(),
            user_kernel: Mutex::new(None),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn info(&self) -> DeviceInfo {
        self.seen().info.clone()
    }

    pub(super) fn telemetry(&self) -> DeviceTelemetry {
        let seen = self.seen();
        let event = |(code, at): (u64, Instant)| XidEvent {
            code: u32::try_from(code).unwrap_or(u32::MAX),
            secs_ago: at.elapsed().as_secs(),
        };
        let compute = self.compute_held.load(Ordering::Relaxed);
        let memory_held = seen.telemetry.memory_held.map(|held| held.saturating_add(compute));
        DeviceTelemetry { xid: seen.xid.map(event), memory_held, ..seen.telemetry.clone() }
    }

    pub(super) fn set_state(&self, state: DeviceState) {
        self.seen().info.state = state;
    }

    pub(super) fn quarantine(&self, reason: &str) {
        self.set_state(DeviceState::Quarantined {
            reason: reason.to_owned(),
            remedy: REMEDY.to_owned(),
        });
    }

    pub(super) fn is_ready(&self) -> bool {
        self.seen().info.state == DeviceState::Ready
    }

    /// Records that a worker has opened the device and holds nothing yet.
    pub(super) fn opened(&self, opened: &Opened) {
        self.holds(opened.free_bytes, 0);
        let mut seen = self.seen();
        describe(&mut seen.info, &opened.device);
        if let Some(cuda) = &mut seen.info.cuda {
            let start = opened.start + opened.compile;
            cuda.start_millis = u32::try_from(start.as_millis()).unwrap_or(u32::MAX);
            cuda.ptx_version = ptx_version_of_cuda(opened.driver_version);
            cuda.cubin = opened.code.cubin.map(capability);
        }
    }

    /// Records a reading of the monitor.
    pub(super) fn measured(
        &self,
        telemetry: DeviceTelemetry,
        complete: impl FnOnce(&mut CudaInfo),
    ) {
        let mut seen = self.seen();
        let DeviceTelemetry { samples_per_second, memory_held, .. } = seen.telemetry;
        seen.telemetry = DeviceTelemetry { samples_per_second, memory_held, ..telemetry };
        if let Some(cuda) = &mut seen.info.cuda {
            complete(cuda);
        }
    }

    /// Records the worker's report of its memory. Without NVML, it is the only source for the free
    /// memory.
    pub(super) fn holds(&self, free_bytes: u64, held_bytes: u64) {
        let mut seen = self.seen();
        seen.telemetry.memory_free = Some(free_bytes);
        seen.telemetry.memory_held = Some(held_bytes);
    }

    pub(super) fn xid(&self, code: u64, at: Instant) {
        self.seen().xid = Some((code, at));
    }

    /// Records the end of a unit.
    pub(super) fn worked(&self, device_time: Duration, samples_per_second: f64) {
        let nanos = u64::try_from(device_time.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
        self.seen().telemetry.samples_per_second = samples_per_second;
    }

    /// Records the begin or end of a user's kernel.
    pub(super) fn on_user_kernel(&self, now: Instant) {
        *self.user_kernel.lock().unwrap_or_else(PoisonError::into_inner) = Some(now);
    }

    /// Returns whether a user's kernel may have caused an event that the driver reports now.
    pub(super) fn is_under_user_kernel(&self, now: Instant) -> bool {
        let last = *self.user_kernel.lock().unwrap_or_else(PoisonError::into_inner);
        last.is_some_and(|last| now.saturating_duration_since(last) < USER_KERNEL)
    }

    /// Records how much device memory the worker for compute jobs has; 0 once it has ended. This
    /// memory counts as held: a chunk of the same job uses it again, another job replaces it, and a
    /// worker without units ends.
    pub(super) fn compute_holds(&self, bytes: u64) {
        self.compute_held.store(bytes, Ordering::Relaxed);
    }

    /// Returns the last value of [`Self::compute_holds`].
    pub(super) fn compute_held(&self) -> u64 {
        self.compute_held.load(Ordering::Relaxed)
    }

    /// Records the end of a compute unit.
    pub(super) fn computed(&self, device_time: Duration) {
        let nanos = u64::try_from(device_time.as_nanos()).unwrap_or(u64::MAX);
        self.busy_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed))
    }
}

fn capability((major, minor): (u32, u32)) -> (u8, u8) {
    let part = |number: u32| u8::try_from(number).unwrap_or(u8::MAX);
    (part(major), part(minor))
}

/// Fills in what CUDA reports. For a slice it reports more once the slice is open.
fn describe(info: &mut DeviceInfo, found: &FoundDevice) {
    info.name.clone_from(&found.name);
    info.parallelism = found.multiprocessors;
    info.memory_bytes = found.memory_bytes;
    if let Some(cuda) = &mut info.cuda {
        cuda.compute_capability = capability(found.capability);
        if cuda.uuid.is_empty() {
            cuda.uuid.clone_from(&found.uuid);
        }
        if cuda.mig.is_none() && found.by_uuid {
            // In `NVIDIA A100 MIG 1g.5gb` the profile is the last word.
            cuda.mig = Some(found.name.rsplit(' ').next().unwrap_or_default().to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compute_memory_counts_as_held_until_the_worker_ends() {
        let shared = Shared::new("cuda:0".into(), &FoundDevice::default());
        shared.compute_holds(5);
        assert_eq!(shared.telemetry().memory_held, None, "free memory is unknown");
        shared.holds(100, 20);
        assert_eq!(shared.telemetry().memory_held, Some(25));
        shared.measured(
            DeviceTelemetry { memory_free: Some(70), ..DeviceTelemetry::default() },
            |_| {},
        );
        assert_eq!(
            (shared.telemetry().memory_free, shared.telemetry().memory_held),
            (Some(70), Some(25))
        );
        shared.compute_holds(0);
        assert_eq!(shared.telemetry().memory_held, Some(20));
    }
}
