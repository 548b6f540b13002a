//! What users and the operator are answered: whether it is right, and durable. Who asks for what is
//! in `client`.

use super::Ask;
use super::changes::Changed;
use crate::checks::violation::{Checked, Violation, violated};
use crate::faults::Fault;
use crate::model::books::JobBook;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use crate::world::plan::LARGEST;
use tessera_core::Record;
use tessera_core::journal::Gone;
use tessera_history::Seen;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;
use tessera_protocol::status::JobState;
use tessera_support::inputs::of_one_job;

impl World {
    /// The coordinator answers; what it says must be durable by now.
    pub(crate) fn answer(&mut self, ask: Ask, response: Response) -> Checked {
        let response = match ask {
            Ask::CancelAll(_) | Ask::CancelAllForeign(_) => response,
            _ => of_one_job(response),
        };
        let holds = match (ask, &response) {
            (Ask::Cancel(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(|record| {
                    matches!(record, Record::JobEnded { job, state,
                        .. } if *job == id && *state == JobState::Cancelled)
                })
            }
            (Ask::Retry(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(
                    |record| matches!(record, Record::JobRetried { job, .. } if *job == id),
                )
            }
            (Ask::Pause(index) | Ask::CalmPause(index), Response::Done) => {
                let id = self.clients.jobs[index].plan.id;
                self.is_recorded(
                    |record| matches!(record, Record::JobPaused { job, .. } if *job == id),
                )
            }
            (Ask::Budget(1..), Response::Done) => {
                self.is_recorded(|record| matches!(record, Record::CostRulesSet { .. }))
            }
            // It may have got this with its place.
            (Ask::Drain(..), Response::Nodes(rows)) => self.is_recorded(|record| match record {
                Record::NodeDrained { node, drained: true, .. }
                | Record::NodeReplaced { new: node, .. } => {
                    rows.iter().any(|row| row.node == *node)
                }
                _ => false,
            }),
            (Ask::RemoveNode(_), Response::Nodes(rows)) => self.is_recorded(|record| {
                matches!(record, Record::NodeGone { node, how: Gone::Removed, .. }
                    if rows.iter().any(|row| row.node == *node))
            }),
            // It says so already, or a record says that it is different now.
            (Ask::Change(index, changed), Response::Done) => {
                let (plan, wanted) = (&self.clients.jobs[index].plan, changed.change());
                let id = plan.id;
                wanted.clone().apply(&mut plan.spec.clone()).is_empty()
                    || self.is_recorded(|record| {
                        matches!(record, Record::JobChanged { job, change, .. }
                            if *job == id && *change == wanted)
                    })
            }
            _ => true,
        };
        if !holds {
            return violated(format!("{ask:?} is answered {response:?}, which is not durable"));
        }
        if let (Ask::Pause(index) | Ask::CalmPause(index) | Ask::Cancel(index), Response::Done) =
            (ask, &response)
        {
            self.expect_halt(self.clients.jobs[index].plan.id);
        }
        if !self.chance(Fault::ReplyLost) {
            let delay = self.random.between(1, 100);
            self.after(delay, Event::Answer(ask, response));
        }
        Ok(())
    }

    pub(crate) fn on_answer(&mut self, ask: Ask, response: &Response) -> Checked {
        let right = match (ask, response) {
            (Ask::Submit(index), Response::Accepted(job)) => self.on_accepted(index, *job)?,
            (
                Ask::Submit(index),
                Response::Error(RequestError::Invalid(text) | RequestError::NotFound(text)),
            ) => self.on_refused(index, text),
            (Ask::Conflict(_) | Ask::Foreign(_), Response::Error(RequestError::Invalid(_))) => true,
            (Ask::Submit(_) | Ask::Retry(_), Response::Error(RequestError::Unavailable(why))) => {
                self.is_right_of_room(why)
            }
            (Ask::CancelAll(index), Response::Changed(changed)) if changed.refused == 0 => {
                self.on_all_cancelled(index, changed.jobs.len())?
            }
            (Ask::CancelAllForeign(_), Response::Error(RequestError::NotAllowed(_))) => true,
            (Ask::Cancel(index), Response::Done) => {
                self.on_cancelled(index)?;
                true
            }
            // It has ended otherwise.
            (Ask::Cancel(index), Response::Error(RequestError::Invalid(_))) => {
                self.clients.jobs[index].cancelled = true;
                sometimes!(self, CancelTooLate);
                true
            }
            (Ask::Pause(_), Response::Done) => {
                if self.chance(Fault::PauseRepeated) {
                    self.after(10, Event::Ask(ask));
                }
                true
            }
            (
                Ask::Retry(_) | Ask::CalmPause(_) | Ask::Resume(_) | Ask::Budget(_),
                Response::Done,
            ) => true,
            (Ask::Retry(_), Response::Error(RequestError::Invalid(text))) => {
                self.is_right_of_retry(text)
            }
            (
                Ask::Pause(index) | Ask::CalmPause(index) | Ask::Resume(index),
                Response::Error(RequestError::Invalid(_)),
            ) => self.has_ended(index),
            (
                Ask::PauseForeign(_) | Ask::CancelForeign(_) | Ask::RetryForeign(_),
                Response::Error(RequestError::NotAllowed(_)),
            ) => true,
            (Ask::CancelUnknown, Response::Error(RequestError::NotFound(_))) => true,
            // A node may never have joined, or be forgotten.
            (
                Ask::Drain(..) | Ask::Undrain(_) | Ask::RemoveNode(_),
                Response::Nodes(_) | Response::Error(RequestError::NotFound(_)),
            ) => true,
            // Its older self has not been seen gone yet.
            (Ask::Drain(..), Response::Error(RequestError::SeveralNodes(_))) => {
                sometimes!(self, SeveralOfAName);
                true
            }
            // It is connected, or was a moment ago.
            (Ask::RemoveNode(_), Response::Error(RequestError::Invalid(_))) => true,
            _ => self.is_right_of_change(ask, response),
        };
        if right { Ok(()) } else { violated(format!("{ask:?} is answered {response:?}")) }
    }

    /// All jobs of a job's owner are cancelled, or were before.
    fn on_all_cancelled(&mut self, index: usize, count: usize) -> Result<bool, Violation> {
        sometimes!(self, AllCancelled, count > 1);
        let (asked, id) = (self.history.ask(), self.clients.jobs[index].plan.id);
        // The job may have ended before, or be submitted later.
        let book = self.ledger.durable.jobs.get(&id);
        let was = |book: &JobBook| book.ended == Some(JobState::Cancelled) && book.retried == 0;
        if book.is_some_and(was) {
            self.saw(asked, &Seen::Cancelled(id))?;
        }
        Ok(true)
    }

    /// A job is refused where its owner has too many, or has spent a budget.
    fn is_right_of_room(&mut self, text: &str) -> bool {
        let share = text.contains("open jobs, and this job adds 1; one user may have");
        let budget = text.contains("is used up");
        sometimes!(self, ShareReached, share);
        sometimes!(self, BudgetRefuses, budget);
        share || budget
    }

    /// A retry is refused where nothing has failed, where no device is large enough, and where the
    /// job would wait in vain.
    fn is_right_of_retry(&mut self, text: &str) -> bool {
        let (nothing, vain) = (text.contains("nothing to retry"), text.contains(" waits for job "));
        sometimes!(self, RetryNothing, nothing);
        sometimes!(self, AfterRetriedInVain, vain);
        nothing || vain || text.contains("largest device known has")
    }

    fn is_right_of_change(&self, ask: Ask, response: &Response) -> bool {
        match (ask, response) {
            (
                Ask::ChangeForeign(_) | Ask::SubmitRaised(_) | Ask::Change(_, Changed::Raised),
                Response::Error(RequestError::NotAllowed(_)),
            ) => true,
            (Ask::Change(_, changed), Response::Done) => changed != Changed::Raised,
            (Ask::Change(index, _), Response::Error(RequestError::Invalid(_))) => {
                self.has_ended(index)
            }
            _ => false,
        }
    }

    /// The answer is right: it names the job that was submitted.
    fn on_accepted(&mut self, index: usize, job: JobId) -> Result<bool, Violation> {
        let first = !std::mem::replace(&mut self.clients.jobs[index].accepted, true);
        if first && !self.clients.jobs[index].vanished {
            self.go_on_with(index);
            self.give_up_later(index);
        }
        if first {
            self.follow_job(index);
            let asked = self.history.ask();
            self.saw(asked, &Seen::Accepted(job))?;
        }
        Ok(self.clients.jobs[index].plan.id == job)
    }

    /// The answer is right: it says that no device is large enough, or for what it cannot wait.
    fn on_refused(&mut self, index: usize, text: &str) -> bool {
        if text.starts_with("after: ") {
            return self.on_refused_wait(index, text);
        }
        let job = &mut self.clients.jobs[index];
        job.refused = true;
        let too_large = job.plan.spec.device_bytes > LARGEST;
        let both = text.contains("40.0 GiB");
        // Where nothing larger was known at that moment, a smaller one is refused as well.
        let known = text.contains("largest device known has");
        self.tally.count(Fault::JobRefused);
        known && (both || !too_large)
    }

    fn on_cancelled(&mut self, index: usize) -> Checked {
        self.clients.jobs[index].cancelled = !self.chance(Fault::CancelRepeated);
        let (asked, id) = (self.history.ask(), self.clients.jobs[index].plan.id);
        // The answer may have been overtaken by a retry.
        if self.ledger.durable.jobs.get(&id).is_some_and(|book| book.retried == 0) {
            self.saw(asked, &Seen::Cancelled(id))?;
        }
        if self.chance(Fault::RetryOwn) {
            let delay = self.random.between(1, 15_000);
            self.after(delay, Event::Ask(Ask::Retry(index)));
        }
        Ok(())
    }

    fn is_recorded(&self, is_it: impl Fn(&Record) -> bool) -> bool {
        self.disk.history.iter().any(is_it)
    }

    fn has_ended(&self, index: usize) -> bool {
        let book = self.ledger.durable.jobs.get(&self.clients.jobs[index].plan.id);
        book.is_some_and(|book| book.ends > 0)
    }
}
