//! From options to a job on a farm.
//!
//! ```text
//! render, submit ─► render.rs  ─┐
//!                               ├─► job spec + files ─► send.rs ─► coordinator
//! compute ───────► compute.rs ─┘
//!        headers.rs, arguments.rs, outputs.rs
//! ```

pub(crate) mod after;
mod arguments;
pub(crate) mod compute;
mod compute_files;
mod headers;
mod inputs;
pub(crate) mod outputs;
pub(crate) mod render;
pub(crate) mod send;
