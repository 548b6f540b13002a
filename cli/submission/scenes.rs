//! Scenes that are read once for all jobs that show them: what they hold, their files, the memory
//! that a frame needs.

use super::render::{self, JobOptions, SceneFiles};
use crate::args::picture::PictureArgs;
use crate::args::submit::SubmitArgs;
use crate::error::CliError;
use crate::vectors::FrameSize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tessera_node::import::ImportedScene;
use tessera_protocol::{FrameNumber, FrameSet, JobSpec};
use tessera_scenes::{
    CameraChoice, FlattenOptions, LoadOptions, LoadedScene, SceneError, SceneReport,
};

/// Most triangles that are laid out in this process to tell the memory of a device.
const TRIANGLES_MAX: u64 = 2_000_000;

/// A scene that was read.
enum Scene {
    /// By a process of its own.
    Imported(Box<ImportedScene>),
    /// By this process, which is confined.
    Here(Box<LoadedScene>),
}

impl Scene {
    fn report(&self) -> &SceneReport {
        match self {
            Self::Imported(scene) => scene.report(),
            Self::Here(scene) => scene.report(),
        }
    }

    /// The bytes of a frame; 0 if it cannot be laid out.
    fn bytes(&self, options: &FlattenOptions) -> Result<u64, CliError> {
        match self {
            Self::Imported(scene) => match scene.flatten(options) {
                Ok(flat) => Ok(flat.bytes()),
                Err(error) if error.is_end() => Err(error.into()),
                Err(_) => Ok(0),
            },
            Self::Here(scene) if scene.report().triangles > TRIANGLES_MAX => Ok(0),
            Self::Here(scene) => match scene.flatten(options) {
                Ok(flat) => Ok(flat.bytes()),
                Err(error @ SceneError::Memory { .. }) => Err(error.into()),
                Err(_) => Ok(0),
            },
        }
    }
}

/// What has been read. The keys are all that the values depend on.
#[derive(Default)]
pub(crate) struct Scenes {
    /// Whether this process reads scenes itself.
    reads_here: bool,
    scenes: HashMap<String, Arc<Scene>>,
    files: HashMap<String, Arc<SceneFiles>>,
    sizes: HashMap<String, FrameSize>,
    bytes: HashMap<String, u64>,
    /// Warnings that were given: each is given once.
    warned: BTreeSet<String>,
}

impl Scenes {
    /// Scenes that this process reads, since it is confined.
    pub(super) fn here() -> Self {
        Self { reads_here: true, ..Self::default() }
    }

    /// What was said of scenes.
    pub(super) fn into_warnings(self) -> BTreeSet<String> {
        self.warned
    }

    fn load(&self, args: &SubmitArgs, options: &LoadOptions) -> Result<Scene, CliError> {
        let path = &args.picture.scene;
        if !self.reads_here {
            let scene = render::load(path, options, args.import.limits())?;
            return Ok(Scene::Imported(Box::new(scene)));
        }
        let (folder, name) = render::place_of(path)?;
        Ok(Scene::Here(Box::new(tessera_scenes::load(folder, name, options)?)))
    }

    /// The job of these options, checked as far as this machine can, and its files. Blocks: reads
    /// scenes, hashes files.
    pub(crate) fn check(
        &mut self,
        args: &SubmitArgs,
    ) -> Result<(JobSpec, Arc<SceneFiles>), CliError> {
        let picture = &args.picture;
        let options = render::load_options_of(picture);
        let key = format!("{:?} {options:?}", picture.scene);
        let scene = match self.scenes.get(&key) {
            Some(scene) => scene.clone(),
            None => {
                let scene = self.load(args, &options)?;
                self.scenes.entry(key.clone()).or_insert(Arc::new(scene)).clone()
            }
        };
        let size = self.size(picture)?;
        self.warn(&scene, picture);
        let files = self.files(picture)?;
        let mut formats: Vec<_> = args.format.iter().map(|format| format.0).collect();
        formats.sort();
        formats.dedup();
        for warning in render::ignored(picture, &formats, false) {
            self.warn_once(&warning);
        }
        let options = JobOptions {
            name: args.name.clone(),
            priority: args.priority,
            pool: args.pool.clone(),
            retry: args.tries.policy(),
            max_nodes: args.max_nodes,
            not_before: args.after.not_before,
            notify: args.notify.clone(),
            size,
            formats,
            device_bytes: self.device_bytes(&key, &scene, picture, size)?,
            space: render::space_of(scene.report(), picture),
        };
        let spec = render::job(picture, options, &files)?;
        Ok((spec, files))
    }

    fn size(&mut self, picture: &PictureArgs) -> Result<FrameSize, CliError> {
        let PictureArgs { scene, shown_scene, camera, eye, size, .. } = picture;
        let key = format!("{scene:?} {shown_scene:?} {camera:?} {eye:?} {size:?}");
        if let Some(size) = self.sizes.get(&key) {
            return Ok(*size);
        }
        let size = render::frame_size(picture)?;
        self.sizes.insert(key, size);
        Ok(size)
    }

    fn files(&mut self, picture: &PictureArgs) -> Result<Arc<SceneFiles>, CliError> {
        let key = format!("{:?} {:?}", picture.scene, picture.env);
        if let Some(files) = self.files.get(&key) {
            return Ok(files.clone());
        }
        let files = Arc::new(SceneFiles::gather(&picture.scene, &picture.env)?);
        self.files.insert(key, files.clone());
        Ok(files)
    }

    fn warn(&mut self, scene: &Scene, picture: &PictureArgs) {
        let report = scene.report();
        let camera = report.camera_note(&CameraChoice::Default);
        let is_still = render::frames(picture) == FrameSet::one(FrameNumber(0));
        let still = if is_still { report.still_note() } else { None };
        let notes = camera.filter(|_| picture.eye.is_none()).into_iter().chain(still.as_deref());
        for warning in report.warnings.iter().map(String::as_str).chain(notes) {
            self.warn_once(warning);
        }
    }

    fn warn_once(&mut self, warning: &str) {
        if self.warned.insert(warning.to_owned()) {
            tracing::warn!("{warning}");
        }
    }

    /// The device memory that the first frame needs, in bytes; 0 if the frame cannot be laid out,
    /// which nodes will report. The hierarchy is built for this, which takes seconds for millions
    /// of triangles. A job that fits on no device is refused before anything is sent.
    ///
    /// # Errors
    ///
    /// If flattening exceeds the limits or ends the importer, since nodes would fail in the same
    /// way.
    fn device_bytes(
        &mut self,
        scene_key: &str,
        scene: &Scene,
        picture: &PictureArgs,
        size: FrameSize,
    ) -> Result<u64, CliError> {
        let first = render::frames(picture).iter().next().map_or(0, |frame| frame.0);
        let still = FlattenOptions::still(size.width, size.height);
        let (time_secs, frame_secs) = (f64::from(first) / picture.fps, 1.0 / picture.fps);
        let options = FlattenOptions { time_secs, frame_secs, ..still };
        let key = format!("{scene_key} {options:?}");
        if let Some(bytes) = self.bytes.get(&key) {
            return Ok(*bytes);
        }
        let bytes = scene.bytes(&options)?;
        self.bytes.insert(key, bytes);
        Ok(bytes)
    }
}
