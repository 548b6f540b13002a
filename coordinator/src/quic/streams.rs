//! Streams of one connection: each is handled in a task of its own, and only so many at once.

use super::trouble::{Trouble, settle};
use quinn::{Connection, SendStream};
use std::sync::Arc;
use tessera_protocol::stream::StreamKind;
use tessera_transport::frame::accept_kind;
use tessera_transport::{FrameReceiver, Meter, Timing};
use tokio::task::JoinSet;

/// Most streams of one connection that are handled at the same time.
const STREAMS_SERVED_MAX: usize = 256;

/// Handles every two-way stream of a connection in a separate task, until the connection ends.
pub(super) async fn serve_streams<F, Fut>(
    connection: Connection,
    timing: Timing,
    meter: Arc<Meter>,
    serve: F,
) where
    F: Fn(StreamKind, SendStream, FrameReceiver) -> Fut + Clone + Send + Sync + 'static,
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
pub(super) async fn make_room(tasks: &mut JoinSet<()>) {
    while tasks.try_join_next().is_some() {}
    while tasks.len() >= STREAMS_SERVED_MAX {
        tasks.join_next().await;
    }
}
