//! A job of which nothing is leased says why.

use crate::checks::violation::{Checked, violated};
use crate::world::World;
use tessera_core::Selection;
use tessera_protocol::status::JobSummary;

impl World {
    /// No job waits without a word: where nothing of it is leased and something is to be done, it
    /// says why.
    pub(crate) fn check_waits(&self) -> Checked {
        // Inputs whose step is not taken yet may have changed what the books do not have.
        let Some(process) = self.shell.process.as_ref().filter(|process| process.seen.inputs == 0)
        else {
            return Ok(());
        };
        let silent = |row: &&JobSummary| {
            let book = self.ledger.believed.jobs.get(&row.job);
            let to_do = book.is_some_and(|book| book.ended.is_none() && book.open_units() > 0);
            to_do && row.units_leased == 0 && (row.waits.is_none() || row.note.is_empty())
        };
        let page = process.core.jobs(&Selection::default(), None, self.clock());
        let rows = page.unwrap_or_default().jobs;
        match rows.iter().find(silent) {
            Some(row) => {
                violated(format!("job {} waits, and does not say for what: {row:?}", row.job))
            }
            None => Ok(()),
        }
    }
}
