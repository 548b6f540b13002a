//! What was changed of a job since it was submitted: its name, and when and where it is worked on.

use super::{Job, bytes_of};
use tessera_protocol::job::JobEdit;

impl Job {
    /// Changes the job. The error says why it cannot be changed.
    pub(in crate::state) fn change(&mut self, change: JobEdit) -> Result<(), String> {
        if self.is_final() {
            return Err(format!("job {} is changed, and has ended", self.id));
        }
        let undo = change.apply(&mut self.spec);
        if undo.is_empty() {
            return Err(format!("job {} is changed to what it was", self.id));
        }
        self.undo.merge(undo);
        self.spec_bytes = bytes_of(&self.spec);
        Ok(())
    }

    /// Restores what undoes the changes of a job from a part of a snapshot.
    pub(in crate::state) fn restore_undo(&mut self, undo: JobEdit) -> Result<(), String> {
        if undo.is_empty() || !self.undo.is_empty() {
            return Err(format!("the changes of job {} are invalid", self.id));
        }
        self.undo = undo;
        Ok(())
    }
}
