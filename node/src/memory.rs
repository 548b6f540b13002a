//! Memory that this process may use: the machine's, or less where a control group limits it. One
//! answer for what a node tells, what it admits, what it gives its importer, and for `doctor`.
//!
//! Control groups of versions 1 and 2 are read as containers, Kubernetes, Slurm and systemd set
//! them: nested groups, of which the tightest counts; the word `max`; a mount that shows only the
//! group of the container; both versions at once.

use std::fs;
use std::path::{Path, PathBuf};

/// Numbers from here on mean that there is no limit: version 1 writes the largest multiple of a
/// page that fits.
const NO_LIMIT: u64 = 1 << 60;
/// Most groups within each other that are looked at.
const DEPTH_MAX: usize = 64;

/// Memory of this machine and of this process's control groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostMemory {
    /// Memory of the machine in bytes; 0 if it is not known.
    pub machine_bytes: u64,
    /// Memory of the machine that is free, in bytes, if the system tells.
    pub free_bytes: Option<u64>,
    /// The tightest limit of this process's control groups in bytes, if there is one.
    pub group_bytes: Option<u64>,
}

impl HostMemory {
    /// Looks at this process.
    pub fn of_this_process() -> Self {
        let system = rustix::system::sysinfo();
        let machine_bytes = system.totalram.saturating_mul(system.mem_unit.into());
        Self::read(Path::new("/"), machine_bytes)
    }

    /// Reads `proc` and the control groups below a folder.
    fn read(root: &Path, machine_bytes: u64) -> Self {
        let meminfo = text_of(&root.join("proc/meminfo"));
        let machine_bytes = match machine_bytes {
            0 => field(&meminfo, "MemTotal:").unwrap_or(0),
            known => known,
        };
        Self {
            machine_bytes,
            free_bytes: field(&meminfo, "MemAvailable:"),
            group_bytes: group_limit(root),
        }
    }

    /// Returns the bytes that this process may use; 0 if nothing is known.
    pub fn bytes(&self) -> u64 {
        match (self.machine_bytes, self.group_bytes) {
            (0, group) => group.unwrap_or(0),
            (machine, group) => group.map_or(machine, |group| group.min(machine)),
        }
    }
}

/// Returns a file's text; empty if it cannot be read.
fn text_of(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns a field of `/proc/meminfo` in bytes.
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    let kib: u64 = line[name.len()..].trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// Version of a hierarchy of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A hierarchy of control groups that may limit memory: where it is mounted, and which of its
/// folders the mount shows.
struct Mount {
    version: Version,
    /// Folder of the hierarchy that the mount shows.
    shown: PathBuf,
    /// Folder where it is mounted.
    at: PathBuf,
}

/// Returns the tightest limit of this process's control groups.
fn group_limit(root: &Path) -> Option<u64> {
    let groups = text_of(&root.join("proc/self/cgroup"));
    let mounts = mounts(&text_of(&root.join("proc/self/mountinfo")));
    let limits = mounts.iter().flat_map(|mount| {
        let group = group_in(&groups, mount.version).unwrap_or("/");
        limits_of(root, mount, Path::new(group))
    });
    limits.min()
}

/// Returns the hierarchies that limit memory. Where the mounts are not told, they are at their
/// usual places.
fn mounts(mountinfo: &str) -> Vec<Mount> {
    let found: Vec<Mount> = mountinfo.lines().filter_map(mount).collect();
    if !found.is_empty() {
        return found;
    }
    let usual = |version, at: &str| Mount { version, shown: "/".into(), at: at.into() };
    vec![usual(Version::Two, "/sys/fs/cgroup"), usual(Version::One, "/sys/fs/cgroup/memory")]
}

/// Reads a line of `mountinfo`: `31 23 0:28 SHOWN AT OPTIONS ... - TYPE SOURCE SUPEROPTIONS`.
fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
    let (shown, at) = (unescaped(before.next()?), unescaped(before.next()?));
    let (kind, _source, options) = (after.next()?, after.next()?, after.next()?);
    let version = match kind {
        "cgroup2" => Version::Two,
        "cgroup" if options.split(',').any(|option| option == "memory") => Version::One,
        _ => return None,
    };
    Some(Mount { version, shown: shown.into(), at: at.into() })
}

/// Replaces the octal numbers by which `mountinfo` writes blanks.
fn unescaped(text: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// Returns this process's group in a hierarchy, by `/proc/self/cgroup`: `0::GROUP`, or
/// `4:memory:GROUP`.
fn group_in(groups: &str, version: Version) -> Option<&str> {
    groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, group) = (parts.next()?, parts.next()?, parts.next()?);
        let is_it = match version {
            Version::Two => controllers.is_empty(),
            Version::One => controllers.split(',').any(|name| name == "memory"),
        };
        is_it.then_some(group)
    })
}

/// Returns the limits of a group and of those around it, as far as the mount shows them.
fn limits_of(root: &Path, mount: &Mount, group: &Path) -> Vec<u64> {
    // A group that is elsewhere, as seen from a namespace, is not below the mount.
    let below = group.strip_prefix(&mount.shown).or_else(|_| group.strip_prefix("/"));
    let below = below.unwrap_or(Path::new(""));
    let plain = |part: std::path::Component<'_>| matches!(part, std::path::Component::Normal(_));
    let below = if below.components().all(plain) { below } else { Path::new("") };
    let top = root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
    let mut limits = Vec::new();
    for part in below.ancestors().take(DEPTH_MAX) {
        limits.extend(limits_in(&top.join(part), mount.version));
    }
    limits
}

fn limits_in(folder: &Path, version: Version) -> Vec<u64> {
    let number = |text: &str| text.trim().parse::<u64>().ok().filter(|limit| *limit < NO_LIMIT);
    let limit = |name: &str| number(&text_of(&folder.join(name)));
    match version {
        // The word `max` is no number, and no limit.
        Version::Two => limit("memory.max").into_iter().collect(),
        Version::One => {
            // It counts the groups around this one too, also those that the mount does not show.
            let stat = text_of(&folder.join("memory.stat"));
            let whole = stat
                .lines()
                .find_map(|line| number(line.strip_prefix("hierarchical_memory_limit ")?));
            limit("memory.limit_in_bytes").into_iter().chain(whole).collect()
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
