//! What helps against each class of failed attempts, and against the end of a frame or job.

use super::{Text, brief};
use crate::results::failure_class::Class;
use tessera_protocol::ids::JobId;
use tessera_protocol::status::FailureNote;

/// Returns what a failed attempt means, and what helps.
pub(crate) fn attempt(note: &FailureNote) -> (&'static str, Text) {
    let why = format!("{} on `{}`: {}", note.unit, note.node, note.reason);
    match Class::named_in(&note.reason) {
        Some(class) => (class.word(), brief(why, class_help(class))),
        None => ("noted", brief(why, "nothing: it was made again")),
    }
}

/// Returns what helps against a class of failures.
pub(crate) fn class_help(class: Class) -> &'static str {
    match class {
        Class::Lost => "nothing: another node has it; look at the node's network if it repeats",
        Class::Failed => {
            "`tessera doctor` on that node; if every node fails it, what the job \
            brings is at fault"
        }
        Class::OutOfMemory => "nothing: a device with more memory gets it",
        Class::TimedOut => "`tessera doctor` on that node, or smaller units (--unit-samples)",
        Class::Refused => "nothing: the node gave it back before it began",
        Class::Preempted => "nothing: another node has it",
        Class::Unable => "a newer build or driver on that node",
        Class::SharedShortage => "put right what it names: a file that is missing, a full disk",
        Class::Unprepared => {
            "check the scene with `tessera inspect`; if others can prepare it, \
            `tessera doctor` on that node"
        }
        Class::Limited => "raise the named limit on that node, or start a node with more",
        Class::Repeated => "`tessera doctor` on that node; others have the unit meanwhile",
        Class::Idle => "restart that node: it is connected and begins nothing",
    }
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
