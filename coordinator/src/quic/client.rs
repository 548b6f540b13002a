//! A person's connection: requests and their answers, and blobs in both directions.

use super::shared::Shared;
use super::streams::serve_streams;
use super::trouble::{Closing, Trouble, wrong_kind};
use super::{clock, renew};
use crate::access::LivePeer;
use crate::api::Caller;
use quinn::SendStream;
use std::sync::Arc;
use tessera_protocol::client::{Request, RequestError};
use tessera_protocol::stream::{BlobRequest, StreamKind};
use tessera_transport::blob::{RangeStreams, answer_get, serve_put};
use tessera_transport::validity::now_secs;
use tessera_transport::{FrameReceiver, FrameSender, Link, Meter};

/// Serves a client until its connection ends.
pub(super) async fn serve(
    link: Link,
    shared: Arc<Shared>,
    (live, meter): (Arc<LivePeer>, Arc<Meter>),
) {
    let _closing = Closing(&link);
    let timing = link.timing;
    let from = link.connection.remote_address();
    let (audited, peer) = (shared.clone(), live.peer().to_string());
    let connection = link.connection.clone();
    let (streams, served) = (Arc::new(RangeStreams::default()), link.connection.clone());
    let serve_one = move |kind, sender: SendStream, mut receiver: FrameReceiver| {
        let (shared, live, streams) = (shared.clone(), live.clone(), streams.clone());
        let connection = served.clone();
        async move {
            if kind == StreamKind::Renew {
                return renew::serve(&shared, &live, (sender, receiver), (timing, from)).await;
            }
            let mut sender = FrameSender::new(sender);
            let caller = Caller::from(live.peer());
            match kind {
                StreamKind::BlobGet => {
                    let request: BlobRequest = receiver.expect(timing.answer).await?;
                    let may_get = shared.api.may_get_blob(&caller, request.hash, request.of);
                    may_get.await.map_err(|error| not_allowed(error).closing(&connection))?;
                    let ends = (&connection, &mut sender);
                    answer_get(&shared.blobs, ends, request, &timing).await?;
                    Ok(())
                }
                StreamKind::BlobPut => {
                    let blobs = shared.api.own_blobs(&caller);
                    let blobs = blobs.map_err(|error| not_allowed(error).closing(&connection))?;
                    let blobs = Arc::new(blobs);
                    let ends = (&mut sender, &mut receiver);
                    serve_put(&blobs, ends, &streams, &timing).await?;
                    Ok(())
                }
                StreamKind::BlobRange => Ok(streams.arrive(receiver, &timing).await?),
                StreamKind::Request => {
                    let request: Request = receiver.expect(timing.answer).await?;
                    let may = live.check(now_secs()).map_err(Trouble::Refused);
                    may.map_err(|refused| refused.closing(&connection))?;
                    let mut answer = shared.api.answer(&caller, request).await;
                    while let Some(response) = answer.next().await {
                        sender.send(&response).await?;
                    }
                    sender.finish();
                    Ok(())
                }
                StreamKind::Clock => clock::tell(&mut sender).await,
                other => Err(wrong_kind(other).closing(&connection)),
            }
        }
    };
    serve_streams(link.connection.clone(), timing, meter, move |kind, sender, receiver| {
        let (audited, peer, connection) = (audited.clone(), peer.clone(), connection.clone());
        let served = serve_one(kind, sender, receiver);
        async move {
            audited.settle(&connection, (&peer, &format!("{kind:?}")), served.await);
            Ok(())
        }
    })
    .await;
}

fn not_allowed(error: RequestError) -> Trouble {
    Trouble::NotAllowed(error.to_string())
}
