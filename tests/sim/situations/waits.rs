//! What became of jobs that wait for others: notes the situations. Checks nothing.

use crate::faults::Fault;
use crate::model::books::JobBook;
use crate::model::books::waits::{ENDED_WITH, Wait};
use crate::situations::sometimes;
use crate::world::World;
use tessera_core::{Record, Step};
use tessera_protocol::ids::JobId;
use tessera_protocol::job::Until;
use tessera_protocol::status::JobState;

/// Whether a job waits for frames of another, and for nothing else.
pub(super) fn waits_for_frames(book: &JobBook) -> bool {
    !book.waits.is_empty() && book.waits.iter().all(|after| after.until == Until::Frames)
}

/// Whether a kernel reads frames of another job.
pub(super) fn reads_frames(book: &JobBook) -> bool {
    let compute = book.kind().compute();
    compute.is_some_and(|compute| compute.inputs.iter().any(|input| input.from.is_some()))
}

impl World {
    /// Looks at a step after the books have taken it in: what was waited for may have ended in it.
    pub(crate) fn note_waits(&mut self, step: &Step) {
        for record in &step.records {
            match record {
                Record::WaitEnded { job, on } => self.note_wait_ended(*job, *on),
                Record::JobEnded { job, note, .. } => self.note_ended_with(*job, note),
                Record::TimeSpent { job, .. } => {
                    let book = self.ledger.believed.jobs.get(job);
                    let ended = book.is_some_and(|book| book.ended.is_some());
                    sometimes!(self, SpentAfterEnd, ended);
                }
                Record::StorageCounted { .. } => sometimes!(self, StorageCounted),
                Record::CostRulesSet { rules, .. } if rules.budgets.is_empty() => {
                    self.tally.count(Fault::BudgetRaised);
                }
                _ => {}
            }
        }
    }

    fn note_wait_ended(&mut self, job: JobId, on: JobId) {
        let jobs = &self.ledger.believed.jobs;
        let mut named = jobs.get(&job).into_iter().flat_map(|book| &book.spec.after);
        let until = named.find(|after| after.job == on).map(|after| after.until);
        let end = jobs.get(&on).and_then(|book| book.ended);
        let unlucky = matches!(end, Some(JobState::Failed | JobState::Cancelled));
        sometimes!(self, AfterSuccess, until == Some(Until::Success));
        sometimes!(self, AfterAnyEnd, until == Some(Until::End) && unlucky);
    }

    fn note_ended_with(&mut self, job: JobId, note: &str) {
        if !note.contains(ENDED_WITH) {
            return;
        }
        sometimes!(self, AfterFailed, note.contains("has failed"));
        sometimes!(self, AfterCancelled, note.contains("was cancelled"));
        let books = &self.ledger.believed;
        let waits = books.jobs.get(&job).into_iter().flat_map(|book| {
            book.waits.iter().filter(|after| books.wait(book, after) == Wait::Lost)
        });
        let lost: Vec<JobId> = waits.map(|after| after.job).collect();
        // It would have gone on by itself.
        let waited = |on: &JobId| books.jobs.get(on).is_some_and(|on| !on.waits.is_empty());
        let chain = lost.iter().any(waited);
        sometimes!(self, AfterChain, chain);
        self.retry_with(job, &lost);
    }

    /// A job is about to be opened again.
    pub(super) fn note_waits_again(&mut self, job: JobId) {
        let book = self.ledger.believed.jobs.get(&job);
        let again = book.is_some_and(|book| book.ended.is_some() && !book.waits.is_empty());
        sometimes!(self, AfterRetried, again);
    }

    pub(crate) fn note_waits_at_start(&mut self) {
        let going = self.ledger.durable.jobs.values().filter(|book| book.ended.is_none());
        let (mut waits, mut ended, mut later) = (false, false, false);
        let now = self.clock().secs();
        for book in going {
            later |= book.spec.not_before.is_some_and(|begins| begins > now);
            waits |= !book.waits.is_empty();
            ended |= book.waits.len() < book.spec.after.len();
        }
        sometimes!(self, BeginsRestart, later);
        sometimes!(self, AfterWaitRestart, waits);
        sometimes!(self, AfterEndRestart, ended);
        sometimes!(self, BudgetRestart, self.ledger.durable.budgets > 0);
    }
}
