//! Tests of the kernels through their Rust face: energy, exactness, sampling, light, look-ups.
#![cfg(test)]

mod builds;
mod compute;
mod geometry;
mod lens;
mod light;
mod math;
mod surface;
