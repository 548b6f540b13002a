//! Whether a device can run a kernel in blocks of some shape: asked of the driver before anything
//! is launched. Launches nothing.

use super::driver::{Call, call};
use cudarc::driver::result::function::{get_function_attribute, set_function_attribute};
use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};

/// Checks the threads and the shared memory of a block against the kernel's registers and the
/// device, and asks for more shared memory than the default where it is needed. `limits` are the
/// device's bytes of shared memory, the default and the most.
pub(super) fn prepare(
    function: sys::CUfunction,
    (block, shared_bytes): ([u32; 3], u32),
    (plain, most): (u32, u32),
) -> Call<Result<(), String>> {
    let attribute = |attribute: Attribute| {
        // SAFETY: the function is of a loaded module.
        let value =
            call("cuFuncGetAttribute", unsafe { get_function_attribute(function, attribute) });
        value.map(|value| u32::try_from(value).unwrap_or(0))
    };
    let threads = block.iter().fold(1u32, |product, edge| product.saturating_mul(*edge));
    let threads_max = attribute(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?;
    if !(1..=threads_max).contains(&threads) {
        let registers = attribute(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?;
        return Ok(Err(format!(
            "a block of {threads} threads is too large for this device: with {registers} registers \
                a thread it takes {threads_max} at most; use a smaller --block, or \
                __launch_bounds__({threads}) in the kernel"
        )));
    }
    let declared = attribute(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?;
    let all = declared.saturating_add(shared_bytes);
    if all > most {
        return Ok(Err(format!(
            "a block needs {all} bytes of shared memory ({declared} that the kernel declares and \
                {shared_bytes} of --shared), and this device has {most}"
        )));
    }
    if all > plain {
        let value = i32::try_from(shared_bytes).unwrap_or(i32::MAX);
        let name = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        // SAFETY: as above.
        let set = unsafe { set_function_attribute(function, name, value) };
        call("cuFuncSetAttribute", set)?;
    }
    Ok(Ok(()))
}
