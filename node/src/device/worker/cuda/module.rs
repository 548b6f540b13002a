//! The kernels on the device. The driver compiles the PTX, and says why if it refuses. Owns no
//! launch.

use super::driver::{Call, call};
use crate::device::worker::message::{CallError, Refusal};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option as Jit};
use std::ffi::{CString, c_void};
use tessera_kernels::cuda::{Kernel, KernelSet};

/// Size of the buffer for messages of the driver's compiler, in bytes.
const LOG_BYTES: usize = 16 << 10;

/// The sets of kernels. The plain one is always loaded. The other is loaded with the first scene
/// with instances, since most devices never get one.
pub(super) struct Modules {
    plain: Module,
    instances: Option<Module>,
}

impl Modules {
    /// Loads the plain set.
    pub(super) fn load() -> Result<Self, Refusal> {
        Ok(Self { plain: Module::load(KernelSet::Plain.ptx())?, instances: None })
    }

    /// Returns a set, and loads it if necessary.
    pub(super) fn of(&mut self, set: KernelSet) -> Call<&Module> {
        match set {
            KernelSet::Plain => Ok(&self.plain),
            KernelSet::Instances => {
                let module = match self.instances.take() {
                    Some(module) => module,
                    None => Module::load(set.ptx()).map_err(call_of)?,
                };
                Ok(self.instances.insert(module))
            }
        }
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
    /// Has the driver compile `ptx` for the current context's device.
    pub(super) fn load(ptx: &str) -> Result<Self, Refusal> {
        let module = compile(ptx)?;
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
    let refused = |error: String, log: String| Refusal::Kernels { error, log };
    let text = CString::new(ptx).map_err(|error| refused(error.to_string(), String::new()))?;
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [Jit::CU_JIT_ERROR_LOG_BUFFER, Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends with a zero; the counts match the options and values, and the log has
    // the given size.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    call("cuModuleLoadDataEx", loaded.result())
        .map_err(|error| refused(error.name, text_of(&log)))?;
    Ok(module)
}

/// Returns the compiler's messages, up to the first zero.
fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
    if text.is_empty() { "its compiler says nothing".into() } else { text }
}
