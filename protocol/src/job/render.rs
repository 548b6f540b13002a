//! A render job: what every frame is made from, and how. Its fields are checked here.

use super::asset::{AssetFile, is_confined_path};
use super::camera::{CameraSpec, LensSpec};
use super::display::{JPEG_QUALITY_DEFAULT, LookSpec, ToneMapSpec};
use super::error::{SpecError, wrong};
use super::exr::{ExrChoices, ExrCompressionSpec, ExrDepthSpec, ExrLayerDepth};
use super::output::{AovSpec, FormatSpec};
use super::space::SpaceSpec;
use super::window::CropSpec;
use super::{ChoiceSpec, choice, display, exr};
use crate::frames::FrameSet;
use crate::ids::{BlobHash, FrameNumber};
use crate::limits::*;
use crate::rounds::{NOISE_MAX, NOISE_MIN, ROUND_TILE, ROUNDS_SPP_MIN, TIME_SECS_MAX};
use serde::{Deserialize, Serialize};

/// Source of the light from infinity.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum EnvironmentSpec {
    /// Only the scene's own lights are used. A scene without any gets a plain white environment.
    Auto,
    /// Only the scene's own lights are used, also where it has none.
    None,
    /// The same linear radiance from every direction.
    Constant([f32; 3]),
    /// An equirectangular map: one of the job's files (`.hdr` or `.exr`).
    Map {
        /// Path of the picture, one of [`RenderSpec::files`].
        path: String,
    },
}

/// Filter that reconstructs a pixel from its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterSpec {
    /// A box of one pixel: all samples of the pixel count alike.
    Box,
    /// Standard deviation half a pixel, cut at two pixels.
    Gaussian,
    /// Four terms over 3.3 pixels.
    BlackmanHarris,
}

/// Units of the intensities of a file's punctual lights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LightUnitsSpec {
    /// W/sr and W/m².
    Radiometric,
    /// Candela and lux; 683 lm are a watt.
    Photometric,
}

/// Frames of a scene and how to render them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RenderSpec {
    /// Path of the glTF file, among `files`.
    pub scene: String,
    /// Every file of the scene and of its environment, each path once.
    pub files: Vec<AssetFile>,
    /// Light that arrives from infinitely far away.
    pub environment: EnvironmentSpec,
    /// Factor on the environment's radiance, >= 0.
    pub environment_intensity: f32,
    /// Rotation of the environment about +Y, in degrees.
    pub environment_rotation_degrees: f32,
    /// Scene of the file; None is its default scene.
    pub shown_scene: Option<ChoiceSpec>,
    /// Animations that play, at most [`ANIMATIONS_MAX`]; none plays all. Where two move the same
    /// property, the first of them wins.
    pub animations: Vec<ChoiceSpec>,
    /// Units of the scene's punctual lights.
    pub lights: LightUnitsSpec,
    /// Camera of every frame.
    pub camera: CameraSpec,
    /// Lens of the camera; None is a pinhole.
    pub lens: Option<LensSpec>,
    /// Shift of the frame over the camera's image plane, in frame widths to the right and in frame
    /// heights up, each -[`SHIFT_MAX`] to [`SHIFT_MAX`]. The camera does not turn, so parallel
    /// lines stay parallel.
    pub shift: [f32; 2],
    /// Frame width in pixels.
    pub width: u32,
    /// Frame height in pixels.
    pub height: u32,
    /// Numbers of the frames to render.
    pub frames: FrameSet,
    /// Frames per second. Frame N shows the time N / fps.
    pub fps: f64,
    /// Samples per pixel. With `noise`, the most that a pixel can have.
    pub spp: u32,
    /// Most scattering events of a path.
    pub depth: u32,
    /// Seed of the random numbers.
    pub seed: u32,
    /// Filter that reconstructs a pixel from its samples.
    pub filter: FilterSpec,
    /// Tile edge in pixels.
    pub tile: u32,
    /// Samples per pixel of one unit, >= 1; 0 lets the splitter choose.
    pub unit_samples: u32,
    /// Layers beside the beauty, ascending, each once.
    pub aovs: Vec<AovSpec>,
    /// File formats, at least one, each once.
    pub formats: Vec<FormatSpec>,
    /// Exposure of display formats, in stops.
    pub exposure: f32,
    /// Tone map of display formats.
    pub tone_map: ToneMapSpec,
    /// Name of the material variant to show, 1 to [`NAME_MAX`] bytes. None: each surface shows the
    /// material that it names itself.
    pub variant: Option<String>,
    /// Whether files show the denoised picture. EXR files then keep the noisy picture in the layer
    /// `noisy`.
    pub denoise: bool,
    /// Noise at which a tile is finished, [`NOISE_MIN`] to [`NOISE_MAX`]. Tiles are sampled in
    /// rounds until they reach it or have `spp` samples. None: every pixel has `spp`.
    pub noise: Option<f64>,
    /// Farm's time for a frame in seconds, 1 to [`TIME_SECS_MAX`]. Frames are sampled in rounds of
    /// doubling size, as long as the next round is expected to end within that time. None: until
    /// the rounds end by themselves.
    pub time_secs: Option<u32>,
    /// Most that light scattered more than once adds to a sample at a time, [`CLAMP_MIN`] to
    /// [`CLAMP_MAX`]. The bound holds for the largest component of scene-linear radiance. It hides
    /// fireflies and makes pictures darker than the scene. None: there is no bound.
    pub clamp: Option<f64>,
    /// Precision of beauty, `albedo`, `normal` and `noisy` in EXR files; other layers have 32-bit
    /// floats. [`ExrDepthSpec::Half`] needs EXR among the formats.
    pub exr_depth: ExrDepthSpec,
    /// Whether the camera sees no environment: nothing is drawn behind the scene, and files have an
    /// alpha that is what surfaces cover. The environment lights the scene all the same.
    pub transparent: bool,
    /// Part of the frame to render; None is the whole frame. Its pixels are those of the whole.
    pub crop: Option<CropSpec>,
    /// Pixels that are rendered beyond each edge of the crop, or of the frame; at most
    /// [`OVERSCAN_MAX`].
    pub overscan: u32,
    /// Look of the tone map, which has to be [`ToneMapSpec::Agx`]. None is the tone map alone.
    pub look: Option<LookSpec>,
    /// Layers of EXR files whose precision is not that of `exr_depth`, ascending, each once.
    pub exr_layers: Vec<ExrLayerDepth>,
    /// Compression of EXR files.
    pub exr_compression: ExrCompressionSpec,
    /// Quality of JPEG files, 1 to 100. Another one than [`JPEG_QUALITY_DEFAULT`] needs JPEG among
    /// the formats.
    pub jpeg_quality: u8,
    /// Whether the exposure is metered in the job's first frame and used for all of them. It
    /// replaces `exposure` once that frame is finished.
    pub auto_exposure: bool,
    /// Space in which kernels see the scene. None: nodes find it, or take the file's own where
    /// `aovs` have depth or position, since those need it here.
    pub space: Option<Box<SpaceSpec>>,
}

/// Film channels that tell how noisy a pixel is: the beauty of the second half of its samples.
pub const HALF_CHANNELS: u8 = 3;

impl Default for RenderSpec {
    fn default() -> Self {
        Self::new(String::new(), Vec::new())
    }
}

impl RenderSpec {
    /// Creates a job with every option at its default: one frame of `scene`, which is among
    /// `files`.
    pub fn new(scene: impl Into<String>, files: Vec<AssetFile>) -> Self {
        Self {
            scene: scene.into(),
            files,
            environment: EnvironmentSpec::Auto,
            environment_intensity: 1.0,
            environment_rotation_degrees: 0.0,
            shown_scene: None,
            animations: Vec::new(),
            lights: LightUnitsSpec::Radiometric,
            camera: CameraSpec::Default,
            lens: None,
            shift: [0.0; 2],
            width: 800,
            height: 600,
            frames: FrameSet::one(FrameNumber(0)),
            fps: 24.0,
            spp: 64,
            depth: 8,
            seed: 0,
            filter: FilterSpec::BlackmanHarris,
            tile: 64,
            unit_samples: 0,
            aovs: Vec::new(),
            formats: vec![FormatSpec::Exr],
            exposure: 0.0,
            tone_map: ToneMapSpec::Standard,
            variant: None,
            denoise: false,
            noise: None,
            time_secs: None,
            clamp: None,
            exr_depth: ExrDepthSpec::Float,
            transparent: false,
            crop: None,
            overscan: 0,
            look: None,
            exr_layers: Vec::new(),
            exr_compression: ExrCompressionSpec::Zip,
            jpeg_quality: JPEG_QUALITY_DEFAULT,
            auto_exposure: false,
            space: None,
        }
    }

    /// Returns the hash of everything that a prepared scene depends on: its files, but not size,
    /// samples or frames. Nodes cache by it.
    pub fn scene_hash(&self) -> BlobHash {
        let mut hasher = blake3::Hasher::new_derive_key("tessera scene 1");
        hasher.update(self.scene.as_bytes());
        for file in &self.files {
            hasher.update(&(file.path.len() as u64).to_le_bytes());
            hasher.update(file.path.as_bytes());
            hasher.update(&file.hash.0);
        }
        BlobHash(*hasher.finalize().as_bytes())
    }
}

/// Checks every field of a render job.
pub(super) fn check(render: &RenderSpec) -> Result<(), SpecError> {
    check_files(render)?;
    check_picture(render)?;
    check_view(render)?;
    check_output(render)
}

fn check_files(render: &RenderSpec) -> Result<(), SpecError> {
    if render.files.len() > SCENE_FILES_MAX {
        return wrong(
            "scene",
            format!("{} files are more than {SCENE_FILES_MAX}", render.files.len()),
        );
    }
    let mut paths = std::collections::BTreeSet::new();
    for file in &render.files {
        if !is_confined_path(&file.path) {
            return wrong("scene", format!("file path {:?} leaves the scene's folder", file.path));
        }
        if file.length > BLOB_BYTES_MAX {
            return wrong(
                "scene",
                format!("file {:?} is larger than {BLOB_BYTES_MAX} bytes", file.path),
            );
        }
        if !paths.insert(file.path.as_str()) {
            return wrong("scene", format!("file {:?} is listed twice", file.path));
        }
    }
    if !paths.contains(render.scene.as_str()) {
        return wrong("scene", format!("{:?} is not among the job's files", render.scene));
    }
    match &render.environment {
        EnvironmentSpec::Map { path } if !paths.contains(path.as_str()) => {
            wrong("env", format!("{path:?} is not among the job's files"))
        }
        EnvironmentSpec::Constant(rgb) if !rgb.iter().all(|v| v.is_finite() && *v >= 0.0) => {
            wrong("env", format!("{rgb:?} is not three finite numbers >= 0"))
        }
        _ => Ok(()),
    }
}

fn check_picture(render: &RenderSpec) -> Result<(), SpecError> {
    let (width, height) = (render.width, render.height);
    let edge = 1..=FRAME_EDGE_MAX;
    if !edge.contains(&width) || !edge.contains(&height) {
        return wrong(
            "size",
            format!("{width}x{height} has an edge that is not in 1 to {FRAME_EDGE_MAX}"),
        );
    }
    if u64::from(width) * u64::from(height) > FRAME_PIXELS_MAX {
        return wrong("size", format!("{width}x{height} has more than {FRAME_PIXELS_MAX} pixels"));
    }
    if !(1..=SPP_MAX).contains(&render.spp) {
        return wrong("spp", format!("{} is not in 1 to {SPP_MAX}", render.spp));
    }
    if render.depth > DEPTH_MAX {
        return wrong("depth", format!("{} is above {DEPTH_MAX}", render.depth));
    }
    if !(TILE_EDGE_MIN..=TILE_EDGE_MAX).contains(&render.tile) {
        return wrong(
            "tile",
            format!("{} is not in {TILE_EDGE_MIN} to {TILE_EDGE_MAX}", render.tile),
        );
    }
    if render.denoise && render.spp < DENOISE_SPP_MIN {
        return wrong(
            "denoise",
            format!(
                "one sample a pixel does not tell how noisy it is; --spp has to be \
                    {DENOISE_SPP_MIN} or more"
            ),
        );
    }
    if render.unit_samples > render.spp {
        return wrong(
            "unit-samples",
            format!("{} is above spp ({})", render.unit_samples, render.spp),
        );
    }
    if render.frames.is_empty() {
        return wrong("frames", "no frame at all");
    }
    if !(render.fps.is_finite() && render.fps > 0.0 && render.fps <= 10_000.0) {
        return wrong("fps", format!("{} is not in (0, 10000]", render.fps));
    }
    check_rounds(render)?;
    render.check_part()?;
    let tiles = u64::from(render.tiles().count());
    let passes = match (render.rounds(), render.unit_samples) {
        (Some(rounds), _) => u64::from(rounds.passes()),
        (None, 0) => 1,
        (None, samples) => u64::from(render.spp.div_ceil(samples)),
    };
    if tiles * passes > FRAME_UNITS_MAX {
        return wrong(
            "tile",
            format!("{} units a frame are more than {FRAME_UNITS_MAX}", tiles * passes),
        );
    }
    if tiles * passes * u64::from(render.frames.len()) > JOB_UNITS_MAX {
        return wrong("frames", format!("the job has more than {JOB_UNITS_MAX} units"));
    }
    Ok(())
}

fn check_rounds(render: &RenderSpec) -> Result<(), SpecError> {
    if let Some(noise) = render.noise.filter(|noise| !(NOISE_MIN..=NOISE_MAX).contains(noise)) {
        return wrong("noise", format!("{noise} is not in {NOISE_MIN} to {NOISE_MAX}"));
    }
    if let Some(secs) = render.time_secs.filter(|secs| !(1..=TIME_SECS_MAX).contains(secs)) {
        return wrong("time", format!("{secs} s are not in 1 to {TIME_SECS_MAX}"));
    }
    let option = match (render.noise, render.time_secs) {
        (None, None) => return Ok(()),
        (Some(_), _) => "noise",
        (None, Some(_)) => "time",
    };
    if render.spp < ROUNDS_SPP_MIN {
        let problem = format!(
            "{} is below {ROUNDS_SPP_MIN}, which the first round with --{option} has",
            render.spp
        );
        return wrong("spp", problem);
    }
    // The frame can end after any round. It must then equal a frame with that many samples.
    if render.time_secs.is_some() && !render.rounds().is_some_and(|rounds| rounds.all_double()) {
        let problem = format!(
            "{} is not {ROUNDS_SPP_MIN} doubled some times, and with --time every round doubles \
                what is there",
            render.spp
        );
        return wrong("spp", problem);
    }
    if render.tile != ROUND_TILE {
        let problem = format!(
            "with --{option} tiles are what rounds are rendered for, so all have {ROUND_TILE} \
                pixels; leave --tile out"
        );
        return wrong("tile", problem);
    }
    if render.unit_samples != 0 {
        let problem = format!(
            "with --{option} rounds decide how many samples a unit has; leave --unit-samples out"
        );
        return wrong("unit-samples", problem);
    }
    Ok(())
}

fn check_view(render: &RenderSpec) -> Result<(), SpecError> {
    if let Some(clamp) = render.clamp.filter(|clamp| !(CLAMP_MIN..=CLAMP_MAX).contains(clamp)) {
        return wrong("clamp", format!("{clamp} is not in {CLAMP_MIN} to {CLAMP_MAX}"));
    }
    render.camera.check()?;
    render.space.iter().try_for_each(|space| space.check())?;
    choice::check(render.shown_scene.as_ref(), &render.animations)?;
    if let Some(variant) =
        render.variant.as_ref().filter(|name| !(1..=NAME_MAX).contains(&name.len()))
    {
        return wrong(
            "variant",
            format!("a name of {} bytes is not in 1 to {NAME_MAX}", variant.len()),
        );
    }
    if let Some(lens) = &render.lens {
        lens.check()?;
    }
    if !render.shift.iter().all(|shift| (-SHIFT_MAX..=SHIFT_MAX).contains(shift)) {
        let [x, y] = render.shift;
        return wrong("shift", format!("{x},{y} are not both in -{SHIFT_MAX} to {SHIFT_MAX}"));
    }
    let intensity = render.environment_intensity;
    if !(intensity.is_finite() && intensity >= 0.0) {
        return wrong("env-intensity", format!("{intensity} is not a finite number >= 0"));
    }
    if !render.environment_rotation_degrees.is_finite() {
        return wrong("env-rotate", "not a finite number");
    }
    Ok(())
}

fn check_output(render: &RenderSpec) -> Result<(), SpecError> {
    if !render.aovs.windows(2).all(|pair| pair[0] < pair[1]) {
        return wrong("aov", "layers must be in order, each once");
    }
    if render.formats.is_empty() {
        return wrong("format", "no format at all");
    }
    let has = |format| render.formats.contains(&format);
    let exr = ExrChoices {
        depth: render.exr_depth,
        layers: &render.exr_layers,
        compression: render.exr_compression,
        has_files: has(FormatSpec::Exr),
    };
    exr::check(&exr, |layer| render.option_of_missing(layer))?;
    display::check_look(render.look, render.tone_map)?;
    display::check_quality(render.jpeg_quality, has(FormatSpec::Jpeg))?;
    let mut extensions: Vec<&str> =
        render.formats.iter().map(|format| format.extension()).collect();
    extensions.sort_unstable();
    if extensions.windows(2).any(|pair| pair[0] == pair[1]) {
        return wrong("format", "two formats have the same file extension");
    }
    if !(-64.0..=64.0).contains(&render.exposure) {
        return wrong("exposure", format!("{} is not in -64 to 64 stops", render.exposure));
    }
    Ok(())
}
