//! Device time, the space of finished frames, and the rules of both, by the records.

use super::Books;
use crate::checks::violation::{Checked, violated};
use tessera_core::Record;
use tessera_core::journal::Spending;
use tessera_protocol::ids::JobId;
use tessera_protocol::status::FrameFile;

impl Books {
    /// Takes a record in that is about what was spent.
    pub(super) fn apply_cost(&mut self, record: &Record) -> Checked {
        match record {
            Record::TimeSpent { job, spent, .. } => self.spend(*job, spent),
            Record::CostRulesSet { rules, at, .. } => {
                self.storage_since = (rules.storage_gb_month.0 > 0).then_some(at.0);
                self.set_budgets(rules.budgets.len())
            }
            Record::StorageCounted { at } => self.count_storage(at.0),
            _ => Ok(()),
        }
    }

    /// Counts the files of a finished frame.
    pub(super) fn note_files(&mut self, job: JobId, files: &[FrameFile]) -> Checked {
        self.going(job)?.file_bytes += files.iter().map(|file| file.length).sum::<u64>();
        Ok(())
    }

    fn set_budgets(&mut self, count: usize) -> Checked {
        self.budgets = count;
        Ok(())
    }

    /// Counts device time, of a job that may have ended.
    fn spend(&mut self, job: JobId, spent: &[Spending]) -> Checked {
        let Some(book) = self.jobs.get_mut(&job) else {
            return violated(format!("time is spent for job {job}, which was never accepted"));
        };
        book.spent_micros += spent.iter().map(|spending| spending.micros).sum::<u64>();
        match spent.is_empty() || spent.iter().any(|spending| spending.micros == 0) {
            true => violated(format!("no time is spent for job {job}")),
            false => Ok(()),
        }
    }

    /// Counts the space of all finished frames, at its price's times only.
    fn count_storage(&mut self, at: u64) -> Checked {
        let Some(since) = self.storage_since.replace(at).filter(|since| *since < at) else {
            return violated("space is counted without a price, or twice".to_owned());
        };
        for book in self.jobs.values_mut() {
            book.stored_byte_millis += u128::from(book.file_bytes) * u128::from(at - since);
        }
        Ok(())
    }
}
