//! Following all jobs: a list of those that are open or have ended lately, then what changes. A
//! reader that is too slow for the changes gets a list again, so that it misses no end of a job.

use super::askers::{Entered, Kind};
use super::context::Context;
use crate::changes::News;
use crate::driver::{Event, Question};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tessera_core::{JobsPage, Owner};
use tessera_protocol::client::{RequestError, Response};
use tessera_protocol::limits::JOB_PAGE_MAX;
use tessera_protocol::news::{JobsNews, NewsPart};
use tessera_protocol::selection::{JobOrder, JobSelection};
use tessera_protocol::status::{JobState, JobSummary};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Longest time without a message. Then comes one without news, so that who is gone is noticed.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// How much older than its news a change can be, in seconds. News come four times a second, and
/// after the disk has them.
const LATE: u64 = 60;

/// A stream of the news of all jobs.
pub struct Follow {
    context: Arc<Context>,
    news: Receiver<Arc<News>>,
    /// Jobs that have ended at this time or later are listed too, in seconds since the Unix epoch.
    since: u64,
    /// The page of the list that comes next; None where the list is complete.
    page: Option<JobsPage>,
    /// When the newest list was begun, and when the newest change was read.
    begun: u64,
    heard: u64,
    /// Parts that are read and not returned yet.
    parts: VecDeque<JobsNews>,
    _entered: Option<Entered>,
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").field("since", &self.since).finish_non_exhaustive()
    }
}

/// The first page of the list.
fn first_page() -> JobsPage {
    JobsPage { before: None, rows: None, order: JobOrder::Newest }
}

impl Follow {
    /// Begins to follow. It subscribes before it reads, so that no change is lost in between.
    /// Without a time, ended jobs are not listed.
    pub(super) async fn begin(
        context: Arc<Context>,
        since: Option<u64>,
        owner: Option<&Owner>,
    ) -> Result<Self, RequestError> {
        let entered = owner.map(|owner| context.askers.enter(owner, Kind::Watcher)).transpose()?;
        let news = context.changes.follow();
        // The driver notices its followers with its next event: this one.
        context.send(Event::Census).await?;
        Ok(Self {
            news,
            since: since.unwrap_or(u64::MAX),
            page: Some(first_page()),
            begun: context.clock.now().secs(),
            heard: 0,
            context,
            parts: VecDeque::new(),
            _entered: entered,
        })
    }

    /// Returns the next news; None if the coordinator stops. Cancel-safe.
    pub async fn next(&mut self) -> Option<JobsNews> {
        loop {
            if let Some(part) = self.parts.pop_front() {
                return Some(part);
            }
            if let Some(page) = self.page {
                self.list(page).await?;
                continue;
            }
            match tokio::time::timeout(QUIET_MAX, self.news.recv()).await {
                Ok(Ok(news)) => self.take(&news),
                Ok(Err(RecvError::Lagged(_))) => self.list_again(),
                Ok(Err(RecvError::Closed)) => return None,
                Err(_) => return Some(self.changes(Vec::new())),
            }
        }
    }

    /// Begins a list again, as changes were lost. What ended before them is known.
    fn list_again(&mut self) {
        self.since = self.heard.max(self.begun).saturating_sub(LATE);
        self.begun = self.now();
        self.page = Some(first_page());
    }

    /// Reads a page of the list.
    async fn list(&mut self, page: JobsPage) -> Option<()> {
        let is_open = |state: &JobState| !state.is_final();
        let states = match self.since {
            u64::MAX => JobState::ALL.into_iter().filter(is_open).collect(),
            _ => Vec::new(),
        };
        let selection = Box::new(JobSelection { states, ..JobSelection::default() }.into());
        let question = Question::Jobs { selection, page };
        let Response::Jobs(found) = self.context.question(question).await.ok()? else {
            return None;
        };
        self.page = found.next.map(|before| JobsPage { before: Some(before), ..page });
        let part = if self.page.is_some() { NewsPart::Listed } else { NewsPart::ListEnd };
        let since = self.since;
        let is_meant = |job: &JobSummary| job.ended_at.is_none_or(|ended| ended >= since);
        let jobs: Vec<JobSummary> = found.jobs.into_iter().filter(is_meant).collect();
        if !jobs.is_empty() || part == NewsPart::ListEnd {
            let (gone, frames) = (Vec::new(), Vec::new());
            self.parts.push_back(JobsNews { part, at: self.now(), jobs, gone, frames });
        }
        Some(())
    }

    /// Makes messages of a batch, of which each has at most a page of jobs.
    fn take(&mut self, news: &News) {
        self.heard = self.now();
        let jobs = news.jobs.chunks(JOB_PAGE_MAX);
        let mut parts: VecDeque<JobsNews> = jobs.map(|jobs| self.changes(jobs.to_vec())).collect();
        if !news.frames.is_empty() {
            let frames = news.frames.clone();
            parts.push_back(JobsNews { frames, ..self.changes(Vec::new()) });
        }
        for gone in news.jobs_gone.chunks(JOB_PAGE_MAX) {
            parts.push_back(JobsNews { gone: gone.to_vec(), ..self.changes(Vec::new()) });
        }
        self.parts.append(&mut parts);
    }

    fn changes(&self, jobs: Vec<JobSummary>) -> JobsNews {
        let (part, at) = (NewsPart::Changes, self.now());
        JobsNews { part, at, jobs, gone: Vec::new(), frames: Vec::new() }
    }

    fn now(&self) -> u64 {
        self.context.clock.now().secs()
    }
}
