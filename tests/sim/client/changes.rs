//! What is changed of a job that was submitted. Who asks for it is in `client`.

use tessera_protocol::job::JobEdit;

/// What is changed of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Changed {
    Name(u64),
    Priority(u8),
    MaxNodes(Option<u32>),
    /// Seconds of the coordinator's clock; an odd number lets the job begin at once.
    NotBefore(u64),
    /// By the owner, who may not.
    Raised,
    ByOperator,
}

impl Changed {
    pub(super) fn change(self) -> JobEdit {
        let none = JobEdit::default();
        match self {
            Self::Name(number) => JobEdit { name: Some(format!("take {number}")), ..none },
            Self::Priority(priority) => JobEdit { priority: Some(priority), ..none },
            Self::MaxNodes(nodes) => JobEdit { max_nodes: Some(nodes), ..none },
            Self::NotBefore(secs) => {
                let not_before = secs.is_multiple_of(2).then_some(secs);
                JobEdit { not_before: Some(not_before), ..none }
            }
            Self::Raised => JobEdit { priority: Some(RAISED + 1), ..none },
            Self::ByOperator => JobEdit { priority: Some(RAISED), ..none },
        }
    }
}

/// Priority to which an operator raises jobs.
pub(super) const RAISED: u8 = 90;
