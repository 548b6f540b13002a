//! Answers questions from a state that another coordinator's records make, and tells what changes.
//! Takes no request for a change, and writes nothing.

use super::news::NewsRoom;
use super::perform::preset;
use super::{BlobQuestion, Event, Present, Question};
use crate::changes::{News, Publisher};
use crate::clock::Clock;
use crate::opened::FollowedState;
use crate::store::{Followed, Sequence};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tessera_core::{Census, Core, Record};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::{FrameNumber, JobId};

/// Most frames that a batch of news lists. Of the others, only the job is named.
const FRAMES_MAX: usize = 256;

/// The state that is followed, and those who are told of it.
pub(crate) struct ReplicaDesk {
    state: FollowedState,
    publisher: Publisher,
    clock: Clock,
}

impl ReplicaDesk {
    /// Answers from this state.
    pub(crate) fn new(state: FollowedState, publisher: Publisher, clock: Clock) -> Self {
        Self { state, publisher, clock }
    }

    /// Returns the state, to go on as its leader.
    pub(crate) fn into_state(self) -> FollowedState {
        self.state
    }

    /// How far the journal was followed.
    pub(crate) fn at(&self) -> &Followed {
        &self.state.at
    }

    fn core(&self) -> &Core {
        self.state.replica.core()
    }

    /// Applies the next records. An error says how they contradict the state, which must then be
    /// replaced.
    pub(crate) fn apply(&mut self, records: &[Record], at: Followed) -> Result<(), String> {
        let is_followed = self.publisher.is_followed();
        let mut room = NewsRoom { last: Some(Instant::now()), ..NewsRoom::default() };
        for record in records {
            self.state.replica.apply(record)?;
            if is_followed {
                room.note(record);
            }
            if let Record::FrameFinished { job, frame, .. } = record {
                self.publisher.frame_finished(*job, *frame);
            }
        }
        self.state.at = at;
        if !records.is_empty() {
            self.tell(room.jobs, room.frames);
        }
        Ok(())
    }

    /// Goes on with another state, and tells what is different in it.
    pub(crate) fn replace(&mut self, state: FollowedState) {
        let before = std::mem::replace(&mut self.state, state);
        let before = before.replica.core();
        let differs = |job: &JobId| before.job_summary(*job) != self.core().job_summary(*job);
        let jobs: BTreeSet<JobId> = before.job_ids().chain(self.core().job_ids()).collect();
        let jobs: BTreeSet<JobId> = jobs.into_iter().filter(differs).collect();
        // Of each the frames are read again.
        let mut news = self.news_of(&jobs);
        news.more_frames = jobs.into_iter().collect();
        self.send(news);
    }

    fn tell(&self, jobs: BTreeSet<JobId>, frames: BTreeSet<(JobId, FrameNumber)>) {
        let mut news = self.news_of(&jobs);
        for (job, frame) in frames {
            if news.frames.len() < FRAMES_MAX {
                news.frames.extend(self.core().frame(job, frame).map(|status| (job, status)));
            } else if news.more_frames.last() != Some(&job) {
                news.more_frames.push(job);
            }
        }
        self.send(news);
    }

    fn news_of(&self, jobs: &BTreeSet<JobId>) -> News {
        let mut news = News { sequence: self.head(), ..News::default() };
        for job in jobs {
            match self.core().job_summary(*job) {
                Some(summary) => news.jobs.push(summary),
                None => news.jobs_gone.push(*job),
            }
        }
        news
    }

    fn send(&self, news: News) {
        if self.publisher.is_followed() && !news.is_empty() {
            // The last follower may be gone.
            drop(self.publisher.news().send(Arc::new(news)));
        }
        self.publisher.changed();
    }

    fn head(&self) -> Sequence {
        self.state.at.head
    }

    /// Answers a question. Whoever asks for anything else learns that there is no answer here.
    pub(crate) fn on_event(&self, event: Event) {
        let core = self.core();
        // Whoever asked may be gone.
        match event {
            Event::Question { question, reply } => drop(reply.send(self.answer(&question))),
            Event::Progress { job, reply } => {
                let summary = core.job_summary(job);
                drop(reply.send(summary.map(|summary| (summary, core.frames_done(job)))));
            }
            Event::Summary { job, reply } => drop(reply.send(core.job_summary(job))),
            Event::Census(reply) => {
                let open = core.job_ids().filter(|job| is_open(core, *job));
                let _ = reply.send(Census { jobs: open.count(), ..Census::default() });
            }
            Event::Tally { after, reply } => drop(reply.send(core.tally(after))),
            Event::Present(reply) => drop(reply.send(Box::new(self.present()))),
            Event::AboutBlobs(BlobQuestion::MayRead { hash, of, caller, reply }) => {
                let _ = reply.send(core.may_read(hash, of, &caller));
            }
            _ => {}
        }
    }

    fn answer(&self, question: &Question) -> Response {
        let core = self.core();
        let unknown =
            |job: &JobId| Response::Error(RequestError::NotFound(format!("there is no job {job}")));
        match question {
            Question::Jobs { selection, page } => core
                .jobs_page(selection, *page, self.clock.now())
                .map_or_else(Response::Error, Response::Jobs),
            Question::Job(job) => core
                .job(*job)
                .map_or_else(|| unknown(job), |detail| Response::Job(Box::new(detail))),
            Question::Frames { job, from, most } => {
                core.frames_up_to(*job, *from, *most).map_or_else(|| unknown(job), Response::Frames)
            }
            Question::Frame { job, .. } if !core.has_job(*job) => unknown(job),
            Question::Frame { job, frame } => {
                Response::Frames(core.frame(*job, *frame).into_iter().collect())
            }
            Question::Costs { month } => core
                .costs(month.as_deref(), self.clock.now())
                .map_or_else(Response::Error, |report| Response::Costs(Box::new(report))),
            Question::CostRules => Response::CostRules(Box::new(core.cost_rules().clone())),
            Question::Presets => Response::Presets(core.presets()),
            Question::Preset(name) => preset(core, name),
            Question::Owned { .. }
            | Question::KernelText { .. }
            | Question::Nodes
            | Question::Explain(_) => Response::Error(RequestError::Unavailable(
                "this coordinator stands by, and only the one that leads knows it".to_owned(),
            )),
        }
    }

    /// What is in the journal; nodes and leases are not.
    fn present(&self) -> Present {
        let (nodes_doubted, nodes_guilty) = self.core().suspects();
        Present {
            nodes: Vec::new(),
            units_leased: 0,
            nodes_doubted,
            nodes_guilty,
            counted: super::Counted::default(),
            records: self.head(),
            steps_waiting: 0,
        }
    }
}

fn is_open(core: &Core, job: JobId) -> bool {
    core.job_summary(job).is_some_and(|summary| !summary.state.is_final())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::folder::DataFolder;
    use crate::fsck;
    use crate::stopped_farm;
    use crate::store::{Journal, Store};
    use tessera_core::{MemoryShelf, Moment, Replica, Settings};
    use tokio::sync::oneshot;

    fn records() -> Vec<Record> {
        let root = tempfile::tempdir().unwrap();
        stopped_farm::make(root.path());
        let folder = DataFolder::open(root.path()).unwrap();
        let loaded = Journal::open(&folder, false).unwrap().load().unwrap();
        fsck::decode(&loaded).unwrap().1
    }

    fn state(records: &[Record]) -> FollowedState {
        let records = records.iter().cloned();
        let replica =
            Replica::replay_onto(MemoryShelf::new(), Settings::default(), [], records, Moment(1));
        FollowedState { replica: replica.unwrap(), at: Followed::default(), snapshot_at: 0 }
    }

    fn at(head: Sequence) -> Followed {
        Followed { head, ..Followed::default() }
    }

    #[tokio::test]
    async fn what_is_applied_is_told_and_answered() {
        let (records, (publisher, changes)) = (records(), Publisher::new());
        let mut desk = ReplicaDesk::new(state(&records[..1]), publisher, Clock::start());
        let mut news = changes.follow();
        desk.apply(&records[1..], at(records.len() as u64)).unwrap();
        let told = news.try_recv().unwrap();
        assert_eq!((told.sequence, told.jobs.len()), (records.len() as u64, 3), "{told:?}");
        let (reply, mut answer) = oneshot::channel();
        let question = Question::Job(stopped_farm::open_job());
        desk.on_event(Event::Question { question, reply });
        let Ok(Response::Job(detail)) = answer.try_recv() else { panic!("no job") };
        assert_eq!((detail.summary.units_committed, detail.summary.waits), (7, None));
        // Nobody gets an answer that only the leader has.
        let (reply, mut answer) = oneshot::channel();
        desk.on_event(Event::Question { question: Question::Nodes, reply });
        assert!(matches!(answer.try_recv(), Ok(Response::Error(RequestError::Unavailable(_)))));
        let (reply, mut answer) = oneshot::channel();
        desk.on_event(Event::AboutBlobs(BlobQuestion::Named(reply)));
        assert!(answer.try_recv().is_err());
    }

    #[test]
    fn another_state_is_told_by_what_differs() {
        let (records, (publisher, changes)) = (records(), Publisher::new());
        let all = records.len();
        let mut desk = ReplicaDesk::new(state(&records), publisher, Clock::start());
        let mut news = changes.follow();
        desk.replace(state(&records));
        assert!(news.try_recv().is_err(), "nothing differs");
        desk.replace(state(&records[..all - 1]));
        let told = news.try_recv().unwrap();
        assert_eq!(told.more_frames, [stopped_farm::open_job()]);
        desk.replace(state(&[]));
        assert_eq!(news.try_recv().unwrap().jobs_gone.len(), 3);
    }

    #[test]
    fn records_that_contradict_are_an_error() {
        let (records, (publisher, _)) = (records(), Publisher::new());
        let mut desk = ReplicaDesk::new(state(&records), publisher, Clock::start());
        assert!(desk.apply(&records[1..2], at(99)).is_err());
    }
}
