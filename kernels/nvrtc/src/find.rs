//! Where the compiler may lie. Opens no library.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The environment's variable that names the library; where it is set, nothing else is tried.
pub const VARIABLE: &str = "TESSERA_NVRTC";

/// Variables that name the root of an active Python environment: of `venv`, of conda.
pub const ENVIRONMENTS: [&str; 2] = ["VIRTUAL_ENV", "CONDA_PREFIX"];

/// Most libraries that are listed of one environment.
const FOUND_MAX: usize = 16;

/// Names that the system's loader may know, newest first.
const NAMES: [&str; 4] = ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"];

/// Places in the order in which they are tried.
pub(crate) fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(path) = variable(VARIABLE).filter(|path| !path.is_empty()) {
        return vec![path.into()];
    }
    // What somebody has activated counts for more than what the system has.
    let active = ENVIRONMENTS.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    let mut places: Vec<PathBuf> =
        active.filter(|root| root.is_absolute()).flat_map(|root| in_environment(&root)).collect();
    places.extend(NAMES.iter().map(PathBuf::from));
    let roots =
        ["CUDA_HOME", "CUDA_PATH"].iter().filter_map(|name| variable(name)).map(PathBuf::from);
    for root in roots.chain([PathBuf::from("/usr/local/cuda"), PathBuf::from("/opt/cuda")]) {
        for folder in ["lib64", "lib"] {
            places.push(root.join(folder).join("libnvrtc.so"));
        }
    }
    places
}

/// Libraries in a Python environment, newest first: of conda's package in `lib`, and of pip's
/// packages in `lib/python3*/site-packages/nvidia/*/lib`.
fn in_environment(root: &Path) -> Vec<PathBuf> {
    let lib = root.join("lib");
    let pythons = entries(&lib).into_iter().filter(|path| name_of(path).starts_with("python3"));
    let packages = pythons.flat_map(|python| entries(&python.join("site-packages/nvidia")));
    let folders = packages.map(|package| package.join("lib"));
    let mut found: Vec<PathBuf> = std::iter::once(lib)
        .chain(folders)
        .flat_map(|folder| entries(&folder))
        .filter(|path| version_of(&name_of(path)).is_some())
        .collect();
    found.sort_by_key(|path| (std::cmp::Reverse(version_of(&name_of(path))), path.clone()));
    found.truncate(FOUND_MAX);
    found
}

/// The entries of a folder; none of one that cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let read = std::fs::read_dir(folder).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The numbers in `libnvrtc.so.13`; without a number, the library is of an unknown version and
/// counts as the oldest. None for another file.
fn version_of(name: &str) -> Option<Vec<u32>> {
    let rest = name.strip_prefix("libnvrtc.so")?;
    let numbers = rest.split('.').skip(1).map(str::parse);
    numbers
        .collect::<Result<Vec<u32>, _>>()
        .ok()
        .filter(|_| rest.is_empty() || rest.starts_with('.'))
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

    /// Plants files in an environment; its root.
    fn planted(name: &str, files: &[&str]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("tessera-{name}-{}", std::process::id()));
        for file in files {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        root
    }

    fn found(variable: &str, root: &Path, own: Option<&str>) -> Vec<String> {
        let places = candidates(|name| match name {
            _ if name == variable => Some(root.into()),
            VARIABLE => own.map(Into::into),
            _ => None,
        });
        let inside = places.iter().filter_map(|place| place.strip_prefix(root).ok());
        inside.map(|place| place.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn the_packages_of_an_active_environment_come_first() {
        let pip = "lib/python3.12/site-packages/nvidia";
        let new = format!("{pip}/cu13/lib/libnvrtc.so.13");
        let old = format!("{pip}/cuda_nvrtc/lib/libnvrtc.so.12");
        let others = [
            format!("{pip}/cu13/lib/libnvrtc-builtins.so.13.0"),
            format!("{pip}/cu13/lib/libnvrtc.so.13.alt"),
            "lib/python2.7/site-packages/nvidia/a/lib/libnvrtc.so.11".to_owned(),
        ];
        let files = [&old, &new, &others[0], &others[1], &others[2]];
        let root = planted("venv", &files.map(String::as_str));
        assert_eq!(found("VIRTUAL_ENV", &root, None), [new.clone(), old]);
        let first = candidates(|name| (name == "VIRTUAL_ENV").then(|| root.clone().into()));
        assert_eq!(first[0], root.join(new));
        assert_eq!(first[2], PathBuf::from("libnvrtc.so.13"), "then what the loader knows");
        // A library that is named is the only one all the same.
        assert_eq!(found("VIRTUAL_ENV", &root, Some("/own.so")), Vec::<String>::new());
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn the_library_of_a_conda_environment_is_found() {
        let root = planted("conda", &["lib/libnvrtc.so.12.8.93", "lib/libnvrtc.so.12", "lib/x"]);
        let libraries = ["lib/libnvrtc.so.12.8.93", "lib/libnvrtc.so.12"];
        assert_eq!(found("CONDA_PREFIX", &root, None), libraries);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn an_environment_without_it_adds_nothing() {
        let absent = candidates(|name| (name == "CONDA_PREFIX").then(|| "/no/such/place".into()));
        let relative = candidates(|name| (name == "CONDA_PREFIX").then(|| "place".into()));
        assert_eq!(absent, candidates(|_| None));
        assert_eq!(relative, absent);
    }

    #[test]
    fn a_bare_name_has_nothing_beside_it() {
        assert_eq!(builtins_beside(Path::new("libnvrtc.so.13")), None);
    }
}
