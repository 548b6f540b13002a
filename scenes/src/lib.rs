//! Scenes: glTF 2.0 and environment import, poses at a time, and flattening into the layout that kernels read. Does not
//! render, and knows nothing of jobs or of the wire.
//!
//! ```text
//! load(folder, main file) -> LoadedScene -- flatten(time, camera, frame size) --> FlatScene
//! ```
//!
//! Everything here is deterministic: order is the file's own, arithmetic is f64 rounded to f32 once, and transcendental
//! functions come from the `libm` crate, so that every node flattens a scene to the same bits.

pub mod bvh;
mod error;
mod loaded;
mod options;
mod report;

pub use error::SceneError;
pub use loaded::{LoadedScene, files_of, load};
pub use options::{CameraChoice, EnvironmentSource, FlattenOptions, Lens, Limits, LoadOptions};
pub use report::{AnimationReport, CameraReport, ExtensionReport, SceneReport, TextureReport};
