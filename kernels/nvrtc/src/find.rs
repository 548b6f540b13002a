//! Where the compiler may lie. Opens nothing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment's variable that names the library; where it is set, nothing else is tried.
pub const VARIABLE: &str = "TESSERA_NVRTC";

/// Names that the system's loader may know, newest first.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// Places in the order in which they are tried.
pub(crate) fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(path) = variable(VARIABLE).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    let mut places: Vec<PathBuf> = NAMES.iter().map(PathBuf::from).collect();
    let roots =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| variable(name)).map(PathBuf::from);
    for root in roots.chain([PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")]) {
        for folder in ["lib64", "lib"] {
            places.push(root.join(folder).join("libnvrtc.so"));
        }
    }
    places
}

/// The compiler's second half, `libnvrtc-builtins`, beside a library that was given with its
/// folder. Some builds of NVRTC do not find it by themselves, so it is loaded first.
pub(crate) fn builtins_beside(library: &Path) -> Option<PathBuf> {
    let folder = library.parent().filter(|folder| !folder.as_os_str().is_empty())?;
    let entries = std::fs::read_dir(folder).ok()?;
    let mut found: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("libnvrtc-builtins.so") && !name.contains(".alt")
        })
        .collect();
    found.sort();
    found.pop()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_library_is_the_only_one_tried() {
        let places =
            candidates(|name| (name == VARIABLE).then(|| "/somewhere/libnvrtc.so.13".into()));
        assert_eq!(places, [PathBuf::from("/somewhere/libnvrtc.so.13")]);
    }

    #[test]
    fn the_newest_name_comes_first() {
        let places = candidates(|name| (name == "CUDA_HOME").then(|| "/cuda".into()));
        assert_eq!(places[0], PathBuf::from("libnvrtc.so.13"));
        assert!(places.contains(&PathBuf::from("/cuda/lib64/libnvrtc.so")));
    }

    #[test]
    fn a_bare_name_has_nothing_beside_it() {
        assert_eq!(builtins_beside(Path::new("libnvrtc.so.13")), None);
    }
}
