//! What can go wrong with the run-time compiler, for people.

/// Why there is no compiler, or no code from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NvrtcError {
    /// No library was found. A driver does not bring one; CUDA's toolkit and the pip package
    /// `nvidia-cuda-nvrtc` do.
    #[error(
        "no NVRTC library: install `nvidia-cuda-nvrtc` or CUDA's toolkit, or set TESSERA_NVRTC to \
            libnvrtc.so (tried {tried})"
    )]
    NotFound {
        /// Every place and what was wrong there.
        tried: String,
    },
    /// The loader refused the file.
    #[error("cannot load: {0}")]
    Load(String),
    /// The library lacks a function.
    #[error("no function `{0}` in it")]
    Symbol(&'static str),
    /// Older than [`crate::MAJOR_MIN`].
    #[error("NVRTC {major}.{minor} is too old: version 11 or newer is needed")]
    TooOld {
        /// Its major version.
        major: u32,
        /// Its minor version.
        minor: u32,
    },
    /// A text has a NUL byte in it, which C cannot take.
    #[error("{0} has a NUL byte in it")]
    Nul(&'static str),
    /// The program does not compile.
    #[error("the program does not compile:\n{log}")]
    Compile {
        /// The compiler's messages.
        log: String,
    },
    /// The output is not UTF-8: it is machine code, not PTX.
    #[error("the output is no text: ask for PTX, not for machine code")]
    NotText,
    /// Something else failed.
    #[error("{function} failed with status {status}")]
    Call {
        /// The C function.
        function: &'static str,
        /// Its `nvrtcResult`.
        status: i32,
    },
}
