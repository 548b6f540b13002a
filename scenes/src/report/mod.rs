//! The report that `tessera inspect` prints about a scene. Owns no formatting.

pub(crate) mod collect;
pub(crate) mod motion;
pub(crate) mod warning;

use crate::options::{CameraChoice, LightUnits};
use crate::working_space::WorkingSpace;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A texture as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TextureReport {
    /// Name in the file, or the image's URI, or empty.
    pub name: String,
    /// Texels across.
    pub width: u32,
    /// Texels down.
    pub height: u32,
    /// Bytes in memory; 0 where an earlier texture has the same texels.
    pub bytes: u64,
    /// `srgb8`, `linear8` or `linear16`.
    pub format: Cow<'static, str>,
}

/// A camera that the scene shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CameraReport {
    /// Number of the camera for `--camera`.
    pub index: u32,
    /// Name of the camera, or of its node, or empty.
    pub name: String,
    /// `perspective` or `orthographic`.
    pub kind: Cow<'static, str>,
    /// Width over height of its picture; None where the file does not say.
    pub aspect: Option<f64>,
}

/// An animation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AnimationReport {
    /// Name, or empty.
    pub name: String,
    /// Length in seconds, which is the time of its last key.
    pub length_secs: f64,
    /// Usual frame rates at which every key lies on a frame, the likely ones first.
    pub rates: Vec<f64>,
    /// Channels that are applied.
    pub channels: u32,
    /// Whether frames show it. They do not if an earlier animation moves the same property.
    pub played: bool,
}

/// An extension that the file uses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionReport {
    /// Name.
    pub name: String,
    /// Whether the file lists it as required.
    pub required: bool,
    /// Whether Tessera applies it.
    pub applied: bool,
    /// What will look different because it is not applied; empty if it is applied.
    pub effect: String,
}

/// A part of a film's geometry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MotionPart {
    /// Triangles, in all their places.
    pub triangles: u64,
    /// Bytes of their arrays in a frame: corners, indices and vertices, without the hierarchy. A
    /// place of a mesh that is held once is a matrix.
    pub bytes: u64,
    /// How many of the triangles are of meshes that are held once.
    pub held_triangles: u64,
}

/// What a film whose geometry moves does with it. Each triangle that may be visible in some frame
/// is in one part: the first of them, from the end, that is true of its node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MotionReport {
    /// What stands still for the whole film.
    pub stands: MotionPart,
    /// Whether that is placed once for all frames. It is placed for every frame if it is little.
    pub is_placed_once: bool,
    /// What stands still, and is visible in some frames only or has a material that changes its
    /// triangles. It is placed for every frame.
    pub varies: MotionPart,
    /// What stands still, and emits or may do so. It is placed for every frame.
    pub emits: MotionPart,
    /// What moves as it is.
    pub moves: MotionPart,
    /// What changes its shape: by joints of a skin that move, or by morph weights.
    pub deforms: MotionPart,
}

/// Content of a scene, what will be ignored, and how much memory it needs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SceneReport {
    /// The main file.
    pub file: String,
    /// `asset.generator`, or empty.
    pub generator: String,
    /// Names of the file's scenes.
    pub scenes: Vec<String>,
    /// Position of the scene that is shown among them.
    pub shown_scene: u32,
    /// Nodes of the scene that is shown.
    pub nodes: u64,
    /// Meshes in the file.
    pub meshes: u64,
    /// Triangles stored in the file's meshes.
    pub triangles_stored: u64,
    /// Triangles after instancing, which are rendered.
    pub triangles: u64,
    /// Places of instanced meshes.
    pub instances: u64,
    /// Vertices after flattening. Those of an instanced mesh count once.
    pub vertices: u64,
    /// Materials in the file.
    pub materials: u64,
    /// Skins in the file.
    pub skins: u64,
    /// Textures as they are stored.
    pub textures: Vec<TextureReport>,
    /// Cameras.
    pub cameras: Vec<CameraReport>,
    /// Names of the material variants, for `--variant`.
    pub variants: Vec<String>,
    /// Punctual lights that the scene shows.
    pub punctual_lights: u64,
    /// Units in which their intensities are read.
    pub light_units: LightUnits,
    /// Triangles that emit.
    pub emissive_triangles: u64,
    /// Description of the light from infinity.
    pub environment: String,
    /// Space in which kernels see the scene. Bounds are in the file's own.
    pub space: WorkingSpace,
    /// Lower corner of the bounds in metres at time 0.
    pub bounds_lower: [f32; 3],
    /// Upper corner of the bounds in metres at time 0.
    pub bounds_upper: [f32; 3],
    /// Animations.
    pub animations: Vec<AnimationReport>,
    /// Whether geometry moves, so that every frame builds its own hierarchy.
    pub geometry_animated: bool,
    /// What stands still and what moves; None if no triangle changes.
    pub motion: Option<MotionReport>,
    /// Extensions.
    pub extensions: Vec<ExtensionReport>,
    /// Approximate bytes that a device must hold. The hierarchy over the world is assumed to need
    /// 80 bytes per triangle and 100 bytes per instance.
    pub arrays_bytes: u64,
    /// Everything that will look different from the file's description, each item once.
    pub warnings: Vec<String>,
}

/// Frame rate that is taken where a clip fits no usual one, as in jobs that give none.
const DEFAULT_RATE: f64 = 24.0;

impl AnimationReport {
    /// Returns the likely rate in frames per second and the number of the last frame at it.
    pub fn last_frame(&self) -> (f64, u32) {
        let rate = self.rates.first().copied().unwrap_or(DEFAULT_RATE);
        (rate, (self.length_secs * rate - 0.02).ceil().max(0.0) as u32)
    }
}

/// Returns a rate as people write it, which `--fps` understands: 25, 29.97, 23.976.
pub fn rate_name(rate: f64) -> String {
    format!("{}", (rate * 1000.0).round() / 1000.0)
}

impl SceneReport {
    /// Returns a note for people who render only frame 0; None if nothing moves.
    pub fn still_note(&self) -> Option<String> {
        let moves = self.animations.iter().filter(|clip| clip.played && clip.length_secs > 0.0);
        let longest = moves.max_by(|a, b| a.length_secs.total_cmp(&b.length_secs))?;
        let (rate, last) = longest.last_frame();
        Some(format!(
            "the scene moves for {:.3} s, and only frame 0 is rendered; for all of it: \
                --frames 0-{last} --fps {}",
            longest.length_secs,
            rate_name(rate)
        ))
    }

    /// Returns a note for people about the camera of this choice; None if the scene or the user
    /// gave it.
    pub fn camera_note(&self, choice: &CameraChoice) -> Option<&'static str> {
        let is_placed = self.cameras.is_empty() && *choice == CameraChoice::Default;
        is_placed.then_some(
            "the scene has no camera; one is placed that frames it from the front, slightly from \
                above",
        )
    }
}
