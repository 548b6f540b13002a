//! Compute jobs on a node: a job's kernel and inputs, and how values reach the kernel's variables
//! by name. Runs nothing; devices do (`device/`).

mod array_file;
mod bind;
mod bind_error;
mod compile;
mod includes;
mod notes;
mod pass;
mod picture;
mod prepare;
mod values;
mod variables;

pub(crate) use bind::builtin_values;
pub use bind::{Bound, Writable, bind, chunk_multiple_of, output_names};
pub use bind_error::BindError;
pub use compile::{Compiled, Header, compile};
pub use includes::{BadInclude, Include, includes};
pub use notes::{output_elements, stored_elements};
pub(crate) use pass::{PreparedPass, planes_of};
pub(crate) use prepare::Preparations;
pub use tessera_kernels::compute::{HEADER, ptx as builtin_ptx};

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tessera_kernels::compute::{Builtin, ChunkParams, VariableKind};
use tessera_protocol::FrameNumber;
use tessera_protocol::compute::{ChunkValues, ComputeSpec, Element, Partial};

/// Kernel to run.
#[derive(Clone, Debug)]
pub enum Source {
    /// Kernel that is built into every node.
    Builtin(&'static Builtin),
    /// The user's kernel as PTX.
    Ptx(Arc<str>),
    /// The user's kernel as CUDA C++, and its headers.
    Cuda(Arc<str>, Arc<[Header]>),
}

/// An input in memory.
#[derive(Debug)]
pub struct LoadedArray {
    /// Name of the kernel's variable.
    pub name: String,
    /// Type of the values.
    pub element: Element,
    /// Shape, slowest axis first.
    pub shape: Vec<u64>,
    /// The values in words, so that any element is aligned. The last word may extend beyond them.
    words: Vec<u64>,
    length: usize,
}

impl LoadedArray {
    /// Returns the values as little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::must_cast_slice(&self.words)[..self.length]
    }

    /// Returns the values, if they are f32.
    pub fn floats(&self) -> Option<&[f32]> {
        let values = || &bytemuck::must_cast_slice(&self.words)[..self.length / 4];
        (self.element == Element::F32).then(values)
    }
}

/// A frame of a compute job, ready for any device. Shared by all its chunks.
#[derive(Debug)]
pub struct PreparedCompute {
    /// Identifies the frame within one process.
    pub id: u64,
    /// Spec of the job.
    pub spec: ComputeSpec,
    /// Number of the frame.
    pub frame: FrameNumber,
    /// Kernel to run.
    pub source: Source,
    /// Arrays that the kernel reads.
    pub arrays: Vec<LoadedArray>,
}

impl PreparedCompute {
    /// Returns the parameters of a launch over a chunk. The caller sets the address of the values
    /// and, in a frame of several, the step.
    pub fn chunk(&self, first: u64, count: u32) -> ChunkParams {
        let domain = &self.spec.domain;
        ChunkParams {
            first,
            count,
            width: domain.width,
            height: domain.height,
            depth: domain.depth,
            // A kernel with named outputs has nothing to write in the chunk.
            channels: if self.spec.outputs.is_empty() { self.spec.channels.into() } else { 0 },
            frame: self.frame.0,
            step: 0,
            steps: self.spec.steps,
            seed: self.spec.seed,
            out: 0,
        }
    }

    /// Returns the size of the inputs in bytes, on a device as in memory.
    pub fn input_bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.length as u64).sum()
    }

    /// Makes the result of a chunk from the values that its kernel wrote from index `first` on, and
    /// which lie as [`ComputeSpec::value_layout`] says: each output unchanged, or reduced in the
    /// order of indices.
    pub fn result(&self, (first, count): (u64, u32), values: Vec<u8>) -> ChunkValues {
        let (outputs, width) = (self.spec.written(), self.spec.result_width());
        if let [output] = &*outputs
            && output.name.is_empty()
            && output.reduction.is_none()
        {
            return ChunkValues { count, width, bytes: values };
        }
        let (written, results) = (self.spec.value_layout(count), self.spec.result_layout(count));
        // The room between the outputs is zero, whatever the kernel wrote there.
        let mut bytes = vec![0; results.bytes as usize];
        for ((output, from), to) in outputs.iter().zip(&written.parts).zip(&results.parts) {
            let values = part(&values, *from);
            let result = match output.reducing() {
                None => Cow::Borrowed(values),
                Some(what) => {
                    let mut partial = Partial::new(what);
                    partial.add_values(first, values);
                    Cow::Owned(partial.to_bytes())
                }
            };
            bytes[to.0 as usize..][..result.len()].copy_from_slice(&result);
        }
        ChunkValues { count, width, bytes }
    }
}

/// Returns a part of bytes by its place and length; less where there are less.
fn part(bytes: &[u8], (start, length): (u64, u64)) -> &[u8] {
    let end = (start + length).min(bytes.len() as u64);
    bytes.get(start as usize..end as usize).unwrap_or_default()
}

/// Returns an id that no other frame of this process has.
fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Returns the numbers of a built-in kernel, for the CPU.
pub(crate) fn numbers(kernel: &Builtin, spec: &ComputeSpec) -> Result<Vec<u32>, String> {
    values::builtin_numbers(kernel.name, spec).map_err(|error| error.to_string())
}

/// Returns the words that a built-in kernel accepts for a variable instead of numbers; empty for
/// other variables.
pub fn choices(kernel: &str, variable: &str) -> Vec<&'static str> {
    let known =
        tessera_kernels::compute::builtin(kernel).map_or(&[][..], |kernel| kernel.variables);
    let kinds = known.iter().filter(|known| known.name == variable).map(|known| known.kind);
    kinds
        .flat_map(|kind| match kind {
            VariableKind::Choice(words) => words.to_vec(),
            VariableKind::Array | VariableKind::Float(_) | VariableKind::Whole { .. } => Vec::new(),
        })
        .collect()
}
