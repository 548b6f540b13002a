//! Waits of jobs for each other in the durable state: what the records about a job do to those that
//! wait for it, and whether a wait is over.

use crate::state::awaited::Awaited;
use crate::state::farm::Farm;
use crate::state::job::Job;
use tessera_protocol::compute::InputFile;
use tessera_protocol::ids::{FrameNumber, JobId};
use tessera_protocol::job::{After, Until};
use tessera_protocol::status::JobState;

/// Whether a wait goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// What is waited for may still happen.
    Waits,
    /// It has happened.
    Over,
    /// It cannot happen any more.
    Lost,
}

impl Farm {
    /// Returns which jobs wait for which.
    pub(crate) fn awaited(&self) -> &Awaited {
        &self.awaited
    }

    /// Returns whether a wait of a job goes on. `missing`: number of the job's frames that are not
    /// finished in the other job.
    pub(crate) fn verdict(&self, after: &After, missing: u32) -> Verdict {
        let Some(on) = self.job(after.job) else { return Verdict::Lost };
        match (after.until, on.end().map(|end| end.state)) {
            (Until::Frames, _) if missing == 0 => Verdict::Over,
            (_, None) => Verdict::Waits,
            (Until::End, Some(_)) | (Until::Success, Some(JobState::Done)) => Verdict::Over,
            (Until::Success | Until::Frames, Some(_)) => Verdict::Lost,
        }
    }

    /// Enters what an accepted job waits for, or one that is open again.
    pub(in crate::state) fn begin_waits(&mut self, id: JobId) -> Result<(), String> {
        let job = self.jobs.get(&id).filter(|job| !job.spec().after.is_empty());
        let Some(job) = job else { return Ok(()) };
        let mut waits = job.waits().iter().map(|wait| wait.after.job);
        if let Some(on) = waits.find(|on| !self.jobs.contains_key(on)) {
            return Err(format!("job {id} waits for job {on}, which is unknown"));
        }
        let found = job.found_waits(&self.jobs);
        self.awaited.add(job, |on| self.jobs.contains_key(&on));
        self.job_mut(id)?.set_waits(found);
        Ok(())
    }

    /// Drops the waits of a job that has ended.
    pub(in crate::state) fn rest_waits(&mut self, id: JobId) -> Result<(), String> {
        let job = self.job_mut(id)?;
        job.rest_waits();
        let waits: Vec<JobId> = job.waits().iter().map(|wait| wait.after.job).collect();
        waits.into_iter().for_each(|on| self.awaited.end(id, on));
        Ok(())
    }

    /// Ends the wait of a job, for which there must be a reason.
    pub(in crate::state) fn end_wait(&mut self, id: JobId, on: JobId) -> Result<(), String> {
        let wait = self.job(id).filter(|job| !job.is_final()).and_then(|job| job.wait_for(on));
        let wait = wait.ok_or_else(|| format!("job {id} does not wait for job {on}"))?;
        if self.verdict(&wait.after, wait.missing) != Verdict::Over {
            return Err(format!("the wait of job {id} for job {on} ends too early"));
        }
        let found = self.found_inputs(id, on)?;
        let job = self.job_mut(id)?;
        job.end_wait(on)?;
        job.set_inputs(found);
        self.awaited.end(id, on);
        Ok(())
    }

    /// Returns the files of a job's inputs that are frames of another job, by their names. The
    /// error says which one is not there.
    pub(crate) fn found_inputs(
        &self,
        id: JobId,
        on: JobId,
    ) -> Result<Vec<(String, Vec<InputFile>)>, String> {
        let compute = self.job(id).and_then(|job| job.kind().compute());
        let (Some(compute), Some(other)) = (compute, self.job(on)) else { return Ok(Vec::new()) };
        let file_of = |number: FrameNumber, file: &str| {
            let done = other.frames().done().read(other.position(number)?)?;
            let found = done.files.iter().find(|found| found.format == file)?;
            Some(InputFile { hash: found.hash, length: found.length })
        };
        let mut all = Vec::new();
        for input in compute.inputs_from(on) {
            let file = input.from.as_ref().map(|from| from.file.as_str()).unwrap_or_default();
            let numbers = compute.frames_read(other.kind().frames());
            let numbers = numbers.map_err(|frame| format!("job {on} has no frame {frame}"))?;
            let files = numbers.iter().map(|number| {
                let missing = || format!("frame {number} of job {on} has no file `{file}`");
                file_of(*number, file).ok_or_else(missing)
            });
            all.push((input.name.clone(), files.collect::<Result<_, _>>()?));
        }
        Ok(all)
    }

    /// Lets the frames go ahead that waited for a finished one.
    pub(in crate::state) fn note_ready(&mut self, on: JobId, number: FrameNumber) {
        let waiting: Vec<JobId> = self.awaited.waiting_for(on).collect();
        for id in waiting {
            let Some(job) = self.jobs.get(&id) else { continue };
            let by_frames = job.wait_for(on).is_some_and(|wait| wait.after.until == Until::Frames);
            let Some(position) = job.position(number).filter(|_| by_frames) else { continue };
            let free = self.is_free(job, number);
            if let Some(job) = self.jobs.get_mut(&id) {
                job.note_ready(on, position, free);
            }
        }
    }

    /// Whether a frame is finished in every job whose frames a job waits for.
    fn is_free(&self, job: &Job, number: FrameNumber) -> bool {
        let mut by_frames = job.waits().iter().filter(|wait| wait.after.until == Until::Frames);
        by_frames.all(|wait| self.job(wait.after.job).is_some_and(|other| other.has_done(number)))
    }

    /// Finds out anew what all jobs wait for, after a snapshot.
    pub(in crate::state) fn recount_waits(&mut self) {
        let open = self.jobs.values().filter(|job| !job.is_final() && !job.waits().is_empty());
        let found: Vec<_> = open.map(|job| (job.id(), job.found_waits(&self.jobs))).collect();
        for (id, found) in found {
            if let Some(job) = self.jobs.get_mut(&id) {
                job.set_waits(found);
            }
        }
        self.awaited = Awaited::of(&self.jobs);
    }

    /// Checks what is kept of waits against the jobs.
    pub(crate) fn check_waits(&self) -> Result<(), String> {
        if self.awaited != Awaited::of(&self.jobs) {
            return Err(format!("the index of waits is not that of the jobs: {:?}", self.awaited));
        }
        for job in self.jobs.values().filter(|job| !job.is_final() && !job.waits().is_empty()) {
            if !job.has_waits(&job.found_waits(&self.jobs)) {
                return Err(format!("job {} is wrong about the frames it waits for", job.id()));
            }
        }
        Ok(())
    }
}
