//! One program: its texts, its target, what comes out. The handle is given back on every way out.

use crate::api::{Api, Output, RawProgram};
use crate::error::NvrtcError;
use std::ffi::{CString, c_char, c_int};
use std::ptr::null_mut;

/// Options under which arithmetic means on a GPU what it means on a CPU: no contraction, IEEE
/// division and root, no flush of denormals. What must give the same bits is compiled with these
/// and no others.
pub const STRICT_OPTIONS: &[&str] =
    &["--std=c++17", "--fmad=false", "--prec-div=true", "--prec-sqrt=true", "--ftz=false"];

/// What the code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// PTX for a virtual architecture: `compute: 75` runs on compute capability 7.5 and newer.
    Ptx {
        /// Ten times the compute capability.
        compute: u32,
    },
    /// Machine code for one architecture.
    Cubin {
        /// Ten times the compute capability.
        sm: u32,
    },
}

impl Target {
    fn option(self) -> String {
        match self {
            Target::Ptx { compute } => format!("--gpu-architecture=compute_{compute}"),
            Target::Cubin { sm } => format!("--gpu-architecture=sm_{sm}"),
        }
    }
}

/// A translation unit, all of it in memory.
#[derive(Clone, Copy, Debug)]
pub struct Program<'a> {
    /// Name that messages show.
    pub name: &'a str,
    /// CUDA C++.
    pub source: &'a str,
    /// Name and text of every header that it may include.
    pub headers: &'a [(&'a str, &'a str)],
    /// What to make.
    pub target: Target,
    /// Further options; [`STRICT_OPTIONS`] or more.
    pub options: &'a [&'a str],
}

/// What a program became.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compiled {
    /// PTX as text without a terminator, or a cubin.
    pub code: Vec<u8>,
    /// The compiler's messages; empty where it had none.
    pub log: String,
}

impl Compiled {
    /// PTX as text.
    ///
    /// # Errors
    /// [`NvrtcError::NotText`] for machine code.
    pub fn text(self) -> Result<String, NvrtcError> {
        String::from_utf8(self.code).map_err(|_| NvrtcError::NotText)
    }
}

/// A live `nvrtcProgram`.
pub(crate) struct Handle<'a> {
    api: &'a Api,
    program: RawProgram,
}

impl<'a> Handle<'a> {
    pub(crate) fn new(api: &'a Api, program: &Program<'_>) -> Result<Self, NvrtcError> {
        let name = terminated(program.name, "the program's name")?;
        let source = terminated(program.source, "the program")?;
        let names =
            all_terminated(program.headers.iter().map(|(name, _)| *name), "a header's name")?;
        let texts = all_terminated(program.headers.iter().map(|(_, text)| *text), "a header")?;
        let (names, texts) = (pointers(&names), pointers(&texts));
        let mut handle = Self { api, program: null_mut() };
        // SAFETY: every pointer is to a terminated string that outlives the call; NVRTC copies
        // them.
        let status = unsafe {
            (api.create)(
                &mut handle.program,
                source.as_ptr(),
                name.as_ptr(),
                names.len() as c_int,
                texts.as_ptr(),
                names.as_ptr(),
            )
        };
        match status {
            0 => Ok(handle),
            _ => Err(NvrtcError::Call { function: "nvrtcCreateProgram", status }),
        }
    }

    pub(crate) fn compile(&self, program: &Program<'_>) -> Result<Compiled, NvrtcError> {
        let architecture = program.target.option();
        let options = std::iter::once(architecture.as_str()).chain(program.options.iter().copied());
        let options = all_terminated(options, "an option")?;
        let options = pointers(&options);
        // SAFETY: the program is live; the options are terminated strings that outlive the call.
        let status =
            unsafe { (self.api.compile)(self.program, options.len() as c_int, options.as_ptr()) };
        let log =
            self.read(self.api.log).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned());
        if status != 0 {
            let log = log.ok().filter(|log| !log.is_empty());
            return Err(match log {
                Some(log) => NvrtcError::Compile { log },
                None => NvrtcError::Call { function: "nvrtcCompileProgram", status },
            });
        }
        let code = match program.target {
            Target::Ptx { .. } => self.read(self.api.ptx)?,
            Target::Cubin { .. } => self.api.cubin.read(self.program)?,
        };
        Ok(Compiled { code, log: log? })
    }

    /// A text without its terminator.
    fn read(&self, output: Output) -> Result<Vec<u8>, NvrtcError> {
        let mut bytes = output.read(self.program)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(bytes)
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program is live and not used again. Its status would say nothing that
            // could be acted on.
            unsafe { (self.api.destroy)(&mut self.program) };
        }
    }
}

fn terminated(text: &str, what: &'static str) -> Result<CString, NvrtcError> {
    CString::new(text).map_err(|_| NvrtcError::Nul(what))
}

fn all_terminated<'t>(
    texts: impl Iterator<Item = &'t str>,
    what: &'static str,
) -> Result<Vec<CString>, NvrtcError> {
    texts.map(|text| terminated(text, what)).collect()
}

fn pointers(texts: &[CString]) -> Vec<*const c_char> {
    texts.iter().map(|text| text.as_ptr()).collect()
}
