//! Tells those who follow the farm what has changed. Only while somebody does, and in batches, some
//! per second.

use super::news::{COMPARE_EVERY, NewsRoom};
use super::{After, Driver};
use crate::changes::News;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tessera_protocol::status::NodeSummary;
use tessera_protocol::{FrameNumber, JobId};

/// Most frames that a batch lists. Of the others, only the job is named.
const FRAMES_MAX: usize = 256;
/// Jobs that are compared at a time, so that 5,000 open jobs cost some milliseconds in 20 s.
const JOBS_COMPARED: usize = 500;

impl Driver {
    /// Begins to collect news when somebody follows, and stops when nobody does.
    pub(super) fn follow(&mut self) {
        match (self.around.publisher.is_followed(), self.news.last) {
            (true, None) => {
                self.news = NewsRoom { last: Some(Instant::now()), ..NewsRoom::default() };
            }
            (false, Some(_)) => self.news = NewsRoom::default(),
            _ => {}
        }
    }

    /// Makes a batch of what has changed, to be told once it is durable.
    pub(super) fn tell_news(&mut self) {
        self.follow();
        let now = Instant::now();
        if self.news.due().is_none_or(|due| due > now) {
            return;
        }
        let room = &mut self.news;
        let (jobs, frames) = (std::mem::take(&mut room.jobs), std::mem::take(&mut room.frames));
        let compares = room.compared.is_none_or(|at| at + COMPARE_EVERY <= now);
        let nodes_changed = std::mem::take(&mut room.nodes_changed) || compares;
        room.last = Some(now);
        let mut news = News { sequence: self.sequence, ..News::default() };
        self.add_jobs(&mut news, jobs);
        self.add_frames(&mut news, frames);
        if nodes_changed {
            self.add_nodes(&mut news);
        }
        if compares {
            self.news.compared = Some(now);
            self.add_waiting(&mut news);
        }
        if !news.is_empty() {
            let (sender, news) = (self.around.publisher.news(), Arc::new(news));
            // The last follower may be gone.
            self.after_pending(After::Tell(Box::new(move || drop(sender.send(news)))));
        }
    }

    fn add_jobs(&mut self, news: &mut News, jobs: BTreeSet<JobId>) {
        for job in jobs {
            match self.core.job_summary(job) {
                Some(summary) => {
                    let told = (summary.waits, summary.note.clone());
                    match summary.state.is_final() {
                        true => drop(self.news.waits.remove(&job)),
                        false => drop(self.news.waits.insert(job, told)),
                    }
                    news.jobs.push(summary);
                }
                None => {
                    self.news.waits.remove(&job);
                    news.jobs_gone.push(job);
                }
            }
        }
    }

    fn add_frames(&self, news: &mut News, frames: BTreeSet<(JobId, FrameNumber)>) {
        for (job, frame) in frames {
            if news.frames.len() < FRAMES_MAX {
                news.frames.extend(self.core.frame(job, frame).map(|status| (job, status)));
            } else if news.more_frames.last() != Some(&job) {
                news.more_frames.push(job);
            }
        }
    }

    fn add_nodes(&mut self, news: &mut News) {
        let now = self.core.nodes(self.around.clock.now());
        if self.news.compared.is_none() {
            // Followers read the lists when they begin.
            self.news.nodes = now.into_iter().map(|node| (node.node, node)).collect();
            return;
        }
        let mut before = std::mem::take(&mut self.news.nodes);
        for node in now {
            let told = before.remove(&node.node);
            if told.as_ref().is_none_or(|told| differs(told, &node)) {
                news.nodes.push(node.clone());
                self.news.nodes.insert(node.node, node);
            } else {
                self.news.nodes.extend(told.map(|told| (told.node, told)));
            }
        }
        news.nodes_gone.extend(before.into_keys());
    }

    /// Adds open jobs that wait for another reason than was told last. Joining and leaving nodes
    /// change that without a record of the job.
    fn add_waiting(&mut self, news: &mut News) {
        let mut ids = self.core.open_jobs(self.news.next_job);
        let some: Vec<JobId> = ids.by_ref().take(JOBS_COMPARED).collect();
        self.news.next_job = ids.next();
        for job in some {
            let Some(summary) = self.core.job_summary(job) else { continue };
            let why = (summary.waits, summary.note.clone());
            let told = self.news.waits.insert(job, why.clone());
            if told.is_some_and(|told| told != why) {
                news.jobs.push(summary);
            }
        }
    }
}

/// Whether a node has changed in what lists show, beyond what each heartbeat changes a little.
fn differs(told: &NodeSummary, now: &NodeSummary) -> bool {
    let at_work = |node: &NodeSummary| (node.units_leased > 0, node.units_committed);
    told.state != now.state
        || told.note != now.note
        || told.name != now.name
        || told.pool != now.pool
        || told.devices != now.devices
        || told.drained != now.drained
        || at_work(told) != at_work(now)
        || told.units_leased != now.units_leased
}
