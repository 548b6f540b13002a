//! The floating-point mode of the thread. Kernels run in the default mode (round to nearest,
//! denormals kept), whatever mode another library has left.

/// Sets the default mode, and restores the former one when dropped.
pub(crate) struct FloatMode {
    former: u64,
}

impl FloatMode {
    /// Sets the mode that the kernels need.
    pub(crate) fn strict() -> Self {
        let former = read();
        write(DEFAULT);
        Self { former }
    }
}

impl Drop for FloatMode {
    fn drop(&mut self) {
        write(self.former);
    }
}

/// The default mode: all exceptions masked, round to nearest, no flush to zero, no
/// denormals-are-zero.
#[cfg(target_arch = "x86_64")]
const DEFAULT: u64 = 0x1f80;
#[cfg(not(target_arch = "x86_64"))]
const DEFAULT: u64 = 0;

#[cfg(target_arch = "x86_64")]
fn read() -> u64 {
    let mut mode = 0u32;
    // SAFETY: stores the 32-bit control register into `mode`, nothing else.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &mut mode, options(nostack, preserves_flags))
    };
    u64::from(mode)
}

#[cfg(target_arch = "x86_64")]
fn write(mode: u64) {
    let mode = mode as u32;
    // SAFETY: loads the control register from `mode`, which is the default or was read from the
    // register before, so no reserved bit is set. Rust code in between runs in the default mode or
    // the one that the thread had.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &mode, options(nostack, readonly, preserves_flags))
    };
}

#[cfg(target_arch = "aarch64")]
fn read() -> u64 {
    let mode: u64;
    // SAFETY: reads the floating-point control register.
    unsafe {
        std::arch::asm!("mrs {}, fpcr", out(reg) mode, options(nomem, nostack, preserves_flags))
    };
    mode
}

#[cfg(target_arch = "aarch64")]
fn write(mode: u64) {
    // SAFETY: writes the floating-point control register with the default or a value that was read
    // from it.
    unsafe {
        std::arch::asm!("msr fpcr, {}", in(reg) mode, options(nomem, nostack, preserves_flags))
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn read() -> u64 {
    DEFAULT
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn write(_: u64) {}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;

    #[test]
    fn a_foreign_float_mode_is_replaced_and_restored() {
        const FLUSH_TO_ZERO: u64 = 0x8000;
        let original = read();
        write(original | FLUSH_TO_ZERO);
        {
            let _mode = FloatMode::strict();
            assert_eq!(read() & 0xffc0, DEFAULT);
        }
        assert_eq!(read() & FLUSH_TO_ZERO, FLUSH_TO_ZERO);
        write(original);
    }
}
