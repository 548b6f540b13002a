//! A node's session as the driver sees it: a queue of messages, and the blobs that the node may read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tessera_core::SessionId;
use tessera_protocol::node::{Assignment, CoordinatorToNode, Task};
use tessera_protocol::{BlobHash, JobId};
use tessera_transport::close::{CloseCode, close};
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
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    pub(crate) session: SessionId,
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    pub(crate) readable: Readable,
    pub(crate) connection: quinn::Connection,
}

impl SessionHandle {
    /// Sends a control message. A node that lets thousands of them wait does not read, and loses its connection.
    pub(super) fn send(&self, message: CoordinatorToNode) {
        self.readable.follow(&message);
        self.push(Outgoing::Message(Box::new(message)));
    }

    /// Ends the session once what was sent before has gone out.
    pub(super) fn close(&self, reason: String) {
        self.push(Outgoing::Close(reason));
    }

    fn push(&self, outgoing: Outgoing) {
        if let Err(mpsc::error::TrySendError::Full(_)) = self.outgoing.try_send(outgoing) {
            close(&self.connection, CloseCode::Silent, "control messages are not read");
        }
    }
}

/// Blobs that a node may read: the files of the jobs it was told of in this session, and nothing else.
#[derive(Clone, Debug, Default)]
pub(crate) struct Readable(Arc<Mutex<BTreeMap<JobId, BTreeSet<BlobHash>>>>);

impl Readable {
    pub(crate) fn contains(&self, hash: BlobHash) -> bool {
        self.lock().values().any(|hashes| hashes.contains(&hash))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<JobId, BTreeSet<BlobHash>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn follow(&self, message: &CoordinatorToNode) {
        match message {
            CoordinatorToNode::Job { job, kind } => {
                let hashes = kind.files().into_iter().map(|(_, hash, _)| hash).collect();
                self.lock().insert(*job, hashes);
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
