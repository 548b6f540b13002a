//! Scenes: glTF 2.0 and environment import, poses at a time, and flattening into the layout that
//! kernels read. Does not render, and knows nothing of jobs or of the wire.
//!
//! ```text
//! load(folder, main file) -> LoadedScene -- flatten(time, camera, frame size) --> FlatScene
//! ```
//!
//! Everything here is deterministic: order is the file's own, arithmetic is f64 rounded to f32
//! once, and transcendental functions come from the `libm` crate, so that every node flattens a
//! scene to the same bits.

mod beyond;
pub mod bvh;
mod camera;
mod choice;
mod document;
mod error;
mod flatten;
mod image_file;
mod light;
mod load;
mod loaded;
mod material;
mod math;
mod mesh;
mod node;
mod options;
mod pointer;
mod report;
mod settle;
mod texture;
mod values;
mod working_space;

pub use camera::camera_aspect;
pub use choice::Choice;
pub use document::files::files_of;
pub use error::SceneError;
pub use load::load;
pub use loaded::{LoadedScene, SharedArrays};
pub use options::{
    Aperture, Blades, CameraChoice, EnvironmentSource, FlattenOptions, Focus, Lens, LightUnits,
    Limits, LoadOptions,
};
pub use report::{
    AnimationReport, CameraReport, ExtensionReport, MotionPart, MotionReport, SceneReport,
    TextureReport, rate_name,
};
pub use working_space::{EXPONENT_MAX, SpaceChoice, WorkingSpace};

/// BLAKE3, in hexadecimal, of the sources of import, flattening and layout: scenes flattened by
/// others may differ in a bit.
pub const SOURCE_HASH: &str = env!("TESSERA_SCENES_HASH");
