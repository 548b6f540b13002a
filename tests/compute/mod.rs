//! Compute jobs from submit to file, on real processes: nodes drive fake GPUs, the examples run,
//! nodes are killed, kernels fail.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod arrays;
mod builtins;
mod compiler;
mod examples;
mod faults;
mod fixture;
mod images;
mod local;
mod references;
mod shapes;
mod steps;
