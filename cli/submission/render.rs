//! Turns the options of a picture into a job spec and its files. Sends nothing.

use super::send::Sources;
use crate::args::picture::{ExposureArg, LightUnitsArg, PictureArgs};
use crate::error::{CliError, Status};
use crate::vectors::{EnvironmentArg, FrameSize};
use std::path::{Path, PathBuf};
use tessera_node::import::{ImportLimits, ImportedScene, Importer};
use tessera_node::{choice, light_units};
use tessera_protocol::job::{
    AovSpec, ApertureSpec, AssetFile, BladesSpec, CameraSpec, ChoiceSpec, EnvironmentSpec,
    FocusSpec, FormatSpec, LensSpec, LookAtSpec, RenderSpec, RetryPolicy, SpaceSpec, ToneMapSpec,
};
use tessera_protocol::names::file_name;
use tessera_protocol::{BlobHash, FrameNumber, FrameSet, JobKind, JobSpec, RawJobSpec, SpecError};
use tessera_scenes::{
    CameraChoice, EnvironmentSource, LoadOptions, SceneError, SceneReport, WorkingSpace,
};
use tessera_transport::client::hash_file;

/// Folder of the environment map among a job's files, beside the scene's own.
const ENVIRONMENT_FOLDER: &str = "tessera-environment";

/// A scene on this machine: its files, named by their bytes.
#[derive(Debug)]
pub(crate) struct SceneFiles {
    /// The files as a job lists them.
    pub(crate) assets: Vec<AssetFile>,
    /// The path of each file on this machine, in the same order.
    pub(crate) sources: Vec<PathBuf>,
    environment: EnvironmentSpec,
}

impl SceneFiles {
    /// Finds and hashes the files. Reads all of them once; blocks.
    pub(crate) fn gather(scene: &Path, env: &EnvironmentArg) -> Result<Self, CliError> {
        let mut files = tessera_scenes::files_of(scene)?;
        let environment = match env {
            EnvironmentArg::Auto => EnvironmentSpec::Auto,
            EnvironmentArg::None => EnvironmentSpec::None,
            EnvironmentArg::Constant(radiance) => EnvironmentSpec::Constant(*radiance),
            EnvironmentArg::File(file) => {
                let extension =
                    file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
                let path = format!("{ENVIRONMENT_FOLDER}/map.{extension}");
                files.push((path.clone(), file.clone()));
                EnvironmentSpec::Map { path }
            }
        };
        let mut assets = Vec::with_capacity(files.len());
        let mut sources = Vec::with_capacity(files.len());
        for (path, source) in files {
            let hashed = hash_file(&source);
            let (hash, length) =
                hashed.map_err(|e| CliError::from(e).context(format!("`{}`", source.display())))?;
            assets.push(AssetFile { path, hash, length });
            sources.push(source);
        }
        Ok(Self { assets, sources, environment })
    }
}

impl Sources for SceneFiles {
    fn hashes(&self) -> Vec<BlobHash> {
        self.assets.iter().map(|asset| asset.hash).collect()
    }

    fn source(&self, hash: BlobHash) -> Option<(u64, &Path)> {
        let at = self.assets.iter().position(|asset| asset.hash == hash)?;
        Some((self.assets[at].length, &self.sources[at]))
    }
}

/// The options of loading the scene of these options.
pub(crate) fn load_options_of(picture: &PictureArgs) -> LoadOptions {
    LoadOptions {
        variant: picture.variant.clone(),
        scene: picture.shown_scene.as_deref().map(|text| choice(&ChoiceSpec::of(text))),
        animations: animations(picture).iter().map(choice).collect(),
        ..load_options(&picture.env, picture.lights)
    }
}

/// The options of loading a scene with this environment.
pub(crate) fn load_options(env: &EnvironmentArg, lights: LightUnitsArg) -> LoadOptions {
    let environment = match env {
        EnvironmentArg::Auto => EnvironmentSource::Auto,
        EnvironmentArg::None => EnvironmentSource::None,
        EnvironmentArg::Constant(radiance) => EnvironmentSource::Constant(*radiance),
        EnvironmentArg::File(path) => EnvironmentSource::File { path: path.clone() },
    };
    let lights = light_units(lights.0);
    LoadOptions { environment, lights, ..LoadOptions::default() }
}

/// Loads a scene, to see that it can be rendered, and what will be ignored: in a process of its
/// own, since its files may come from anywhere. Blocks.
pub(crate) fn load(
    scene: &Path,
    options: &LoadOptions,
    limits: ImportLimits,
) -> Result<ImportedScene, CliError> {
    let (folder, name) = place_of(scene)?;
    Ok(Importer::of_this_program(limits).load(folder, name, options)?)
}

/// The folder of a scene, and its name there.
pub(super) fn place_of(scene: &Path) -> Result<(&Path, &str), CliError> {
    let folder =
        scene.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = scene.file_name().and_then(|name| name.to_str()).ok_or_else(|| {
        let what = if scene.is_dir() { "a folder" } else { "no path of a scene file" };
        CliError::new(Status::Usage, format!("`{}` is {what}", scene.display()))
    })?;
    Ok((folder, name))
}

/// Longer edge in pixels of a frame whose size is the camera's.
const LONGER_EDGE: f64 = 800.0;
/// Size of a frame where neither the user nor the camera says it.
const DEFAULT_SIZE: FrameSize = FrameSize { width: 800, height: 600 };

/// The size of a frame: the user's, else one of the camera's aspect. Refuses a camera that the
/// scene does not have. Every other fault of the scene is left to those who load it. Blocks.
pub(crate) fn frame_size(picture: &PictureArgs) -> Result<FrameSize, CliError> {
    let aspect = camera_aspect(picture)?;
    Ok(picture.size.unwrap_or_else(|| aspect.map_or(DEFAULT_SIZE, size_of_aspect)))
}

/// The size of this width over height. Edges are at least a pixel.
fn size_of_aspect(aspect: f64) -> FrameSize {
    let (width, height) = (aspect.min(1.0), (1.0 / aspect).min(1.0));
    let edge = |share: f64| ((LONGER_EDGE * share).round() as u32).max(1);
    FrameSize { width: edge(width), height: edge(height) }
}

fn camera_aspect(picture: &PictureArgs) -> Result<Option<f64>, CliError> {
    let scene =
        picture.shown_scene.as_deref().map(|text| tessera_node::choice(&ChoiceSpec::of(text)));
    let choice = match camera(picture) {
        CameraSpec::Named(name) => CameraChoice::Named(name),
        CameraSpec::Index(index) => CameraChoice::Index(index),
        CameraSpec::Default => CameraChoice::Default,
        CameraSpec::LookAt(_) => return Ok(None),
    };
    match tessera_scenes::camera_aspect(&picture.scene, scene.as_ref(), &choice) {
        Err(SceneError::Camera { problem }) => {
            Err(CliError::new(Status::Usage, format!("--camera: {problem}")))
        }
        found => Ok(found.unwrap_or_default()),
    }
}

/// Name of a job, its share of the farm, and its options.
#[derive(Clone, Debug)]
pub(crate) struct JobOptions {
    /// Its name; None takes the scene's.
    pub(crate) name: Option<String>,
    /// 0 to 100.
    pub(crate) priority: u8,
    /// Only nodes of this pool.
    pub(crate) pool: Option<String>,
    pub(crate) retry: RetryPolicy,
    /// Most nodes that work on it at a time.
    pub(crate) max_nodes: Option<u32>,
    /// Seconds since the Unix epoch before which it does not begin.
    pub(crate) not_before: Option<u64>,
    /// Targets of events that are told of it.
    pub(crate) notify: Vec<String>,
    /// Size of a frame.
    pub(crate) size: FrameSize,
    /// File formats.
    pub(crate) formats: Vec<FormatSpec>,
    /// Bytes that a device must hold, as predicted; 0: unknown.
    pub(crate) device_bytes: u64,
    /// Space of the scene, where files show places in it.
    pub(crate) space: Option<SpaceSpec>,
}

/// The job of these options, checked.
pub(crate) fn job(
    picture: &PictureArgs,
    options: JobOptions,
    files: &SceneFiles,
) -> Result<JobSpec, CliError> {
    let mut aovs: Vec<_> = picture.aov.iter().map(|aov| aov.0).collect();
    aovs.sort();
    aovs.dedup();
    let render = RenderSpec {
        // The main file comes first.
        scene: files.assets.first().map(|asset| asset.path.clone()).unwrap_or_default(),
        files: files.assets.clone(),
        environment: files.environment.clone(),
        environment_intensity: picture.env_intensity,
        environment_rotation_degrees: picture.env_rotate,
        shown_scene: picture.shown_scene.as_deref().map(ChoiceSpec::of),
        animations: animations(picture),
        lights: picture.lights.0,
        camera: camera(picture),
        lens: lens(picture),
        shift: picture.shift,
        width: options.size.width,
        height: options.size.height,
        frames: frames(picture),
        fps: picture.fps,
        spp: picture.spp(),
        depth: picture.depth,
        seed: picture.seed,
        filter: picture.filter.0,
        tile: picture.tile(),
        unit_samples: picture.unit_samples,
        aovs,
        formats: options.formats,
        exposure: picture.exposure.stops(),
        auto_exposure: picture.exposure == ExposureArg::Auto,
        tone_map: picture.tone_map.0,
        variant: picture.variant.clone(),
        denoise: picture.denoise,
        noise: picture.noise,
        time_secs: picture.time,
        clamp: picture.clamp,
        transparent: picture.transparent,
        crop: picture.crop,
        overscan: picture.overscan,
        exr_depth: picture.exr_depth.colors,
        exr_layers: picture.exr_depth.layers.clone(),
        exr_compression: picture.exr_compression.0,
        jpeg_quality: picture.jpeg_quality,
        look: picture.look.map(|look| look.0),
        space: options.space.map(Box::new),
    };
    let name = options.name.unwrap_or_else(|| name_of(&picture.scene));
    let spec = JobSpec {
        priority: options.priority,
        device_bytes: options.device_bytes,
        pool: options.pool,
        retry: options.retry,
        max_nodes: options.max_nodes,
        not_before: options.not_before,
        notify: options.notify,
        ..JobSpec::new(name, JobKind::Render(render))
    };
    RawJobSpec::from(spec).check().map_err(|SpecError { field, problem, .. }| {
        CliError::new(Status::Usage, format!("--{field}: {problem}"))
    })
}

/// The space that a job has to say for a scene: None for one in its file's own, or where no file
/// shows places in it.
pub(crate) fn space_of(scene: &SceneReport, picture: &PictureArgs) -> Option<SpaceSpec> {
    let WorkingSpace { origin, exponent } = scene.space;
    let is_own = scene.space == WorkingSpace::FILE;
    (shows_places(picture) && !is_own).then_some(SpaceSpec { origin, exponent })
}

/// Whether files show depths or positions.
pub(crate) fn shows_places(picture: &PictureArgs) -> bool {
    picture.aov.iter().any(|aov| matches!(aov.0, AovSpec::Depth | AovSpec::Position))
}

/// Warns of options that no file of these formats shows.
pub(crate) fn warn_of_formats(picture: &PictureArgs, formats: &[FormatSpec], png16: bool) {
    for warning in ignored(picture, formats, png16) {
        tracing::warn!("{warning}");
    }
}

/// What is said of options that no file of these formats shows.
pub(super) fn ignored(picture: &PictureArgs, formats: &[FormatSpec], png16: bool) -> Vec<String> {
    let has_exr = formats.contains(&FormatSpec::Exr);
    let has_display = formats.iter().any(|format| *format != FormatSpec::Exr);
    let has_png = formats.iter().any(|format| format.extension() == "png");
    let is_mapped = picture.tone_map.0 != ToneMapSpec::Standard;
    let options = [
        ("--exposure", picture.exposure != ExposureArg::Stops(0.0), "PNG and JPEG", has_display),
        ("--tone-map", is_mapped, "PNG and JPEG", has_display),
        ("--look", picture.look.is_some(), "PNG and JPEG", has_display),
        ("--png16", png16, "PNG", has_png),
        ("--aov", !picture.aov.is_empty(), "EXR", has_exr),
    ];
    let unused = options.into_iter().filter(|(_, is_given, _, is_shown)| *is_given && !is_shown);
    unused
        .map(|(option, _, format, _)| format!("{option} is ignored: it is for {format} files"))
        .collect()
}

/// The frames that these options ask for.
pub(crate) fn frames(picture: &PictureArgs) -> FrameSet {
    match &picture.frames {
        Some(frames) => frames.clone(),
        None => FrameSet::one(FrameNumber(picture.frame.unwrap_or(0))),
    }
}

/// The animations to play; none for all.
fn animations(picture: &PictureArgs) -> Vec<ChoiceSpec> {
    if picture.animation.iter().any(|name| name == "all") {
        return Vec::new();
    }
    picture.animation.iter().map(|name| ChoiceSpec::of(name)).collect()
}

fn camera(picture: &PictureArgs) -> CameraSpec {
    if let (Some([eye, eye_rest]), Some([target, target_rest])) = (picture.eye, picture.target) {
        let (up, vfov_degrees) = (picture.up, picture.vfov);
        let look = LookAtSpec { eye, target, up, vfov_degrees, eye_rest, target_rest };
        return CameraSpec::LookAt(Box::new(look));
    }
    match &picture.camera {
        None => CameraSpec::Default,
        Some(text) => {
            text.parse().map_or_else(|_| CameraSpec::Named(text.clone()), CameraSpec::Index)
        }
    }
}

fn lens(picture: &PictureArgs) -> Option<LensSpec> {
    let aperture = picture
        .lens_radius
        .map(ApertureSpec::Radius)
        .or(picture.f_stop.map(ApertureSpec::FStop))?;
    let focus = picture
        .focus_distance
        .map(FocusSpec::Distance)
        .or(picture.focus_point.map(FocusSpec::Point))?;
    let rotation_degrees = picture.blade_rotation.unwrap_or(0.0);
    let blades = picture.blades.filter(|count| *count > 0);
    let blades = blades.map(|count| BladesSpec { count, rotation_degrees });
    Some(LensSpec { aperture, focus, blades, sensor_width_mm: picture.sensor_width })
}

/// Makes a job's name from the name of its scene.
fn name_of(scene: &Path) -> String {
    file_name(&scene.file_stem().unwrap_or_default().to_string_lossy())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_camera_decides_the_shape_of_a_frame() {
        let size = |aspect| {
            let FrameSize { width, height } = size_of_aspect(aspect);
            (width, height)
        };
        assert_eq!((size(4.0 / 3.0), size(16.0 / 9.0)), ((800, 600), (800, 450)));
        assert_eq!((size(1.0), size(0.5)), ((800, 800), (400, 800)));
        assert_eq!((size(1e30), size(1e-30)), ((800, 1), (1, 800)));
    }

    #[test]
    fn job_names_are_made_valid() {
        assert_eq!(name_of(Path::new("/a/b/Sponza.glb")), "Sponza");
        assert_eq!(name_of(Path::new("..hidden.glb")), "hidden");
        assert_eq!(name_of(Path::new("...")), "job");
        assert_eq!(name_of(Path::new("-x\u{202e}y .glb")), "x_y");
        assert!(name_of(Path::new(&"é".repeat(200))).len() <= 128);
    }
}
