//! Failed frames of a job are rendered again, on a user's word. They begin anew: what was committed
//! of them went when they failed, and what nodes still have of it is not taken. Attempts of units
//! are in `retry`.

use crate::core::Core;
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::JobId;

impl Core {
    pub(crate) fn on_retry(&mut self, request: RequestId, job: JobId, caller: &Caller) {
        let answer = self.retry_job(job, caller);
        self.reply(request, answer);
    }

    fn retry_job(&mut self, id: JobId, caller: &Caller) -> Result<Response, RequestError> {
        let job = self.job_of(id, caller)?;
        if job.counts().frames_failed == 0 {
            let text = format!("no frame of job {id} has failed, so there is nothing to retry");
            return Err(RequestError::Invalid(text));
        }
        let ended = job.is_final();
        let nowhere = self.fits_nowhere(job.spec().device_bytes, job.spec().pool.as_deref());
        if ended {
            self.check_room_for_jobs()?;
        }
        if let Some(problem) = nowhere {
            return Err(RequestError::Invalid(problem));
        }
        let below = self.epochs.next();
        self.record(Record::JobRetried { job: id, below, by: caller.name.clone(), at: self.now });
        if ended {
            self.open_queue(id);
            return Ok(Response::Done);
        }
        let first = self.farm.job(id).and_then(|job| job.first_untouched());
        if let (Some(first), Some(work)) = (first, self.queues.get_mut(&id)) {
            work.rewind(first);
        }
        self.offer_job(id);
        Ok(Response::Done)
    }
}
