//! The newest entries of the audit log, on their way into the store. The audit log writes its head
//! here, and the writer adds it to its next commit. So whoever shortens the log has to change the
//! store too. A store elsewhere gets the entries as well. Does not interpret the bytes.

use crate::sync::lock;
use std::sync::{Arc, Mutex};

/// An entry of the audit log as a store has it: its number, and the bytes of
/// [`AuditLine`](crate::store::AuditLine).
pub type AuditEntry = (u64, Vec<u8>);

/// What the store does not have yet. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AuditHead(Arc<Mutex<Waiting>>);

/// A head, and the entries up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Number and hash of the newest entry; None if the store has them.
    pub head: Option<Vec<u8>>,
    /// Entries for a store elsewhere, oldest first.
    pub entries: Vec<AuditEntry>,
}

impl AuditHead {
    /// Replaces the head that waits, and adds entries to those that do.
    pub fn set(&self, head: Vec<u8>, entries: impl IntoIterator<Item = AuditEntry>) {
        let mut waiting = lock(&self.0);
        waiting.head = Some(head);
        waiting.entries.extend(entries);
    }

    /// Returns what waits.
    pub fn waiting(&self) -> Waiting {
        lock(&self.0).clone()
    }

    /// Records that the store has this. What is newer still waits.
    pub fn kept(&self, kept: &Waiting) {
        let mut waiting = lock(&self.0);
        if waiting.head == kept.head {
            waiting.head = None;
        }
        let newest = kept.entries.last().map_or(0, |(number, _)| *number);
        waiting.entries.retain(|(number, _)| *number > newest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_newer_than_a_commit_still_waits() {
        let head = AuditHead::default();
        head.set(vec![1], Some((1, vec![10])));
        let first = head.waiting();
        head.set(vec![2], Some((2, vec![20])));
        head.kept(&first);
        assert_eq!(head.waiting(), Waiting { head: Some(vec![2]), entries: vec![(2, vec![20])] });
        head.kept(&head.waiting());
        assert_eq!(head.waiting(), Waiting::default());
    }
}
