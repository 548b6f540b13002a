//! A peer without a certificate. It can only ask for one, once.

use super::shared::Shared;
use super::trouble::{Closing, Trouble, settle, wrong_kind};
use std::sync::Arc;
use tessera_protocol::client::EnrolRequest;
use tessera_protocol::stream::StreamKind;
use tessera_transport::frame::{accept_kind, within};
use tessera_transport::{FrameSender, Link};

pub(super) async fn serve(link: Link, shared: Arc<Shared>) {
    let _closing = Closing(&link);
    let result = exchange(&link, &shared).await;
    if result.is_ok() {
        // The peer closes the connection when it has read the answer.
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
    let from = link.connection.remote_address().to_string();
    let reply = shared.api.enrol(&request, &from).await.map_err(|_| Trouble::Stopping)?;
    let mut sender = FrameSender::new(sender);
    sender.send(&reply).await?;
    sender.finish();
    Ok(())
}
