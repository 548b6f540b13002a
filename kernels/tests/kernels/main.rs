//! Tests of the kernels through their Rust face: energy, exactness, sampling, light, look-ups.
#![cfg(test)]

mod clamp;
mod compressed;
mod compute;
mod denoise;
mod device;
mod energy;
mod extensions;
mod instances;
mod lanes;
mod layered;
mod layered_scenes;
mod layout;
mod lens;
mod light_choice;
mod lighting;
mod mathematics;
mod nested_media;
mod points;
mod same_bits;
mod sampling;
mod surfaces;
mod textures;
mod unit_functions;
