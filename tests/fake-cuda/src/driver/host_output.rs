//! What kernels say, where a driver puts it: `printf` into C's standard output, which keeps it
//! until it is flushed; failed assertions into standard error.

use std::ffi::c_void;
use std::io::Write;

unsafe extern "C" {
    static stdout: *mut c_void;
    fn fwrite(from: *const c_void, size: usize, count: usize, to: *mut c_void) -> usize;
}

/// Writes what kernels printed.
pub(crate) fn print(text: &[u8]) {
    if text.is_empty() {
        return;
    }
    // SAFETY: the range is readable, and C's standard output exists as long as the process. Where
    // it cannot be written, nobody listens.
    let _ = unsafe { fwrite(text.as_ptr().cast(), 1, text.len(), stdout) };
}

/// Writes the text of a failed assertion.
pub(crate) fn complain(assertion: &str) {
    // Where standard error is closed, nobody listens.
    let _ = writeln!(std::io::stderr(), "{assertion}");
}
