//! The kernels on the device: the driver compiles the PTX, and says why where it does not. Owns no launch.

use super::driver::{Call, call};
use crate::device::worker::message::{CallError, Refusal};
use cudarc::driver::result;
use cudarc::driver::sys::{self, CUjit_option as Jit};
use std::ffi::{CString, c_void};
use tessera_kernels::cuda::Kernel;

/// Room for what the driver's compiler says, bytes.
const LOG_BYTES: usize = 16 << 10;

/// Loaded kernels.
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

    /// A kernel's handle.
    pub(super) fn function(&self, kernel: Kernel) -> Call<sys::CUfunction> {
        let found = self.functions.iter().find(|(of, _)| *of == kernel).map(|(_, function)| *function);
        found.ok_or_else(|| CallError {
            call: format!("kernel {}", kernel.name()),
            code: sys::CUresult::CUDA_ERROR_NOT_FOUND as u32,
            name: "CUDA_ERROR_NOT_FOUND".into(),
        })
    }
}

/// Has the driver compile PTX; what its compiler says of PTX that it does not take is told.
pub(super) fn compile(ptx: &str) -> Result<sys::CUmodule, Refusal> {
    let refused = |error: String, log: String| Refusal::Kernels { error, log };
    let text = CString::new(ptx).map_err(|error| refused(error.to_string(), String::new()))?;
    let mut log = vec![0u8; LOG_BYTES];
    let mut options = [Jit::CU_JIT_ERROR_LOG_BUFFER, Jit::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
    let mut module = std::ptr::null_mut();
    // SAFETY: the text ends with a zero; options and values are as many as said, and the log has the size that is said.
    let loaded = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            text.as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    call("cuModuleLoadDataEx", loaded.result()).map_err(|error| refused(error.name, text_of(&log)))?;
    Ok(module)
}

/// What the compiler wrote, up to its first zero.
fn text_of(log: &[u8]) -> String {
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    let text = String::from_utf8_lossy(&log[..end]).trim().to_owned();
    if text.is_empty() { "its compiler says nothing".into() } else { text }
}
