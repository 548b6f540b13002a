//! The C functions of NVRTC, found by name. Knows no policy.

use crate::error::NvrtcError;
use crate::find;
use crate::headers::Install;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
use std::ffi::{c_char, c_int, c_void};
use std::path::Path;

/// An `nvrtcProgram`.
pub(crate) type RawProgram = *mut c_void;

type Version = unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int;
type Create = unsafe extern "C" fn(
    *mut RawProgram,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type CompileProgram = unsafe extern "C" fn(RawProgram, c_int, *const *const c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut RawProgram) -> c_int;
type Size = unsafe extern "C" fn(RawProgram, *mut usize) -> c_int;
type Get = unsafe extern "C" fn(RawProgram, *mut c_char) -> c_int;

/// The two functions that hand out one result of a program.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    size: Size,
    get: Get,
    function: &'static str,
}

impl Output {
    /// The bytes, with C's terminator where there is one.
    pub(crate) fn read(self, program: RawProgram) -> Result<Vec<u8>, NvrtcError> {
        let mut length = 0;
        // SAFETY: `program` is a live program of the library that both functions come from.
        self.check(unsafe { (self.size)(program, &mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: as above; the buffer has the length that the library asked for.
        self.check(unsafe { (self.get)(program, bytes.as_mut_ptr().cast()) })?;
        Ok(bytes)
    }

    fn check(self, status: c_int) -> Result<(), NvrtcError> {
        if status == 0 { Ok(()) } else { Err(NvrtcError::Call { function: self.function, status }) }
    }
}

/// The library and its functions. The library stays loaded as long as this lives.
#[derive(Debug)]
pub(crate) struct Api {
    version: Version,
    pub(crate) create: Create,
    pub(crate) compile: CompileProgram,
    pub(crate) destroy: Destroy,
    pub(crate) log: Output,
    pub(crate) ptx: Output,
    pub(crate) cubin: Output,
    /// None in a library without headers inside.
    pub(crate) install_headers: Option<Install>,
    _library: Library,
    _builtins: Option<Library>,
}

impl Api {
    pub(crate) fn load(path: &Path) -> Result<Self, NvrtcError> {
        let open = |path: &Path, flags| {
            // SAFETY: loading runs the initialisers of NVIDIA's compiler, which the user has named
            // or installed.
            unsafe { Library::open(Some(path), flags) }
                .map_err(|error| NvrtcError::Load(error.to_string()))
        };
        let builtins =
            find::builtins_beside(path).and_then(|path| open(&path, RTLD_NOW | RTLD_GLOBAL).ok());
        let library = open(path, RTLD_NOW)?;
        /// A function of the library by its name.
        macro_rules! function {
            ($name:literal) => {{
                // SAFETY: the type is that of nvrtc.h, unchanged from version 11 to 13.
                *unsafe { library.get(concat!($name, "\0").as_bytes()) }
                    .map_err(|_| NvrtcError::Symbol($name))?
            }};
        }
        // SAFETY: the type is that of nvrtc.h in version 13.5, the first that has it.
        let install_headers = unsafe { library.get::<Install>(b"nvrtcInstallBundledHeaders\0") };
        let install_headers = install_headers.ok().map(|function| *function);
        Ok(Self {
            install_headers,
            version: function!("nvrtcVersion"),
            create: function!("nvrtcCreateProgram"),
            compile: function!("nvrtcCompileProgram"),
            destroy: function!("nvrtcDestroyProgram"),
            log: Output {
                size: function!("nvrtcGetProgramLogSize"),
                get: function!("nvrtcGetProgramLog"),
                function: "nvrtcGetProgramLog",
            },
            ptx: Output {
                size: function!("nvrtcGetPTXSize"),
                get: function!("nvrtcGetPTX"),
                function: "nvrtcGetPTX",
            },
            cubin: Output {
                size: function!("nvrtcGetCUBINSize"),
                get: function!("nvrtcGetCUBIN"),
                function: "nvrtcGetCUBIN",
            },
            _library: library,
            _builtins: builtins,
        })
    }

    pub(crate) fn version(&self) -> Result<(u32, u32), NvrtcError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two integers.
        let status = unsafe { (self.version)(&mut major, &mut minor) };
        match (status, u32::try_from(major), u32::try_from(minor)) {
            (0, Ok(major), Ok(minor)) => Ok((major, minor)),
            _ => Err(NvrtcError::Call { function: "nvrtcVersion", status }),
        }
    }
}
