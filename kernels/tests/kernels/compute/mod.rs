//! Compute kernels: those that are built in, and the denoiser.

mod builtin;
mod denoise;
