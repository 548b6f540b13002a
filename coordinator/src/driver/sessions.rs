//! A node's session as the driver sees it: a queue of messages, and the blobs that the node is
//! allowed to read.

use crate::access::{LivePeer, Refusal};
use crate::logs::Sayable;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tessera_core::SessionId;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Task};
use tessera_protocol::{BlobHash, JobId, JobKind, NodeId, ProcessEpoch};
use tessera_transport::CloseCode;
use tessera_transport::validity::now_secs;
use tokio::sync::mpsc;

/// Something to send to a node.
#[derive(Debug)]
pub(crate) enum Outgoing {
    /// A control message.
    Message(Box<CoordinatorToNode>),
    /// The end of the session, after all earlier messages.
    Close(String),
}

/// Handle of one session.
#[derive(Clone)]
pub(crate) struct SessionHandle {
    pub(crate) session: SessionId,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) readable: Readable,
    pub(crate) sayable: Sayable,
    pub(crate) peer: Arc<LivePeer>,
}

impl SessionHandle {
    /// Sends a control message. A node that does not read loses its connection when the queue is
    /// full. A node that is denied, or whose certificate has expired, loses it before it gets more
    /// work.
    pub(super) fn send(&self, message: CoordinatorToNode) {
        if matches!(message, CoordinatorToNode::Work(_))
            && let Err(refusal) = self.peer.check(now_secs())
        {
            return self.peer.close(&refusal);
        }
        self.readable.follow(&message);
        self.push(Outgoing::Message(Box::new(message)));
    }

    /// Ends the session after all earlier messages.
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

/// Blobs that a node is allowed to read: the files of the open jobs whose leases were given to its
/// process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readable(Arc<Mutex<BTreeMap<JobId, BTreeSet<BlobHash>>>>);

impl Readable {
    pub(crate) fn contains(&self, hash: BlobHash) -> bool {
        self.lock().values().any(|hashes| hashes.contains(&hash))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, BTreeSet<BlobHash>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the blobs of the same process's former session. The node is not told of those
    /// jobs again.
    pub(super) fn take_over(&self, former: &Self) {
        // Every session has its own mutex, so this cannot deadlock.
        let former = former.lock().clone();
        self.lock().extend(former);
    }

    /// Adds the files of a job.
    pub(super) fn admit(&self, job: JobId, kind: &JobKind) {
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
            // The feed of a frame is a file of the previous frame.
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

/// What the newest process of each node can read, and say lines about, also between its sessions.
pub(super) type ReadableByNode = BTreeMap<NodeId, (ProcessEpoch, Readable, Sayable)>;
