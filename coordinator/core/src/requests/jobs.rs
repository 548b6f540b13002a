//! Jobs come and go: submit, cancel, and every other end.

use crate::action::Action;
use crate::core::Core;
use crate::input::{Caller, RequestId};
use crate::journal::Record;
use crate::schedule::queue::Queue;
use crate::state::frame::Frame;
use crate::state::job::Job;
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::ids::{Epoch, FrameNumber, JobId, NodeId, UnitKey};
use tessera_protocol::job::JobSpec;
use tessera_protocol::limits::OPEN_JOBS_MAX;
use tessera_protocol::node::CoordinatorToNode;
use tessera_protocol::status::JobState;

impl Core {
    pub(crate) fn on_submit(
        &mut self,
        request: RequestId,
        job: JobId,
        spec: Box<JobSpec>,
        caller: Caller,
    ) {
        let answer = self.accept(job, spec, caller.name);
        self.reply(request, answer);
        self.end_if_over(job);
    }

    fn accept(
        &mut self,
        job: JobId,
        spec: Box<JobSpec>,
        owner: String,
    ) -> Result<Response, RequestError> {
        if let Some(known) = self.farm.job(job) {
            return match *known.spec() == *spec && known.owner() == owner {
                true => Ok(Response::Accepted(job)),
                false => Err(RequestError::Invalid(format!("job id {job} belongs to another job"))),
            };
        }
        self.check_room_for_jobs()?;
        if let Some(problem) = self.fits_nowhere(spec.device_bytes, spec.pool.as_deref()) {
            return Err(RequestError::Invalid(problem));
        }
        self.record(Record::JobAccepted { job, spec, owner, at: self.now });
        self.open_queue(job);
        Ok(Response::Accepted(job))
    }

    /// Another job may be open.
    pub(crate) fn check_room_for_jobs(&self) -> Result<(), RequestError> {
        if self.queues.len() < OPEN_JOBS_MAX {
            return Ok(());
        }
        let text =
            format!("{OPEN_JOBS_MAX} jobs are open; wait until some have ended, or cancel some");
        Err(RequestError::Unavailable(text))
    }

    /// Everything open of a job may be leased.
    pub(crate) fn open_queue(&mut self, job: JobId) {
        self.queues.insert(job, Queue::default());
        self.offer_job(job);
    }

    /// A job may have something to lease. One that is paused has not.
    pub(crate) fn offer_job(&mut self, job: JobId) {
        if let Some(job) = self.farm.job(job).filter(|job| job.paused().is_none()) {
            self.shares.insert(job.spec().priority, job.order(), job.id());
            self.dirty.mark_all();
        }
    }

    pub(crate) fn on_cancel(&mut self, request: RequestId, job: JobId, caller: &Caller) {
        let answer = self.cancel(job, caller);
        self.reply(request, answer);
    }

    fn cancel(&mut self, id: JobId, caller: &Caller) -> Result<Response, RequestError> {
        let job = self.job_of(id, caller)?;
        match job.end().map(|end| end.state) {
            None => {
                self.end_job(id, JobState::Cancelled, &format!("cancelled by `{}`", caller.name));
                Ok(Response::Done)
            }
            Some(JobState::Cancelled) => Ok(Response::Done),
            Some(_) => Err(RequestError::Invalid(format!("job {id} has ended already"))),
        }
    }

    /// A job that its owner, or somebody who may touch what others own, asks about.
    pub(crate) fn job_of(&self, id: JobId, caller: &Caller) -> Result<&Job, RequestError> {
        let job = self
            .farm
            .job(id)
            .ok_or_else(|| RequestError::NotFound(format!("there is no job {id}")))?;
        match caller.admin || job.owner() == caller.name {
            true => Ok(job),
            false => {
                Err(RequestError::NotAllowed(format!("job {id} belongs to `{}`", job.owner())))
            }
        }
    }

    /// Ends a job whose last frame has ended, or of which a frame has failed that the frames after
    /// it need.
    pub(crate) fn end_if_over(&mut self, id: JobId) {
        let Some(job) = self.farm.job(id).filter(|job| !job.is_final()) else { return };
        let counts = job.counts();
        let is_broken = job.is_chained() && counts.frames_failed > 0;
        if !is_broken && !job.is_over() {
            return;
        }
        if counts.frames_failed == 0 {
            return self.end_job(id, JobState::Done, "");
        }
        let first = job.frames().iter().enumerate().find_map(|(position, frame)| match frame {
            Frame::Failed(failed) => Some((job.number(position as u32)?, failed.reason.as_str())),
            _ => None,
        });
        let (frame, reason) = first.unwrap_or((FrameNumber(0), ""));
        let note = match is_broken {
            true => format!("{frame}, which the frames after it need, failed: {reason}"),
            false => format!(
                "{} of {} frames failed; the first is {frame}: {reason}",
                counts.frames_failed,
                job.frames().len()
            ),
        };
        self.end_job(id, JobState::Failed, &note);
    }

    /// Ends a job: its leases, what nodes keep of it, and its own state.
    pub(crate) fn end_job(&mut self, id: JobId, state: JobState, note: &str) {
        let leases: Vec<(UnitKey, Epoch)> = self.leases.of_job(id).collect();
        for (_, epoch) in leases {
            self.release(epoch);
        }
        self.record(Record::JobEnded { job: id, state, at: self.now, note: note.to_owned() });
        self.queues.remove(&id);
        self.leases.forget_times(id);
        self.resolves.retain(|(job, _), _| *job != id);
        // What comes of orders that are under way is not wanted, also if the job is opened again.
        let orders = self.resolving.iter_mut().filter(|((job, _), _)| *job == id);
        orders.for_each(|(_, stale)| *stale = true);
        if let Some(job) = self.farm.job(id) {
            self.shares.remove(job.spec().priority, job.order());
        }
        self.forget_everywhere(id);
        self.act(Action::JobEnded { job: id });
        // Its leases have left room on nodes.
        self.dirty.mark_all();
    }

    /// Tells every node that is here, and may hold something of the job, to forget it. One that is
    /// away is told when it comes back.
    fn forget_everywhere(&mut self, job: JobId) {
        let here = self.roster.iter().filter(|(_, node)| node.session().is_some());
        let knowing: Vec<NodeId> =
            here.filter(|(_, node)| node.jobs_known().contains(&job)).map(|(id, _)| *id).collect();
        for id in knowing {
            self.tell(id, CoordinatorToNode::Forget { job });
            if let Some(node) = self.roster.get_mut(id) {
                node.forget_job(job);
            }
        }
    }

    /// Ends a frame that cannot be finished, and the job with its last one. The others go on.
    pub(crate) fn fail_frame(&mut self, id: JobId, frame: FrameNumber, reason: String) {
        let Some(position) = self.farm.job(id).and_then(|job| job.position(frame)) else {
            return self.fault("a frame fails that does not exist");
        };
        let leases: Vec<(UnitKey, Epoch)> = self.leases.of_frame(id, frame).collect();
        for (unit, epoch) in leases {
            self.revoke(unit, epoch);
        }
        self.record(Record::FrameFailed { job: id, frame, reason });
        match self.queues.get_mut(&id) {
            Some(work) => work.drop_frame(position),
            None => self.fault("a frame fails of no open job"),
        }
        self.resolves.remove(&(id, frame));
        self.leases.forget_time(id, frame);
        self.act(Action::FrameFailed { job: id, frame });
        self.end_if_over(id);
        self.dirty.mark_all();
    }
}
