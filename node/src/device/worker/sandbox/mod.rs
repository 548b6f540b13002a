//! The sandbox of a worker: no network, no keys, no other programs. It is entered before any
//! library of NVIDIA's is opened. If the kernel lacks a part, the rest is enforced, and the report
//! says so.

mod calls;
mod files;
mod importer;
mod limits;
mod needed;
mod policy;
mod record;
mod refused;
mod rights;
mod setting;

pub use setting::{Sandbox, SandboxError, Unconfined};

use landlock::ABI;
use policy::Policy;
use rustix::thread::CapabilitySet;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::{Path, PathBuf};

/// Folder in which workers and importers record their system calls, for measurements.
const RECORD: &str = "TESSERA_RECORD_CALLS";

/// Returns the folder for records of system calls, if they are wanted.
pub(crate) fn record_folder() -> Option<PathBuf> {
    let folder = std::env::var_os(RECORD).filter(|folder| !folder.is_empty())?;
    std::path::absolute(folder).ok()
}

/// Files that a worker can open besides those of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Allowed {
    /// Files and folders that it can read: libraries outside the system's folders.
    pub(crate) read: Vec<PathBuf>,
    /// Folders in which it can write: the compiler's cache and its own temporary folder.
    pub(crate) write: Vec<PathBuf>,
    /// Folder for records of system calls. Every call is then slower.
    pub(crate) record: Option<PathBuf>,
    /// Whether a worker ends itself where it cannot be confined.
    pub(crate) is_required: bool,
}

/// State of a worker's sandbox.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SandboxReport {
    /// Whether the sandbox was requested.
    pub wanted: bool,
    /// Whether sockets of every network are refused (seccomp).
    pub no_network: bool,
    /// Whether other files than the allowed ones are refused (Landlock): completely, partly, or not
    /// at all.
    pub files: FileConfinement,
    /// Parts that could not be enforced, with the reasons.
    pub problems: Vec<String>,
}

/// How far a worker's files are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileConfinement {
    /// Everything that this build requests is enforced.
    Full,
    /// The kernel supports less than this build requests. Reading and writing files is confined.
    Partial,
    /// Nothing is confined: the kernel lacks Landlock, or it is switched off.
    None,
}

impl SandboxReport {
    /// Returns whether there is no network and no access to keys, as designed.
    pub fn holds(&self) -> bool {
        self.no_network && self.files != FileConfinement::None
    }
}

impl fmt::Display for SandboxReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.wanted {
            return f.write_str("switched off (TESSERA_SANDBOX=off)");
        }
        let network = if self.no_network { "no network" } else { "NETWORK NOT CLOSED" };
        let files = match self.files {
            FileConfinement::Full | FileConfinement::Partial => "no files but the driver's",
            FileConfinement::None => "FILES NOT CONFINED",
        };
        write!(f, "{network}, {files}")?;
        self.problems.iter().try_for_each(|problem| write!(f, "; {problem}"))
    }
}

/// Confines the calling thread and everything that it starts. This cannot be undone.
pub(super) fn enter(allowed: &Allowed) -> SandboxReport {
    enter_asking(files::ASKED, allowed)
}

/// The same with what this version of Landlock can confine.
fn enter_asking(asked: ABI, allowed: &Allowed) -> SandboxReport {
    let problems = limits::lower();
    let policy = Policy::of_worker(std::process::id());
    confine(policy, allowed.record.as_deref(), problems, CapabilitySet::empty(), || {
        files::confine(asked, allowed)
    })
}

/// Confines a scene importer: it reads only these folders and files, has only the socket that it
/// was given, and gets this much memory. Without `confine`, only the memory is limited.
pub(crate) fn enter_importer(
    readable: &[PathBuf],
    is_confined: bool,
    memory_bytes: u64,
    record: Option<&Path>,
) -> SandboxReport {
    enter_importer_asking(files::ASKED, readable, is_confined, memory_bytes, record)
}

/// The same with what this version of Landlock can confine.
fn enter_importer_asking(
    asked: ABI,
    readable: &[PathBuf],
    is_confined: bool,
    memory_bytes: u64,
    record: Option<&Path>,
) -> SandboxReport {
    let problems = limits::lower_importer(memory_bytes, record.map_or(0, |_| record::BYTES_MAX));
    if !is_confined {
        return SandboxReport { problems, ..not_wanted() };
    }
    let policy = Policy::of_importer(std::process::id());
    // A scene may belong to somebody whom only a privileged user can read.
    confine(policy, record, problems, CapabilitySet::DAC_READ_SEARCH, || {
        files::confine_to(asked, readable)
    })
}

/// Confines files, then capabilities, then calls. `kept` are capabilities that are harmless where
/// files are confined.
fn confine(
    policy: Policy,
    record: Option<&Path>,
    mut problems: Vec<String>,
    kept: CapabilitySet,
    confine_files: impl FnOnce() -> Result<FileConfinement, String>,
) -> SandboxReport {
    let record = record.map(record::open);
    // Files first: opening the paths of the rules needs calls and rights that are given up below.
    let files = confine_files().unwrap_or_else(|problem| {
        problems.push(problem);
        FileConfinement::None
    });
    let kept = match files {
        FileConfinement::None => CapabilitySet::empty(),
        FileConfinement::Full | FileConfinement::Partial => kept,
    };
    problems.extend(rights::drop_all_but(kept).err());
    let calls = match record {
        Some(file) => file.and_then(|file| record::start(policy, file)),
        None => policy.enforce(),
    };
    let no_network = calls.is_ok();
    problems.extend(calls.err());
    SandboxReport { wanted: true, no_network, files, problems }
}

/// Returns the report of a worker that was told not to confine itself.
pub(super) fn not_wanted() -> SandboxReport {
    SandboxReport {
        wanted: false,
        no_network: false,
        files: FileConfinement::None,
        problems: Vec::new(),
    }
}

#[cfg(test)]
mod probe_tests;
