//! Housekeeping: forgets old jobs and sweeps blobs that no job names. Decides only when. The core
//! decides which jobs are old, and the sweeper which blobs.

use crate::blobs::sweep::{self, Now, PAUSE, Swept};
use crate::blobs::{Blobs, GuardedBlobs};
use crate::clock::Clock;
use crate::driver::{BlobQuestion, Event};
use crate::uploads::Uploads;
use std::sync::Arc;
use std::time::Duration;
use tessera_core::{Input, Moment};
use tokio::sync::{mpsc, oneshot};

/// Shortest grace. A client names its uploads in a job within seconds, over any network.
const GRACE_MIN: Duration = Duration::from_secs(60);

/// How long things are kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping {
    /// How long blobs are kept that no job names.
    pub(crate) grace: Duration,
    /// How long ended jobs are kept; None: without a limit.
    pub(crate) jobs: Option<Duration>,
}

/// Runs until the coordinator ends.
pub(crate) async fn run(
    keeping: Keeping,
    (blobs, uploads): (GuardedBlobs, Arc<Uploads>),
    clock: Clock,
    events: mpsc::Sender<Event>,
) {
    let grace = keeping.grace.max(GRACE_MIN);
    let pause = PAUSE.min(grace);
    // A little longer than the pause, so that blobs marked in one round are due in the next.
    let mut rounds = tokio::time::interval(pause + Duration::from_secs(1));
    loop {
        rounds.tick().await;
        if let Some(kept) = keeping.jobs {
            let before = Moment(clock.now().0.saturating_sub(kept.as_millis() as u64));
            let forget = Event::Input(Box::new(Input::ForgetEnded { before }));
            if events.send(forget).await.is_err() {
                return;
            }
        }
        match round(&blobs, &uploads, (grace, pause), &events).await {
            None => return,
            Some(swept) if swept.blobs + swept.uploads > 0 => {
                tracing::info!(
                    blobs = swept.blobs,
                    bytes = swept.bytes,
                    uploads = swept.uploads,
                    "swept"
                );
            }
            Some(_) => {}
        }
    }
}

/// Runs one round. Returns None if the coordinator ends.
async fn round(
    blobs: &GuardedBlobs,
    uploads: &Arc<Uploads>,
    times: (Duration, Duration),
    events: &mpsc::Sender<Event>,
) -> Option<Swept> {
    let (reply, named) = oneshot::channel();
    events.send(Event::AboutBlobs(BlobQuestion::Named(reply))).await.ok()?;
    let named = named.await.ok()?;
    let (blobs, uploads) = (blobs.clone(), uploads.clone());
    let swept = tokio::task::spawn_blocking(move || {
        let swept = sweep::round(&blobs, &named.into_iter().collect(), times, Now::read());
        uploads.retain(|hash| blobs.is_kept(hash));
        swept
    });
    swept.await.ok()
}
