//! Scenes that are read once for all jobs that show them: what they hold, their files, the memory
//! that a frame needs.

use super::render::{self, JobOptions, SceneFiles};
use crate::args::picture::PictureArgs;
use crate::args::submit::SubmitArgs;
use crate::error::CliError;
use crate::vectors::FrameSize;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use tessera_node::import::{ImportError, ImportedScene};
use tessera_protocol::{FrameNumber, FrameSet, JobSpec};
use tessera_scenes::{CameraChoice, FlattenOptions};

/// What has been read. The keys are all that the values depend on.
#[derive(Default)]
pub(crate) struct Scenes {
    scenes: HashMap<String, Arc<ImportedScene>>,
    files: HashMap<String, Arc<SceneFiles>>,
    sizes: HashMap<String, FrameSize>,
    bytes: HashMap<String, u64>,
    /// Warnings that were given: each is given once.
    warned: BTreeSet<String>,
}

impl Scenes {
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
                let scene = render::load(&picture.scene, &options, args.import.limits())?;
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
            notify: args.notify.clone(),
            size,
            formats,
            device_bytes: self.device_bytes(&key, &scene, picture, size)?,
            space: render::space_of(&scene, picture),
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

    fn warn(&mut self, scene: &ImportedScene, picture: &PictureArgs) {
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
        scene: &ImportedScene,
        picture: &PictureArgs,
        size: FrameSize,
    ) -> Result<u64, ImportError> {
        let first = render::frames(picture).iter().next().map_or(0, |frame| frame.0);
        let still = FlattenOptions::still(size.width, size.height);
        let (time_secs, frame_secs) = (f64::from(first) / picture.fps, 1.0 / picture.fps);
        let options = FlattenOptions { time_secs, frame_secs, ..still };
        let key = format!("{scene_key} {options:?}");
        if let Some(bytes) = self.bytes.get(&key) {
            return Ok(*bytes);
        }
        let bytes = match scene.flatten(&options) {
            Ok(flat) => flat.bytes(),
            Err(error) if error.is_end() => return Err(error),
            Err(_) => 0,
        };
        self.bytes.insert(key, bytes);
        Ok(bytes)
    }
}
