//! Resource limits of a worker, and its rank among those that the kernel ends when memory is short.

/// A worker is ended before the node, which holds finished results and the session.
const OOM_SCORE: &str = "500";
/// Largest file that a worker may write, bytes: the compiler's cache is far smaller.
const FILE_BYTES_MAX: libc::rlim_t = 4 << 30;

/// Lowers what can be lowered; what could not.
pub(super) fn lower() -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        problems.push(format!("cannot raise oom_score_adj: {error}"));
    }
    for (resource, name, limit) in
        [(libc::RLIMIT_CORE, "core size", 0), (libc::RLIMIT_FSIZE, "file size", FILE_BYTES_MAX)]
    {
        let limits = libc::rlimit { rlim_cur: limit, rlim_max: limit };
        // SAFETY: the call reads one structure of ours.
        if unsafe { libc::setrlimit(resource, &limits) } != 0 {
            problems.push(format!("cannot limit {name}: {}", std::io::Error::last_os_error()));
        }
    }
    problems
}
