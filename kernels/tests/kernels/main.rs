//! Tests of the kernels through their Rust face: energy, exactness, sampling, look-ups.

mod energy;
mod layout;
mod mathematics;
mod same_bits;
mod sampling;
mod support;
