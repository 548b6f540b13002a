//! The machine and what this process may use of it: memory and limits.

use super::Finding;
use crate::table::bytes;
use rustix::process::{Resource, getrlimit};
use std::path::{Path, PathBuf};

/// Memory that a node should find free: its own 4 GiB of prepared scenes at most, and room for one
/// that is being prepared.
const MEMORY_WANTED: u64 = 4 << 30;
/// Memory without which nothing but small scenes is rendered.
const MEMORY_LEAST: u64 = 1 << 30;
/// Open files: connections, results, scene files and their views, with room to spare.
const FILES_WANTED: u64 = 4096;

/// All checks of this file.
pub(crate) fn look(gpu: bool) -> Vec<Finding> {
    let mut findings = vec![memory(), open_files()];
    if gpu {
        findings.push(locked_memory());
    }
    findings
}

fn memory() -> Finding {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let Some(available) = meminfo(&text, "MemAvailable:") else {
        return Finding::warn(
            "memory",
            "the system does not say how much is free",
            "look at /proc/meminfo",
        );
    };
    let limit = memory_limit();
    let usable = limit.map_or(available, |limit| limit.min(available));
    let text = match limit {
        Some(limit) => {
            format!("{} free, limited to {} by a control group", bytes(available), bytes(limit))
        }
        None => format!("{} free", bytes(available)),
    };
    match usable {
        usable if usable < MEMORY_LEAST => {
            Finding::fail("memory", text, "a node needs 1 GiB at the very least")
        }
        usable if usable < MEMORY_WANTED => Finding::warn(
            "memory",
            text,
            "4 GiB free, or as much as the limit, are enough for scenes of some size",
        ),
        _ => Finding::ok("memory", text),
    }
}

/// A field of `/proc/meminfo`, bytes.
fn meminfo(text: &str, field: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(field))?;
    let kib: u64 = line[field.len()..].trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The tightest memory limit of this process's control groups (version 2), bytes.
fn memory_limit() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = Path::new("/sys/fs/cgroup");
    let mut folder: PathBuf = root.join(group);
    let mut least = None;
    while folder.starts_with(root) {
        let limit = std::fs::read_to_string(folder.join("memory.max")).ok();
        // The word `max` is no number, and no limit.
        let limit: Option<u64> = limit.and_then(|text| text.trim().parse().ok());
        least = least.into_iter().chain(limit).min();
        if !folder.pop() {
            break;
        }
    }
    least
}

fn open_files() -> Finding {
    let limit = getrlimit(Resource::Nofile);
    let shown = |limit: Option<u64>| limit.map_or("any number".into(), |limit| limit.to_string());
    let text =
        format!("{} may be open ({} if asked for)", shown(limit.current), shown(limit.maximum));
    if limit.current.is_none_or(|limit| limit >= FILES_WANTED) {
        return Finding::ok("open files", text);
    }
    Finding::warn(
        "open files",
        text,
        format!("`ulimit -n {FILES_WANTED}`, or LimitNOFILE= in the unit"),
    )
}

fn locked_memory() -> Finding {
    match getrlimit(Resource::Memlock).current {
        Some(soft) => Finding::warn(
            "locked memory",
            format!("{} may be locked", bytes(soft)),
            "fast transfers to a GPU pin memory: `ulimit -l unlimited`, or LimitMEMLOCK=infinity \
                in the unit",
        ),
        None => Finding::ok("locked memory", "unlimited"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_as_the_kernel_writes_it() {
        let text = "MemTotal:       24690212 kB\nMemAvailable:   23000000 kB\n";
        assert_eq!(meminfo(text, "MemAvailable:"), Some(23_000_000 * 1024));
        assert_eq!(meminfo("MemAvailable: lots", "MemAvailable:"), None);
    }

    #[test]
    fn every_check_says_something() {
        for finding in look(true) {
            assert!(!finding.text.is_empty(), "{finding:?}");
        }
    }
}
