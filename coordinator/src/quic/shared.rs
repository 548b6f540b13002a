//! Parts of the coordinator that the handlers of all connections share.

use super::limits::Gate;
use super::rivals::Rivals;
use crate::access::Access;
use crate::api::Api;
use crate::blobs::GuardedBlobs;
use crate::driver::Event;
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
    pub(crate) events: mpsc::Sender<Event>,
    /// Memory for results, in KiB.
    pub(crate) result_memory: Arc<Semaphore>,
    pub(crate) next_session: AtomicU64,
    pub(crate) gate: Arc<Gate>,
    pub(crate) rivals: Rivals,
}
