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

mod accessor;
mod animation;
mod budget;
pub mod bvh;
mod camera;
mod compressed_view;
mod document;
mod emitter;
mod environment;
mod environment_file;
mod error;
mod extension;
mod files;
mod flat_geometry;
mod framing;
mod geometry;
mod image_file;
mod inspect;
mod instancing;
mod jpeg_file;
mod ktx2_file;
mod layers;
mod load;
mod loaded;
mod material;
mod math;
mod medium;
mod mesh;
mod mipmap;
mod node;
mod options;
mod pose;
mod punctual;
mod report;
mod source;
mod tally;
mod tangent;
mod texel;
mod texture;
mod topology;
mod uri;
mod variant;
mod view_filter;
mod warning;
mod webp_file;

pub use error::SceneError;
pub use files::files_of;
pub use load::load;
pub use loaded::LoadedScene;
pub use options::{
    Aperture, Blades, CameraChoice, EnvironmentSource, FlattenOptions, Focus, Lens, Limits,
    LoadOptions,
};
pub use report::{AnimationReport, CameraReport, ExtensionReport, SceneReport, TextureReport};

/// BLAKE3, in hexadecimal, of the sources of import, flattening and layout: scenes flattened by
/// others may differ in a bit.
pub const SOURCE_HASH: &str = env!("TESSERA_SCENES_HASH");
