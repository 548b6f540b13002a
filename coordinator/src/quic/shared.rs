//! Parts of the coordinator that the handlers of all connections share.

use super::limits::Gate;
use super::trouble::Trouble;
use crate::access::{Access, Cause};
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
}

impl Shared {
    /// Enters that an identity was refused something, if that is the result.
    pub(super) async fn tell_refused(&self, who: &str, what: &str, result: &Result<(), Trouble>) {
        if let Err(Trouble::NotAllowed(text)) = result {
            let about = format!("{what}: {text}");
            self.access.tell_refusal(Cause::Failure(who), "refused", about).await;
        }
    }
}
