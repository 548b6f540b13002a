//! Resource limits of a worker, and its rank among the processes that the kernel ends when memory
//! is short.

use rustix::process::{Resource, Rlimit, setrlimit};

/// Rank of a worker. It is ended before the node, which holds finished results and the session.
const OOM_SCORE: &str = "500";
/// Largest file that a worker can write, in bytes. The compiler's cache is far smaller.
const FILE_BYTES_MAX: u64 = 4 << 30;

/// Most files that a scene importer can have open: its pipes, and one file of the scene.
const IMPORTER_FILES_MAX: u64 = 64;
/// Address space in bytes that an importer can use beyond its memory: the program itself, and what
/// the allocator reserves.
const IMPORTER_ADDRESSES: u64 = 2 << 30;

/// Lowers the limits that can be lowered. Returns those that could not.
pub(super) fn lower() -> Vec<String> {
    set(&[(Resource::Core, "core size", 0), (Resource::Fsize, "file size", FILE_BYTES_MAX)])
}

/// Lowers the limits of a scene importer. It can write the files of the node for its arrays, which
/// are no longer than its memory, and `file_bytes` of a record.
/// Returns those that could not be lowered.
pub(super) fn lower_importer(memory_bytes: u64, file_bytes: u64) -> Vec<String> {
    set(&[
        (Resource::Core, "core size", 0),
        (Resource::Fsize, "file size", memory_bytes.max(file_bytes)),
        (Resource::Nofile, "open files", IMPORTER_FILES_MAX),
        (Resource::Data, "memory", memory_bytes),
        // Some kernels do not count mappings as data.
        (Resource::As, "addresses", memory_bytes.saturating_add(IMPORTER_ADDRESSES)),
    ])
}

fn set(limits: &[(Resource, &str, u64)]) -> Vec<String> {
    let mut problems = Vec::new();
    if let Err(error) = std::fs::write("/proc/self/oom_score_adj", OOM_SCORE) {
        problems.push(format!("cannot raise oom_score_adj: {error}"));
    }
    for (resource, name, limit) in limits {
        let limits = Rlimit { current: Some(*limit), maximum: Some(*limit) };
        if let Err(error) = setrlimit(*resource, limits) {
            problems.push(format!("cannot limit {name}: {error}"));
        }
    }
    problems
}
