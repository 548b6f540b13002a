//! The resolver task: makes the files of one frame after another, and measures rounds, outside the
//! driver's task.

use super::by_nodes::{self, ByNodes, Means};
use super::desk::FilesDesk;
use super::error::ResolveError;
use super::frame::Frame;
use super::order::{ResolveOrder, Wanted};
use super::values::{Values, assemble};
use super::{join, metered_exposure, resolve};
use crate::blobs::{Blobs, GuardedBlobs};
use crate::driver::event::Event;
use crate::measure::noisy_tiles;
use crate::spool::{SpoolIndex, SpoolKey, SpoolReader, StoredResults, maker_of};
use std::collections::BTreeSet;
use std::sync::Arc;
use tessera_core::{FrameRounds, Input, ResolveFailure, TileSet};
use tessera_protocol::job::{JobKind, RenderSpec};
use tessera_protocol::status::FrameFile;
use tessera_protocol::{JobId, NodeId};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Frames that are put together at a time where each of their files takes a while to be stored,
/// because the store of blobs is far away.
const JOINED_AT_ONCE_FAR: usize = 8;

/// Handles orders until the driver ends, one at a time. Files that are put together from pieces
/// take milliseconds, and do not wait for the others. Each outcome goes to the core.
pub(crate) async fn run(
    mut orders: mpsc::UnboundedReceiver<ResolveOrder>,
    stores: (GuardedBlobs, Arc<dyn SpoolReader>),
    (desk, events): (Arc<FilesDesk>, mpsc::Sender<Event>),
) {
    let (blobs, spools) = stores;
    let means = Means { blobs, spools, desk, events };
    let is_far = means.blobs.is_far();
    let (long, long_orders) = mpsc::unbounded_channel();
    let (short, short_orders) = mpsc::unbounded_channel();
    let divide = async move {
        while let Some(order) = orders.recv().await {
            let queue = if order.is_by_nodes(is_far) { &short } else { &long };
            if queue.send(order).is_err() {
                return;
            }
        }
    };
    let joined_at_once = if is_far { JOINED_AT_ONCE_FAR } else { 1 };
    let long = handle(long_orders, means.clone(), 1);
    tokio::join!(divide, long, handle(short_orders, means, joined_at_once));
}

/// Handles orders, so many at a time.
async fn handle(mut orders: mpsc::UnboundedReceiver<ResolveOrder>, means: Means, at_once: usize) {
    let mut under_way = JoinSet::new();
    while let Some(order) = orders.recv().await {
        if under_way.len() >= at_once {
            under_way.join_next().await;
        }
        let means = means.clone();
        under_way.spawn(async move {
            let input = outcome(order, &means).await;
            // Without a driver, nobody wants to know.
            let _ = means.events.send(Event::Input(Box::new(input))).await;
        });
    }
    while under_way.join_next().await.is_some() {}
}

/// Carries one order out, and says to the core what came of it.
async fn outcome(order: ResolveOrder, means: &Means) -> Input {
    let (job, frame) = (order.job, order.frame);
    let joined = match order.is_by_nodes(means.blobs.is_far()) {
        true => by_nodes::join(&order, means).await,
        false => ByNodes::Not,
    };
    match joined {
        ByNodes::Made(files) => Input::FrameResolved { job, frame, files, exposure: None },
        ByNodes::Not => here(order, means).await,
        ByNodes::Disputed(dispute) => {
            let input = here(order, means).await;
            let files = match &input {
                Input::FrameResolved { files, .. } => Some(files.clone()),
                _ => None,
            };
            dispute.settle(files, means).await;
            input
        }
    }
}

/// Carries one order out in this process.
async fn here(order: ResolveOrder, means: &Means) -> Input {
    let (job, frame, wanted) = (order.job, order.frame, order.wanted);
    let (blobs, spools) = (means.blobs.clone(), means.spools.clone());
    let stored = order.extent.stored.clone();
    let made = tokio::task::spawn_blocking(move || make(&order, &blobs, &*spools)).await;
    match made {
        Ok(Ok(input)) => input,
        Ok(Err(error)) => {
            tracing::warn!(%job, %frame, error = &error as &dyn std::error::Error,
                "frame cannot be made");
            let failure = failure_of(wanted, &error);
            doubt(job, (&stored, &failure), means).await;
            Input::FrameResolveFailed { job, frame, failure }
        }
        Err(error) => {
            let failure = ResolveFailure::Fatal(format!("resolving the frame failed: {error}"));
            Input::FrameResolveFailed { job, frame, failure }
        }
    }
}

/// Says whose results in a store elsewhere were not what their nodes had said.
async fn doubt(
    job: JobId,
    (stored, failure): (&[Arc<StoredResults>], &ResolveFailure),
    means: &Means,
) {
    let ResolveFailure::Lost(units, _) = failure else { return };
    let makers: BTreeSet<NodeId> =
        units.iter().filter_map(|unit| maker_of(stored, *unit)).collect();
    for node in makers {
        let input = Box::new(Input::StoredWrong { node, job });
        // Without a driver, nobody wants to know.
        let _ = means.events.send(Event::Input(input)).await;
    }
}

/// Returns why an order failed, for the core. What nodes made of a frame does not make it fail.
fn failure_of(wanted: Wanted, error: &ResolveError) -> ResolveFailure {
    match error.failure() {
        ResolveFailure::Fatal(reason) if wanted == Wanted::Joined => {
            ResolveFailure::Unjoined(reason)
        }
        failure => failure,
    }
}

fn make(
    order: &ResolveOrder,
    blobs: &dyn Blobs,
    spools: &dyn SpoolReader,
) -> Result<Input, ResolveError> {
    let (job, frame) = (order.job, order.frame);
    let spool = SpoolIndex::read(spools, SpoolKey { job, frame }, &order.extent)?;
    match order.wanted {
        Wanted::Files => {
            let (files, exposure) = files(order, blobs, &spool)?;
            Ok(Input::FrameResolved { job, frame, files, exposure })
        }
        Wanted::Joined => {
            let files = joined(order, blobs, &spool)?;
            tracing::debug!(%job, %frame, "frame put together from what nodes finished");
            Ok(Input::FrameResolved { job, frame, files, exposure: None })
        }
        Wanted::Noise => {
            let round = order.rounds.as_ref().map_or(0, FrameRounds::round);
            Ok(Input::RoundMeasured { job, frame, round, noisy: noisy(order, &spool)? })
        }
    }
}

/// Makes the files of a frame, and meters its exposure if it is the frame for that.
fn files(
    order: &ResolveOrder,
    blobs: &dyn Blobs,
    spool: &SpoolIndex,
) -> Result<(Vec<FrameFile>, Option<f32>), ResolveError> {
    let (job, frame, fingerprint) = (order.job, order.frame, order.fingerprint);
    let rounds = order.rounds.as_ref();
    match &order.kind {
        JobKind::Render(spec) => {
            let of = |spec| Frame { job, frame, spec, fingerprint, spool, rounds };
            if spec.metered_frame() != Some(frame) {
                return Ok((resolve(&of(spec), blobs)?, None));
            }
            let exposure = metered_exposure(&of(spec))?;
            let spec = RenderSpec { exposure, ..spec.clone() };
            Ok((resolve(&of(&spec), blobs)?, Some(exposure)))
        }
        JobKind::Compute(spec) => {
            let files = assemble(&Values { job, frame, spec, fingerprint, spool }, blobs)?;
            Ok((files, None))
        }
    }
}

fn joined(
    order: &ResolveOrder,
    blobs: &dyn Blobs,
    spool: &SpoolIndex,
) -> Result<Vec<FrameFile>, ResolveError> {
    let (job, frame, fingerprint) = (order.job, order.frame, order.fingerprint);
    match order.kind.render() {
        Some(spec) => {
            let rounds = order.rounds.as_ref();
            join(&Frame { job, frame, spec, fingerprint, spool, rounds }, blobs)
        }
        None => Err(ResolveError::Encode("only pictures are finished in pieces".into())),
    }
}

fn noisy(order: &ResolveOrder, spool: &SpoolIndex) -> Result<TileSet, ResolveError> {
    match (order.kind.render(), &order.rounds) {
        (Some(spec), Some(rounds)) => noisy_tiles(spec, rounds, spool),
        _ => Ok(TileSet::default()),
    }
}
