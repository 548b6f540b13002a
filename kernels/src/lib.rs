//! The kernels: a path tracer in CUDA C++ (`source/`), its host builds, and their Rust interface.
//!
//! [`host`] renders units on the CPU, and [`cuda`] says how a GPU does it. [`mod@denoise`] denoises
//! the pixels of finished frames. [`fingerprint()`] names the kernels' version, so that results of
//! different kernels are never mixed. This crate opens no file and no socket, and does not decide
//! what to render.

mod checked_hierarchy;
mod checked_scene;
pub mod compute;
#[doc(hidden)]
pub mod copies;
pub mod cuda;
pub mod denoise;
mod fingerprint;
mod float_mode;
pub mod host;
mod isa;
mod lane_hooks;
mod packed;
pub mod rays;
#[doc(hidden)]
pub mod stages;
#[doc(hidden)]
pub mod test_hooks;
#[doc(hidden)]
pub mod unit_tests;

pub use checked_scene::{CheckedMeshes, CheckedScene, SceneError};
pub use fingerprint::{SOURCES, TEST_SOURCES, fingerprint};
#[doc(hidden)]
pub use packed::{pack_ptx, unpack_ptx};
