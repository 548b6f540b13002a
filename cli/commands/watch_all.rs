//! `watch --all`: a line for each change of any job, over lost connections and new leaders.

use crate::client::Farm;
use crate::error::{CliError, Status};
use crate::json;
use crate::table::printable;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use tessera_protocol::JobId;
use tessera_protocol::ids::SHORT_ID;
use tessera_protocol::news::{JobsNews, NewsPart};
use tessera_protocol::status::{FrameStatus, JobSummary};
use tessera_transport::FarmClient;

/// Ended jobs that are remembered, so that a list which names them again says nothing new.
const ENDED_MAX: usize = 4096;
/// How much older than the last news a change can be that was missed, in seconds.
const LATE: u64 = 60;

/// Something that has happened.
#[derive(Clone, Debug, PartialEq)]
enum Happened {
    /// A job is new or has changed; with what it was before.
    Job(Box<JobSummary>, Option<Box<JobSummary>>),
    /// A frame has changed.
    Frame(JobId, FrameStatus),
    /// A job was forgotten.
    Gone(JobId),
}

/// What was told already.
#[derive(Debug, Default)]
struct Told {
    open: BTreeMap<JobId, JobSummary>,
    /// Jobs that have ended, by when.
    ended: BTreeSet<(u64, JobId)>,
    /// Open jobs of the list that is being read.
    listed: BTreeSet<JobId>,
    /// Time of the first and of the newest news.
    at: Option<(u64, u64)>,
}

/// Follows all jobs until it is interrupted.
pub(super) async fn run(farm: &Farm, as_json: bool) -> Result<Status, CliError> {
    let mut told = Told::default();
    let following = farm.persist(async |client| follow(client, &mut told, as_json).await);
    tokio::select! {
        ended = following => ended,
        _ = tokio::signal::ctrl_c() => {
            Err(CliError::new(Status::Interrupted, "interrupted; all jobs continue"))
        }
    }
}

async fn follow(client: &FarmClient, told: &mut Told, as_json: bool) -> Result<Status, CliError> {
    let since = told.at.map(|(first, newest)| newest.saturating_sub(LATE).max(first));
    told.listed.clear();
    let mut all = client.watch_all(since).await?;
    while let Some(news) = all.next().await? {
        for happened in told.take(news) {
            match as_json {
                true => json::print_value(&in_json(&happened)?)?,
                false => line_of(&happened).iter().try_for_each(|line| json::line(line))?,
            }
        }
    }
    Err(CliError::new(Status::Unreachable, "the coordinator stopped reporting"))
}

impl Told {
    /// Returns what is new in the news, in its order.
    fn take(&mut self, news: JobsNews) -> Vec<Happened> {
        let JobsNews { part, at, jobs, gone, frames } = news;
        self.at = Some((self.at.map_or(at, |(first, _)| first), at));
        if part != NewsPart::Changes {
            let open = jobs.iter().filter(|job| !job.state.is_final());
            self.listed.extend(open.map(|job| job.job));
        }
        let mut new: Vec<Happened> =
            frames.into_iter().map(|(job, frame)| Happened::Frame(job, frame)).collect();
        new.extend(jobs.into_iter().filter_map(|job| self.job(job)));
        new.extend(gone.into_iter().map(|job| self.gone(job)));
        if part == NewsPart::ListEnd {
            let listed = std::mem::take(&mut self.listed);
            let missing = self.open.keys().filter(|job| !listed.contains(job)).copied();
            let missing: Vec<JobId> = missing.collect();
            new.extend(missing.into_iter().map(|job| self.gone(job)));
        }
        new
    }

    fn job(&mut self, job: JobSummary) -> Option<Happened> {
        let before = match job.ended_at.filter(|_| job.state.is_final()) {
            Some(ended) => {
                if !self.ended.insert((ended, job.job)) {
                    return None;
                }
                if self.ended.len() > ENDED_MAX {
                    self.ended.pop_first();
                }
                self.open.remove(&job.job)
            }
            None => self.open.insert(job.job, job.clone()),
        };
        let is_new = before.as_ref() != Some(&job);
        is_new.then(|| Happened::Job(Box::new(job), before.map(Box::new)))
    }

    fn gone(&mut self, job: JobId) -> Happened {
        self.open.remove(&job);
        Happened::Gone(job)
    }
}

/// The line for programs.
fn in_json(happened: &Happened) -> Result<serde_json::Value, CliError> {
    Ok(match happened {
        Happened::Job(job, _) => json!({ "event": "job", "job": json::value(&**job)? }),
        Happened::Frame(job, frame) => {
            json!({ "event": "frame", "job": job.to_string(), "frame": json::value(frame)? })
        }
        Happened::Gone(job) => json!({ "event": "gone", "job": job.to_string() }),
    })
}

/// The line for people; None for what is only progress.
fn line_of(happened: &Happened) -> Option<String> {
    let Happened::Job(job, before) = happened else { return None };
    let shown = |job: &JobSummary| (job.state, job.waits, job.frames_failed, job.name.clone());
    if before.as_ref().is_some_and(|before| shown(before) == shown(job)) {
        return None;
    }
    let id = job.job.to_string();
    let (id, state) = (id.get(..SHORT_ID).unwrap_or(&id), job.state.name());
    let mut line = format!("{id} {state}: `{}` of `{}`", job.name, job.owner);
    line += &format!(", {} of {} frames", job.frames_done, job.frames);
    if job.frames_failed > 0 {
        line += &format!(", {} failed", job.frames_failed);
    }
    if !job.note.is_empty() {
        line += &format!(": {}", job.note);
    }
    Some(printable(&line))
}
