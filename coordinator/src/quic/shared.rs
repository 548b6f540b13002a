//! Parts of the coordinator that the handlers of all connections share.

use super::limits::Gate;
use crate::access::Access;
use crate::api::Api;
use crate::blobs::GuardedBlobs;
use crate::driver::Event;
use crate::result_memory::ResultMemory;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tessera_protocol::Hello;
use tokio::sync::mpsc;

/// Parts of the coordinator that every connection needs.
pub(crate) struct Shared {
    pub(crate) hello: Hello,
    pub(crate) api: Api,
    pub(crate) access: Arc<Access>,
    pub(crate) blobs: Arc<GuardedBlobs>,
    pub(crate) events: mpsc::Sender<Event>,
    pub(crate) result_memory: Arc<ResultMemory>,
    /// Least bytes per second of a result.
    pub(crate) result_rate: u64,
    pub(crate) next_session: AtomicU64,
    pub(crate) gate: Arc<Gate>,
}
