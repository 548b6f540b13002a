//! A scene in memory. Owns what frames share; does not own a frame.

use crate::{FlattenOptions, LoadOptions, SceneError, SceneReport};
use std::path::{Path, PathBuf};
use tessera_layout::FlatScene;

/// A scene whose files have been read and checked.
#[derive(Debug)]
pub struct LoadedScene {
    file: String,
    report: SceneReport,
}

/// Reads the scene `main` (a path within `dir`) and everything it names, all inside `dir`.
pub fn load(dir: &Path, main: &str, _options: &LoadOptions) -> Result<LoadedScene, SceneError> {
    let path = dir.join(main);
    std::fs::metadata(&path).map_err(|source| SceneError::Read { path, source })?;
    Ok(LoadedScene {
        file: main.to_string(),
        report: SceneReport { file: main.to_string(), ..Default::default() },
    })
}

/// The files that the scene at `path` consists of: the path of each within the scene's folder, and where it is.
pub fn files_of(path: &Path) -> Result<Vec<(String, PathBuf)>, SceneError> {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    Ok(vec![(name, path.to_path_buf())])
}

impl LoadedScene {
    /// One frame's scene.
    pub fn flatten(&self, _options: &FlattenOptions) -> Result<FlatScene, SceneError> {
        Err(SceneError::Container {
            file: self.file.clone(),
            problem: "reading glTF is not built yet".into(),
        })
    }

    /// What is in it.
    pub fn report(&self) -> &SceneReport {
        &self.report
    }
}
