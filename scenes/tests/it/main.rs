//! Tests of the crate from outside: what a caller sees of files of every kind.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

mod attributes;
mod choices;
mod compressed;
mod draco;
mod extensions;
mod features;
mod fixtures;
mod hostile;
mod instancing;
mod layers;
mod library;
mod media;
mod moving_surfaces;
mod pointer_errors;
mod pointers;
mod standing;
mod support;
mod variants;
mod working_space;
