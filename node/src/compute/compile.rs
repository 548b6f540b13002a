//! Compiles users' CUDA C++ to PTX that every node accepts: one architecture, fixed options, one
//! header.

use tessera_kernels::compute::{HEADER, HEADER_NAME};
use tessera_nvrtc::{Nvrtc, NvrtcError, Program, STRICT_OPTIONS, Target, portable_ptx};

/// The virtual architecture for users' kernels: the oldest that a node can have.
const COMPUTE: u32 = 75;
/// `extern "C" __constant__ TesseraArray image;` is the documented form, but the compiler warns
/// about it.
const NO_WARNING: &str = "--diag-suppress=20044";

/// Compiles a kernel; messages have its name and lines.
///
/// # Errors
/// The compiler's own.
pub fn compile(compiler: &Nvrtc, name: &str, source: &str) -> Result<String, NvrtcError> {
    let options: Vec<&str> = STRICT_OPTIONS.iter().copied().chain([NO_WARNING]).collect();
    let program = Program {
        name,
        source,
        headers: &[(HEADER_NAME, HEADER)],
        target: Target::Ptx { compute: COMPUTE },
        options: &options,
    };
    Ok(portable_ptx(&compiler.compile(&program)?.text()?))
}
