//! Where CUDA's own headers are (`cuda_fp16.h` and the like): beside the library, or inside it.

use std::ffi::{CString, c_char, c_int, c_uint};
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// `nvrtcInstallBundledHeaders`, which NVRTC has from version 13 on.
pub(crate) type Install = unsafe extern "C" fn(*const c_char, c_uint, *mut *const c_char) -> c_int;

/// A header that every set of CUDA's headers has.
const WITNESS: &str = "cuda_fp16.h";
/// Folders of headers below a folder of headers.
const NESTED: &str = "cccl";

/// Folders of CUDA's headers, for the option `--include-path`. Headers that came out of the library
/// are deleted with this value.
#[derive(Debug, Default)]
pub struct CudaHeaders {
    folders: Vec<PathBuf>,
    _extracted: Option<TempDir>,
}

impl CudaHeaders {
    /// Returns the folders, in the order in which they are searched. Empty if NVRTC came without
    /// headers.
    pub fn folders(&self) -> &[PathBuf] {
        &self.folders
    }

    /// Headers in folders of this machine.
    pub(crate) fn beside(library: &Path) -> Self {
        let library = if library.components().count() > 1 {
            Some(library.to_owned())
        } else {
            mapped(&library.to_string_lossy())
        };
        let folders = library.map(|library| include_folders(&library)).unwrap_or_default();
        Self { folders, _extracted: None }
    }

    /// Headers that the library has inside itself. They go to a temporary folder.
    pub(crate) fn extracted(install: Install) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("tessera-cuda-headers-").tempdir().ok()?;
        let path = CString::new(folder.path().to_str()?).ok()?;
        // SAFETY: the path is a terminated string that outlives the call; a log is not asked for.
        let status = unsafe { install(path.as_ptr(), 0, std::ptr::null_mut()) };
        let folders = with_nested(folder.path().to_owned());
        (status == 0).then_some(Self { folders, _extracted: Some(folder) })
    }
}

/// Returns the folders with CUDA's headers that belong to a library at this path: of a toolkit, of
/// a distribution's package, or of packages for Python or conda. Empty if there are none.
pub fn include_folders(library: &Path) -> Vec<PathBuf> {
    // A toolkit's path may be a link: `/usr/local/cuda/lib64` is one.
    let real = library.canonicalize().unwrap_or_else(|_| library.to_owned());
    let mut found = Vec::new();
    for library in [library, &real] {
        let Some(folder) = library.parent() else { continue };
        // Of `…/lib/libnvrtc.so`, or of `/usr/lib/x86_64-linux-gnu/libnvrtc.so`.
        for up in folder.ancestors().skip(1).take(2) {
            let beside = up.parent().unwrap_or(up);
            let places = [
                up.join("include"),
                up.join("targets/x86_64-linux/include"),
                up.join("targets/sbsa-linux/include"),
                beside.join("cuda_runtime/include"),
            ];
            found.extend(places.into_iter().filter(|place| place.join(WITNESS).is_file()));
            let random = beside.join("curand/include");
            found.extend(random.join("curand_kernel.h").is_file().then_some(random));
        }
    }
    let mut folders: Vec<PathBuf> = Vec::new();
    for folder in found.into_iter().flat_map(with_nested) {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

fn with_nested(folder: PathBuf) -> Vec<PathBuf> {
    let nested = folder.join(NESTED);
    let nested = nested.is_dir().then_some(nested);
    std::iter::once(folder).chain(nested).collect()
}

/// Returns the file of a loaded library, by the start of its name.
fn mapped(name: &str) -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let paths = maps.lines().filter_map(|line| Some(&line[line.find('/')?..]));
    let is_it = |path: &&str| {
        Path::new(path).file_name().is_some_and(|file| file.to_string_lossy().starts_with(name))
    };
    paths.map(str::trim).find(is_it).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the folders that are found for a library, among files that are there.
    fn found(library: &str, files: &[&str]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        for file in files.iter().chain([&library]) {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        let folders = include_folders(&root.join(library));
        let shown = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
        folders.iter().map(shown).collect()
    }

    #[test]
    fn headers_are_found_beside_every_kind_of_installation() {
        let toolkit = ["cuda/include/cuda_fp16.h", "cuda/include/cccl/cub/cub.cuh"];
        assert_eq!(
            found("cuda/lib64/libnvrtc.so", &toolkit),
            ["cuda/include", "cuda/include/cccl"]
        );
        let pip = ["nvidia/cu13/include/cuda_fp16.h"];
        assert_eq!(found("nvidia/cu13/lib/libnvrtc.so.13", &pip), ["nvidia/cu13/include"]);
        let older = [
            "nvidia/cuda_nvrtc/include/nvrtc.h",
            "nvidia/cuda_runtime/include/cuda_fp16.h",
            "nvidia/curand/include/curand_kernel.h",
        ];
        assert_eq!(
            found("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", &older),
            ["nvidia/cuda_runtime/include", "nvidia/curand/include"]
        );
        let conda = ["env/targets/x86_64-linux/include/cuda_fp16.h"];
        assert_eq!(found("env/lib/libnvrtc.so", &conda), ["env/targets/x86_64-linux/include"]);
        let package = ["usr/include/cuda_fp16.h"];
        assert_eq!(found("usr/lib/x86_64-linux-gnu/libnvrtc.so", &package), ["usr/include"]);
        let without = ["nvidia/cu13/include/nvrtc.h"];
        assert!(found("nvidia/cu13/lib/libnvrtc.so.13", &without).is_empty());
    }

    #[test]
    fn a_loaded_library_is_found_by_its_name() {
        assert!(mapped("libc.so").is_some_and(|path| path.is_file()));
        assert_eq!(mapped("libnowhere.so"), None);
    }
}
