//! What becomes of the system calls of a worker, and how the kernel is told.

use super::calls::Calls;
use super::{importer, needed, refused};
use seccompiler::SeccompAction;

/// What becomes of calls.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    /// Calls that get the answer of a kernel that does not have them.
    absent: Calls,
    others: Others,
}

#[derive(Clone, Debug)]
enum Others {
    /// All calls but these are refused.
    Only(Calls),
    /// The first calls are refused. Those that are not of the second set either are logged by the
    /// kernel.
    Without(Calls, Calls),
}

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It is made.
    Allowed,
    /// It is made, and logged by the kernel.
    Logged,
    /// It fails with `EACCES`.
    Refused,
    /// It fails with `ENOSYS`.
    Absent,
}

impl Policy {
    /// Of the device worker with this process id.
    pub(super) fn of_worker(own: u32) -> Self {
        let others = Others::Without(refused::refused(own), needed::needed());
        Self { absent: refused::absent(), others }
    }

    /// Of the scene importer with this process id.
    pub(super) fn of_importer(own: u32) -> Self {
        Self { absent: refused::absent(), others: Others::Only(importer::allowed(own)) }
    }

    /// Returns what becomes of a call. Allocates nothing.
    pub(super) fn verdict(&self, number: i64, arguments: &[u64; 6]) -> Verdict {
        if self.absent.has(number, arguments) {
            return Verdict::Absent;
        }
        match &self.others {
            Others::Only(allowed) if allowed.has(number, arguments) => Verdict::Allowed,
            Others::Only(_) => Verdict::Refused,
            Others::Without(refused, _) if refused.has(number, arguments) => Verdict::Refused,
            Others::Without(_, needed) if needed.has(number, arguments) => Verdict::Allowed,
            Others::Without(..) => Verdict::Logged,
        }
    }

    /// Returns the name of a call, if a list has it.
    pub(super) fn name(&self, number: i64) -> Option<&'static str> {
        let listed = match &self.others {
            Others::Only(allowed) => allowed.name(number),
            Others::Without(refused, needed) => {
                refused.name(number).or_else(|| needed.name(number))
            }
        };
        listed.or_else(|| self.absent.name(number))
    }

    /// Has the kernel enforce this permanently, for every thread of this process.
    pub(super) fn enforce(&self) -> Result<(), String> {
        let refusal = SeccompAction::Errno(libc::EACCES.unsigned_abs());
        let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
        apply(&self.absent, unknown, SeccompAction::Allow)?;
        match &self.others {
            // The last filter: after it no other one can be added.
            Others::Only(allowed) => apply(allowed, SeccompAction::Allow, refusal),
            Others::Without(refused, needed) => {
                apply(refused, refusal, SeccompAction::Allow)?;
                // Kernels without this action end the process instead.
                if !can(libc::SECCOMP_RET_LOG) {
                    return Ok(());
                }
                apply(needed, SeccompAction::Allow, SeccompAction::Log)
            }
        }
    }
}

fn apply(calls: &Calls, so: SeccompAction, otherwise: SeccompAction) -> Result<(), String> {
    let text = |error: &dyn std::error::Error| format!("cannot filter system calls: {error}");
    let program = calls.filter(so, otherwise).map_err(|error| text(&error))?;
    seccompiler::apply_filter_all_threads(&program).map_err(|error| text(&error))
}

/// Returns whether the kernel filters calls.
pub(super) fn is_available() -> bool {
    can(libc::SECCOMP_RET_ERRNO)
}

/// Returns whether the kernel has this action for a call.
fn can(action: u32) -> bool {
    // SAFETY: the call reads the action, which lives until it returns.
    let available = unsafe {
        libc::syscall(
            libc::SYS_seccomp,
            libc::SECCOMP_GET_ACTION_AVAIL,
            0,
            std::ptr::from_ref(&action),
        )
    };
    available == 0
}
