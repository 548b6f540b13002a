//! The newest entry of the audit log, on its way into the journal. The audit log writes its head
//! here, and the writer adds it to its next commit. So whoever shortens the log has to change the
//! journal too. Does not interpret the bytes.

use crate::sync::lock;
use std::sync::{Arc, Mutex};

/// A head that the journal does not have yet. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct AuditHead(Arc<Mutex<Option<Vec<u8>>>>);

impl AuditHead {
    /// Replaces the head that waits.
    pub fn set(&self, head: Vec<u8>) {
        *lock(&self.0) = Some(head);
    }

    /// Returns the head that waits.
    pub fn waiting(&self) -> Option<Vec<u8>> {
        lock(&self.0).clone()
    }

    /// Records that the journal has this head. A newer one still waits.
    pub fn kept(&self, head: &[u8]) {
        let mut waiting = lock(&self.0);
        if waiting.as_deref() == Some(head) {
            *waiting = None;
        }
    }
}
