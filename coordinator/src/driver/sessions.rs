//! A node's session as the driver sees it: a queue of messages, and the blobs that the node may
//! read.

use super::Driver;
use crate::access::{LivePeer, Refusal};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tessera_core::{Input, SessionId};
use tessera_protocol::node::{Assignment, CoordinatorToNode, Task};
use tessera_protocol::{BlobHash, JobId, JobKind, NodeId, ProcessEpoch};
use tessera_transport::CloseCode;
use tessera_transport::validity::now_secs;
use tokio::sync::mpsc;

/// Something for a node.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A control message.
    Message(Box<CoordinatorToNode>),
    /// The end of the session, after what was sent before.
    Close(String),
}

/// One session.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    pub(crate) session: SessionId,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) readable: Readable,
    pub(crate) peer: Arc<LivePeer>,
}

impl SessionHandle {
    /// Sends a control message. A node that lets thousands of them wait does not read, and loses
    /// its connection; so does one that is denied, or whose certificate is over, before any work
    /// reaches it.
    pub(super) fn send(&self, message: CoordinatorToNode) {
        if matches!(message, CoordinatorToNode::Work(_))
            && let Err(refusal) = self.peer.check(now_secs())
        {
            return self.peer.close(&refusal);
        }
        self.readable.follow(&message);
        self.push(Outgoing::Message(Box::new(message)));
    }

    /// Ends the session once what was sent before has gone out.
    pub(super) fn close(&self, reason: String) {
        self.push(Outgoing::Close(reason));
    }

    fn push(&self, outgoing: Outgoing) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outgoing.try_send(outgoing) {
            let text = "control messages are not read".into();
            self.peer.close(&Refusal { code: CloseCode::Silent, text });
        }
    }
}

/// Blobs that a node may read: the files of the jobs whose leases its process has been given and
/// that have not ended, and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readable(Arc<Mutex<BTreeMap<JobId, BTreeSet<BlobHash>>>>);

impl Readable {
    pub(crate) fn contains(&self, hash: BlobHash) -> bool {
        self.lock().values().any(|hashes| hashes.contains(&hash))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, BTreeSet<BlobHash>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the same process could read in its former session: it is not told of those jobs again.
    fn take_over(&self, former: &Self) {
        // Never the same mutex: every session has its own.
        let former = former.lock().clone();
        self.lock().extend(former);
    }

    /// The files of a job.
    fn admit(&self, job: JobId, kind: &JobKind) {
        let hashes = kind.files().into_iter().map(|(_, hash, _)| hash);
        self.lock().entry(job).or_default().extend(hashes);
    }

    fn follow(&self, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Job { job, spec } => {
                if let Ok(spec) = spec.as_ref().clone().check() {
                    self.admit(*job, &spec.kind);
                }
            }
            // What is fed to a frame is a file of the frame before.
            CoordinatorToNode::Work(assignments) => {
                let mut readable = self.lock();
                for Assignment { job, task, .. } in assignments {
                    if let (Task::Chunk { feed: Some(feed), .. }, Some(hashes)) =
                        (task, readable.get_mut(job))
                    {
                        hashes.insert(*feed);
                    }
                }
            }
            CoordinatorToNode::Forget { job } => drop(self.lock().remove(job)),
            _ => {}
        }
    }
}

/// What the newest process of each node may read, also between its sessions.
pub(super) type ReadableByNode = BTreeMap<NodeId, (ProcessEpoch, Readable)>;

impl Driver {
    /// A node's session begins.
    pub(super) fn on_joined(&mut self, handle: SessionHandle, input: Input) {
        let joined = match &input {
            Input::NodeJoined { join, .. } => Some((join.node, join.process)),
            _ => None,
        };
        let readable = handle.readable.clone();
        self.sessions.insert(handle.session, handle);
        self.core.handle(input, self.around.clock.now());
        let Some((node, process)) = joined else { return };
        let former = self.readable.insert(node, (process, readable.clone()));
        if let Some((_, former)) = former.filter(|(before, _)| *before == process) {
            readable.take_over(&former);
        }
        // After a restart of this coordinator the node goes on with what it holds, and is not told
        // of those jobs either.
        for job in self.core.jobs_leased_to(node) {
            if let Some(detail) = self.core.job(job) {
                readable.admit(job, &detail.spec.kind);
            }
        }
    }
}
