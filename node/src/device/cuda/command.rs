//! The command that starts a worker: program, environment, and files that it can open.

use crate::config::Config;
use crate::device::worker::sandbox::record_folder;
use crate::device::worker::{Allowed, Sandbox};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use tessera_nvrtc::{ENVIRONMENTS, include_folders};

/// Variables of the node that a confined worker gets, and no others. A name that ends in `*` stands
/// for all names that begin so.
const PASSED: &[&str] = &[
    "LD_LIBRARY_PATH",
    "CUDA_*",
    "NVIDIA_*",
    "RUST_BACKTRACE",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    FAKE,
    NVRTC,
];
/// Configuration of the fake driver that tests use in place of NVIDIA's.
const FAKE: &str = "TESSERA_FAKE_CUDA";
/// Path of the user's NVRTC.
const NVRTC: &str = "TESSERA_NVRTC";

/// Everything to start a worker. Clones are cheap.
#[derive(Clone, Debug)]
pub(crate) struct WorkerCommand {
    pub(super) program: PathBuf,
    pub(super) arguments: Vec<OsString>,
    pub(super) environment: Vec<(OsString, OsString)>,
    /// Files that workers can open; None leaves them unconfined.
    pub(super) allowed: Option<Allowed>,
    /// Folder of machine code of the kernels.
    pub(super) cubins: Option<PathBuf>,
    /// Folder for the workers' temporary files. It is deleted with the last clone.
    _scratch: Arc<TempDir>,
}

impl WorkerCommand {
    /// Makes the command from a node's settings and this process's environment.
    ///
    /// # Errors
    /// There is no place for temporary files.
    pub(crate) fn of(config: &Config) -> std::io::Result<Self> {
        // Profilers and debuggers come in by the node's whole environment.
        let confined = config.sandbox.is_on();
        let own = std::env::vars_os().filter(|(name, _)| !confined || is_passed(name));
        let given =
            config.worker_environment.iter().map(|(name, value)| (name.into(), value.into()));
        Self::with(config, own.chain(given).collect())
    }

    fn with(config: &Config, mut environment: Vec<(OsString, OsString)>) -> std::io::Result<Self> {
        let scratch = Arc::new(tempfile::Builder::new().prefix("tessera-worker-").tempdir()?);
        let cache = cache_folder(&environment, &config.data);
        let cache = match std::fs::create_dir_all(&cache) {
            Ok(()) => cache,
            // The kernels are then compiled at every start.
            Err(error) => {
                tracing::warn!(folder = %cache.display(), %error,
                    "no cache for the driver's compiler");
                scratch.path().to_owned()
            }
        };
        let set = [
            ("CUDA_CACHE_PATH", cache.as_os_str()),
            ("HOME", cache.as_os_str()),
            ("TMPDIR", scratch.path().as_os_str()),
            // The numbers of devices then do not depend on their speed.
            ("CUDA_DEVICE_ORDER", OsStr::new("PCI_BUS_ID")),
        ];
        for (name, value) in set {
            environment.retain(|(other, _)| other != name);
            environment.push((name.into(), value.into()));
        }
        let write = vec![cache, scratch.path().to_owned()];
        let is_required = config.sandbox == Sandbox::Require;
        let cubins = config.cubins.clone();
        let allowed = config.sandbox.is_on().then(|| {
            let mut allowed = allowed(&environment, write);
            allowed.read.extend(cubins.clone());
            Allowed { is_required, ..allowed }
        });
        let (program, arguments) =
            (config.worker.clone(), vec![crate::device::worker::COMMAND.into()]);
        Ok(Self { program, arguments, environment, allowed, cubins, _scratch: scratch })
    }
}

fn is_passed(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    PASSED.iter().any(|passed| match passed.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == *passed,
    })
}

fn value<'a>(environment: &'a [(OsString, OsString)], name: &str) -> Option<&'a OsStr> {
    // The last one counts, since it replaces the process's own.
    environment.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.as_os_str())
}

/// Returns the folder in which the driver stores compiled kernels: the user's choice, otherwise the
/// cache of the service or the user, otherwise the node's data.
fn cache_folder(environment: &[(OsString, OsString)], data: &Path) -> PathBuf {
    let absolute = |path: &OsString| Path::new(path).is_absolute();
    // A service has its own cache folder, and its user has no home.
    if let Some(service) = std::env::var_os("CACHE_DIRECTORY").filter(absolute) {
        return value(environment, "CUDA_CACHE_PATH")
            .map_or(PathBuf::from(service).join("cuda"), PathBuf::from);
    }
    let user = std::env::var_os("XDG_CACHE_HOME").filter(absolute).map(PathBuf::from);
    let user = user
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME").filter(absolute)?).join(".cache")));
    let own = user.map_or_else(|| data.join("cuda-cache"), |folder| folder.join("tessera/cuda"));
    value(environment, "CUDA_CACHE_PATH").map_or(own, PathBuf::from)
}

/// Returns the files besides the system's that a worker with this environment needs.
fn allowed(environment: &[(OsString, OsString)], mut write: Vec<PathBuf>) -> Allowed {
    let folder_of = |path: &OsStr| Path::new(path).parent().map(Path::to_owned);
    let mut read: Vec<PathBuf> = Vec::new();
    if let Some(libraries) = value(environment, "LD_LIBRARY_PATH") {
        read.extend(std::env::split_paths(libraries).filter(|path| path.is_absolute()));
    }
    read.extend(value(environment, NVRTC).and_then(folder_of));
    // Of a Python environment, only its libraries.
    read.extend(
        ENVIRONMENTS
            .iter()
            .filter_map(|name| value(environment, name))
            .map(|root| Path::new(root).join("lib"))
            .filter(|path| path.is_absolute()),
    );
    // CUDA's headers, for kernels that are compiled here.
    let named = value(environment, NVRTC).map(PathBuf::from);
    let beside: Vec<PathBuf> = read.iter().map(|folder| folder.join("libnvrtc.so")).collect();
    read.extend(named.iter().chain(&beside).flat_map(|library| include_folders(library)));
    read.extend(
        ["CUDA_PATH", "CUDA_HOME"]
            .iter()
            .filter_map(|name| value(environment, name))
            .map(PathBuf::from),
    );
    write.extend(value(environment, "CUDA_MPS_PIPE_DIRECTORY").map(PathBuf::from));
    // The processes of a fake rack share their state in a file beside its configuration.
    write.extend(value(environment, FAKE).and_then(folder_of));
    Allowed { read, write, record: record_folder(), is_required: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_gets_what_cuda_needs_and_nothing_else() {
        for (name, passed) in [
            ("CUDA_VISIBLE_DEVICES", true),
            ("NVIDIA_VISIBLE_DEVICES", true),
            ("LD_LIBRARY_PATH", true),
            ("VIRTUAL_ENV", true),
            ("CONDA_PREFIX", true),
            ("PYTHONPATH", false),
            ("TESSERA_FAKE_CUDA", true),
            ("TESSERA_TOKEN_FILE", false),
            ("AWS_SECRET_ACCESS_KEY", false),
            ("LD_PRELOAD", false),
            ("PATH", false),
        ] {
            assert_eq!(is_passed(OsStr::new(name)), passed, "{name}");
        }
    }

    #[test]
    fn a_worker_can_open_only_libraries_cache_and_its_folder() {
        let data = tempfile::tempdir().unwrap();
        let config = Config::new("localhost:1", data.path().join("node"), "n");
        let cache = data.path().join("jit");
        let environment = vec![
            ("CUDA_CACHE_PATH".into(), cache.clone().into_os_string()),
            ("LD_LIBRARY_PATH".into(), "/opt/one:relative:/opt/two".into()),
            ("TESSERA_FAKE_CUDA".into(), "/rack/config.toml".into()),
        ];
        let command = WorkerCommand::with(&config, environment).unwrap();
        let allowed = command.allowed.unwrap();
        assert_eq!(allowed.read, [Path::new("/opt/one"), Path::new("/opt/two")]);
        assert_eq!(allowed.write[0], cache);
        assert_eq!(allowed.write[2], Path::new("/rack"));
        assert!(
            allowed.write.iter().all(|path| !data.path().join("node").starts_with(path)),
            "{allowed:?}"
        );
        let home = command.environment.iter().find(|(name, _)| name == "HOME");
        assert_eq!(home.unwrap().1, cache.as_os_str());
    }
}
