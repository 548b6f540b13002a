//! The resolver: makes the files of one frame after another, off the driver's task.

use crate::blobs::Blobs;
use crate::driver::Event;
use crate::resolve::{Frame, ResolveError, Values, assemble, resolve};
use crate::spool::{SpoolIndex, SpoolKey};
use std::path::PathBuf;
use tessera_core::{Input, ResolveFailure};
use tessera_protocol::job::JobKind;
use tessera_protocol::status::FrameFile;
use tessera_protocol::{Fingerprint, FrameNumber, JobId};
use tokio::sync::mpsc;

/// A frame whose files are wanted.
#[derive(Clone, Debug)]
pub(crate) struct ResolveOrder {
    pub(crate) job: JobId,
    pub(crate) frame: FrameNumber,
    pub(crate) kind: JobKind,
    pub(crate) fingerprint: Option<Fingerprint>,
    /// Durable bytes of the frame's spool.
    pub(crate) length: u64,
}

/// Takes orders, one at a time, until nobody gives any more.
pub(crate) async fn run(
    mut orders: mpsc::UnboundedReceiver<ResolveOrder>,
    (blobs, spools): (Blobs, PathBuf),
    events: mpsc::Sender<Event>,
) {
    while let Some(order) = orders.recv().await {
        let (job, frame) = (order.job, order.frame);
        let (blobs, spools) = (blobs.clone(), spools.clone());
        let made = tokio::task::spawn_blocking(move || make(&order, &blobs, &spools)).await;
        let input = match made {
            Ok(Ok(files)) => Input::FrameResolved { job, frame, files },
            Ok(Err(error)) => {
                tracing::warn!(%job, %frame, error = &error as &dyn std::error::Error, "frame cannot be made");
                Input::FrameResolveFailed { job, frame, failure: error.failure() }
            }
            Err(error) => {
                let failure = ResolveFailure::Fatal(format!("resolving the frame failed: {error}"));
                Input::FrameResolveFailed { job, frame, failure }
            }
        };
        if events.send(Event::Input(Box::new(input))).await.is_err() {
            return;
        }
    }
}

fn make(
    order: &ResolveOrder,
    blobs: &Blobs,
    spools: &std::path::Path,
) -> Result<Vec<FrameFile>, ResolveError> {
    let key = SpoolKey { job: order.job, frame: order.frame };
    let spool = SpoolIndex::read(spools, key, order.length)?;
    let (job, frame, fingerprint) = (order.job, order.frame, order.fingerprint);
    match &order.kind {
        JobKind::Render(spec) => resolve(&Frame { job, frame, spec, fingerprint, spool: &spool }, blobs),
        JobKind::Compute(spec) => assemble(&Values { job, frame, spec, fingerprint, spool: &spool }, blobs),
    }
}
