//! Parts of the coordinator that the handlers of all connections share.

use super::limits::Gate;
use super::rest::Rest;
use super::rivals::Rivals;
use super::trouble::{Trouble, settle};
use crate::access::{Access, Cause};
use crate::api::Api;
use crate::blobs::GuardedBlobs;
use crate::driver::Event;
use crate::farm_log::FarmLog;
use crate::live::Board;
use crate::logs::Logs;
use crate::meters::Meters;
use crate::resolve::desk::FilesDesk;
use crate::result_memory::ResultMemory;
use crate::spool::SpoolReader;
use quinn::Connection;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tessera_protocol::Hello;
use tokio::sync::{Semaphore, mpsc};

/// Parts of the coordinator that every connection needs.
pub(crate) struct Shared {
    pub(crate) hello: Hello,
    pub(crate) api: Api,
    pub(crate) access: Arc<Access>,
    pub(crate) blobs: Arc<GuardedBlobs>,
    pub(crate) spools: Arc<dyn SpoolReader>,
    /// Orders for nodes that put the files of frames together.
    pub(crate) files: Arc<FilesDesk>,
    /// Whether a store of results elsewhere is left alone for a while.
    pub(crate) store_rests: Rest,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) result_memory: Arc<ResultMemory>,
    /// Least bytes per second of a result.
    pub(crate) result_rate: u64,
    pub(crate) next_session: AtomicU64,
    pub(crate) gate: Arc<Gate>,
    pub(crate) rivals: Rivals,
    pub(crate) log: Arc<FarmLog>,
    pub(crate) meters: Arc<Meters>,
    pub(crate) live: Arc<Board>,
    pub(crate) logs: Logs,
    /// Places for live tiles on their way to the driver.
    pub(crate) live_places: Arc<Semaphore>,
}

impl Shared {
    /// Settles a result, and then enters in the audit log if it is that an identity was refused
    /// something. The connection is closed first, so that its peer gets the reason and not the end
    /// of a stream.
    pub(super) fn settle(
        &self,
        connection: &Connection,
        (who, what): (&str, &str),
        result: Result<(), Trouble>,
    ) {
        let refused = match &result {
            Err(Trouble::NotAllowed(text)) => Some(format!("{what}: {text}")),
            _ => None,
        };
        settle(connection, result);
        if let Some(about) = refused {
            let (access, who) = (self.access.clone(), who.to_owned());
            tokio::spawn(async move {
                access.tell_refusal(Cause::Failure(&who), "refused", about).await;
            });
        }
    }
}
