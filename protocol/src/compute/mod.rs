//! Compute jobs as data: a kernel over a domain, its inputs and arguments, and the use of its
//! values. Runs nothing.
//!
//! The domain has `width × height × depth` indices; index = (z · height + y) · width + x. A chunk
//! is a contiguous range of indices and the unit of a compute job. Its result is `count × channels`
//! values. In a job with a reduction it is one partial result for each channel. A kernel with named
//! outputs gives such a part for each of them, one after another in the order of names. A frame of
//! several steps is one chunk, over which the kernel runs once for each step.

mod array;
mod block;
mod chunk;
mod chunks;
mod exact_sum;
mod frame_input;
pub(crate) mod from_job;
mod half;
pub(crate) mod input;
pub mod npy;
mod output;
mod ptx;
mod reduce;
mod results;
mod shape;
mod spec;

pub use array::{Domain, Element};
pub use block::Block;
pub use chunk::{ChunkError, ChunkShape, ChunkValues};
pub use chunks::Chunks;
pub use exact_sum::ExactSum;
pub use half::{half_of_f64, half_to_f64};
pub use input::{FrameInput, FromJob, InputArray, InputFile};
pub use output::{Layout, OutputArray};
pub use ptx::{PtxNeeds, PtxReach, ptx_version_of_cuda};
pub use reduce::{Partial, PartialError, Reducing, Reduction};
pub use shape::least_common_multiple;
pub use spec::{
    Argument, ArgumentValue, ComputeFormat, ComputeSpec, Number, Program, is_identifier,
};

/// Checks a spec. Bounds every length and every product.
pub(crate) fn check(spec: &ComputeSpec) -> Result<(), crate::job::error::SpecError> {
    shape::check(spec)?;
    results::check_outputs(spec)?;
    spec::check(spec)?;
    results::check_files(spec)?;
    frame_input::check(spec)
}
