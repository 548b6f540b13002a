//! Built-in compute kernels on the CPU: a chunk, divided among the threads of the caller's pool.

use super::cancel::CancelToken;
use super::error::DeviceError;
use crate::compute::{PreparedCompute, Source};
use rayon::prelude::*;
use tessera_kernels::compute::{Builtin, ChunkParams, HostArray, run};
use tessera_kernels::host::Isa;
use tessera_protocol::compute::ChunkValues;

/// Indices that a thread computes at a time: some milliseconds, so that a cancel takes effect soon.
const PIECE_INDICES: usize = 4096;

/// Computes the result of a chunk, with all its steps.
pub(super) fn compute(
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
