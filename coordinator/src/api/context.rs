//! The parts of the coordinator that requests use (driver, store, access control and blobs), and
//! the ways to ask them.

use super::askers::Askers;
use crate::access::Access;
use crate::access::tokens::Ledger;
use crate::access::web::WebAccess;
use crate::blobs::GuardedBlobs;
use crate::changes::Changes;
use crate::clock::Clock;
use crate::driver::{Ask, Event, Question};
use crate::event_targets::EventTargets;
use crate::live::Board;
use crate::logs::Logs;
use crate::meters::Meters;
use crate::result_memory::ResultMemory;
use crate::spool::SpoolReader;
use crate::standing::Standing;
use crate::store::{Commit, Loaded, StoreError, StoreWriter};
use crate::uploads::{UploadLimit, Uploads};
use std::sync::{Arc, OnceLock};
use tessera_protocol::client::{RequestError, Response};
use tessera_telemetry::Tracer;
use tokio::sync::{RwLock, mpsc, oneshot, watch};

/// The parts of a running coordinator that requests use.
pub(crate) struct Context {
    pub(crate) access: Arc<Access>,
    pub(crate) ledger: Ledger,
    pub(crate) web: WebAccess,
    pub(crate) blobs: GuardedBlobs,
    pub(crate) spools: Arc<dyn SpoolReader>,
    pub(crate) clock: Clock,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) writer: Arc<StoreWriter>,
    pub(crate) changes: Changes,
    pub(crate) result_memory: Arc<ResultMemory>,
    /// Who uploaded which file.
    pub(crate) uploads: Arc<Uploads>,
    /// What limits uploads.
    pub(crate) upload_limit: UploadLimit,
    /// Requests and watchers of each person.
    pub(crate) askers: Arc<Askers>,
    /// Held for reading while a job is submitted, from the look at its files to its acceptance.
    pub(crate) submitting: RwLock<()>,
    /// What the process counts of itself.
    pub(crate) meters: Arc<Meters>,
    /// What is watched live.
    pub(crate) live: Arc<Board>,
    /// Lines of jobs and nodes.
    pub(crate) logs: Logs,
    /// Takes spans.
    pub(crate) tracer: Tracer,
    /// Who leads, where another coordinator does; None for the one that leads.
    pub(crate) standing: Option<watch::Receiver<Standing>>,
    /// Secret of the term in which this coordinator leads; empty where there is nobody else.
    pub(crate) term_key: Vec<u8>,
    /// Who tells events to targets; none is set where nobody does.
    pub(crate) targets: OnceLock<Arc<dyn EventTargets>>,
}

impl Context {
    /// Fails while the disk is full. Otherwise a request for a durable change would wait without an
    /// answer.
    pub(super) fn room(&self) -> Result<(), RequestError> {
        if self.writer.has_room() { Ok(()) } else { Err(full()) }
    }

    /// Asks the core for a durable change, if the disk is not full.
    pub(super) async fn durably(&self, ask: Ask) -> Result<Response, RequestError> {
        self.room()?;
        self.ask(ask).await
    }

    /// Asks the core for a change. The answer comes once it is durable.
    pub(super) async fn ask(&self, ask: Ask) -> Result<Response, RequestError> {
        self.send(|reply| Event::Ask { ask, reply }).await
    }

    /// Asks the core for information.
    pub(super) async fn question(&self, question: Question) -> Result<Response, RequestError> {
        self.send(|reply| Event::Question { question, reply }).await
    }

    /// Sends an event to the driver and waits for its answer.
    pub(super) async fn send<T>(
        &self,
        event: impl FnOnce(oneshot::Sender<T>) -> Event,
    ) -> Result<T, RequestError> {
        let (reply, answer) = oneshot::channel();
        self.events.send(event(reply)).await.map_err(|_| stopping())?;
        answer.await.map_err(|_| stopping())
    }

    /// Returns the content of the store at one moment.
    pub(super) async fn inspect(&self) -> Result<Loaded, RequestError> {
        let (mut commit, _) = Commit::new();
        let (inspect, seen) = oneshot::channel();
        commit.inspect = Some(inspect);
        self.writer.queue().send(commit).map_err(|error| unreadable(&error))?;
        seen.await.map_err(|error| unreadable(&error))?.map_err(|error| unreadable(&error))
    }
}

/// Runs a function that reads the disk on a thread for blocking work.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, RequestError> {
    tokio::task::spawn_blocking(work).await.map_err(|_| stopping())
}

pub(super) fn unavailable(error: impl std::fmt::Display) -> RequestError {
    RequestError::Unavailable(error.to_string())
}

pub(super) fn unreadable(error: &dyn std::fmt::Display) -> RequestError {
    RequestError::Unavailable(format!("the store cannot be read: {error}"))
}

fn full() -> RequestError {
    RequestError::Unavailable("the coordinator's disk is full; make room and try again".into())
}

fn stopping() -> RequestError {
    RequestError::Unavailable("the coordinator is stopping".into())
}

/// Returns the error for an audit log that cannot be written. Without its entry no request is
/// executed.
pub(super) fn unlogged(error: &std::io::Error) -> RequestError {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let source = error.get_ref().and_then(|source| source.downcast_ref());
    match error.kind() {
        // As one does that leads no more.
        _ if matches!(source, Some(StoreError::Stopped)) => stopping(),
        StorageFull | QuotaExceeded => full(),
        _ => RequestError::Unavailable(format!("the audit log cannot be written: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_waits_for_a_store_that_has_stopped_says_so() {
        let said = |error: &std::io::Error| unlogged(error).to_string();
        let stopped = std::io::Error::other(StoreError::Stopped);
        assert_eq!(said(&stopped), "the coordinator is stopping");
        let broken = std::io::Error::other("broken");
        assert_eq!(said(&broken), "the audit log cannot be written: broken");
    }
}
