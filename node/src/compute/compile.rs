//! Compiles users' CUDA C++ to PTX that every node accepts: one architecture, fixed options; the
//! headers of the job and of Tessera in memory, and CUDA's own where NVRTC has them.

use super::includes::{BadInclude, linked, name_in_memory};
use std::collections::BTreeMap;
use tessera_kernels::compute::{HEADER, HEADER_NAME, STANDARD_HEADERS};
use tessera_nvrtc::{
    CudaHeaders, Nvrtc, NvrtcError, Program, STRICT_OPTIONS, Target, portable_ptx,
};

/// The virtual architecture for users' kernels: the oldest that a node can have.
const COMPUTE: u32 = 75;
/// How the compiler begins its advice about warnings.
const ADVICE: &str = "Remark: The warnings can be suppressed";
/// Most bytes of the compiler's warnings that are kept.
const LOG_BYTES_MAX: usize = 8 << 10;
/// `extern "C" __constant__ TesseraArray image;` is the documented form, but the compiler warns
/// about it.
const NO_WARNING: &str = "--diag-suppress=20044";

/// A header of the user's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Its path below the folder that it is of.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A kernel that was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// PTX that every node accepts.
    pub ptx: String,
    /// The compiler's warnings, with the kernel's name and lines; empty if it had none.
    pub log: String,
}

/// Compiles a kernel with the user's headers; messages have their names and lines.
///
/// # Errors
/// The compiler's own, or about an include that leaves its folder.
pub fn compile(
    compiler: &Nvrtc,
    (name, source): (&str, &str),
    headers: &[Header],
) -> Result<Compiled, NvrtcError> {
    let texts = Texts::of(name, source, headers)
        .map_err(|bad| NvrtcError::Compile { log: bad.to_string() })?;
    let others = if texts.needs_others { compiler.cuda_headers() } else { CudaHeaders::default() };
    let folders: Vec<String> =
        others.folders().iter().map(|path| format!("--include-path={}", path.display())).collect();
    let options: Vec<&str> = STRICT_OPTIONS
        .iter()
        .copied()
        .chain([NO_WARNING])
        .chain(folders.iter().map(String::as_str))
        .collect();
    let own = texts.headers.iter().map(|(name, text)| (name.as_str(), text.as_str()));
    let headers: Vec<(&str, &str)> = [(HEADER_NAME, HEADER)]
        .into_iter()
        .chain(STANDARD_HEADERS.iter().copied())
        .chain(own)
        .collect();
    let program = Program {
        name,
        source: &texts.source,
        headers: &headers,
        target: Target::Ptx { compute: COMPUTE },
        options: &options,
    };
    let mut compiled = compiler.compile(&program)?;
    let log = warnings(&std::mem::take(&mut compiled.log));
    Ok(Compiled { ptx: portable_ptx(&compiled.text()?), log })
}

/// The texts that NVRTC gets.
struct Texts {
    source: String,
    headers: Vec<(String, String)>,
    needs_others: bool,
}

impl Texts {
    fn of(name: &str, source: &str, headers: &[Header]) -> Result<Self, BadInclude> {
        let known: BTreeMap<&str, &str> =
            headers.iter().map(|header| (header.name.as_str(), header.text.as_str())).collect();
        let has = |name: &str| known.contains_key(name);
        let linked_source = linked(name, source, has)?;
        let mut needs_others = linked_source.needs_others;
        let mut texts = Vec::new();
        for (name, text) in &known {
            let header = linked(name, text, has)?;
            needs_others |= header.needs_others;
            texts.push((name_in_memory(name), header.text));
        }
        Ok(Self { source: linked_source.text, headers: texts, needs_others })
    }
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
