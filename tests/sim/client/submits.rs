//! Submits, with what comes before them: the upload of a job's files, which a retry needs as well.

use super::{Ask, user};
use crate::checks::violation::{Checked, violated};
use crate::coordinator::blobs::inputs;
use crate::faults::Fault;
use crate::situations::sometimes;
use crate::world::World;
use crate::world::events::Event;
use crate::world::plan::{JobPlan, LARGEST};
use tessera_protocol::selection::JobChange;

impl World {
    /// Uploads the files of a job; its submit follows.
    pub(super) fn begin_submit(&mut self, index: usize) {
        if std::mem::replace(&mut self.clients.jobs[index].asked, true) {
            self.tally.count(Fault::SubmitRepeated);
        }
        // One that fits nowhere would wait for its client.
        if self.clients.jobs[index].plan.spec.device_bytes <= LARGEST
            && self.chance(Fault::ClientVanishes)
        {
            self.clients.jobs[index].vanished = true;
        }
        self.upload(index);
        let delay = self.random.between(1, 2_500);
        self.after(delay, Event::Submit(index));
    }

    /// Asks for a retry as the shell does: it refuses where a file of the job is gone, and begins
    /// the grace of those that are there anew.
    pub(super) fn ask_retry(&mut self, index: usize) -> Checked {
        let JobPlan { id, spec, owner, .. } = self.planned(index);
        let files = inputs(&spec.kind);
        if !files.iter().all(|hash| self.blobs.has(*hash)) {
            return Ok(());
        }
        files.into_iter().for_each(|hash| self.blobs.put(hash, self.now));
        let caller = user(owner);
        self.change_one(Ask::Retry(index), JobChange::Retry, id, caller)
    }

    /// The answer is right: a job that is named was not accepted, or it has ended otherwise.
    /// Whoever waits for a job that is still to come asks again.
    pub(super) fn on_refused_wait(&mut self, index: usize, text: &str) -> bool {
        let after = self.clients.jobs[index].plan.spec.after.clone();
        let unknown = text.contains("there is no job");
        let mut named = after.iter().filter(|after| text.contains(&after.job.to_string()));
        let Some(after) = named.next() else { return false };
        let on = self.clients.jobs.iter().find(|job| job.plan.id == after.job);
        let comes = on.is_some_and(|on| !on.refused && !on.vanished);
        self.clients.jobs[index].refused = !unknown || !comes;
        sometimes!(self, AfterUnknown, unknown);
        sometimes!(self, AfterRefused, !unknown);
        unknown || text.contains("has failed") || text.contains("was cancelled")
    }

    /// The files of a job are uploaded: it is submitted, if they are there.
    pub(crate) fn submit(&mut self, index: usize) -> Checked {
        let JobPlan { id, spec, owner, .. } = self.planned(index);
        if inputs(&spec.kind).into_iter().any(|hash| !self.blobs.has(hash)) {
            return violated(format!(
                "a file of job {id} was swept between its upload and the submit"
            ));
        }
        let Some(place) = self.find_coordinator() else { return Ok(()) };
        self.as_process(place, |world| world.ask_submit(Ask::Submit(index), id, spec, user(owner)))
    }
}
