//! Tidy: what keeps the repository easy to live in, checked as a test. Reads the repository's own
//! files; needs no product and no git history.
#![cfg(test)]

mod arrows;
mod circles;
mod dependencies;
mod environment;
mod functions;
mod module_paths;
mod names;
mod pages;
mod promises;
mod sizes;
mod texts;
mod widths;

use std::path::{Path, PathBuf};

/// Hidden folders that belong to the repository.
const HIDDEN: [&str; 3] = [".cargo", ".ci", ".github"];

/// The repository's root.
pub(crate) fn root() -> &'static Path {
    // This package lies two folders below it.
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
    tests.and_then(Path::parent).expect("the repository has a root")
}

/// Whether `.gitignore` names this entry of the root folder or any file of this name.
fn is_ignored(path: &Path, ignored: &[String]) -> bool {
    let at_root = path.parent() == Some(root());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    ignored.iter().any(|line| {
        let pattern = line.strip_prefix('/').unwrap_or(line);
        let is_here = at_root || pattern == line;
        is_here
            && match pattern.strip_prefix('*') {
                Some(end) => name.ends_with(end),
                None => pattern == name,
            }
    })
}

/// Every file of the repository, in order of path: nothing built, nothing that git ignores.
pub(crate) fn all_files() -> Vec<PathBuf> {
    let ignored = std::fs::read_to_string(root().join(".gitignore")).unwrap_or_default();
    let ignored: Vec<String> = ignored.lines().map(str::to_owned).collect();
    let mut found = Vec::new();
    let mut folders = vec![root().to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("the repository can be read") {
            let path = entry.expect("the repository can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_folder = path.is_dir();
            let is_hidden = is_folder && name.starts_with('.') && !HIDDEN.contains(&name.as_str());
            if is_hidden || name == ".git" || is_ignored(&path, &ignored) {
                continue;
            }
            if is_folder {
                folders.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Every file of the repository with one of these extensions, in order of path.
pub(crate) fn files(extensions: &[&str]) -> Vec<PathBuf> {
    let is_wanted =
        |path: &PathBuf| path.extension().is_some_and(|e| extensions.iter().any(|want| e == *want));
    all_files().into_iter().filter(is_wanted).collect()
}

/// A path as people write it: relative to the root.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Fails with every finding, a line each.
pub(crate) fn none(what: &str, findings: Vec<String>) {
    let count = findings.len();
    assert!(findings.is_empty(), "{what} ({count}):\n  {}", findings.join("\n  "));
}
