//! What changes, as server-sent events. One task reads the coordinator's news while somebody
//! listens, writes each batch down once, and gives it to all. A client that comes back within the
//! batches that are kept goes on where it was.

use crate::problem::{Problem, stopping};
use crate::views::{Frame, Job, NodeLine};
use bytes::Bytes;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tessera_coordinator::api::{Api, News};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

/// Batches that are kept for clients that come back: half a minute of a busy farm.
const KEPT: usize = 128;
/// Batches that wait for a slow client. One that is later begins anew.
const WAITING_MAX: usize = 32;
/// How long the news are still read when nobody listens.
const LINGER: Duration = Duration::from_secs(60);

/// One batch, as it is sent.
#[derive(Debug)]
pub(crate) struct Batch {
    number: u64,
    pub(crate) text: Bytes,
}

/// Gives the coordinator's news to all who listen.
pub(crate) struct Hub {
    api: Api,
    /// Tells the numbers of this process from those of one before it.
    process: u64,
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    number: u64,
    kept: VecDeque<Arc<Batch>>,
    /// Set while the news are read.
    clients: Option<broadcast::Sender<Arc<Batch>>>,
}

/// A client of the hub.
pub(crate) struct Listener {
    pub(crate) hello: Bytes,
    pub(crate) missed: Vec<Arc<Batch>>,
    pub(crate) batches: broadcast::Receiver<Arc<Batch>>,
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hub {
    /// A hub that nobody listens to yet.
    pub(crate) fn new(api: Api) -> Self {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let inner = Inner { number: 0, kept: VecDeque::new(), clients: None };
        Self { api, process: now.as_millis() as u64, inner: Arc::new(Mutex::new(inner)) }
    }

    /// Returns how many listen now.
    pub(crate) fn listeners(&self) -> usize {
        lock(&self.inner).clients.as_ref().map_or(0, broadcast::Sender::receiver_count)
    }

    /// Begins to listen; `last` is the newest id that the client has. When this returns, the driver
    /// collects news: what a client reads from now on and what it is told leave no gap.
    pub(crate) async fn listen(&self, last: Option<&str>) -> Result<Listener, Problem> {
        let begins = {
            let mut inner = lock(&self.inner);
            let begins = inner.clients.is_none();
            if begins {
                inner.kept.clear();
                inner.clients = Some(broadcast::Sender::new(WAITING_MAX));
                let news = self.api.changes().follow();
                tokio::spawn(read(news, self.inner.clone(), self.process));
            }
            begins
        };
        if begins {
            // The driver notices its followers with its next event: this one.
            self.api.census().await.ok_or_else(stopping)?;
        }
        let inner = lock(&self.inner);
        let batches = inner.clients.as_ref().map(broadcast::Sender::subscribe);
        let batches = batches.ok_or_else(stopping)?;
        let missed = last.and_then(|last| inner.since(last, self.process));
        let id = format!("{}.{}", self.process, inner.number);
        let resumed = missed.is_some();
        let hello =
            format!("retry: 2000\nevent: hello\nid: {id}\ndata: {{\"resumed\":{resumed}}}\n\n");
        Ok(Listener { hello: hello.into(), missed: missed.unwrap_or_default(), batches })
    }
}

impl Inner {
    /// Returns the batches after an id; None if some of them are no longer kept.
    fn since(&self, last: &str, process: u64) -> Option<Vec<Arc<Batch>>> {
        let (of, number) = last.split_once('.')?;
        if of.parse() != Ok(process) {
            return None;
        }
        let number: u64 = number.parse().ok()?;
        let oldest = self.kept.front().map_or(self.number + 1, |batch| batch.number);
        if number > self.number || number + 1 < oldest {
            return None;
        }
        Some(self.kept.iter().filter(|batch| batch.number > number).cloned().collect())
    }
}

/// Reads the news until nobody has listened for a while.
async fn read(mut news: broadcast::Receiver<Arc<News>>, inner: Arc<Mutex<Inner>>, process: u64) {
    loop {
        let next = tokio::time::timeout(LINGER, news.recv()).await;
        let mut inner = lock(&inner);
        let alone = inner.clients.as_ref().is_none_or(|clients| clients.receiver_count() == 0);
        match next {
            Ok(Ok(news)) => {
                inner.number += 1;
                let number = inner.number;
                let text = Bytes::from(written(&news, &format!("{process}.{number}")));
                let batch = Arc::new(Batch { number, text });
                inner.kept.push_back(batch.clone());
                if inner.kept.len() > KEPT {
                    inner.kept.pop_front();
                }
                if let Some(clients) = &inner.clients {
                    // Nobody may be listening now.
                    let _ = clients.send(batch);
                }
            }
            // Some news are lost: everybody begins anew.
            Ok(Err(RecvError::Lagged(_))) => {
                inner.number += 1;
                inner.kept.clear();
                inner.clients = Some(broadcast::Sender::new(WAITING_MAX));
            }
            Ok(Err(RecvError::Closed)) => {
                inner.clients = None;
                return;
            }
            Err(_) if alone => {
                inner.clients = None;
                return;
            }
            Err(_) => {}
        }
    }
}

/// Writes a batch as events. The last one has the id: a client that has it has all of them.
fn written(news: &News, id: &str) -> String {
    let mut text = String::new();
    let mut event = |kind: &str, data: &Value| {
        // Writing to a string does not fail. JSON has no line breaks.
        let _ = write!(text, "event: {kind}\ndata: {data}\n\n");
    };
    if !news.jobs.is_empty() || !news.jobs_gone.is_empty() {
        let jobs: Vec<Job> = news.jobs.iter().map(Job::from).collect();
        event("jobs", &json!({ "jobs": jobs, "gone": texts(&news.jobs_gone) }));
    }
    if !news.frames.is_empty() || !news.more_frames.is_empty() {
        let frames: Vec<Value> = news
            .frames
            .iter()
            .map(|(job, frame)| json!({ "job": job.to_string(), "frame": Frame::from(frame) }))
            .collect();
        event("frames", &json!({ "frames": frames, "more": texts(&news.more_frames) }));
    }
    if !news.nodes.is_empty() || !news.nodes_gone.is_empty() {
        let nodes: Vec<NodeLine> = news.nodes.iter().map(NodeLine::from).collect();
        event("nodes", &json!({ "nodes": nodes, "gone": texts(&news.nodes_gone) }));
    }
    let _ = write!(text, "event: through\nid: {id}\ndata: {}\n\n", news.sequence);
    text
}

fn texts(ids: &[impl ToString]) -> Vec<String> {
    ids.iter().map(ToString::to_string).collect()
}
