//! A peer without a certificate: it may ask for one, once, and nothing else.

use super::{Closing, Shared, Trouble, settle, wrong_kind};
use std::sync::Arc;
use tessera_protocol::client::{EnrolReply, EnrolRequest};
use tessera_protocol::limits::REASON_MAX;
use tessera_protocol::stream::StreamKind;
use tessera_transport::close::cut;
use tessera_transport::frame::{accept_kind, within};
use tessera_transport::{FrameSender, Link, PeerIdentity};

pub(super) async fn serve(link: Link, shared: Arc<Shared>) {
    let _closing = Closing(&link);
    let result = exchange(&link, &shared).await;
    if result.is_ok() {
        // The peer closes when it has read the answer.
        let _ = tokio::time::timeout(link.timing.answer, link.connection.closed()).await;
    }
    settle(&link.connection, result);
}

async fn exchange(link: &Link, shared: &Shared) -> Result<(), Trouble> {
    let limit = link.timing.answer;
    let (sender, receiver) = within(limit, link.connection.accept_bi()).await?;
    let (kind, mut receiver) = accept_kind(receiver, limit).await?;
    if kind != StreamKind::Enrol {
        return Err(wrong_kind(kind));
    }
    let request: EnrolRequest = receiver.expect(limit).await?;
    let (authority, now) = (shared.access.authority(), shared.clock.now().secs());
    let admits = |peer: &PeerIdentity| shared.access.admits(peer);
    let reply = match shared.ledger.enrol(&authority, &request, now, admits).await {
        Ok((peer, reply)) => {
            let about = format!("{peer}, from {}", link.connection.remote_address());
            shared
                .access
                .tell(peer.to_string(), "enrolled by a token", about)
                .await
                .map_err(|_| Trouble::Stopping)?;
            tracing::info!(from = %link.connection.remote_address(), %peer, "enrolled");
            reply
        }
        Err(reason) => {
            tracing::warn!(from = %link.connection.remote_address(), reason, "enrolment refused");
            EnrolReply::Refused(cut(&reason, REASON_MAX).to_owned())
        }
    };
    let mut sender = FrameSender::new(sender);
    sender.send(&reply).await?;
    sender.finish();
    Ok(())
}
