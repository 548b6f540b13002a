//! Tests of the crate from outside: what a caller sees of files of every kind.

#![expect(clippy::unwrap_used, reason = "a helper that fails fails its test")]

// The generator of the library, so that a test can compare what it writes with what is committed.
#[path = "../../examples/make_library/builder.rs"]
mod builder;
#[path = "../../examples/make_library/cornell.rs"]
mod cornell;
#[path = "../../examples/make_library/drink.rs"]
mod drink;
#[path = "../../examples/make_library/lights.rs"]
mod lights;
#[path = "../../examples/make_library/materials.rs"]
mod materials;
#[path = "../../examples/make_library/spinning.rs"]
mod spinning;
#[path = "../../examples/make_library/sunflower.rs"]
mod sunflower;

mod choices;
mod compressed;
mod extensions;
mod features;
mod fixtures;
mod hostile;
mod instancing;
mod layers;
mod library;
mod media;
mod support;
mod variants;
