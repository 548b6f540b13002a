//! QUIC transport: accepts connections, authenticates peers, and passes each stream to the handler
//! of its kind. Decides nothing.

mod arrived;
mod client;
mod clock;
mod enrol;
mod frame_files;
mod inputs;
pub(crate) mod limits;
pub(crate) mod live;
mod logs;
mod node;
mod renew;
mod rest;
mod results;
mod rivals;
mod shared;
mod store_here;
mod stored;
mod streams;
mod trouble;

use crate::access::{Admitted, Cause, LivePeer, PeerConnection};
use crate::meters::Refused;
use limits::{Guest, Verdict};
use quinn::Connection;
pub(crate) use rest::Rest;
pub(crate) use rivals::Rivals;
pub(crate) use shared::Shared;
use std::sync::Arc;
use tessera_protocol::client::Role;
use tessera_transport::close::close;
use tessera_transport::{Arriving, CloseCode, Link, Meter, Server};
use tokio::task::JoinSet;
use trouble::settle;

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
                let welcome = Box::pin(welcome(arriving, guest, shared.clone()));
                drop(connections.spawn(connection(welcome, shared.clone())))
            }
            Verdict::Prove => arriving.prove(),
            Verdict::Ignore => {
                tracing::debug!(from = %arriving.remote_address(), "not answered: too many \
                    connections");
                shared.meters.refuse(Refused::Busy);
                arriving.ignore();
            }
        }
    }
    while connections.join_next().await.is_some() {}
}

/// Somebody who was let in, and what keeps the place.
struct Welcomed {
    link: Box<Link>,
    live: Arc<LivePeer>,
    meter: Arc<Meter>,
    _guest: Guest,
    _admitted: Admitted,
}

/// Serves a connection until its end. Its welcome comes in a box, which is gone when a session
/// begins: an idle node costs little more than that.
async fn connection(welcome: impl Future<Output = Option<Welcomed>>, shared: Arc<Shared>) {
    let Some(Welcomed { link, live, meter, _guest, _admitted }) = welcome.await else { return };
    let (from, peer) = (link.connection.remote_address(), live.peer().clone());
    match peer.role {
        Role::Node => node::serve(link, shared, (live, meter)).await,
        Role::Viewer | Role::Artist | Role::Operator | Role::Admin => {
            Box::pin(client::serve(*link, shared, (live, meter))).await;
        }
    }
    tracing::debug!(%from, %peer, "disconnected");
}

/// Completes the handshake and looks at the peer's identity. None if it was served or turned away.
async fn welcome(arriving: Arriving, mut guest: Guest, shared: Arc<Shared>) -> Option<Welcomed> {
    let from = arriving.remote_address();
    let link = match arriving.establish(&shared.hello).await {
        Ok(link) => link,
        Err(error) => {
            shared.meters.refuse(Refused::Handshake);
            if shared.log.allows(&format!("address {}", from.ip())) {
                let error = &error as &dyn std::error::Error;
                tracing::info!(%from, error, "connection refused");
            }
            return None;
        }
    };
    let Some(credential) = link.credential.clone() else {
        enrol::serve(link, shared).await;
        return None;
    };
    let peer = credential.peer.clone();
    let meter = match guest.becomes(&peer) {
        Ok(meter) => meter,
        Err(reason) => {
            shared.meters.refuse(Refused::Share);
            tracing::warn!(%from, %peer, reason, "connection closed");
            close(&link.connection, CloseCode::Failed, &reason);
            return None;
        }
    };
    link.welcome();
    tracing::debug!(%from, %peer, build = link.hello.build, "connected");
    let admitted = shared.access.admit(Box::new(link.connection.clone()), credential);
    let live = admitted.peer();
    let shown = match live.check_denied() {
        Ok(()) => shared.access.shown(&live, &from.to_string()).await,
        denied => denied,
    };
    if let Err(refusal) = shown {
        shared.meters.refuse(Refused::Identity);
        if shared.log.allows(&peer.to_string()) {
            tracing::warn!(%from, %peer, reason = refusal.text, "turned away");
        }
        live.close(&refusal);
        let about = format!("from {from}: {}", refusal.text);
        let who = peer.to_string();
        shared.access.tell_refusal(Cause::Failure(&who), "turned away", about).await;
        return None;
    }
    if live.must_renew()
        && let Err(trouble) = renew::before_all(&shared, &live, &link).await
    {
        settle(&link.connection, Err(trouble));
        return None;
    }
    Some(Welcomed { link: Box::new(link), live, meter, _guest: guest, _admitted: admitted })
}
