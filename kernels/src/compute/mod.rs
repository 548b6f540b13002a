//! Compute kernels: the header that users' kernels include, and the built-in ones for CPU and GPU.
//! Knows no jobs, files or devices.
//!
//! A kernel gets a [`ChunkParams`] and reads module variables, bound by name: arrays as
//! [`ArrayParams`], numbers as they are. Built-in kernels have one source for both kinds of device
//! (`source/compute`), and give the same bits on both.

mod builtin;
mod denoise;
mod host;
mod layout;
mod standard;

pub use builtin::{BUILTINS, Builtin, InputShape, Variable, VariableKind, builtin};
pub use host::{HostArray, HostError, run};
pub use layout::{ArrayParams, ChunkParams, OutputParams};
pub use standard::STANDARD_HEADERS;

use crate::packed::PackedPtx;

/// Name by which kernels include [`HEADER`].
pub const HEADER_NAME: &str = "tessera.cuh";
/// What every user's kernel may include.
pub const HEADER: &str = include_str!("../../source/compute/tessera.cuh");
/// The entry of a user's kernel.
pub const ENTRY: &str = "compute";
/// The built-in kernels for every GPU of compute capability 7.5 or newer. Made from
/// `source/compute/entry.cu` by
/// `cargo run --release -p tessera-kernels --example make_ptx`.
pub fn ptx() -> &'static str {
    static PACKED: PackedPtx = PackedPtx::new(include_bytes!("../../images/compute.ptx.zst"));
    PACKED.text()
}
/// Threads of a block for chunks, if the kernel allows as many.
pub const BLOCK_THREADS: u32 = 256;
