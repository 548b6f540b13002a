//! NVIDIA's run-time compiler (NVRTC), loaded where it is found: CUDA C++ in, PTX or machine code
//! out. Owns no source and no device; nothing of CUDA is needed to build it.
//!
//! ```no_run
//! use tessera_nvrtc::{Nvrtc, Program, STRICT_OPTIONS, Target};
//! let compiler = Nvrtc::find()?;
//! let program = Program {
//!     name: "one.cu",
//!     source: "extern \"C\" __global__ void one(int* out) { *out = 1; }",
//!     headers: &[],
//!     target: Target::Ptx { compute: 75 },
//!     options: STRICT_OPTIONS,
//! };
//! let ptx = compiler.compile(&program)?.text()?;
//! # Ok::<(), tessera_nvrtc::NvrtcError>(())
//! ```

mod api;
mod error;
mod find;
mod headers;
mod portable;
mod program;

pub use error::NvrtcError;
pub use find::{ENVIRONMENTS, VARIABLE};
pub use headers::{CudaHeaders, include_folders};
pub use portable::portable_ptx;
pub use program::{Compiled, Program, STRICT_OPTIONS, Target};

use std::path::{Path, PathBuf};

/// Oldest major version that is understood: the first with compute capability 8.0 and C++17.
pub const MAJOR_MIN: u32 = 11;

/// A loaded compiler. It needs neither a driver nor a GPU, and may be used from several threads.
#[derive(Debug)]
pub struct Nvrtc {
    api: api::Api,
    path: PathBuf,
    version: (u32, u32),
}

impl Nvrtc {
    /// The compiler that [`VARIABLE`] names, else the first in the active Python environments
    /// ([`ENVIRONMENTS`]), and then of the usual names and places.
    ///
    /// # Errors
    /// [`NvrtcError::NotFound`] lists every place that was tried, with what was wrong with what was
    /// there.
    pub fn find() -> Result<Self, NvrtcError> {
        let places = find::candidates(|name| std::env::var_os(name));
        let mut tried = Vec::new();
        for place in &places {
            match Self::open(place) {
                Ok(found) => return Ok(found),
                // A place that holds nothing needs no explanation, unless somebody has named it.
                Err(NvrtcError::Load(_)) if places.len() > 1 => {
                    tried.push(place.display().to_string())
                }
                Err(error) => tried.push(format!("{}: {error}", place.display())),
            }
        }
        Err(NvrtcError::NotFound { tried: tried.join(", ") })
    }

    /// The compiler in this file, or with this name where the system's loader looks.
    ///
    /// # Errors
    /// Where it cannot be loaded, lacks a function, or is older than [`MAJOR_MIN`].
    pub fn open(path: &Path) -> Result<Self, NvrtcError> {
        let api = api::Api::load(path)?;
        let version = api.version()?;
        if version.0 < MAJOR_MIN {
            return Err(NvrtcError::TooOld { major: version.0, minor: version.1 });
        }
        Ok(Self { api, path: path.to_owned(), version })
    }

    /// Major and minor version, such as (13, 5).
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Where it was found: a path, or a bare name that the system's loader knows.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Finds CUDA's own headers: in folders beside the library, otherwise inside it. Takes up to a
    /// second, so ask only for a program that includes one of them.
    pub fn cuda_headers(&self) -> CudaHeaders {
        let beside = CudaHeaders::beside(&self.path);
        match self.api.install_headers {
            Some(install) if beside.folders().is_empty() => {
                CudaHeaders::extracted(install).unwrap_or_default()
            }
            _ => beside,
        }
    }

    /// Compiles one program. The log is kept on success too: it has warnings, and with
    /// `--ptxas-options=-v` the registers of every kernel.
    ///
    /// # Errors
    /// [`NvrtcError::Compile`] carries the compiler's messages, with the line numbers of
    /// `program.source`.
    pub fn compile(&self, program: &Program<'_>) -> Result<Compiled, NvrtcError> {
        let handle = program::Handle::new(&self.api, program)?;
        handle.compile(program)
    }
}
