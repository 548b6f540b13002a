//! Lists the files of a scene, for sending it elsewhere. Reads only the JSON.

use crate::document::Document;
use crate::document::source::{self, Source};
use crate::document::uri::Uri;
use crate::error::SceneError;
use crate::options::Limits;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Returns the folder of a scene file, and the name of the file in it.
pub(crate) fn split(path: &Path) -> Result<(&Path, &str), SceneError> {
    let wrong = |problem: &str| SceneError::Read {
        path: path.to_path_buf(),
        source: std::io::Error::other(problem),
    };
    if path.is_dir() {
        return Err(wrong("it is a folder"));
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| wrong("its name is not UTF-8"))?;
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => Ok((parent, name)),
        _ => Ok((Path::new("."), name)),
    }
}

/// The files that the scene at `path` consists of: the path of each within the scene's folder, and
/// where it is. The main file comes first, then buffers and images in order, each once. A buffer
/// that is only the plain form of compressed views does not count.
///
/// # Errors
/// If the main file cannot be parsed, a URI leaves the folder, or a link leads out of it.
pub fn files_of(path: &Path) -> Result<Vec<(String, PathBuf)>, SceneError> {
    let missing = |source| SceneError::Read { path: path.to_path_buf(), source };
    let (dir, name) = split(path)?;
    let limits = Limits::default();
    let source = Source::new(dir, name, &limits)?;
    let document = Document::open_json(&source)?;
    let mut files = vec![(source.main.clone(), source.locate(&source.main))];
    let mut seen: BTreeSet<String> = BTreeSet::from([source.main.clone()]);
    let root = dir.canonicalize().map_err(missing)?;
    let buffers = 0..document.root.buffers.len();
    let buffers =
        buffers.map(|index| (format!("buffers[{index}].uri"), document.buffer_uri(index)));
    let images = document.root.images.iter().enumerate();
    let images =
        images.map(|(index, image)| (format!("images[{index}].uri"), image.uri.as_deref()));
    for (place, uri) in buffers.chain(images) {
        let Some(uri) = uri else { continue };
        let Uri::File(relative) = document.parse_uri(uri, &place)? else { continue };
        let file = source.beside_main(&relative);
        if !seen.insert(file.clone()) {
            continue;
        }
        let at = source.locate(&file);
        let real =
            at.canonicalize().map_err(|source| SceneError::Read { path: at.clone(), source })?;
        if !real.starts_with(&root) {
            let problem =
                "is a link that leads out of the scene's folder; copy the file into it".into();
            return Err(SceneError::Uri { file: document.file, path: place, uri: file, problem });
        }
        // The caller that sends the file reads it.
        source::open_regular(&at)
            .map_err(|source| SceneError::Read { path: at.clone(), source })?;
        files.push((file, at));
    }
    Ok(files)
}
