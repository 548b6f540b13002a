//! A rack from a test's side: a folder with the libraries and the configuration, lent to child
//! processes, and what it counted.

use crate::config::Config;
use crate::shared::{Shared, Watched};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::Ordering::SeqCst;

/// The names under which programs look for the two libraries.
const NAMES: [&str; 2] = ["libcuda.so.1", "libnvidia-ml.so.1"];

/// The shared object that Cargo built of this crate: beside the test's executable, or one folder
/// up.
///
/// # Errors
/// It is in neither place: the test was not started by Cargo, or does not depend on this crate.
pub fn library_path() -> io::Result<PathBuf> {
    let name = format!(
        "{}tessera_fake_cuda{}",
        std::env::consts::DLL_PREFIX,
        std::env::consts::DLL_SUFFIX
    );
    let executable = std::env::current_exe()?;
    let folders = executable.ancestors().skip(1).take(2);
    let found = folders
        .flat_map(|folder| [folder.join(&name), folder.join("deps").join(&name)])
        .find(|path| path.is_file());
    found.ok_or_else(|| {
        let text =
            format!("{name} is not beside {}; start the test by cargo", executable.display());
        io::Error::new(io::ErrorKind::NotFound, text)
    })
}

/// A rack of fake GPUs in a folder that goes away with it.
pub struct Rack {
    folder: tempfile::TempDir,
    shared: Shared,
}

/// What was counted of a device, over all processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counts {
    /// Kernels that were begun.
    pub launches: u64,
    /// Allocations that were asked for.
    pub allocations: u64,
    /// Modules that were asked to be loaded.
    pub loads: u64,
    /// Bytes that were copied to it from a host.
    pub uploaded_bytes: u64,
    /// Instructions that the interpreter executed, in all threads.
    pub steps: u64,
    /// Bytes that living processes hold, contexts included.
    pub used_bytes: u64,
    /// The most bytes that were held at the same time.
    pub peak_bytes: u64,
    /// Whether it has fallen off the bus.
    pub is_lost: bool,
}

impl Rack {
    /// Sets a rack up.
    ///
    /// # Errors
    /// The folder cannot be made, or the library is not where Cargo puts it.
    pub fn new(config: &Config) -> io::Result<Rack> {
        let folder = tempfile::tempdir()?;
        let library = library_path()?;
        let libraries = folder.path().join("lib");
        std::fs::create_dir(&libraries)?;
        // A copy, since a confined program may look into this folder alone; two names of one file,
        // so that a program that opens both has one driver.
        let [cuda, nvml] = NAMES.map(|name| libraries.join(name));
        std::fs::copy(library, &cuda)?;
        std::fs::hard_link(&cuda, nvml)?;
        let shared = Shared::open(folder.path())?;
        let rack = Rack { folder, shared };
        rack.configure(config)?;
        Ok(rack)
    }

    /// Writes the configuration anew: for processes that start from now on.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn configure(&self, config: &Config) -> io::Result<()> {
        let text = toml::to_string(config).map_err(io::Error::other)?;
        std::fs::write(self.config_path(), text)
    }

    /// The folder of the rack: a place for triggers.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn config_path(&self) -> PathBuf {
        self.folder().join("rack.toml")
    }

    /// The folder that a program has to look for libraries in.
    pub fn libraries(&self) -> PathBuf {
        self.folder().join("lib")
    }

    /// Gives a program this rack.
    pub fn lend_to(&self, program: &mut Command) {
        program.envs(self.environment()).env_remove("CUDA_VISIBLE_DEVICES");
    }

    /// What a program has to have in its environment: the folder in front of its library path, and
    /// the configuration.
    pub fn environment(&self) -> [(&'static str, OsString); 2] {
        let mut folders = vec![self.libraries()];
        let present = std::env::var_os("LD_LIBRARY_PATH");
        folders.extend(
            present
                .iter()
                .flat_map(std::env::split_paths)
                .filter(|path| !path.as_os_str().is_empty()),
        );
        // A path with a colon in it cannot be given; the folder is ours and has none.
        let joined =
            std::env::join_paths(folders).unwrap_or_else(|_| self.libraries().into_os_string());
        [("LD_LIBRARY_PATH", joined), ("TESSERA_FAKE_CUDA", self.config_path().into_os_string())]
    }

    /// What was counted of a target: devices by index, then slices.
    pub fn counts(&self, target: usize) -> Counts {
        let page = &self.shared.targets[target];
        Counts {
            launches: page.launches.load(SeqCst),
            allocations: page.allocations.load(SeqCst),
            loads: page.loads.load(SeqCst),
            uploaded_bytes: page.uploaded_bytes.load(SeqCst),
            steps: page.steps.load(SeqCst),
            used_bytes: self.shared.used(target),
            peak_bytes: page.peak_bytes.load(SeqCst),
            is_lost: page.is_lost.load(SeqCst) != 0,
        }
    }

    /// How often fault `fault` of a target has struck.
    pub fn struck(&self, target: usize, fault: usize) -> u64 {
        self.shared.targets[target].faults[fault].struck.load(SeqCst)
    }

    /// What was watched at a target's launches, in order.
    pub fn watched(&self, target: usize) -> Vec<Watched> {
        self.shared.watched(target)
    }

    /// The largest number of devices that executed launches at the same time.
    pub fn peak_in_flight(&self) -> u64 {
        self.shared.peak_in_flight.load(SeqCst)
    }

    /// Forgets that largest number.
    pub fn reset_peak_in_flight(&self) {
        self.shared.peak_in_flight.store(0, SeqCst);
    }
}
