//! Which jobs a request is about.

use tessera_protocol::selection::JobSelection;

/// A selection of jobs whose owner the shell has found. Its lengths are checked
/// ([`JobSelection::check`]).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// What the client gave. The text of the owner is only for messages.
    pub jobs: JobSelection,
    /// Number of the owner's identity; None selects jobs of any owner.
    pub owner: Option<u64>,
}

impl From<JobSelection> for Selection {
    /// Selects jobs of any owner.
    fn from(jobs: JobSelection) -> Self {
        Self { jobs, owner: None }
    }
}
