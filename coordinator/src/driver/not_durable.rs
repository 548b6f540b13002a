//! Decisions of the core that are not durable yet. While the disk is full, answers are given
//! without them, because an answer must still be true after a crash.

use tessera_core::{Core, Record};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::status::{FrameState, FrameStatus, JobState, JobSummary, Waits};
use tessera_protocol::{FrameNumber, JobId, UnitKey};

/// Note of every open job while the disk is full.
const FULL: &str = "the coordinator's disk is full: results wait for room";

/// A fact of a step that is not durable, as clients would see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fact {
    Accepted(JobId),
    Ended(JobId),
    Committed(JobId, u64),
    Finished(JobId, FrameNumber),
    Failed(JobId, FrameNumber),
}

/// Facts of one or more steps that are not durable.
#[derive(Clone, Debug, Default)]
pub(super) struct NotDurable(Vec<Fact>);

impl NotDurable {
    /// Adds the fact that a record of such a step contains.
    pub(super) fn note(&mut self, record: &Record, core: &Core) {
        self.0.extend(match record {
            Record::JobAccepted { job, .. } => Some(Fact::Accepted(*job)),
            Record::JobEnded { job, .. } => Some(Fact::Ended(*job)),
            Record::UnitsCommitted { job, frame, commits } => {
                let key = |unit| UnitKey { job: *job, frame: *frame, unit };
                let sampled = commits.iter().filter(|commit| !core.is_finishing(key(commit.unit)));
                Some(Fact::Committed(*job, sampled.count() as u64))
            }
            Record::FrameFinished { job, frame, .. } => Some(Fact::Finished(*job, *frame)),
            Record::FrameFailed { job, frame, .. } => Some(Fact::Failed(*job, *frame)),
            _ => None,
        });
    }

    /// Adds the facts of later steps.
    pub(super) fn extend(&mut self, later: &NotDurable) {
        self.0.extend_from_slice(&later.0);
    }

    /// Removes the facts from an answer and adds the reason why nothing continues. `about` is the
    /// job that the client asked about, if there is one.
    pub(super) fn taken_from(&self, about: Option<JobId>, mut response: Response) -> Response {
        if let Some(job) = about.filter(|job| self.0.contains(&Fact::Accepted(*job))) {
            return Response::Error(RequestError::NotFound(format!("there is no job {job}")));
        }
        match &mut response {
            Response::Jobs(page) => {
                let jobs = &mut page.jobs;
                jobs.retain(|summary| !self.0.contains(&Fact::Accepted(summary.job)));
                jobs.iter_mut().for_each(|summary| self.take_from_summary(summary));
            }
            Response::Job(detail) => self.take_from_summary(&mut detail.summary),
            Response::Frames(frames) => {
                if let Some(job) = about {
                    frames.iter_mut().for_each(|status| self.take_from_frame(job, status));
                }
            }
            _ => {}
        }
        response
    }

    fn take_from_summary(&self, summary: &mut JobSummary) {
        let job = summary.job;
        for fact in &self.0 {
            match fact {
                Fact::Ended(ended) if *ended == job => {
                    summary.state = JobState::Running;
                    summary.ended_at = None;
                }
                Fact::Committed(of, units) if *of == job => take_units(summary, *units),
                Fact::Finished(of, _) if *of == job => {
                    summary.frames_done = summary.frames_done.saturating_sub(1);
                }
                Fact::Failed(of, _) if *of == job => {
                    summary.frames_failed = summary.frames_failed.saturating_sub(1);
                }
                _ => {}
            }
        }
        if !summary.state.is_final() {
            summary.note = FULL.into();
            summary.waits = Some(Waits::Disk);
        }
    }

    fn take_from_frame(&self, job: JobId, status: &mut FrameStatus) {
        let settled = [Fact::Finished(job, status.frame), Fact::Failed(job, status.frame)];
        if self.0.iter().any(|fact| settled.contains(fact)) {
            status.state = FrameState::Resolving;
        }
    }
}

/// Removes units that are not durable, with their share of the samples.
fn take_units(summary: &mut JobSummary, units: u64) {
    let before = summary.units_committed;
    summary.units_committed = before.saturating_sub(units);
    let share = u128::from(summary.units_committed) * u128::from(summary.samples_committed);
    summary.samples_committed =
        u64::try_from(share / u128::from(before.max(1))).unwrap_or(u64::MAX);
    summary.samples_kept = summary.samples_kept.min(summary.samples_committed);
}

#[cfg(test)]
mod tests {
    use super::*;
    use tessera_core::{Moment, Settings};
    use tessera_protocol::selection::JobPage;

    fn summary(job: JobId) -> JobSummary {
        JobSummary {
            pool: None,
            left_secs: Some(90),
            device_millis: 0,
            cost: Default::default(),
            job,
            name: "film".into(),
            owner: "ada".into(),
            owner_id: 3,
            state: JobState::Done,
            priority: 50,
            submitted_at: 1,
            ended_at: Some(9),
            frames: 2,
            frames_done: 2,
            frames_failed: 0,
            units: 8,
            units_committed: 8,
            units_leased: 0,
            samples_committed: 800,
            samples_kept: 0,
            note: String::new(),
            waits: None,
        }
    }

    #[test]
    fn facts_not_yet_on_disk_are_left_out_of_answers() {
        let (job, fresh) = (JobId::new(), JobId::new());
        let end =
            Record::JobEnded { job, state: JobState::Done, at: Moment(9), note: String::new() };
        let frame = FrameNumber(2);
        let mut not_durable = NotDurable::default();
        let core = Core::new(Settings::default(), Moment(0));
        not_durable.note(&Record::FrameFinished { job, frame, files: Vec::new() }, &core);
        not_durable.note(&end, &core);
        let mut before = NotDurable(vec![Fact::Committed(job, 2), Fact::Accepted(fresh)]);
        before.extend(&not_durable);
        let page = JobPage { jobs: vec![summary(job), summary(fresh)], next: None };
        let answer = before.taken_from(None, Response::Jobs(page));
        let Response::Jobs(page) = answer else { panic!("{answer:?}") };
        let [told] = page.jobs.as_slice() else { panic!("{page:?}") };
        assert_eq!((told.state, told.ended_at, told.frames_done), (JobState::Running, None, 1));
        assert_eq!((told.units_committed, told.samples_committed), (6, 600));
        assert!(told.note.contains("disk is full"), "{told:?}");
        let done = FrameStatus { frame, state: FrameState::Done(Vec::new()), samples: None };
        let other = FrameStatus {
            frame: FrameNumber(1),
            state: FrameState::Done(Vec::new()),
            samples: None,
        };
        let answer = before.taken_from(Some(job), Response::Frames(vec![done, other.clone()]));
        let Response::Frames(frames) = answer else { panic!("{answer:?}") };
        assert_eq!(
            frames,
            [FrameStatus { frame, state: FrameState::Resolving, samples: None }, other]
        );
        let answer = before.taken_from(Some(fresh), Response::Frames(Vec::new()));
        assert!(matches!(answer, Response::Error(RequestError::NotFound(_))), "{answer:?}");
    }
}
