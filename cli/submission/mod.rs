//! From options to a job on a farm.
//!
//! ```text
//! render, submit ─► scenes.rs, render.rs ─┐
//!                                         ├─► job spec + files ─► send.rs ─► coordinator
//! compute ─────────► compute.rs ──────────┘                          ▲
//!        headers.rs, arguments.rs, outputs.rs                        │
//! template ─► step.rs ─► both of these, for each job ─► batch.rs ────┘
//! ```

pub(crate) mod after;
mod arguments;
pub(crate) mod batch;
pub(crate) mod compute;
mod compute_files;
mod headers;
mod inputs;
pub(crate) mod job_inputs;
pub(crate) mod outputs;
pub(crate) mod render;
pub(crate) mod scenes;
pub(crate) mod send;
pub(crate) mod step;
