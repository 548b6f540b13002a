//! Options of loading and flattening: environment, limits, and the view of a frame. The command
//! line owns its defaults.

use crate::bvh::BuilderKind;
use crate::choice::Choice;
use crate::working_space::SpaceChoice;
use serde::{Deserialize, Serialize};

/// Smallest number of triangles in all copies of a mesh from which it is stored once. Smaller
/// copies need little memory, and are a little faster to trace.
pub(crate) const INSTANCED_FROM: u64 = 1 << 16;

/// Source of the light from infinity.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum EnvironmentSource {
    /// Only the scene's own lights. A scene without any gets a plain white environment and a
    /// warning.
    #[default]
    Auto,
    /// Only the scene's own lights, also where it has none.
    None,
    /// The same linear Rec. 709 radiance in every direction, each component finite and >= 0.
    Constant([f32; 3]),
    /// An equirectangular `.hdr` or `.exr` file.
    Map {
        /// Path within the scene's folder, confined like all paths.
        path: String,
    },
    /// An equirectangular `.hdr` or `.exr` file anywhere on this machine, named by a person. A job
    /// cannot choose it.
    File {
        /// Path of the file.
        path: std::path::PathBuf,
    },
}

/// What the intensities of a file's punctual lights are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum LightUnits {
    /// W/sr and W/m²: the numbers are taken as they are.
    #[default]
    Radiometric,
    /// Candela and lux, as KHR_lights_punctual says: 683 lm are a watt.
    Photometric,
}

impl LightUnits {
    /// Returns the factor from a file's intensities to radiometric ones.
    pub fn factor(self) -> f32 {
        match self {
            Self::Radiometric => 1.0,
            Self::Photometric => 1.0 / LUMENS_PER_WATT,
        }
    }
}

/// Lumens of a watt at 555 nm, where the eye is most sensitive (CIE 1924; the SI fixes it for
/// 540 THz). Exporters, Blender's among them, convert all light by this factor.
pub(crate) const LUMENS_PER_WATT: f32 = 683.0;

/// Limits of a scene, so that a hostile or broken file costs little.
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
    /// Triangles after flattening. Those of an instanced mesh count once. With all instances there
    /// may be [`tessera_layout::SHOWN_TRIANGLES_MAX`].
    pub triangles: u64,
    /// Vertices after flattening, counted in the same way.
    pub vertices: u64,
    /// Nodes, instances included.
    pub nodes: u64,
    /// Primitives with all their places, without those of instanced meshes.
    pub draws: u64,
    /// Bytes of memory that the scene needs while it is prepared, as far as its files tell: files,
    /// accessors, textures, maps, and the flattened scene. Counted before anything is allocated.
    pub memory_bytes: u64,
    /// Bytes that compressed images may expand to together, whatever the sizes of their files.
    pub expansion_bytes: u64,
    /// Additional bytes that they may expand to, for each byte of their files.
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

/// Options of [`crate::load()`] besides the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LoadOptions {
    /// Light from infinity.
    pub environment: EnvironmentSource,
    /// Units of the file's punctual lights.
    pub lights: LightUnits,
    /// Name of the material variant (KHR_materials_variants). None: each primitive shows the
    /// material that it names itself.
    pub variant: Option<String>,
    /// Scene of the file; None is its default scene, or the first.
    pub scene: Option<Choice>,
    /// Animations that play, earlier ones first where two move the same; empty plays all.
    pub animations: Vec<Choice>,
    /// Limits.
    pub limits: Limits,
    /// Number of triangles from which the copies of a mesh become instances. It is a property of
    /// the frame: copies are placed in double precision and instances in single precision, so the
    /// bits differ.
    pub instanced_from: u64,
    /// Space in which kernels see the scene.
    pub space: SpaceChoice,
}

impl Default for LoadOptions {
    fn default() -> Self {
        Self {
            environment: EnvironmentSource::default(),
            lights: LightUnits::default(),
            variant: None,
            scene: None,
            animations: Vec::new(),
            limits: Limits::default(),
            instanced_from: INSTANCED_FROM,
            space: SpaceChoice::default(),
        }
    }
}

/// Choice of the camera.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub enum CameraChoice {
    /// The first camera in node order. If there is none, a camera that shows the scene's bounds.
    #[default]
    Default,
    /// The camera with this name, or with a node of this name.
    Named(String),
    /// The camera at this position among the scene's cameras, in node order.
    Index(u32),
    /// A camera that the user places.
    LookAt {
        /// Position of the camera, in metres.
        eye: [f64; 3],
        /// Point that the camera looks at, in metres; not equal to `eye`.
        target: [f64; 3],
        /// Direction that is up; need not be perpendicular to the view.
        up: [f32; 3],
        /// Vertical field of view, degrees in (0, 180).
        vfov_degrees: f32,
    },
}

/// A thin lens of a perspective camera.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lens {
    /// Size of the opening.
    pub aperture: Aperture,
    /// Plane in focus.
    pub focus: Focus,
    /// Blades of the aperture; None is a round aperture.
    pub blades: Option<Blades>,
    /// Width of the sensor along the longer edge of the picture in metres, for an f-number; None is
    /// 35 mm film, 24 mm high.
    pub sensor_width: Option<f32>,
}

/// A lens opening that is a regular polygon. Its corners lie on the circle of a round opening.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Blades {
    /// Number of corners, [`BLADES_MIN`](tessera_layout::BLADES_MIN) to
    /// [`BLADES_MAX`](tessera_layout::BLADES_MAX).
    pub count: u32,
    /// Rotation in degrees, counter-clockwise as seen from behind the camera. At 0 one corner is at
    /// the top.
    pub rotation_degrees: f32,
}

/// Size of a lens opening.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Aperture {
    /// Radius in metres, > 0.
    Radius(f32),
    /// f-number, > 0: focal length over diameter. The focal length is that of a sensor 24 mm high
    /// with the camera's field of view.
    FStop(f32),
}

/// Plane that a lens shows in focus. It is perpendicular to the view axis.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Focus {
    /// The plane at this distance along the view axis, in metres, > 0.
    Distance(f32),
    /// The plane through this point of the world, in metres. The point must be in front of the
    /// camera.
    Point([f64; 3]),
}

/// One frame's view of a scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlattenOptions {
    /// Time in seconds; clips hold their first and last pose outside their length.
    pub time_secs: f64,
    /// Length of a frame in seconds, >= 0. A key that lies later than the time by at most 1/50 of
    /// it is reached; 0 for a time that is no frame's.
    pub frame_secs: f64,
    /// Choice of the camera.
    pub camera: CameraChoice,
    /// Lens; None is a pinhole.
    pub lens: Option<Lens>,
    /// Shift of the frame over the image plane, in frame widths to the right and in frame heights
    /// up; finite.
    pub shift: [f32; 2],
    /// Factor on the environment, finite and >= 0.
    pub environment_intensity: f32,
    /// Rotation of the environment about +Y in degrees, counter-clockwise as seen from above.
    pub environment_rotation_degrees: f32,
    /// Frame width in pixels, >= 1.
    pub width: u32,
    /// Frame height in pixels, >= 1.
    pub height: u32,
    /// Rule for building the hierarchy. Pictures do not depend on it.
    pub builder: BuilderKind,
    /// Samples that the frame will have, as far as that is known; else 0. The more, the better the
    /// hierarchy must be. Pictures do not depend on it.
    pub samples: u64,
}

impl FlattenOptions {
    /// Returns options for the scene at time zero through its default camera, with this frame size.
    pub fn still(width: u32, height: u32) -> Self {
        Self {
            time_secs: 0.0,
            frame_secs: 0.0,
            camera: CameraChoice::Default,
            lens: None,
            shift: [0.0; 2],
            environment_intensity: 1.0,
            environment_rotation_degrees: 0.0,
            width,
            height,
            builder: BuilderKind::default(),
            samples: 0,
        }
    }
}
