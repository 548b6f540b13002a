//! Where the files of a template are: each folder is a parameter, so that other farms can send it
//! along and map its path.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Name of the first folder's parameter; the next ones have a number behind it.
const NAME: &str = "Folder";

/// Folders, in the order in which they were named.
pub(super) struct Folders {
    found: Vec<PathBuf>,
    /// Where the template will be.
    here: PathBuf,
}

impl Folders {
    /// The template will be in this folder.
    pub(super) fn new(here: &Path) -> Self {
        Self { found: Vec::new(), here: here.to_owned() }
    }

    /// How a command of the template names this file, or this folder.
    pub(super) fn place(&mut self, path: &Path) -> String {
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (folder, file) = match (path.is_dir(), path.parent(), path.file_name()) {
            (false, Some(folder), Some(file)) => (folder, Some(file.to_string_lossy())),
            _ => (&*path, None),
        };
        let at = self.found.iter().position(|known| known == folder).unwrap_or_else(|| {
            self.found.push(folder.to_owned());
            self.found.len() - 1
        });
        let parameter = format!("{{{{Param.{}}}}}", name(at));
        file.map_or(parameter.clone(), |file| format!("{parameter}/{file}"))
    }

    /// Definitions of the parameters. A folder outside of the template's own has no default, since
    /// the specification wants those to be within it.
    pub(super) fn definitions(&self) -> Vec<Value> {
        let one = |(at, folder): (usize, &PathBuf)| {
            let mut definition = json!({
                "name": name(at),
                "type": "PATH",
                "objectType": "DIRECTORY",
                "dataFlow": "IN",
                "description": format!("folder that tasks read; here {}", folder.display()),
            });
            if let Ok(within) = folder.strip_prefix(&self.here) {
                let text = within.to_string_lossy().into_owned();
                definition["default"] = if text.is_empty() { ".".into() } else { text.into() };
            }
            definition
        };
        self.found.iter().enumerate().map(one).collect()
    }

    /// Folders outside of the template's own.
    pub(super) fn outside(&self) -> impl Iterator<Item = (String, &Path)> {
        let is_outside = |folder: &&PathBuf| !folder.starts_with(&self.here);
        let all = self.found.iter().enumerate();
        all.filter(move |(_, folder)| is_outside(folder)).map(|(at, of)| (name(at), of.as_path()))
    }
}

fn name(at: usize) -> String {
    if at == 0 { NAME.to_owned() } else { format!("{NAME}{}", at + 1) }
}
