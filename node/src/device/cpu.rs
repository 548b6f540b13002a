//! The CPU as a device: the kernels' host build on a pool of threads. Compute and finishing units
//! have threads of their own, so that they go on beside tiles.

use super::host_thread::{HostLane, HostThread, host_threads};
use super::known_answer::check_host;
use super::pool::Pool;
use super::{Device, DeviceError, DeviceOpenError, DeviceUnit, Work};
use crate::memory::HostMemory;
use std::sync::Arc;
use std::time::Duration;
use tessera_kernels::host::{Isa, RayCounts, available_isas, best_isa, render_unit};
use tessera_protocol::device::{DeviceInfo, DeviceKind, DeviceState, DeviceTelemetry};

/// All threads of this host, or some of them.
pub struct CpuDevice {
    info: DeviceInfo,
    pool: Pool,
    /// Threads for compute and finishing units.
    host: HostLane,
}

impl CpuDevice {
    /// Starts the threads: as many as asked for, or as this process may use; with the best
    /// instruction set unless one is named.
    ///
    /// # Errors
    /// If this processor lacks the instruction set, the kernels do not give the known answers, or
    /// the system refuses so many threads.
    pub fn open(threads: Option<usize>, isa: Option<Isa>) -> Result<Self, DeviceOpenError> {
        let isa = isa.unwrap_or_else(best_isa);
        if !available_isas().contains(&isa) {
            return Err(DeviceOpenError::Processor(isa));
        }
        check_host(isa)?;
        let threads = host_threads(threads);
        let pool = Pool::start(
            threads as u32,
            Box::new(move |scene, params, film| {
                let mut counts = RayCounts::default();
                match render_unit(isa, scene, params, film, &mut counts) {
                    Ok(()) => Ok(counts.closest + counts.any),
                    Err(error) => Err(DeviceError::Failed(error.to_string())),
                }
            }),
        )
        .map_err(|source| DeviceOpenError::Threads { threads, source })?;
        let info = DeviceInfo {
            slot: "cpu".to_owned(),
            kind: DeviceKind::Cpu,
            name: format!("{} ({isa})", processor_name()),
            parallelism: threads as u32,
            memory_bytes: HostMemory::of_this_process().bytes(),
            cuda: None,
            state: DeviceState::Ready,
        };
        let host = HostThread::start(threads, isa)
            .map_err(|source| DeviceOpenError::Threads { threads, source })?;
        Ok(Self { info, pool, host: HostLane::new(Arc::new(host)) })
    }
}

impl Device for CpuDevice {
    fn info(&self) -> DeviceInfo {
        self.info.clone()
    }

    fn telemetry(&self) -> DeviceTelemetry {
        let samples_per_second = self.pool.samples_per_second();
        DeviceTelemetry { samples_per_second, ..DeviceTelemetry::default() }
    }

    fn submit(&self, unit: DeviceUnit) {
        match unit.work {
            Work::Render { .. } => self.pool.submit(unit),
            Work::Compute { .. } | Work::Finish(_) => self.host.submit(unit),
        }
    }

    fn busy(&self) -> Duration {
        self.pool.busy() + self.host.busy()
    }
}

/// Returns the name of the processor, as the system gives it.
fn processor_name() -> String {
    let known = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    known.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
}

#[cfg(test)]
#[path = "cpu_tests.rs"]
mod tests;
