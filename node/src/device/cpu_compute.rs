//! Built-in compute kernels on the CPU: a thread that takes one chunk after another, and divides
//! each among as many threads as the device has.

use super::{CancelToken, DeviceError, DeviceUnit, UnitOutput, Work};
use crate::compute::{PreparedCompute, Source};
use rayon::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tessera_kernels::compute::{Builtin, ChunkParams, HostArray, run};
use tessera_kernels::host::Isa;
use tessera_protocol::compute::ChunkValues;

/// Indices that a thread computes at a time: some milliseconds, so that a cancel takes effect soon.
const PIECE_INDICES: usize = 4096;

/// The thread that runs compute chunks on the CPU.
pub(super) struct ComputeThread {
    units: Option<Sender<DeviceUnit>>,
    thread: Option<JoinHandle<()>>,
    busy_nanos: Arc<AtomicU64>,
}

impl ComputeThread {
    pub(super) fn start(threads: usize, isa: Isa) -> std::io::Result<Self> {
        let (units, received) = channel::<DeviceUnit>();
        let busy_nanos = Arc::new(AtomicU64::new(0));
        let busy = busy_nanos.clone();
        let body = move || {
            let mut pool = None;
            while let Ok(unit) = received.recv() {
                // The pool is made when it is first needed, because most nodes only render.
                let pool = pool.get_or_insert_with(|| {
                    rayon::ThreadPoolBuilder::new().num_threads(threads).build()
                });
                let began = Instant::now();
                let result = match (&unit.work, pool) {
                    _ if !unit.cancel.begin() => Err(DeviceError::Cancelled),
                    (Work::Compute { job, first, count, .. }, Ok(pool)) => {
                        unit.cancel.advance(0);
                        pool.install(|| compute(job, (*first, *count), isa, &unit.cancel))
                    }
                    (_, Err(error)) => Err(DeviceError::Failed(format!("no threads: {error}"))),
                    _ => Err(DeviceError::Failed("this thread computes".into())),
                };
                let took = began.elapsed();
                busy.fetch_add(
                    u64::try_from(took.as_nanos()).unwrap_or(u64::MAX),
                    Ordering::Relaxed,
                );
                (unit.finish)(result.map(|chunk| UnitOutput::of_chunk(chunk, took, 0)));
            }
        };
        let thread = std::thread::Builder::new().name("compute".into()).spawn(body)?;
        Ok(Self { units: Some(units), thread: Some(thread), busy_nanos })
    }

    pub(super) fn submit(&self, unit: DeviceUnit) {
        let unsent = match &self.units {
            Some(units) => units.send(unit).err().map(|unsent| unsent.0),
            None => Some(unit),
        };
        if let Some(unit) = unsent {
            (unit.finish)(Err(DeviceError::Cancelled));
        }
    }

    pub(super) fn busy(&self) -> Duration {
        Duration::from_nanos(self.busy_nanos.load(Ordering::Relaxed))
    }
}

impl Drop for ComputeThread {
    fn drop(&mut self) {
        drop(self.units.take());
        if let Some(thread) = self.thread.take() {
            // The thread does not panic.
            let _ = thread.join();
        }
    }
}

/// Computes the result of a chunk, with all its steps.
fn compute(
    job: &PreparedCompute,
    (first, count): (u64, u32),
    isa: Isa,
    cancel: &CancelToken,
) -> Result<ChunkValues, DeviceError> {
    let Source::Builtin(kernel) = &job.source else {
        return Err(DeviceError::Failed("a user's kernel needs a CUDA device".into()));
    };
    let numbers = crate::compute::numbers(kernel, &job.spec).map_err(DeviceError::Program)?;
    let length = count as usize * usize::from(job.spec.channels);
    let (mut values, mut before) = (vec![0f32; length], Vec::new());
    for step in 0..job.spec.steps.max(1) {
        if step > 0 {
            // The kernels write every value.
            std::mem::swap(&mut values, &mut before);
            values.resize(length, 0.0);
        }
        let mut arrays = host_arrays(kernel, job)?;
        let fed = kernel.arrays().position(|name| job.spec.feed.as_deref() == Some(name));
        if let Some(fed) = fed.filter(|_| step > 0) {
            arrays[fed].values = &before;
        }
        let launch = Launch { kernel, numbers: &numbers, arrays: &arrays, isa, step };
        launch.run(job, first, &mut values, cancel)?;
    }
    Ok(job.result((first, count), values.into_iter().flat_map(f32::to_le_bytes).collect()))
}

/// One run of a kernel over a chunk.
struct Launch<'a> {
    kernel: &'a Builtin,
    numbers: &'a [u32],
    arrays: &'a [HostArray<'a>],
    isa: Isa,
    step: u32,
}

impl Launch<'_> {
    fn run(
        &self,
        job: &PreparedCompute,
        first: u64,
        values: &mut [f32],
        cancel: &CancelToken,
    ) -> Result<(), DeviceError> {
        let channels = usize::from(job.spec.channels);
        let piece = PIECE_INDICES * channels;
        values.par_chunks_mut(piece).enumerate().try_for_each(|(index, out)| {
            if cancel.is_cancelled() {
                return Err(DeviceError::Cancelled);
            }
            let count = (out.len() / channels) as u32;
            let chunk = job.chunk(first + (index * PIECE_INDICES) as u64, count);
            let chunk = ChunkParams { step: self.step, ..chunk };
            run(self.isa, self.kernel, &chunk, self.arrays, self.numbers, out)
                .map_err(|error| DeviceError::Program(error.to_string()))?;
            if self.step == 0 {
                cancel.advance(count.into());
            }
            Ok(())
        })
    }
}

fn host_arrays<'a>(
    kernel: &Builtin,
    job: &'a PreparedCompute,
) -> Result<Vec<HostArray<'a>>, DeviceError> {
    kernel
        .arrays()
        .map(|name| {
            let array = job.arrays.iter().find(|array| array.name == name);
            let values = array
                .and_then(|array| Some(HostArray { values: array.floats()?, shape: &array.shape }));
            values.ok_or_else(|| DeviceError::Program(format!("input `{name}` is missing")))
        })
        .collect()
}
