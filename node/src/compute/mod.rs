//! Compute jobs on a node: what a job's kernel and inputs are, and how inputs and arguments get to
//! the kernel's variables by their names. Runs nothing; devices do (`device/`).

mod bind;
mod compile;
mod prepare;

pub use bind::{BindError, Bound, bind, stored_elements};
pub use compile::compile;
pub(crate) use prepare::Preparations;
pub use tessera_kernels::compute::{HEADER, ptx as builtin_ptx};

use std::sync::Arc;
use tessera_kernels::compute::{Builtin, ChunkParams, VariableKind};
use tessera_protocol::FrameNumber;
use tessera_protocol::compute::{ChunkValues, ComputeSpec, Element, Partial};

/// What runs.
#[derive(Clone, Debug)]
pub enum Source {
    /// A built-in kernel.
    Builtin(&'static Builtin),
    /// The user's, as PTX.
    Ptx(Arc<str>),
    /// The user's, as CUDA C++.
    Cuda(Arc<str>),
}

/// An input in memory.
#[derive(Debug)]
pub struct LoadedArray {
    /// Name of its variable.
    pub name: String,
    /// Type of its values.
    pub element: Element,
    /// Slowest axis first.
    pub shape: Vec<u64>,
    /// The values, in words so that any element is aligned; the last word may reach beyond them.
    words: Vec<u64>,
    length: usize,
}

impl LoadedArray {
    /// The values, little endian.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::must_cast_slice(&self.words)[..self.length]
    }

    /// The values, where they are f32.
    pub fn floats(&self) -> Option<&[f32]> {
        let values = || &bytemuck::must_cast_slice(&self.words)[..self.length / 4];
        (self.element == Element::F32).then(values)
    }
}

/// A frame of a compute job, ready for any device. Shared by all its chunks.
#[derive(Debug)]
pub struct PreparedCompute {
    /// Told apart by this, within one process.
    pub id: u64,
    /// What was asked for.
    pub spec: ComputeSpec,
    /// Which frame.
    pub frame: FrameNumber,
    /// What runs.
    pub source: Source,
    /// What it reads.
    pub arrays: Vec<LoadedArray>,
}

impl PreparedCompute {
    /// What a launch over a chunk passes; the address of the values is the launcher's to fill in.
    pub fn chunk(&self, first: u64, count: u32) -> ChunkParams {
        let domain = &self.spec.domain;
        ChunkParams {
            first,
            count,
            width: domain.width,
            height: domain.height,
            depth: domain.depth,
            channels: self.spec.channels.into(),
            frame: self.frame.0,
            seed: self.spec.seed,
            out: 0,
        }
    }

    /// Bytes of its inputs, on a device as in memory.
    pub fn input_bytes(&self) -> u64 {
        self.arrays.iter().map(|array| array.length as u64).sum()
    }

    /// The result of a chunk, from the values that its kernel wrote: as they are, or reduced in the
    /// order of indices.
    pub fn result(&self, count: u32, values: Vec<u8>) -> ChunkValues {
        let Some(reduction) = self.spec.reduction else {
            return ChunkValues { count, width: self.spec.element.bytes() as u8, bytes: values };
        };
        let mut partial = Partial::new(reduction, self.spec.element, self.spec.channels);
        partial.add_values(&values);
        ChunkValues { count, width: 1, bytes: partial.to_bytes() }
    }
}

/// The numbers of a built-in kernel, for the CPU.
pub(crate) fn numbers(kernel: &Builtin, spec: &ComputeSpec) -> Result<Vec<u32>, String> {
    bind::builtin_numbers(kernel.name, spec).map_err(|error| error.to_string())
}

/// Words that a built-in kernel takes for a variable in the place of numbers; none for any other.
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
