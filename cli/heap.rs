//! The heap of a process that serves many peers.

/// Fewest arenas, in which threads allocate beside each other.
const ARENAS_MIN: usize = 4;
/// Variable with which the system's allocator lets users decide.
const VARIABLE: &str = "MALLOC_ARENA_MAX";

/// Bounds the arenas of the system's allocator to one a processor. It makes eight by itself, each
/// of which keeps what its threads have freed: a coordinator with 1,000 nodes grew by 52 to 92 MiB
/// over 500,000 units, and by 24 to 57 with so few.
pub(crate) fn bound_arenas() {
    if std::env::var_os(VARIABLE).is_some() {
        return;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let arenas = i32::try_from(processors.max(ARENAS_MIN)).unwrap_or(i32::MAX);
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: it sets a number of the allocator, which any thread may do at any time. Where that
    // fails, nothing changes.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, arenas);
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    let _ = arenas;
}
