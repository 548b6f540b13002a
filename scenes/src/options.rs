//! Options of loading and flattening: environment, limits, and the view of a frame. The command
//! line's defaults are elsewhere.

use crate::bvh::BuilderKind;
use serde::{Deserialize, Serialize};

/// Copies of a mesh that come to fewer triangles than this are copied: they are a little faster to
/// trace, and small.
pub(crate) const INSTANCED_FROM: u64 = 1 << 16;

/// Where light comes from at infinity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum EnvironmentSource {
    /// Only the scene's own lights. A scene without any gets a plain white environment and a
    /// warning.
    #[default]
    None,
    /// One linear Rec. 709 radiance everywhere, each component finite and >= 0.
    Constant([f32; 3]),
    /// An equirectangular `.hdr` or `.exr` file.
    Map {
        /// Path within the scene's folder, confined as every other.
        path: String,
    },
    /// An equirectangular `.hdr` or `.exr` file that a person named, anywhere on this machine.
    /// Never of a job's choosing.
    File {
        /// Where it is.
        path: std::path::PathBuf,
    },
}

/// What a scene may hold, so that a hostile or broken file costs little.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limits {
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Bytes of all files together.
    pub total_bytes: u64,
    /// Texels along one edge of a texture (the layout's own limit is 16384).
    pub texture_edge: u32,
    /// Bytes of all decoded textures together.
    pub texture_bytes: u64,
    /// Texels of the environment map.
    pub environment_texels: u64,
    /// Triangles after flattening. Those of a mesh that is held once count once; in all their
    /// places there may be [`tessera_layout::SHOWN_TRIANGLES_MAX`].
    pub triangles: u64,
    /// Vertices after flattening, counted likewise.
    pub vertices: u64,
    /// Nodes, instances included.
    pub nodes: u64,
    /// Primitives in all their places, those of meshes that are held once left out.
    pub draws: u64,
    /// Bytes that the scene takes in memory while it is prepared, as far as its files foretell it:
    /// files, accessors, textures, maps, and what is flattened. Counted before anything is
    /// allocated.
    pub memory_bytes: u64,
    /// Bytes that compressed images may give together whatever their files' sizes.
    pub expansion_bytes: u64,
    /// Beyond that, bytes that they may give for each byte of their files.
    pub expansion_ratio: u64,
}

impl Default for Limits {
    /// Limits for a machine with 16 GiB or more: 2^26 triangles take 48 + 12 + up to 192 bytes
    /// each.
    fn default() -> Self {
        Self {
            file_bytes: 4 << 30,
            total_bytes: 16 << 30,
            texture_edge: 16_384,
            texture_bytes: 16 << 30,
            environment_texels: 1 << 27,
            triangles: 1 << 26,
            vertices: 1 << 27,
            nodes: 1 << 22,
            draws: 1 << 24,
            memory_bytes: 16 << 30,
            expansion_bytes: 512 << 20,
            expansion_ratio: 128,
        }
    }
}

/// What [`crate::load()`] needs beside the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOptions {
    /// Light at infinity.
    pub environment: EnvironmentSource,
    /// Material variant (KHR_materials_variants) by name; None: each primitive shows the material
    /// that it names itself.
    pub variant: Option<String>,
    /// Limits.
    pub limits: Limits,
    /// A mesh whose copies would come to so many triangles is held once and shown as instances. Of
    /// a frame's settings: copies are placed in double precision and instances in single, so that
    /// bits differ.
    pub instanced_from: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            environment: EnvironmentSource::default(),
            variant: None,
            limits: Limits::default(),
            instanced_from: INSTANCED_FROM,
        }
    }
}

/// Which camera.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum CameraChoice {
    /// The first camera in node order, or one that frames the scene's bounds where it has none.
    #[default]
    Default,
    /// By the name of the camera or of its node.
    Named(String),
    /// By position among the cameras that the scene shows, in node order.
    Index(u32),
    /// Placed by hand.
    LookAt {
        /// Where it stands, metres.
        eye: [f32; 3],
        /// What it looks at, metres; not `eye`.
        target: [f32; 3],
        /// Which way is up; need not be perpendicular to the view.
        up: [f32; 3],
        /// Vertical field of view, degrees in (0, 180).
        vfov_degrees: f32,
    },
}

/// A thin lens over a perspective camera.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lens {
    /// How wide it is open.
    pub aperture: Aperture,
    /// What is sharp.
    pub focus: Focus,
    /// The blades that it is closed by; None for a round one.
    pub blades: Option<Blades>,
}

/// A lens that is a regular polygon, its corners on the circle of a round one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blades {
    /// Corners, [`BLADES_MIN`](tessera_layout::BLADES_MIN) to
    /// [`BLADES_MAX`](tessera_layout::BLADES_MAX).
    pub count: u32,
    /// Turn in degrees, counter-clockwise seen from behind the camera; at 0 a corner is at the top.
    pub rotation_degrees: f32,
}

/// How wide a lens is open.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Aperture {
    /// Radius in metres, > 0.
    Radius(f32),
    /// f-number, > 0: focal length over diameter, for the camera's field of view before a sensor 24
    /// mm high.
    FStop(f32),
}

/// The plane across the view axis that a lens shows sharp.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Focus {
    /// So far along the view axis, metres, > 0.
    Distance(f32),
    /// Through this point of the world, metres; in front of the camera.
    Point([f32; 3]),
}

/// One frame's view of a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlattenOptions {
    /// Time in seconds; clips hold their first and last pose outside their length.
    pub time_secs: f64,
    /// Camera.
    pub camera: CameraChoice,
    /// Lens; None is a pinhole.
    pub lens: Option<Lens>,
    /// Shift of the frame over the image plane, in frame widths to the right and in frame heights
    /// up; finite.
    pub shift: [f32; 2],
    /// Factor on the environment, finite and >= 0.
    pub environment_intensity: f32,
    /// Turn of the environment about +Y in degrees, counter-clockwise seen from above.
    pub environment_rotation_degrees: f32,
    /// Frame width in pixels, >= 1.
    pub width: u32,
    /// Frame height in pixels, >= 1.
    pub height: u32,
    /// How the hierarchy is built. Pictures do not depend on it.
    pub builder: BuilderKind,
}

impl FlattenOptions {
    /// The scene at time zero through its default camera, for a frame of this size.
    pub fn still(width: u32, height: u32) -> Self {
        Self {
            time_secs: 0.0,
            camera: CameraChoice::Default,
            lens: None,
            shift: [0.0; 2],
            environment_intensity: 1.0,
            environment_rotation_degrees: 0.0,
            width,
            height,
            builder: BuilderKind::default(),
        }
    }
}
