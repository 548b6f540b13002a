//! Gives nodes the orders for the files of frames that they were called for, and takes their
//! reports.

use super::shared::Shared;
use super::trouble::Trouble;
use tessera_core::SessionId;
use tessera_protocol::frame_files::{FilesReply, FilesReport, FilesRequest};
use tessera_protocol::limits::FILES_REPORT_MAX;
use tessera_transport::{FrameReceiver, FrameSender, Timing};

/// Serves one order.
pub(super) async fn serve(
    shared: &Shared,
    session: SessionId,
    (sender, receiver): (&mut FrameSender, FrameReceiver),
    (here, timing): (bool, Timing),
) -> Result<(), Trouble> {
    let mut receiver = receiver.limited(FILES_REPORT_MAX);
    let FilesRequest { order } = receiver.expect(timing.answer).await?;
    let taken = shared.files.take(order, session);
    let Some((wanted, tell)) =
        taken.zip(shared.spools.elsewhere()).map(|((wanted, tell), store)| {
            let signing = tokio::task::spawn_blocking(move || wanted.order(&*store, here));
            (signing, tell)
        })
    else {
        sender.send(&FilesReply::Over).await?;
        sender.finish();
        return Ok(());
    };
    let order = wanted.await.map_err(|_| Trouble::Stopping)?;
    let reply = order.map_or(FilesReply::Over, |order| FilesReply::Order(Box::new(order)));
    let is_over = reply == FilesReply::Over;
    sender.send(&reply).await?;
    sender.finish();
    if is_over {
        return Ok(());
    }
    // Who ordered it waits no longer than is useful, and drops its end then.
    if let Some(report) = receiver.receive::<FilesReport>().await? {
        drop(tell.send(report));
    }
    Ok(())
}
