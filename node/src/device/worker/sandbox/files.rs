//! Files that a worker can open: the system's libraries and the driver's devices, by Landlock.
//! Knows no sockets.

use super::{Allowed, FileConfinement};
use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use tessera_transport::error::chain;

/// Version of Landlock that is requested. Older kernels enforce the rules that they know.
pub(super) const ASKED: ABI = ABI::V6;

/// Paths that loaders, libraries and the driver read. Missing ones are left out.
const READ: &[&str] = &[
    "/usr",
    "/lib",
    "/lib64",
    "/etc",
    "/opt",
    "/proc",
    "/sys",
    "/dev",
    "/nix/store",
    "/run/opengl-driver",
    // The driver's library asks for the persistence daemon. It gives up if the daemon is refused
    // (and not absent).
    "/run/nvidia-persistenced",
    "/var/run/nvidia-persistenced",
];

/// Paths that the driver's library writes: devices of this machine, and shared memory between its
/// own processes.
const DEVICES: &[&str] =
    &["/dev/null", "/dev/zero", "/dev/shm", "/dev/dxg", "/dev/nvidia-caps", "/tmp/nvidia-mps"];

/// Folder of this process's threads.
const OWN_THREADS: &str = "/proc/self/task";

/// Confines the calling thread and everything that it starts.
pub(super) fn confine(asked: ABI, allowed: &Allowed) -> Result<FileConfinement, String> {
    enforce(asked, allowed).map_err(|error| format!("cannot confine files: {}", chain(&error)))
}

/// Confines the calling thread, reachable threads of its process and everything that it starts to
/// reading these folders and files.
pub(super) fn confine_to(asked: ABI, readable: &[PathBuf]) -> Result<FileConfinement, String> {
    let enforced = || {
        let mut rules = rules(asked)?;
        for path in readable {
            rules = add(rules, path, AccessFs::ReadFile | AccessFs::ReadDir)?;
        }
        enforced(rules)
    };
    enforced().map_err(|error: RulesetError| format!("cannot confine files: {}", chain(&error)))
}

/// Returns rules that allow nothing.
fn rules(asked: ABI) -> Result<RulesetCreated, RulesetError> {
    let mut rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(asked))?;
    let (net, scope) = (AccessNet::from_all(asked), Scope::from_all(asked));
    if !net.is_empty() {
        rules = rules.handle_access(net)?;
    }
    if !scope.is_empty() {
        rules = rules.scope(scope)?;
    }
    rules.create()
}

fn enforced(rules: RulesetCreated) -> Result<FileConfinement, RulesetError> {
    Ok(match rules.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => FileConfinement::Full,
        RulesetStatus::PartiallyEnforced => FileConfinement::Partial,
        RulesetStatus::NotEnforced => FileConfinement::None,
    })
}

fn enforce(asked: ABI, allowed: &Allowed) -> Result<FileConfinement, RulesetError> {
    let read = AccessFs::from_read(asked);
    let write = AccessFs::from_all(asked) & !AccessFs::Execute;
    let mut rules = rules(asked)?;
    let system = READ.iter().map(PathBuf::from);
    for path in system.chain(allowed.read.iter().cloned()) {
        rules = add(rules, &path, read)?;
    }
    let devices = DEVICES.iter().map(PathBuf::from).chain(nvidia_devices());
    for path in devices.chain(allowed.write.iter().cloned()) {
        rules = add(rules, &path, write)?;
    }
    // The driver's library names its threads there, and gives up (error 304) if it cannot. It opens
    // their files as if it were to shorten them.
    let threads = AccessFs::WriteFile | AccessFs::Truncate;
    rules = add(rules, Path::new(OWN_THREADS), read | threads)?;
    // The rule holds for as long as the kernel keeps this folder in memory.
    std::mem::forget(File::open(OWN_THREADS));
    enforced(rules)
}

/// Adds a rule for an existing path. A file does not take the rights that only folders have.
fn add(
    rules: RulesetCreated,
    path: &Path,
    access: BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    let Ok(opened) = PathFd::new(path) else { return Ok(rules) };
    let access = if path.is_dir() { access } else { access & AccessFs::from_file(ASKED) };
    rules.add_rule(PathBeneath::new(opened, access))
}

/// Returns the driver's device files. Files that are made later are out of reach, so the driver
/// must be loaded before the node starts.
fn nvidia_devices() -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir("/dev") else { return Vec::new() };
    let paths = entries.flatten().map(|entry| entry.path());
    paths.filter(|path| path.to_string_lossy().starts_with("/dev/nvidia")).collect()
}
