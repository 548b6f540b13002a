//! From options to a job on a farm.
//!
//! ```text
//! render, submit ─► render.rs  ─┐
//!                               ├─► job spec + files ─► send.rs ─► coordinator
//! compute ───────► compute.rs ─┘
//! ```

pub(crate) mod compute;
pub(crate) mod render;
pub(crate) mod send;
