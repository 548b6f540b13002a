//! The sandbox of a worker: no network, no keys, no other programs. It is entered before any
//! library of NVIDIA's is opened. If the kernel lacks a part, the rest is enforced, and the report
//! says so.

mod files;
mod limits;
mod network;

use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Files that a worker can open besides those of the system.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Allowed {
    /// Files and folders that it can read: libraries outside the system's folders.
    pub(crate) read: Vec<PathBuf>,
    /// Folders in which it can write: the compiler's cache and its own temporary folder.
    pub(crate) write: Vec<PathBuf>,
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
    let mut problems = limits::lower();
    // Files first: opening the paths of the rules needs calls that the filter may refuse.
    let files = match files::confine(allowed) {
        Ok(confinement) => confinement,
        Err(problem) => {
            problems.push(problem);
            FileConfinement::None
        }
    };
    if files == FileConfinement::None {
        problems
            .push("this kernel has no Landlock: the worker can read what its user can read".into());
    }
    let no_network = match network::close() {
        Ok(()) => true,
        Err(problem) => {
            problems.push(problem);
            false
        }
    };
    SandboxReport { wanted: true, no_network, files, problems }
}

/// Confines a scene importer: it reads only these folders and files, has only the socket that it
/// was given, and gets this much memory. Without `confine`, only the memory is limited.
pub(crate) fn enter_importer(
    readable: &[PathBuf],
    confine: bool,
    memory_bytes: u64,
) -> SandboxReport {
    let mut problems = limits::lower_importer(memory_bytes);
    if !confine {
        return SandboxReport { problems, ..not_wanted() };
    }
    let files = files::confine_to(readable).unwrap_or_else(|problem| {
        problems.push(problem);
        FileConfinement::None
    });
    let closed = network::close_all();
    let no_network = closed.is_ok();
    problems.extend(closed.err());
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
