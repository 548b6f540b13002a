//! QUIC transport: accepts connections, authenticates peers, and passes each stream to the handler
//! of its kind. Decides nothing.

mod client;
mod clock;
mod enrol;
pub(crate) mod limits;
mod node;
mod renew;
mod results;

use crate::access::{Access, PeerConnection};
use crate::api::Api;
use crate::blobs::GuardedBlobs;
use crate::driver::Event;
use limits::{Gate, Guest, Verdict};
use quinn::{Connection, SendStream};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use tessera_protocol::Hello;
use tessera_protocol::client::Role;
use tessera_transport::close::close;
use tessera_transport::frame::accept_kind;
use tessera_transport::{Arriving, CloseCode, FrameError, Link, Meter, Server, Timing};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Most streams of one connection that are handled at the same time.
const STREAMS_SERVED_MAX: usize = 256;

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

impl PeerConnection for Connection {
    fn close(&self, code: CloseCode, text: &str) {
        close(self, code, text);
    }
}

/// Accepts connections until the server is closed.
pub(crate) async fn serve(server: Arc<Server>, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Some(arriving) = server.accept().await {
        while connections.try_join_next().is_some() {}
        match shared.gate.arrives(arriving.remote_address(), arriving.is_proven()) {
            Verdict::Establish(guest) => {
                drop(connections.spawn(connection(arriving, guest, shared.clone())))
            }
            Verdict::Prove => arriving.prove(),
            Verdict::Ignore => {
                tracing::debug!(from = %arriving.remote_address(), "not answered: too many \
                    connections");
                arriving.ignore();
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

async fn connection(arriving: Arriving, mut guest: Guest, shared: Arc<Shared>) {
    let from = arriving.remote_address();
    let link = match arriving.establish(&shared.hello).await {
        Ok(link) => link,
        Err(error) => {
            tracing::info!(%from, error = &error as &dyn std::error::Error, "connection refused");
            return;
        }
    };
    let Some(credential) = link.credential.clone() else {
        return enrol::serve(link, shared).await;
    };
    let peer = credential.peer.clone();
    let meter = match guest.becomes(&peer) {
        Ok(meter) => meter,
        Err(reason) => {
            tracing::warn!(%from, %peer, reason, "connection closed");
            return close(&link.connection, CloseCode::Failed, &reason);
        }
    };
    link.welcome();
    tracing::debug!(%from, %peer, build = link.hello.build, "connected");
    let admitted = shared.access.admit(Box::new(link.connection.clone()), credential);
    let live = admitted.peer();
    if let Err(refusal) = live.check_denied() {
        tracing::warn!(%from, %peer, reason = refusal.text, "turned away");
        return live.close(&refusal);
    }
    if live.is_expired()
        && let Err(trouble) = renew::before_all(&shared, &live, &link).await
    {
        return settle(&link.connection, Err(trouble));
    }
    match peer.role {
        Role::Node => node::serve(link, shared, (live, meter)).await,
        Role::Viewer | Role::Artist | Role::Operator | Role::Admin => {
            client::serve(link, shared, (live, meter)).await;
        }
    }
    tracing::debug!(%from, %peer, "disconnected");
}

/// Handles every two-way stream of a connection in a separate task, until the connection ends.
async fn serve_streams<F, Fut>(connection: Connection, timing: Timing, meter: Arc<Meter>, serve: F)
where
    F: Fn(
            tessera_protocol::stream::StreamKind,
            SendStream,
            tessera_transport::FrameReceiver,
        ) -> Fut
        + Clone
        + Send
        + Sync
        + 'static,
    Fut: Future<Output = Result<(), Trouble>> + Send + 'static,
{
    let mut tasks = JoinSet::new();
    while let Ok((sender, receiver)) = connection.accept_bi().await {
        make_room(&mut tasks).await;
        let (connection, meter, serve) = (connection.clone(), meter.clone(), serve.clone());
        tasks.spawn(async move {
            let result = match accept_kind(receiver, timing.answer).await {
                Ok((kind, receiver)) => serve(kind, sender, receiver.metered(meter)).await,
                Err(error) => Err(error.into()),
            };
            settle(&connection, result);
        });
    }
}

/// Waits until another stream can be handled. The peer waits too.
async fn make_room(tasks: &mut JoinSet<()>) {
    while tasks.try_join_next().is_some() {}
    while tasks.len() >= STREAMS_SERVED_MAX {
        tasks.join_next().await;
    }
}

/// Why a stream was not handled.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// The peer broke the protocol, stopped answering, or is gone.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// A blob was not transferred. The other side knows why.
    #[error(transparent)]
    Blob(#[from] tessera_transport::BlobError),
    /// The peer's role does not have the right.
    #[error("{0}")]
    NotAllowed(String),
    /// The peer sent an invalid message.
    #[error("{0}")]
    Protocol(String),
    /// The peer's certificate has expired.
    #[error("the certificate has expired; renew it before anything else")]
    Expired,
    /// The peer has lost its access.
    #[error("{}", .0.text)]
    Refused(crate::access::Refusal),
    /// The coordinator is stopping.
    #[error("the coordinator is stopping")]
    Stopping,
}

/// Closes the connection of a peer that breaks the rules, with the reason. Other errors concern
/// only their stream.
fn settle(connection: &Connection, result: Result<(), Trouble>) {
    let Err(trouble) = result else { return };
    let code = match &trouble {
        Trouble::Frame(error) | Trouble::Blob(tessera_transport::BlobError::Frame(error)) => {
            match error {
                error if error.is_peers_fault() => CloseCode::Protocol,
                FrameError::Silent(_) => CloseCode::Silent,
                _ => return,
            }
        }
        Trouble::Blob(error) => {
            tracing::warn!(error = error as &dyn std::error::Error, "blob was not transferred");
            return;
        }
        Trouble::NotAllowed(_) => CloseCode::NotAllowed,
        Trouble::Protocol(_) => CloseCode::Protocol,
        Trouble::Expired => CloseCode::Expired,
        Trouble::Refused(refusal) => refusal.code,
        Trouble::Stopping => return,
    };
    tracing::warn!(from = %connection.remote_address(), reason = %trouble, "connection closed");
    close(connection, code, &trouble.to_string());
}

fn wrong_kind(kind: tessera_protocol::stream::StreamKind) -> Trouble {
    Trouble::NotAllowed(format!("streams of kind {kind:?} are not for this identity"))
}

/// Closes the link's connection when it is dropped.
struct Closing<'a>(&'a Link);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        close(&self.0.connection, CloseCode::Done, "");
    }
}
