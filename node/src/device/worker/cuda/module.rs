//! The kernels on the device. The driver takes machine code that was made for it, or compiles the
//! PTX, and says why if it refuses. Owns no launch.

use super::cubins::Cubins;
use super::driver::{Call, call};
use crate::device::worker::message::{CallError, KernelCode, Refusal};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option as Jit};
use std::ffi::{CString, NulError, c_void};
use tessera_kernels::cuda::{Kernel, KernelSet};

/// Size of the buffer for messages of the driver's compiler, in bytes.
const LOG_BYTES: usize = 16 << 10;

/// The sets of kernels. The plain one is always loaded. The other is loaded with the first scene
/// with instances, since most devices never get one.
pub(super) struct Modules {
    plain: Module,
    instances: Option<Module>,
    cubins: Option<Cubins>,
}

impl Modules {
    /// Loads the plain set, and says from what.
    pub(super) fn load(cubins: Option<Cubins>) -> Result<(Self, KernelCode), Refusal> {
        let (plain, code) = Module::load(KernelSet::Plain, cubins.as_ref())?;
        Ok((Self { plain, instances: None, cubins }, code))
    }

    /// Returns a set, and loads it if necessary.
    pub(super) fn of(&mut self, set: KernelSet) -> Call<&Module> {
        match set {
            KernelSet::Plain => Ok(&self.plain),
            KernelSet::Instances => {
                let module = match self.instances.take() {
                    Some(module) => module,
                    None => self.instances().map_err(call_of)?,
                };
                Ok(self.instances.insert(module))
            }
        }
    }

    fn instances(&self) -> Result<Module, Refusal> {
        let (module, code) = Module::load(KernelSet::Instances, self.cubins.as_ref())?;
        if let Some(why) = code.passed_over {
            eprintln!("machine code of the kernels for instances is not used: {why}");
        }
        Ok(module)
    }
}

/// Converts a refusal: a driver that accepted one set of kernels but not the other has failed.
fn call_of(refusal: Refusal) -> CallError {
    match refusal {
        Refusal::Driver(error) => error,
        other => CallError {
            call: format!("the kernels for instances: {other}"),
            code: sys::CUresult::CUDA_ERROR_INVALID_PTX as u32,
            name: "CUDA_ERROR_INVALID_PTX".into(),
        },
    }
}

/// Kernels that are loaded on a device.
pub(super) struct Module {
    functions: Vec<(Kernel, sys::CUfunction)>,
}

// SAFETY: handles of the context, which any thread that has bound it may use.
unsafe impl Send for Module {}

impl Module {
    /// Loads a set for the current context's device: the machine code for it, if there is some and
    /// the driver takes it, otherwise what the driver makes of the PTX.
    fn load(set: KernelSet, cubins: Option<&Cubins>) -> Result<(Self, KernelCode), Refusal> {
        let found = cubins.map_or(Ok(None), |cubins| cubins.find(set));
        let passed_over = match found {
            Ok(None) => None,
            Err(problem) => Some(problem),
            Ok(Some(cubin)) => match loaded(&cubin.image).and_then(Self::of) {
                Ok(module) => {
                    let cubin = Some(cubin.capability);
                    return Ok((module, KernelCode { cubin, passed_over: None }));
                }
                Err(refusal) => Some(refusal.to_string()),
            },
        };
        let module = Self::of(compile(set.ptx())?)?;
        Ok((module, KernelCode { cubin: None, passed_over }))
    }

    /// Finds the kernels of a module.
    fn of(module: sys::CUmodule) -> Result<Self, Refusal> {
        let function = |kernel: Kernel| {
            let name = CString::new(kernel.name()).unwrap_or_default();
            // SAFETY: the module is loaded and never unloaded.
            let found = unsafe { result::module::get_function(module, name) };
            Ok((kernel, call(&format!("cuModuleGetFunction({})", kernel.name()), found)?))
        };
        let functions: Call<Vec<_>> = Kernel::ALL.into_iter().map(function).collect();
        Ok(Self { functions: functions.map_err(Refusal::Driver)? })
    }

    /// Returns a kernel's handle.
    pub(super) fn function(&self, kernel: Kernel) -> Call<sys::CUfunction> {
        let found =
            self.functions.iter().find(|(of, _)| *of == kernel).map(|(_, function)| *function);
        found.ok_or_else(|| CallError {
            call: format!("kernel {}", kernel.name()),
            code: sys::CUresult::CUDA_ERROR_NOT_FOUND as u32,
            name: "CUDA_ERROR_NOT_FOUND".into(),
        })
    }
}

/// Compiles PTX in the driver. An error contains the messages of its compiler.
pub(super) fn compile(ptx: &str) -> Result<sys::CUmodule, Refusal> {
    let refused =
        |error: NulError| Refusal::Kernels { error: error.to_string(), log: String::new() };
    loaded(CString::new(ptx).map_err(refused)?.as_bytes_with_nul())
}

/// Loads an image, PTX or machine code, which ends with a zero.
fn loaded(image: &[u8]) -> Result<sys::CUmodule, Refusal> {
    debug_assert_eq!(image.last(), Some(&0));
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [Jit::CU_JIT_ERROR_LOG_BUFFER, Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: PTX ends with a zero, and machine code says how long it is; the counts match the
    // options and values, and the log has the given size.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    call("cuModuleLoadDataEx", loaded.result())
        .map_err(|error| Refusal::Kernels { error: error.name, log: text_of(&log) })?;
    Ok(module)
}

/// Returns the compiler's messages, up to the first zero.
fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
    if text.is_empty() { "its compiler says nothing".into() } else { text }
}
