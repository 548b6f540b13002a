//! What became of jobs that wait for others: notes the situations. Checks nothing.

use crate::model::books::JobBook;
use crate::model::books::waits::{ENDED_WITH, Wait};
use crate::situations::sometimes;
use crate::world::World;
use tessera_protocol::ids::JobId;
use tessera_protocol::job::Until;
use tessera_protocol::status::JobState;

/// Whether a job waits for frames of another, and for nothing else.
pub(super) fn waits_for_frames(book: &JobBook) -> bool {
    !book.waits.is_empty() && book.waits.iter().all(|after| after.until == Until::Frames)
}

impl World {
    pub(super) fn note_wait_ended(&mut self, job: JobId, on: JobId) {
        let jobs = &self.ledger.believed.jobs;
        let after = jobs.get(&job).and_then(|book| book.waits.iter().find(|after| after.job == on));
        let (until, end) =
            (after.map(|after| after.until), jobs.get(&on).and_then(|book| book.ended));
        let unlucky = matches!(end, Some(JobState::Failed | JobState::Cancelled));
        sometimes!(self, AfterSuccess, until == Some(Until::Success));
        sometimes!(self, AfterAnyEnd, until == Some(Until::End) && unlucky);
    }

    pub(super) fn note_ended_with(&mut self, job: JobId, note: &str) {
        if !note.contains(ENDED_WITH) {
            return;
        }
        sometimes!(self, AfterFailed, note.contains("has failed"));
        sometimes!(self, AfterCancelled, note.contains("was cancelled"));
        let books = &self.ledger.believed;
        let lost = books.jobs.get(&job).into_iter().flat_map(|book| {
            let lost = book.waits.iter().filter(|after| books.wait(book, after) == Wait::Lost);
            lost.filter_map(|after| books.jobs.get(&after.job))
        });
        // It would have gone on by itself.
        let chain = lost.filter(|on| !on.waits.is_empty()).count() > 0;
        sometimes!(self, AfterChain, chain);
        self.retry_soon(job);
    }

    /// A job is about to be opened again.
    pub(super) fn note_waits_again(&mut self, job: JobId) {
        let book = self.ledger.believed.jobs.get(&job);
        let again = book.is_some_and(|book| book.ended.is_some() && !book.waits.is_empty());
        sometimes!(self, AfterRetried, again);
    }

    pub(crate) fn note_waits_at_start(&mut self) {
        let going = self.ledger.durable.jobs.values().filter(|book| book.ended.is_none());
        let (mut waits, mut ended) = (false, false);
        for book in going {
            waits |= !book.waits.is_empty();
            ended |= book.waits.len() < book.spec.after.len();
        }
        sometimes!(self, AfterWaitRestart, waits);
        sometimes!(self, AfterEndRestart, ended);
    }
}
