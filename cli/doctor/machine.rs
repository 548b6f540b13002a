//! The machine and what this process may use of it: memory and limits.

use super::Finding;
use crate::table::bytes;
use rustix::process::{Resource, getrlimit};
use tessera_node::memory::HostMemory;

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
    let host = HostMemory::of_this_process();
    let Some(available) = host.free_bytes else {
        return Finding::warn(
            "memory",
            "the system does not say how much is free",
            "look at /proc/meminfo",
        );
    };
    let limit = host.group_bytes;
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
    fn every_check_says_something() {
        for finding in look(true) {
            assert!(!finding.text.is_empty(), "{finding:?}");
        }
    }
}
