//! Measures the CPU time and memory that this process has used.

use rustix::time::{ClockId, clock_gettime};

/// CPU seconds (user and system, all threads) and the largest resident size in bytes, since the
/// process began. The size is 0 where the system does not say.
pub(crate) fn usage() -> (f64, u64) {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    (time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9, peak_bytes(&status).unwrap_or(0))
}

/// The largest resident size in the text of `/proc/PID/status`.
fn peak_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_running_process_has_used_something() {
        let (secs, bytes) = super::usage();
        assert!(secs >= 0.0 && bytes > 1 << 16, "{secs} s, {bytes} bytes");
    }

    #[test]
    fn the_peak_is_read_as_the_kernel_writes_it() {
        let text = "VmPeak:\t  9000 kB\nVmHWM:\t    1932 kB\nVmRSS:\t 1 kB\n";
        assert_eq!(super::peak_bytes(text), Some(1932 * 1024));
        assert_eq!(super::peak_bytes("VmHWM: lots"), None);
    }
}
