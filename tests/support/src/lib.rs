//! Shared by test programs, benches and examples: a farm of real processes, scenes made by hand,
//! the sample scenes, the PTX images, a program on a GPU, inputs of the core. Tests nothing itself.
//!
//! Each module belongs to a feature, so that a test program builds only what it needs.

#[cfg(feature = "scenes")]
pub mod builder;
#[cfg(feature = "farm")]
pub mod farm;
#[cfg(feature = "gpu")]
pub mod gpu;
#[cfg(feature = "hall")]
pub mod hall;
#[cfg(feature = "images")]
pub mod images;
#[cfg(feature = "core")]
pub mod inputs;
#[cfg(feature = "scenes")]
pub mod instanced;
#[cfg(feature = "scenes")]
pub mod layers;
#[cfg(feature = "library")]
pub mod library;
#[cfg(feature = "scenes")]
pub mod panes;
#[cfg(feature = "farm")]
pub mod ports;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "scenes")]
pub mod scenes;
#[cfg(feature = "seaweed")]
pub mod seaweed;
#[cfg(feature = "sheet")]
pub mod sheet;
#[cfg(feature = "scenes")]
pub mod steep_textures;
#[cfg(feature = "scenes")]
pub mod studio;

use std::path::Path;

/// The repository's root folder.
pub fn root() -> &'static Path {
    // The crate lies two folders below it.
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tests.and_then(Path::parent).unwrap_or(Path::new("."))
}
