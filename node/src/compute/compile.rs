//! Compiles users' CUDA C++ to PTX that every node accepts: one architecture, fixed options, one
//! header.

use tessera_kernels::compute::{HEADER, HEADER_NAME};
use tessera_nvrtc::{Nvrtc, NvrtcError, Program, STRICT_OPTIONS, Target, portable_ptx};

/// The virtual architecture for users' kernels: the oldest that a node can have.
const COMPUTE: u32 = 75;
/// How the compiler begins its advice about warnings.
const ADVICE: &str = "Remark: The warnings can be suppressed";
/// Most bytes of the compiler's warnings that are kept.
const LOG_BYTES_MAX: usize = 8 << 10;
/// `extern "C" __constant__ TesseraArray image;` is the documented form, but the compiler warns
/// about it.
const NO_WARNING: &str = "--diag-suppress=20044";

/// A kernel that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// PTX that every node accepts.
    pub ptx: String,
    /// The compiler's warnings, with the kernel's name and lines; empty if it had none.
    pub log: String,
}

/// Compiles a kernel; messages have its name and lines.
///
/// # Errors
/// The compiler's own.
pub fn compile(compiler: &Nvrtc, name: &str, source: &str) -> Result<Compiled, NvrtcError> {
    let options: Vec<&str> = STRICT_OPTIONS.iter().copied().chain([NO_WARNING]).collect();
    let program = Program {
        name,
        source,
        headers: &[(HEADER_NAME, HEADER)],
        target: Target::Ptx { compute: COMPUTE },
        options: &options,
    };
    let mut compiled = compiler.compile(&program)?;
    let log = warnings(&std::mem::take(&mut compiled.log));
    Ok(Compiled { ptx: portable_ptx(&compiled.text()?), log })
}

/// Returns a compiler's messages without its advice to give an option, since jobs give none.
fn warnings(log: &str) -> String {
    let lines = log.lines().filter(|line| !line.starts_with(ADVICE));
    let mut kept = lines.collect::<Vec<_>>().join("\n").trim_end().to_owned();
    kept.truncate(kept.floor_char_boundary(LOG_BYTES_MAX));
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_kept_and_cut_and_advice_is_not() {
        let log = "a.cu(8): warning #186-D: pointless\n      if (a < 0)\n\nRemark: The warnings \
                   can be suppressed with \"-diag-suppress <warning-number>\"\n\n";
        assert_eq!(warnings(log), "a.cu(8): warning #186-D: pointless\n      if (a < 0)");
        assert_eq!(warnings(""), "");
        let long = "\u{e9}".repeat(LOG_BYTES_MAX);
        assert_eq!(warnings(&format!("x{long}")).len(), LOG_BYTES_MAX - 1);
    }
}
