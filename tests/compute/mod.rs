//! Compute jobs from submit to file, on real processes: nodes drive fake GPUs, the examples run,
//! nodes are killed, kernels fail.

#![expect(clippy::unwrap_used, reason = "in a test, a failure of the setup is a failure")]

mod arrays;
mod binding;
mod builtins;
mod compiler;
mod determinism;
mod drivers;
mod examples;
mod faults;
mod fixture;
mod from_jobs;
mod headers;
mod images;
mod local;
mod logs;
mod outputs;
mod random;
mod references;
mod said;
mod shapes;
mod steps;
