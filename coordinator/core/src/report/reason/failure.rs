//! What helps against each class of failed attempts, and against the end of a frame or job.

use super::{Text, brief};
use crate::results::failure_class::Class;
use tessera_protocol::ids::JobId;
use tessera_protocol::status::FailureNote;

/// Returns what a failed attempt means, and what helps.
pub(crate) fn attempt(note: &FailureNote) -> (&'static str, Text) {
    let why = format!("{} on `{}`: {}", note.unit, note.node, note.reason);
    match Class::named_in(&note.reason).and_then(noted) {
        Some((word, help)) => (word, brief(why, help)),
        None => ("noted", brief(why, "nothing: it was made again")),
    }
}

/// Returns the word of a class of attempts, for programs, and what helps against it. None for one
/// that is never noted with a job: the unit goes to another node, and what is wrong is said with
/// that node, or by what the job waits for.
pub(crate) fn noted(class: Class) -> Option<(&'static str, &'static str)> {
    Some(match class {
        Class::Failed => (
            "attempt_failed",
            "`tessera doctor` on that node; if every node fails it, what the job brings is at \
             fault",
        ),
        Class::TimedOut => {
            ("timed_out", "`tessera doctor` on that node, or smaller units (--unit-samples)")
        }
        Class::Unprepared => (
            "unprepared",
            "check the scene with `tessera inspect`; if others can prepare it, `tessera doctor` \
             on that node",
        ),
        Class::Limited => {
            ("limited", "raise the named limit on that node, or start a node with more")
        }
        Class::Repeated => {
            ("repeated", "`tessera doctor` on that node; others have the unit meanwhile")
        }
        Class::Lost
        | Class::OutOfMemory
        | Class::Refused
        | Class::Preempted
        | Class::Unable
        | Class::SharedShortage
        | Class::Idle => return None,
    })
}

/// Why a job or frame has ended without being done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// A frame has failed, and its job goes on.
    FrameFailed,
    /// The job has failed.
    JobFailed,
    /// Somebody has cancelled the job.
    Cancelled,
}

impl Ended {
    /// Returns the word of the reason.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::FrameFailed => "frame_failed",
            Self::JobFailed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// Returns why, as it was noted, and what helps.
    pub(crate) fn text(self, noted: &str, job: JobId) -> Text {
        let help = match self {
            Self::FrameFailed => {
                format!("once the cause is put right, `tessera retry {job}` makes it again")
            }
            Self::JobFailed => {
                format!("once the cause is put right, `tessera retry {job}` makes what is missing")
            }
            Self::Cancelled => format!("`tessera retry {job}` continues it"),
        };
        brief(noted, help)
    }
}
