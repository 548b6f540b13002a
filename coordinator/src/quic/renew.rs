//! Renewal of a peer's certificate over its present connection. Signs nothing itself; see
//! [`crate::access`].

use super::clock;
use super::shared::Shared;
use super::trouble::{Trouble, wrong_kind};
use crate::access::LivePeer;
use quinn::SendStream;
use std::net::SocketAddr;
use tessera_protocol::renewal::RenewRequest;
use tessera_protocol::stream::StreamKind;
use tessera_transport::frame::{accept_kind, within};
use tessera_transport::{FrameReceiver, FrameSender, Link, Timing};

/// Answers one request.
pub(super) async fn serve(
    shared: &Shared,
    live: &LivePeer,
    (sender, mut receiver): (SendStream, FrameReceiver),
    (timing, from): (Timing, SocketAddr),
) -> Result<(), Trouble> {
    let request: RenewRequest = receiver.expect(timing.answer).await?;
    let reply = shared.access.renew(live, &request, &from.to_string()).await;
    let mut sender = FrameSender::new(sender);
    sender.send(&reply).await?;
    sender.finish();
    Ok(())
}

/// Makes a peer with an expired certificate renew it before anything else.
pub(super) async fn before_all(
    shared: &Shared,
    live: &LivePeer,
    link: &Link,
) -> Result<(), Trouble> {
    let limit = link.timing.answer;
    let (sender, receiver) = within(limit, link.connection.accept_bi()).await?;
    let (kind, receiver) = accept_kind(receiver, limit).await?;
    if kind != StreamKind::Renew {
        return Err(Trouble::Expired.closing(&link.connection));
    }
    let from = link.connection.remote_address();
    serve(shared, live, (sender, receiver), (link.timing, from)).await?;
    if live.is_expired() { Err(Trouble::Expired) } else { Ok(()) }
}

/// Returns the first stream of a node that is neither a renewal nor a question for the time.
/// Answers those before it.
pub(super) async fn first_other(
    shared: &Shared,
    live: &LivePeer,
    link: &Link,
    wanted: StreamKind,
) -> Result<(SendStream, FrameReceiver), Trouble> {
    let limit = link.timing.answer;
    loop {
        let (sender, receiver) = within(limit, link.connection.accept_bi()).await?;
        match accept_kind(receiver, limit).await? {
            (StreamKind::Renew, receiver) => {
                let from = link.connection.remote_address();
                serve(shared, live, (sender, receiver), (link.timing, from)).await?
            }
            (StreamKind::Clock, _) => clock::tell(&mut FrameSender::new(sender)).await?,
            (kind, receiver) if kind == wanted => return Ok((sender, receiver)),
            (kind, _) => return Err(wrong_kind(kind).closing(&link.connection)),
        }
    }
}
