//! What a job waits for, as it is kept: the waits that are not over, and the frames that may go
//! ahead. Decides nothing.

use std::collections::BTreeSet;
use tessera_protocol::job::{After, Until};

/// A wait that is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenWait {
    pub(crate) after: After,
    /// Number of the job's frames that are not finished in the other job, where frames are waited
    /// for; 0 otherwise, and once the job has ended.
    pub(crate) missing: u32,
}

/// What a job still waits for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub(in crate::state) pending: Vec<OpenWait>,
    /// Positions of the frames that every wait for frames lets go ahead; empty if there is none,
    /// and once the job has ended.
    pub(in crate::state) opened: BTreeSet<u32>,
}

impl Waits {
    pub(in crate::state) fn of(after: &[After]) -> Self {
        let pending = after.iter().map(|after| OpenWait { after: *after, missing: 0 }).collect();
        Self { pending, opened: BTreeSet::new() }
    }

    /// Whether something else than single frames is waited for.
    pub(in crate::state) fn holds_all(&self) -> bool {
        self.pending.iter().any(|wait| wait.after.until != Until::Frames)
    }
}
