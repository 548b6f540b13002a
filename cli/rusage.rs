//! What this process has used: CPU time and memory.

/// CPU seconds (user and system, all threads) and the largest resident size in bytes, since the
/// process began.
pub(crate) fn usage() -> (f64, u64) {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a whole `rusage`, which zeroes are a value of; the call writes
    // nothing else.
    let usage = unsafe {
        libc::getrusage(libc::RUSAGE_SELF, usage.as_mut_ptr());
        usage.assume_init()
    };
    let secs = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 * 1e-6;
    // Linux counts KiB, macOS bytes.
    let unit = if cfg!(target_os = "macos") { 1 } else { 1024 };
    (
        secs(usage.ru_utime) + secs(usage.ru_stime),
        u64::try_from(usage.ru_maxrss).unwrap_or(0) * unit,
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_running_process_has_used_something() {
        let (secs, bytes) = super::usage();
        assert!(secs >= 0.0 && bytes > 1 << 16, "{secs} s, {bytes} bytes");
    }
}
