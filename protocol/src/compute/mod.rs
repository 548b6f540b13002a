//! Compute jobs as data: a kernel over a domain, its inputs and arguments, and the use of its
//! values. Runs nothing.
//!
//! The domain has `width × height × depth` indices; index = (z · height + y) · width + x. A chunk
//! is a contiguous range of indices and the unit of a compute job. Its result is `count × channels`
//! values. In a job with a reduction it is one partial result for each channel.

mod array;
mod chunk;
mod exact_sum;
mod half;
pub mod npy;
mod reduce;
mod spec;

pub use array::{Domain, Element};
pub use chunk::{ChunkError, ChunkShape, ChunkValues};
pub use exact_sum::ExactSum;
pub use half::{half_of_f64, half_to_f64};
pub use reduce::{Partial, PartialError, Reduction};
pub use spec::{
    Argument, ArgumentValue, ComputeFormat, ComputeSpec, InputArray, Number, Program, is_identifier,
};

pub(crate) use spec::check;
